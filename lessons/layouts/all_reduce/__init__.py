"""How devices add up, and what it costs."""
