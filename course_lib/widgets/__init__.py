"""What every widget shares: its base, and the ES modules that a notebook and a page both load."""
