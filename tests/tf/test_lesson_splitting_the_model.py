"""What `splitting_the_model` says of a step and does not show."""

import numpy as np
import pytest

import course_lib
from course_lib import collectives, shard
from tests.course import COURSE, from_lesson, program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
MESH = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
ROWS = dtensor.Layout(["batch", WHOLE], MESH)


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def variable(array, *entries):
    return dtensor.DVariable(shard(array, dtensor.Layout(entries, MESH)))


@pytest.mark.parametrize(("relaid", "gathers"), [(False, 3), (True, 1)])
def test_adam_gathers_the_gradient_of_a_whole_variable_three_times(relaid, gathers):
    hidden = shard(drawn(64, 48), dtensor.Layout(["batch", "model"], MESH))
    weight, mean, square = (
        variable(array, WHOLE, WHOLE) for array in (drawn(48, 2), *np.zeros([2, 48, 2], "float32"))
    )

    def step(hidden):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((hidden @ weight) ** 2)
        gradient = tape.gradient(loss, weight)
        if relaid:
            gradient = dtensor.relayout(gradient, weight.layout)
        new_mean = 0.9 * mean + 0.1 * gradient
        new_square = 0.999 * square + 0.001 * gradient**2
        mean.assign(new_mean)
        square.assign(new_square)
        weight.assign_sub(0.01 * new_mean / (tf.sqrt(new_square) + 1e-7))

    found = collectives(step, hidden)
    assert [each.payload_bytes for each in found if each.mesh_dims == ("model",)][1:] == [384] * gathers


@pytest.mark.parametrize(("first_whole", "more"), [(False, [36_864]), (True, [])])
def test_a_relayout_that_cuts_a_sum_costs_bytes_in_the_backward_pass(first_whole, more):
    halves = dtensor.Layout(["batch", "model"], MESH)
    stream, hidden = shard(drawn(64, 48), ROWS), shard(drawn(64, 192), halves)
    down = variable(drawn(192, 48), "model", WHOLE)

    def forward(stream, hidden):
        after = stream + hidden @ down
        return dtensor.relayout(dtensor.relayout(after, ROWS) if first_whole else after, halves)

    def gradients(stream, hidden):
        with tf.GradientTape() as tape:
            tape.watch([stream, hidden])
            loss = tf.reduce_sum(forward(stream, hidden) ** 2)
        return tape.gradient(loss, [stream, hidden, down])

    def over_model(function):
        found = collectives(function, stream, hidden)
        return [each.payload_bytes for each in found if "model" in each.mesh_dims]

    assert over_model(forward) == [3_072]
    assert over_model(gradients) == [3_072, 3_072, *more]


@pytest.mark.parametrize("split", [(), ("hidden",), ("hidden", "first")])
@pytest.mark.parametrize("stream_layout", [None, ROWS])
def test_the_residual_network_trains_as_on_one_device_in_every_layout(split, stream_layout):
    plain = program("splitting_the_model")
    splits = {"batch": "batch", **dict.fromkeys(split, "model")}
    layouts = plain.make_layouts(plain.axes, splits, MESH)
    one, cut = plain.Residual(plain.values), plain.Residual(plain.values, layouts, stream_layout)
    for rows in (slice(0, 64), slice(64, 128)):
        x, y = plain.train_x[rows], plain.train_y[rows]
        expected, _ = plain.train_step(one, tf.constant(x), tf.constant(y), 0.5)
        loss, _ = plain.train_step(cut, shard(x, layouts["x"]), shard(y, layouts["y"]), 0.5)
        assert float(loss) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.drill
def test_two_devices_with_little_memory_train_as_one_that_has_enough(tmp_path):
    run_devices = from_lesson("splitting_the_model.device_processes", "run_devices")
    (cell,) = (each for each in COURSE.lesson("splitting_the_model").cells if each.cell_id == "one-device")
    source = cell.source.partition("\n")[2]
    (tmp_path / "limited.py").write_text(source)
    (tmp_path / "unlimited.py").write_text(source.replace("LIMIT = ", "LIMIT = 100 * "))
    (whole,) = run_devices(str(tmp_path / "unlimited.py"), 1)
    assert "step 4" in whole
    assert run_devices(str(tmp_path / "limited.py"), 2) == [whole, whole]
