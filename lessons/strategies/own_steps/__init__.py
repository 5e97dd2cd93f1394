"""What else changes when the step is your own."""
