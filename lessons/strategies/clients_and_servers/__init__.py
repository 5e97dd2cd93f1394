"""Clients of a mesh, and parameter servers."""
