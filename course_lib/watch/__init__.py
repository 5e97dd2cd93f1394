"""Training that the reader watches: live curves, a progress bar, Stop."""
