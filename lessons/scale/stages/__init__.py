"""What the planner does not know: pipelines and recomputation."""
