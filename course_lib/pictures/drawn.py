"""The way in to pictures: importing this module tells `figure` of every kind that can be drawn."""

from course_lib.pictures import (
    communication,
    images,
    loss_scaling,
    reduction,
    ring,
    scheme,
    sharding,
    text_path,
    timeline,
)
from course_lib.pictures.figures import Figure, figure

__all__ = [
    "Figure",
    "communication",
    "figure",
    "images",
    "loss_scaling",
    "reduction",
    "ring",
    "scheme",
    "sharding",
    "text_path",
    "timeline",
]
