"""Lesson 11: Many processes."""
