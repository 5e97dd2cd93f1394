"""Lesson 1: Mesh and layout."""
