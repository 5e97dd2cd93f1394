"""What to run today: what replicas share, what hides, and which plan is hardly regretted."""
