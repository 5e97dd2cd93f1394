"""Optimizers, one small file each: they return updates and never write."""

from course_lib.lazy import face

__getattr__, __dir__ = face(__name__, {"SGD": "sgd", "Optimizer": "optimizer"})
