"""Lesson 8: DTensor and Keras."""
