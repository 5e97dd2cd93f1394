"""What makes and checks the course: lessons, catalogues, rules, the book."""
