"""What large trainings add to a step: accumulation, clipping, bfloat16, a schedule and dropout."""
