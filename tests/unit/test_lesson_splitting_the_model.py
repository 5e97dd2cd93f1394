"""What `splitting_the_model` says of plans and of the records, counted without TensorFlow."""

import itertools
import math

from course_lib import CourseError, MeshSpec
from course_lib.specs.plan import Plan, data_parallel
from lessons.layouts.classifier_step import TENSORS, classifier_step
from tests.code_choices import MODEL_PARALLEL, SPATIAL

SIZES = {"batch": 1_024, "features": 1_200, "hidden": 48, "classes": 2}
MOST_HELD, MOST_SENT = 700_000, 300_000  # what the lesson asks for in the lab
PLANS = {"data": data_parallel(8), "model": MODEL_PARALLEL, "spatial": SPATIAL}


def held(plan, batch_size=1_024):
    sizes = {**SIZES, "batch": batch_size}
    labels = plan.layout(("batch",)).of([batch_size]).bytes_per_device(8)
    return labels + sum(
        plan.layout(axes).of([sizes[axis] for axis in axes]).bytes_per_device(4) for axes in TENSORS.values()
    )


def sent(plan, batch_size=1_024):
    events = classifier_step(plan, {**SIZES, "batch": batch_size}, normalised=True)
    return sum(event.collective.bytes_sent for event in events if event.collective)


def every_plan():
    for count in (1, 2, 3):
        for sizes in itertools.product(range(2, 9), repeat=count):
            if math.prod(sizes) <= 8:
                mesh = MeshSpec(zip("xyz", sizes, strict=False))
                for dims in itertools.product([None, *mesh.names], repeat=3):  # the classes are whole
                    splits = zip(SIZES, dims, strict=False)
                    yield Plan("any", mesh, {axis: dim for axis, dim in splits if dim})


def within_limits(plan):
    try:
        return held(plan) <= MOST_HELD and sent(plan) <= MOST_SENT
    except CourseError:  # no layout, or an axis that does not divide
        return False


def test_only_one_way_to_split_keeps_within_the_limits_of_the_lab():
    found = [plan for plan in every_plan() if within_limits(plan)]
    splits = [{axis: plan.num_shards(axis) for axis in plan.splits} for plan in found]
    assert splits == [{"batch": 2, "features": 4}] * 2  # either dimension may stand first
    costs = {name: (held(plan), sent(plan)) for name, plan in PLANS.items()}
    assert costs == {
        "data": (846_408, 405_580),
        "model": (1_346_344, 175_880),
        "spatial": (1_290_792, 111_536),
    }


def test_which_scheme_holds_and_sends_least_depends_on_the_batch():
    def ranked(count, batch_size):
        return sorted(PLANS, key=lambda name: count(PLANS[name], batch_size))

    assert (ranked(held, 64)[0], ranked(sent, 64)[0]) == ("spatial", "spatial")
    assert (ranked(held, 8_192)[0], ranked(sent, 8_192)[-1]) == ("data", "spatial")
    assert sent(PLANS["data"], 64) == sent(PLANS["data"], 1_024)
    both = Plan("both", MeshSpec([("batch", 8)]), {"batch": "batch", "hidden": "batch"})
    assert 4.25e6 < sent(both) < 4.35e6
