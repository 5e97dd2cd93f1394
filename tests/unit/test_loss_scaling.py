"""Loss scaling: every division by hand, words, picture and explorer; tests/tf has what TensorFlow gives."""

from __future__ import annotations

import math

import pytest

from course_lib import CourseError
from tests.course import from_lesson
from tests.explored import shown

DIVISIONS, LossScaling = from_lesson("custom_training.loss_scaling", "DIVISIONS", "LossScaling")
LossScalingExplorer = from_lesson("custom_training.loss_scaling_explorer", "LossScalingExplorer")


@pytest.mark.parametrize(
    ("division", "reports", "gradient"),
    [
        ("global", (5 / 3, 4 / 3), 2.0),
        ("full", (5 / 4, 1.0), 1.5),
        ("replica", (2.5, 4.0), 4.5),
        ("keras", (1.25, 2.0), 2.25),
        ("twice", (0.625, 1.0), 1.125),
    ],
)
def test_an_uneven_last_batch_by_hand(division, reports, gradient):
    """Losses 2 and 3, and 4; gradients 1 and 2, and 3: their means are 3 and 2."""
    scaling = LossScaling(2, 4, 3, division)
    assert (scaling.losses, scaling.gradients) == (((2, 3), (4,)), ((1, 2), (3,)))
    assert scaling.reports == pytest.approx(reports)
    assert scaling.gradient == pytest.approx(gradient)
    assert (scaling.mean, scaling.true_gradient) == (3, 2)


def test_a_mean_over_no_example_is_nan_and_its_gradient_is_0():
    empty = LossScaling(2, 4, 1, "replica")
    assert math.isnan(empty.reports[1])
    assert math.isnan(empty.total)
    assert empty.gradient_reports == (1, 0)
    assert [LossScaling(2, 4, 1, each).reports[1] for each in ("global", "full", "keras", "twice")] == [0] * 4
    assert shown(LossScalingExplorer(2, 4, 1, "replica"), "told") == [
        "✗ The sum is NaN: a replica without an example returned the mean over nothing."
        " The gradient is right."
    ]


@pytest.mark.parametrize("replicas", [2, 4])
def test_with_full_batches_and_equal_parts_three_divisions_are_right(replicas):
    scalings = [LossScaling(replicas, 8, 8, each) for each in DIVISIONS]
    assert [each.division for each in scalings if each.total == each.mean] == ["global", "full", "keras"]


@pytest.mark.parametrize(
    ("choices", "problem"),
    [({"num_examples": 5}, "num_examples is 5.\n.*1, 2, 3, 4"), ({"division": "sum"}, "division is 'sum'")],
)
def test_what_is_not_offered_is_refused(choices, problem):
    with pytest.raises(CourseError, match=problem):
        LossScalingExplorer(**choices)
