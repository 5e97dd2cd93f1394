"""The start: the whole game, before any lesson."""
