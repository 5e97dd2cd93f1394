"""Lesson 9: Strategies."""
