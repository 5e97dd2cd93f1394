"""The MLP: initial values that no layout changes, and answers that do not depend on the rest of a batch."""

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.dtensor import fetch_layout, pack, to_numpy, unpack
from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import data_parallel, model_parallel, replicated, spatial_parallel

PLANS = [replicated(8), data_parallel(8), model_parallel(), spatial_parallel()]
DIMS = (24, 8, 2)
AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
    "moving_mean": ("hidden",),
    "moving_variance": ("hidden",),
}
INPUTS = ("batch", "features")


def trained_looking_values(dims=DIMS):
    values, random = initial_values(dims=dims), np.random.default_rng(1)
    for name in ("hidden_bias", "logits_bias", "moving_mean"):
        values[name] = random.standard_normal(values[name].shape).astype(np.float32)
    values["moving_variance"] = random.uniform(0.5, 2.0, dims[1]).astype(np.float32)
    return values


def rows(count, num_features=DIMS[0]):
    return np.random.default_rng(2).standard_normal((count, num_features)).astype(np.float32)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_every_variable_holds_the_host_values_in_the_layout_of_the_plan(plan):
    values = trained_looking_values()
    model = MLP(values, plan)
    for name, value in values.items():
        variable = getattr(model, name)
        assert np.array_equal(to_numpy(variable), value), name
        layout = LayoutSpec([plan.splits.get(axis, UNSHARDED) for axis in AXES[name]], plan.mesh)
        assert fetch_layout(variable) == layout, name
        for component, index in zip(unpack(variable), layout.of(value.shape).shards.values(), strict=True):
            assert np.array_equal(component, value[index]), name


def test_gradients_go_to_weights_and_biases_and_not_to_moving_moments():
    model = MLP(initial_values(dims=DIMS), data_parallel(8))
    assert {variable.name for variable in model.trainable_variables} == {
        f"{layer}_{kind}:0" for layer in ("hidden", "logits") for kind in ("weight", "bias")
    }
    assert len(model.variables) == 6


def test_initial_values_are_these_numbers_on_every_machine():
    value = initial_values(0, "normal")["hidden_weight"]
    expected = np.random.Generator(np.random.Philox(0)).standard_normal((1200, 48)).astype(np.float32)
    assert np.array_equal(value, expected)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_review_gets_the_same_answer_alone_and_in_any_batch(plan):
    whole = MLP(trained_looking_values(), plan)
    alone = MLP(trained_looking_values(), replicated(1))
    inputs = rows(16)
    together = to_numpy(whole.evaluate_logits(pack(inputs, plan.layout(INPUTS))))
    shuffled = np.random.default_rng(3).permutation(16)
    mixed = to_numpy(whole.evaluate_logits(pack(inputs[shuffled], plan.layout(INPUTS))))
    assert np.abs(mixed - together[shuffled]).max() < 1e-6
    for at in range(16):
        one = to_numpy(alone.evaluate_logits(pack(inputs[at : at + 1], alone.plan.layout(INPUTS))))
        assert np.abs(one[0] - together[at]).max() < 1e-5


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_training_normalises_with_the_moments_of_the_global_batch(plan):
    values, inputs = trained_looking_values(), rows(16)
    logits = to_numpy(MLP(values, plan).train_logits(pack(inputs, plan.layout(INPUTS)))[0])
    hidden = np.maximum(inputs @ values["hidden_weight"] + values["hidden_bias"], 0)
    normal = (hidden - hidden.mean(axis=0)) / np.sqrt(hidden.var(axis=0) + 1e-5)
    assert np.abs(logits - (normal @ values["logits_weight"] + values["logits_bias"])).max() < 1e-5
    per_replica = hidden.reshape(8, 2, -1)
    wrong = (per_replica - per_replica.mean(axis=1, keepdims=True)) / np.sqrt(
        per_replica.var(axis=1, keepdims=True) + 1e-5
    )
    wrong_logits = wrong.reshape(16, -1) @ values["logits_weight"] + values["logits_bias"]
    assert np.abs(logits - wrong_logits).max() > 0.1  # the check can tell the two apart


def test_values_that_no_model_can_have_are_refused_by_name():
    values = initial_values(dims=DIMS)
    with pytest.raises(
        CourseError, match=r"'logits_weight' has the shape \(9, 2\); the model wants \(8, 2\)"
    ):
        MLP({**values, "logits_weight": np.zeros((9, 2), np.float32)}, data_parallel(8))
    del values["moving_mean"]
    with pytest.raises(CourseError, match="'moving_mean' has the shape None"):
        MLP(values, data_parallel(8))
