"""Widgets for choosing and looking."""
