"""Appendices, which run in environments of their own."""
