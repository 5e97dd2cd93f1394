"""Loss scaling: the worked example, every division against one device, words, picture and explorer."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError
from lessons.lesson_10_custom_training.loss_scaling import DIVISIONS, LossScaling
from lessons.lesson_10_custom_training.loss_scaling_explorer import LossScalingExplorer
from tests.explored import choose, shown

EXAMPLE = LossScaling([[2, 3], [4, 5]])


@st.composite
def scalings(draw, least_replicas: int = 1) -> LossScaling:
    count, size = draw(st.integers(least_replicas, 5)), draw(st.integers(1, 12))
    line = LossScaling.of_a_line(
        draw(st.integers(-4, 4)),
        draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size)),
        draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size)),
        count,
        batch_size=size + draw(st.integers(0, 5)),
    )
    return line.divided(draw(st.sampled_from(DIVISIONS)))


def test_the_worked_example():
    assert EXAMPLE.reports == (1.25, 2.25)
    assert (EXAMPLE.total, EXAMPLE.mean, EXAMPLE.metric) == (3.5, 3.5, 1.75)
    assert EXAMPLE.is_right


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
    line = LossScaling.of_a_line(3, [1, 2, 3], [1, 3, 5], 2, batch_size=4, division=division)
    assert (line.losses, line.gradients) == (((2, 3), (4,)), ((1, 2), (3,)))
    assert line.reports == pytest.approx(reports)
    assert line.gradient == pytest.approx(gradient)
    assert (line.mean, line.true_gradient) == (3, 2)
    assert line.is_right == (division == "global")


def test_a_mean_over_no_example_is_nan_and_its_gradient_is_0():
    empty = LossScaling([[2], []], gradients=[[1], []], division="replica")
    assert math.isnan(empty.reports[1])
    assert math.isnan(empty.total)
    assert math.isnan(empty.metric)
    assert empty.gradient_reports == (1, 0)
    assert not empty.is_right
    assert [empty.divided(each).reports[1] for each in ("global", "full", "keras", "twice")] == [0] * 4


@given(scalings())
@settings(max_examples=60, deadline=None)
def test_dividing_by_the_global_batch_is_what_one_device_does(scaling):
    one = LossScaling(
        [sum(scaling.losses, ())],
        scaling.batch_size,
        gradients=[sum(scaling.gradients, ())],
        division="replica",
    )
    right = scaling.divided("global")
    assert right.is_right
    assert right.total == pytest.approx(one.total)
    assert right.gradient == pytest.approx(one.gradient)
    count = sum(len(part) for part in scaling.losses)
    assert right.mean == pytest.approx(float(Fraction(sum(map(sum, scaling.losses))) / count))


@given(scalings(least_replicas=2))
@settings(max_examples=60, deadline=None)
def test_when_the_other_divisions_are_right(scaling):
    sizes = list(map(len, scaling.losses))
    if scaling.division == "full" and sum(sizes) == scaling.batch_size:
        assert scaling.is_right
    if scaling.division == "keras" and len(set(sizes)) == 1:
        assert scaling.is_right
    if scaling.division in ("replica", "twice") and len(set(sizes)) == 1 and scaling.mean:
        times = scaling.num_replicas if scaling.division == "replica" else 1 / scaling.num_replicas
        assert scaling.total == pytest.approx(times * scaling.mean)
        assert scaling.gradient == pytest.approx(times * scaling.true_gradient)
        assert not scaling.is_right


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: LossScaling([[], []]), "There is no loss in"),
        (lambda: LossScaling([]), "There is no loss in"),
        (lambda: LossScaling([[2, 3]], 1), "1 cannot be the batch size"),
        (lambda: LossScaling([[2]], division="mean"), "not divided by 'mean'.\n.*global, full, replica"),
        (lambda: EXAMPLE.gradient, "The gradients of these losses are not known."),
        (lambda: LossScalingExplorer(3), "3 is no number of replicas for this explorer.\n.*2, 4"),
        (lambda: LossScalingExplorer(batch_size=6), "6 is no batch size"),
        (lambda: LossScalingExplorer(num_examples=5), "cannot have 5 examples.\n.*from 1 to 4"),
        (lambda: LossScalingExplorer(division="sum"), "not divided by 'sum'"),
    ],
)
def test_what_has_no_loss_is_refused(make, problem):
    with pytest.raises(CourseError, match=problem):
        make()


# Words and pictures


def test_the_worked_example_draws_itself():
    assert (
        EXAMPLE.picture().text
        == """
Loss of 4 examples on 2 replicas
Divided by: examples of this global batch

Each replica returns
  replica 0  (2 + 3) / 4 = 1.25
  replica 1  (4 + 5) / 4 = 2.25

Loss
     3.5  true mean
     3.5  sum of the replicas
    1.75  Mean metric

✓ The sum of the replicas is the true mean, 3.5.
A Mean metric over what the replicas return shows 1.75, too small by the number of replicas: give it the losses of the examples.
""".strip()  # noqa: E501
    )


# The explorer


def test_the_explorer_begins_with_the_worked_example_and_follows_clicks():
    explorer = LossScalingExplorer()
    assert explorer.scaling.losses == EXAMPLE.losses
    assert shown(explorer, "told")[0].startswith("✓ The sum of the replicas is the true mean, 3.5.")
    choose(explorer, "division", "replica")
    assert shown(explorer, "told") == [
        "✗ The sum of the replicas is 7, not the true mean, 3.5."
        " The gradient is 5, 2 times the right one, 2.5."
    ]
    assert shown(explorer, "listing") == ["tf.reduce_mean(losses)"]
    choose(explorer, "batch_size", 8)
    choose(explorer, "num_examples", 7)
    choose(explorer, "num_replicas", 4)
    assert list(map(len, explorer.scaling.losses)) == [2, 2, 2, 1]
    choose(explorer, "batch_size", 4)
    assert explorer.state["num_examples"] == 4
