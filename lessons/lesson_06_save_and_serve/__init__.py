"""Lesson 6: Save and serve."""
