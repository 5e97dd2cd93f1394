"""What to run today: which estimates to trust, and which plan is hardly regretted."""
