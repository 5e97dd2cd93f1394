"""The MLP: initial values that no layout changes, and answers that do not depend on the rest of a batch."""

import numpy as np
import pytest

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
