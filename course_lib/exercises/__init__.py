"""Exercises that check themselves, and predictions that are asked for."""

# Not loaded when first used, as the names of other packages are: a module `predict` that is imported first,
# by a lesson's exercises, would stand in the way of its function.
from course_lib.exercises.checks import check, yours_or_ours
from course_lib.exercises.predictions import predict, reveal, score

__all__ = ["check", "predict", "reveal", "score", "yours_or_ours"]
