"""One training step on eight devices."""
