"""A run that you can watch, stop and resume."""
