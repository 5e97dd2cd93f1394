"""The predicted order of lesson 3's step against the all-reduces that TensorFlow really inserts."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib.dtensor import pack
from course_lib.models import initial_values
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from lessons.lesson_03_one_step.step import mlp_step
from tests.tf.collectives import count_collectives

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")

AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}
SIZES = (16, 8, 2)
GROUP_SIZE = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"  # 1: none becomes part of another


def make_step(plan: Plan, *, normalised: bool = True):
    values = initial_values(dims=SIZES)
    model = {name: dtensor.DVariable(pack(values[name], plan.layout(axes))) for name, axes in AXES.items()}

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(inputs, model["hidden_weight"]) + model["hidden_bias"])
            if normalised:
                moments = tf.nn.moments(hidden, axes=[0])
                hidden = tf.nn.batch_normalization(hidden, *moments, None, None, 1e-5)
            logits = tf.matmul(hidden, model["logits_weight"]) + model["logits_bias"]
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        for name, gradient in tape.gradient(loss, model).items():
            model[name].assign_sub(0.01 * gradient)
        return loss

    return step


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize(
    "plan", [data_parallel(8), model_parallel(4, 2), spatial_parallel()], ids=lambda plan: plan.name
)
def test_the_step_has_as_many_all_reduces_as_predicted(plan, combined, monkeypatch):
    monkeypatch.delenv(GROUP_SIZE, raising=False)
    if not combined:
        monkeypatch.setenv(GROUP_SIZE, "1")
    inputs = pack(np.ones((16, SIZES[0]), "float32"), plan.layout(("batch", "features")))
    labels = pack(np.zeros(16, "int64"), plan.layout(("batch",)))
    rounds = mlp_step(plan).all_reduces
    predicted = len(rounds) if combined else sum(len(event.names) for event in rounds)
    assert count_collectives(make_step(plan), inputs, labels) == predicted


@pytest.mark.parametrize(
    ("normalised", "group_size", "count"),
    [(True, "1", 9), (False, "1", 5), (True, None, 4), (False, None, 1)],
)
def test_how_many_all_reduces_lesson_3_counts(normalised, group_size, count, monkeypatch):
    monkeypatch.delenv(GROUP_SIZE, raising=False)
    if group_size is not None:
        monkeypatch.setenv(GROUP_SIZE, group_size)
    plan = data_parallel(8)
    inputs = pack(np.ones((16, SIZES[0]), "float32"), plan.layout(("batch", "features")))
    labels = pack(np.zeros(16, "int64"), plan.layout(("batch",)))
    assert count_collectives(make_step(plan, normalised=normalised), inputs, labels) == count
