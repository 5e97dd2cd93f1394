"""Loss scaling: the worked example, every division against one device, words, picture and explorer."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_10_custom_training import loss_scaling_text as words
from lessons.lesson_10_custom_training.loss_scaling import DIVISIONS, LossScaling, split
from lessons.lesson_10_custom_training.loss_scaling_explorer import LossScalingExplorer
from tests.explored import choose, inputs, shown, whole

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
    ("count", "replicas", "sizes"),
    [(4, 2, [2, 2]), (5, 2, [3, 2]), (1, 2, [1, 0]), (5, 4, [2, 2, 1, 0]), (3, 4, [1, 1, 1, 0])],
)
def test_examples_are_split_as_tensorflow_splits_them(count, replicas, sizes):
    parts = split(range(count), replicas)
    assert list(map(len, parts)) == sizes
    assert list(sum(parts, ())) == list(range(count))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: LossScaling([[], []]), "There is no loss in"),
        (lambda: LossScaling([]), "There is no loss in"),
        (lambda: LossScaling([1, 2]), "are not finite numbers"),
        (lambda: LossScaling([[math.nan]]), "are not finite numbers"),
        (lambda: LossScaling([["2"]]), "are not finite numbers"),
        (lambda: LossScaling([[2, 3]], 1), "1 cannot be the batch size"),
        (lambda: LossScaling([[2, 3]], gradients=[[1], [2]]), "The gradients are not those"),
        (lambda: LossScaling([[2]], division="mean"), "not divided by 'mean'.\n.*global, full, replica"),
        (lambda: EXAMPLE.gradient, "The gradients of these losses are not known."),
        (lambda: LossScaling.of_a_line(3, [1, 2], [1], 2), "2 inputs have 1 targets."),
        (lambda: split([1], 0), "0 is no number of replicas."),
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


def test_an_empty_replica_draws_itself_with_the_wrong_gradient_beside_the_right_one():
    scaling = LossScalingExplorer(4, 8, 5, "replica").scaling
    assert (
        scaling.picture().text
        == """
Loss of 5 examples on 4 replicas
Divided by: the replica's own examples

Each replica returns
  replica 0  (2 + 3) / 2 = 2.5
  replica 1  (4 + 5) / 2 = 4.5
  replica 2  6 / 1 = 6
  replica 3  mean over no example = NaN

Loss
       4  true mean
     NaN  sum of the replicas
     NaN  Mean metric

Gradient
       3  true mean
      10  sum of the replicas

✗ The sum is NaN: a replica without an example returned the mean over nothing.
The gradient is 10, 3.333 times the right one, 3.
""".strip()
    )


def arrows(svg: str) -> list[float]:
    """Returns the lengths of the shafts, signed: from where they begin to where they end."""
    found = [each.split('"')[0] for each in svg.split('<path d="M') if "H" in each.split('"')[0]]
    return [float(each.split("H")[1]) - float(each.split(" ")[0]) for each in found]


def test_arrows_are_as_long_as_the_values_and_point_to_their_side():
    picture = LossScaling([[2, 3], [4, 5]], gradients=[[1, 2], [-3, -4]], division="replica").picture()
    loss, gradient = arrows(picture.svg)[:3], arrows(picture.svg)[3:]
    assert [round(each + 8) for each in loss] == [100, 200, 100]
    assert [round(each - 8) for each in gradient] == [-100, -200]


@given(scalings())
@settings(max_examples=30, deadline=None)
def test_every_scaling_has_a_picture_without_nan_in_its_places(scaling):
    assert not re.search(r'="[^"]*(nan|inf)', scaling.picture().svg)
    assert words.sentences(scaling)


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


def test_a_page_has_every_choice_and_each_input_leads_where_it_says():
    explorer = LossScalingExplorer()
    table = page_table(explorer)
    states = [
        {"num_replicas": replicas, "batch_size": size, "num_examples": count, "division": division}
        for replicas in (2, 4)
        for size in (4, 8)
        for count in range(1, size + 1)
        for division in DIVISIONS
    ]
    assert sorted(table["keys"]) == sorted(map(key, states))
    for state in states[::17]:
        place = table["keys"].index(key(state))
        view = whole(table, table["views"][place])
        assert view == shapes.to_json(explorer.tree(state, page=True))
        for option, after in zip(inputs(view), table["leads_to"][place], strict=True):
            (name,), value = json.loads(option["data-path"]), json.loads(option["data-value"])
            assert table["keys"][after] == key(explorer.settled({**state, name: value}, page=True))
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < 320_000
    assert '"table":"loss_scaling.en.json"' in explorer.to_html()


def test_it_speaks_the_readers_language():
    set_language("ja")
    try:
        text = LossScalingExplorer(division="replica").to_html()
    finally:
        set_language("en")
    assert "レプリカの合計は7で、正しい平均3.5とは異なります。" in text
