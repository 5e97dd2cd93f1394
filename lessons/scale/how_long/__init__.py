"""How long a training step takes on devices that one does not have."""
