"""Many processes."""
