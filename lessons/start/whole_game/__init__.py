"""Eight devices, one model: everything once, in fifteen minutes."""
