"""Lesson 5: Model-parallel and spatial-parallel training."""
