"""The exercises of lesson 04; importing it registers those of its other modules."""

from __future__ import annotations

import math

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.i18n import _
from lessons.lesson_04_a_run import checks_break_even as lesson_04_break_even  # noqa: F401 - each registers what it holds
from lessons.lesson_04_a_run import checks_evaluation as lesson_04_evaluation  # noqa: F401 - each registers what it holds
from lessons.lesson_04_a_run import checks_moving_average as lesson_04_moving_average  # noqa: F401 - each registers what it holds


@exercise(
    "04-learning-rate",
    right=0.64,
    wrong=[
        (0.01, "64 times smaller"),
        (0.01 / 64, "wrong way"),
        (0.08, "counts the devices, or takes a root"),
        (0.00125, "counts the devices"),
        (64, "by how much"),
        (1.0, "the gradient of the mean"),
        (np.array([0.01]), "64 times smaller"),
    ],
    also=[np.float16(0.64)],
)
def learning_rate(answer: float) -> str | None:
    """The learning rate on the mean that equals 0.01 on the sum of 64."""
    devices = _("That counts the devices. How many losses does the sum add up?")
    hints = {
        0.01: _("With the same rate every update is 64 times smaller: the mean is the sum divided by 64."),
        0.01 / 64: _(
            "That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger."
        ),
        0.08: _(
            "8 times the rate counts the devices, or takes a root of 64. How many losses does the sum add up?"
        ),
        0.01 / 8: devices,
        64: _("That is by how much the rate changes. What is the rate then?"),
    }
    for wrong, hint in hints.items():
        if _near(answer, wrong):
            return hint
    if not _near(answer, 0.64):
        return _("Compare the gradient of the sum with the gradient of the mean over 64 reviews.")
    return None


def _near(answer: float, value: float) -> bool:
    """Returns whether an answer is the value up to the rounding of a float16."""
    return math.isclose(answer, value, rel_tol=1e-3)
