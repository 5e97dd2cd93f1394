"""Training scripts of several processes, which a reader can run by hand on real machines."""
