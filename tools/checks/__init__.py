"""What must hold for lessons, translations and stored outputs."""
