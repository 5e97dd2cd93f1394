"""Scale: thousands of devices."""
