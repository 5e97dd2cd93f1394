"""Scaling out."""
