"""What the planner does not know: pipelines, ZeRO, overlap, recomputation."""
