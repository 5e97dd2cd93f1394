"""The lessons: a folder each, with all that belongs to it alone."""
