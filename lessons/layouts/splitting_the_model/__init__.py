"""Model-parallel and spatial-parallel training."""
