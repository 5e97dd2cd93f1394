"""A transformer block."""
