"""What lesson 05 says of plans, counted without TensorFlow."""

import itertools
import math

import pytest

from course_lib import CourseError, MeshSpec
from course_lib.measured import batch_sizes, schemes, step_parts
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.specs.step_communication import step_collectives
from lessons.lesson_05_model_and_spatial.checks import MOST_HELD, MOST_SENT, SIZES

AXES = ("batch", "features", "hidden", "classes")
# The batch, the weights, the biases and the moving moments.
HELD = [
    ("batch", "features"),
    ("features", "hidden"),
    ("hidden",),
    ("hidden", "classes"),
    ("classes",),
    ("hidden",),
    ("hidden",),
]


def held(plan, sizes=SIZES):
    return sum(plan.layout(axes).of([sizes[axis] for axis in axes]).bytes_per_device(4) for axes in HELD)


def meshes():
    for count in (1, 2, 3):
        for sizes in itertools.product(range(2, 9), repeat=count):
            if math.prod(sizes) <= 8:
                yield MeshSpec(zip("xyz", sizes, strict=False))


def within_limits():
    for mesh in meshes():
        for dims in itertools.product([None, *mesh.names], repeat=len(AXES)):
            plan = Plan("any", mesh, {axis: dim for axis, dim in zip(AXES, dims, strict=True) if dim})
            try:
                fits = held(plan) <= MOST_HELD and step_collectives(plan, SIZES).bytes_sent <= MOST_SENT
            except CourseError:  # no layout, or an axis that does not divide
                continue
            if fits:
                yield {axis: mesh.dim_size(dim) for axis, dim in plan.splits.items()}


def test_only_one_way_to_split_keeps_within_the_limits_of_the_exercise():
    assert list(within_limits()) == [{"batch": 2, "features": 4}] * 2  # either dimension may stand first


