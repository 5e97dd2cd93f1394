"""Training: runs that yield records, can be stopped after any of them, and resume to the bit."""
