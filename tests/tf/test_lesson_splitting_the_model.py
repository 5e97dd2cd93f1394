"""What `splitting_the_model` says of a step and does not show."""

import numpy as np
import pytest

import course_lib
from course_lib import collectives, shard

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
