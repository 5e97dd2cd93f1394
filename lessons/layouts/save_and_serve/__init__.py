"""Save and serve."""