@pytest.mark.parametrize(
    ("plan", "bytes_held", "bytes_sent"),
    [
        (data_parallel(8), 845_768, 407_596),
        (model_parallel(4, 2), 1_344_488, 176_168),
        (spatial_parallel(), 1_286_888, 111_536),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_none_of_the_three_schemes_does(plan, bytes_held, bytes_sent):
    assert (held(plan), step_collectives(plan, SIZES).bytes_sent) == (bytes_held, bytes_sent)
    assert bytes_held > MOST_HELD


def test_which_of_the_three_schemes_holds_and_sends_least_depends_on_the_batch():
    plans = {"data": data_parallel(8), "model": model_parallel(4, 2), "spatial": spatial_parallel()}

    def ranked(count, batch_size):
        sizes = {**SIZES, "batch": batch_size}
        return sorted(plans, key=lambda name: count(plans[name], sizes))

    def sent(plan, sizes):
        return step_collectives(plan, sizes).bytes_sent

    assert (ranked(held, 64)[0], ranked(sent, 64)[0]) == ("spatial", "spatial")
    assert (ranked(held, 8_192)[0], ranked(sent, 8_192)[-1]) == ("data", "spatial")


def test_what_is_sent_grows_with_the_batch_only_where_activations_are_split():
    def sent(plan, batch_size):
        return step_collectives(plan, {**SIZES, "batch": batch_size}).bytes_sent

    assert sent(data_parallel(8), 64) == sent(data_parallel(8), 1_024)
    assert sent(spatial_parallel(), 1_024) / sent(spatial_parallel(), 64) == pytest.approx(1.81, abs=0.005)


def test_the_real_runs_from_equal_values_drift_apart_as_the_lesson_says():
    runs = schemes.load("imdb").equal
    assert 0.02 < max(run.whole.loss for run in runs.values() if run.whole) < 0.035
    _first, second, third = zip(*(run.history.epochs for run in runs.values()), strict=True)
    assert {f"{epoch.test_accuracy:.2f}" for epoch in second} == {"0.83", "0.85"}
    assert {f"{epoch.test_accuracy:.2f}" for epoch in third} == {"0.86"}


def test_the_real_runs_from_equal_values_part_at_one_place():
    one, *others = (run.history.steps for run in schemes.load("imdb").equal.values())
    for steps in others:
        gaps = {ours.step: abs(ours.loss - theirs.loss) for ours, theirs in zip(steps, one, strict=True)}
        # The record has four digits after the point, so that two of them may round apart.
        assert max(gap for step, gap in gaps.items() if step <= 240) <= 1.01e-4
        assert all(gaps[step] > 3.5e-4 for step in (244, 245))
        assert all(gaps[step] > 5e-3 for step in (247, 248))
        assert max(gap for step, gap in gaps.items() if step > 250) > 0.01


def test_a_weight_of_the_real_runs_from_equal_values_differs_as_the_lesson_says():
    runs = schemes.load("imdb").equal.values()
    assert 0.75 < max(run.whole.weights for run in runs if run.whole) < 0.85


def test_the_real_runs_from_one_checkpoint_stay_together_as_the_lesson_says():
    runs = schemes.load("imdb").continued
    assert all(len(run.history.steps) == 390 for run in runs.values())
    assert max(run.whole.loss for run in runs.values() if run.whole) < 1e-5


def test_the_first_steps_of_the_real_runs_agree():
    measured = schemes.load("imdb")
    both = (*measured.equal.values(), *measured.continued.values())
    assert max(run.first.loss for run in both if run.first) < 1e-4


def test_in_each_plan_a_device_makes_an_eighth_of_the_multiplications_of_the_first_product():
    for plan in (data_parallel(8), model_parallel(4, 2), spatial_parallel()):
        splits = [plan.num_shards(axis) for axis in ("batch", "features", "hidden")]
        assert math.prod(splits) == 8


def test_in_the_records_a_step_of_one_device_takes_less_time_than_that_of_any_scheme():
    (one,) = (each for each in batch_sizes.recorded().times if each.batch_size == 64)
    assert one.one_device_seconds < min(parts.step for parts in step_parts.recorded().schemes.values())


def test_in_the_records_each_split_adds_a_collective_and_saves_bytes():
    parts = step_parts.recorded().schemes.values()
    assert [each.num_collectives for each in parts] == [3, 4, 5]
    data, model, spatial = (each.payload_bytes for each in parts)
    assert data > model > spatial


def test_in_the_records_the_collectives_take_most_of_a_step_and_fewer_bytes_less_time():
    parts = step_parts.recorded().schemes
    assert all(each.exchanges > 0.5 * each.step for each in parts.values())
    assert sorted(parts, key=lambda name: parts[name].step) == ["spatial", "model", "data"]


def test_splitting_batch_and_hidden_units_over_one_dimension_sends_ten_times_as_much():
    sizes = {**SIZES, "batch": 1_024}
    both = Plan("both", MeshSpec([("batch", 8)]), {"batch": "batch", "hidden": "batch"})
    assert 4.25e6 < step_collectives(both, sizes).bytes_sent < 4.35e6
    assert 0.35e6 < step_collectives(data_parallel(8), sizes).bytes_sent < 0.45e6


def test_in_the_records_three_parts_account_for_nine_tenths_of_a_step():
    assert all(0.85 < each.explained < 0.95 for each in step_parts.recorded().schemes.values())


def test_the_recorded_bytes_are_those_predicted_with_the_joined_gradients_padded():
    plans = {"data": data_parallel(8), "model": model_parallel(4, 2), "spatial": spatial_parallel()}
    for name, parts in step_parts.recorded().schemes.items():
        total = 0
        for each in step_collectives(plans[name], {**SIZES, "batch": 64}).exchanges:
            what, num_bytes = str(each).partition(":")[0], each.collective.payload_bytes
            if what.startswith("gradient of"):
                total += math.ceil(num_bytes / 1_024) * 1_024
            elif what not in ("loss", "right answers"):
                total += num_bytes
        assert total == parts.payload_bytes, name
