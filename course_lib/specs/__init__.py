"""What is said about devices and tensors, without TensorFlow: meshes, layouts, shardings, plans."""
