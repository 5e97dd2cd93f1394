"""Exercises that check themselves, and predictions that are asked for."""

from course_lib.exercises.checks import check, yours_or_ours
from course_lib.exercises.predictions import predict, reveal, score

__all__ = ["check", "predict", "reveal", "score", "yours_or_ours"]
