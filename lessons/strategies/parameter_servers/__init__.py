"""Training with parameter servers, and what a stale gradient costs."""
