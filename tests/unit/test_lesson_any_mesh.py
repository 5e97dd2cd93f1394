"""What `any_mesh` says of plans, counted without TensorFlow."""

import itertools
import math

from course_lib import CourseError, MeshSpec
from course_lib.specs.plan import Plan, data_parallel
from lessons.layouts.classifier_step import TENSORS, classifier_step
from tests.code_choices import MODEL_PARALLEL, SPATIAL

SIZES = {"batch": 1_024, "features": 1_200, "hidden": 48, "classes": 2}
MOST_HELD, MOST_SENT = 900_000, 300_000  # what the lesson asks for in the lab
PLANS = {"data": data_parallel(8), "model": MODEL_PARALLEL, "spatial": SPATIAL}


def held(plan):
    """Returns the bytes of variables, gradients, Adam's two averages, rows and labels on a device."""

    def bytes_of(axes, size=4):
        shape = [SIZES[axis] for axis in axes]
        return plan.layout(axes).of(shape, element_bytes=size).bytes_per_device()

    variables = sum(bytes_of(axes) for name, axes in TENSORS.items() if name != "x")
    return 4 * variables + bytes_of(TENSORS["x"]) + bytes_of(("batch",), 8)


def found(plan, batch_size=1_024):
    events = classifier_step(plan, {**SIZES, "batch": batch_size})
    return [event.collective for event in events if event.collective]


def sent(plan, batch_size=1_024):
    return sum(each.bytes_sent for each in found(plan, batch_size))


def every_plan():
    for count in (1, 2, 3):
        for sizes in itertools.product(range(2, 9), repeat=count):
            if math.prod(sizes) <= 8:
                mesh = MeshSpec(zip("xyz", sizes, strict=False))
                for dims in itertools.product([None, *mesh.names], repeat=3):  # the classes are whole
                    splits = zip(SIZES, dims, strict=False)
                    yield Plan("any", mesh, {axis: dim for axis, dim in splits if dim})


def costs():
    """Yields how many ways each axis is split, what is held and what is sent, under each legal plan."""
    for plan in every_plan():
        try:
            yield {axis: plan.num_shards(axis) for axis in plan.splits}, held(plan), sent(plan)
        except CourseError:  # no layout, or an axis that does not divide
            continue


def test_the_puzzle_of_the_lab_has_the_answer_that_the_lesson_gives_and_no_other():
    every = list(costs())
    within = [each for each in every if each[1] < MOST_HELD and each[2] < MOST_SENT]
    assert within == [({"batch": 2, "features": 4}, 851_232, 205_648)] * 2  # either dimension may stand first
    assert ({"features": 8}, 740_128, 344_064) in every
    assert ({"batch": 4, "features": 2}, 1_079_584, 222_840) in every
    assert {name: held(plan) for name, plan in PLANS.items()} == {
        "data": 1_539_360,
        "model": 1_692_832,
        "spatial": 1_464_480,
    }
    less = [each for each in every if each[1] < MOST_HELD and "hidden" in each[0]]
    assert min(each[2] for each in less) > 770_000


def test_the_prediction_about_time_counts_messages_and_bytes():
    messages = {
        name: sum(2 * (each.group_size - 1) for each in found(plan, 64)) for name, plan in PLANS.items()
    }
    assert messages == {"data": 84, "model": 38, "spatial": 16}
    assert {name: sent(plan, 64) for name, plan in PLANS.items()} == {
        "data": 404_236,
        "model": 173_384,
        "spatial": 61_232,
    }
