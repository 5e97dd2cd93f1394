"""Makes the library's built-in data: film reviews, digits and garments that stand in for real ones."""
