"""What DTensor gets right: a table of operations, made by running each under each layout."""
