"""What each Keras distributes, and which strategy works with which API: programs, and their two tables."""
