"""Lesson 3: One training step on eight devices."""
