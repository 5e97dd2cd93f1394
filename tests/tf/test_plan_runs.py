"""A plan is accepted exactly when DTensor can train the MLP with it, and then trains it rightly."""

import itertools
import random

import numpy as np
import pytest

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.dtensor import pack, to_numpy
from course_lib.models.sentiment import MLP, initial_values
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import Plan
from course_lib.training import steps
from tests.tf import oracles

tf = start_tensorflow()
MESH = MeshSpec([("a", 2), ("b", 2)])
DIMS = (12, 4, 2)
EXAMPLES = oracles.random_examples(8, DIMS[0])
PAIRS = [
    pair
    for pair in itertools.product([UNSHARDED, "a", "b"], repeat=2)
    if pair[0] != pair[1] or pair[0] == UNSHARDED
]
CHOICES = list(itertools.product(PAIRS, PAIRS, PAIRS))


def unchecked(inputs, hidden_weight, logits_weight) -> Plan:
    """Returns a plan that was not asked whether it can work."""
    specs = {
        "inputs": inputs,
        "labels": inputs[:1],
        "hidden_weight": hidden_weight,
        "hidden_bias": hidden_weight[1:],
        "logits_weight": logits_weight,
        "logits_bias": logits_weight[1:],
    }
    plan = object.__new__(Plan)
    layouts = {name: LayoutSpec(entries, MESH) for name, entries in specs.items()}
    for name, value in {"name": "any", "mesh": MESH, "layouts": layouts}.items():
        object.__setattr__(plan, name, value)
    return plan


def accepted(plan: Plan) -> bool:
    try:
        Plan(plan.name, plan.mesh, plan.layouts)
    except CourseError:
        return False
    return True


def trains_rightly(plan: Plan) -> bool:
    values = initial_values(dims=DIMS)
    (_loss,), expected = oracles.train_numpy(values, EXAMPLES, 1, batch_size=8)
    inputs, labels = next(oracles.batches(EXAMPLES, 1, 8))
    model = MLP(values, plan)
    try:
        step = tf.function(lambda x, y: steps.train_step(model, x, y, 1e-2))
        step(pack(inputs, plan.layouts["inputs"]), pack(labels, plan.layouts["labels"]))
        return all(np.abs(to_numpy(getattr(model, name)) - expected[name]).max() < 1e-5 for name in expected)
    except (tf.errors.OpError, ValueError):
        return False


def disagreements(choices) -> list:
    plans = [unchecked(*choice) for choice in choices]
    return [
        choice for choice, plan in zip(choices, plans, strict=True) if accepted(plan) != trains_rightly(plan)
    ]


def test_some_plans_chosen_by_chance_run_exactly_if_they_are_accepted():
    chosen = random.Random(0).sample(CHOICES, 20)
    assert 5 <= sum(accepted(unchecked(*choice)) for choice in chosen) <= 15  # both kinds are there
    assert disagreements(chosen) == []


@pytest.mark.drill_all
def test_every_plan_on_four_devices_runs_exactly_if_it_is_accepted():
    assert len(CHOICES) == 343
    assert disagreements(CHOICES) == []
