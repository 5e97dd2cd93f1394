"""Mesh and layout."""
