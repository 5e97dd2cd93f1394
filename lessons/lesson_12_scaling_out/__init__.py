"""Lesson 12: Scaling out."""
