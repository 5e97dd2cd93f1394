"""The TensorFlow side: real meshes, layouts and components, the collectives that ran, verdicts."""
