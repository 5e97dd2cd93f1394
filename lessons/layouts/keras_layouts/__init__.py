"""DTensor and Keras."""
