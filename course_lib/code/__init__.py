"""The code that makes a choice of mesh and layout, in TensorFlow, JAX and PyTorch, to copy."""
