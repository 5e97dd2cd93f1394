"""Puzzles: sixteen layouts and plans to find, on a page of their own."""
