"""Lesson 2: What communication a layout costs."""
