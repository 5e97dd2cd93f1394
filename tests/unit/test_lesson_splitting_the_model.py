"""What `splitting_the_model` says of plans and of the records, counted without TensorFlow."""

import itertools
import math

from course_lib import CourseError, MeshSpec
from course_lib.measured.files import load
from course_lib.measured.trainings import history
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from tests.course import from_lesson

step_exchanges = from_lesson("splitting_the_model.step_communication", "step_exchanges")

SIZES = {"batch": 1_024, "features": 1_200, "hidden": 48, "classes": 2}
MOST_HELD, MOST_SENT = 700_000, 300_000  # what the lesson asks for in the lab
PLANS = {"data": data_parallel(8), "model": model_parallel(4, 2), "spatial": spatial_parallel()}
AXES = {"x": ("batch", "features"), "W1": ("features", "hidden"), "b1": ("hidden",)}
AXES |= {"W2": ("hidden", "classes"), "b2": ("classes",)}


def held(plan, batch_size=1_024):
    sizes = {**SIZES, "batch": batch_size}
    labels = plan.layout(("batch",)).of([batch_size]).bytes_per_device(8)
    return labels + sum(
        plan.layout(axes).of([sizes[axis] for axis in axes]).bytes_per_device(4) for axes in AXES.values()
    )


def sent(plan, batch_size=1_024):
    exchanges = step_exchanges(plan, AXES, {**SIZES, "batch": batch_size})
    return sum(each.collective.bytes_sent for each in exchanges)


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


def test_the_real_runs_from_equal_values_part_at_one_place_and_drift_apart():
    runs = load("splitting_the_model-schemes_imdb").equal
    one, *others = (history(run).steps for run in runs.values())
    for steps in others:
        gaps = {
            ours["step"]: abs(ours["loss"] - theirs["loss"]) for ours, theirs in zip(steps, one, strict=True)
        }
        # The record has four digits after the point, so that two of them may round apart.
        assert max(gap for step, gap in gaps.items() if step <= 240) <= 1.01e-4
        assert all(gaps[step] > 3.5e-4 for step in (244, 245))
        assert all(gaps[step] > 5e-3 for step in (247, 248))
        assert max(gap for step, gap in gaps.items() if step > 250) > 0.01
    assert 0.02 < max(run.whole.loss for run in runs.values() if "whole" in run) < 0.035
    assert 0.75 < max(run.whole.weights for run in runs.values() if "whole" in run) < 0.85
    _first, second, third = zip(*(run.epochs[0] for run in runs.values()), strict=True)
    assert {f"{epoch.test_accuracy:.2f}" for epoch in second} == {"0.83", "0.85"}
    assert {f"{epoch.test_accuracy:.2f}" for epoch in third} == {"0.86"}


def test_the_real_runs_from_one_checkpoint_stay_together():
    runs = load("splitting_the_model-schemes_imdb").continued
    assert all(len(run.losses) == 390 for run in runs.values())
    assert max(run.whole.loss for run in runs.values() if "whole" in run) < 1e-5
