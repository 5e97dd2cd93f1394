"""Cases: what works is found by running it, each case in a process that may die."""
