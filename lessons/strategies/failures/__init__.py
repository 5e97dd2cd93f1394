"""When a machine dies."""
