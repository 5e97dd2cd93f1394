"""The way in to pictures: importing this module tells `figure` of every kind that can be drawn."""

from course_lib.pictures import (
    communication,
    confusion,
    images,
    loss_scaling,
    received,
    reduction,
    ring,
    scheme,
    sharding,
    strategy,
    text_path,
    timeline,
)
from course_lib.pictures.figures import Figure, figure

__all__ = [
    "Figure",
    "communication",
    "confusion",
    "figure",
    "images",
    "loss_scaling",
    "received",
    "reduction",
    "ring",
    "scheme",
    "sharding",
    "strategy",
    "text_path",
    "timeline",
]
