"""Plans of the sentiment MLP: which the course accepts, which TensorFlow can lay out, which train rightly.

Usage: plan_runs.py MESH COUNT, with a mesh such as 4x3, in a process with as many devices as it needs.
Prints what disagrees, and how many plans were accepted and refused.
"""

import functools
import itertools
import json
import math
import random
import sys

import numpy as np

import course_lib
from course_lib import CourseError, MeshSpec
from course_lib.data.examples import Examples
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Plan

# Every size divides by 2, 3, 4, 6 and 8.
NUM_EXAMPLES, DIMS = 48, (24, 24, 24)
TENSORS = (  # inputs, labels, the weights, the biases and the moving moments
    ("batch", "features"),
    ("batch",),
    ("features", "hidden"),
    ("hidden",),
    ("hidden", "classes"),
    ("classes",),
)
AXES = ("batch", "features", "hidden", "classes")


def mesh_of(sizes: str) -> MeshSpec:
    return MeshSpec((f"dim_{at}", int(size)) for at, size in enumerate(sizes.split("x")))


def all_plans(mesh: MeshSpec) -> list[Plan]:
    choices = itertools.product([UNSHARDED, *mesh.names], repeat=len(AXES))
    return [Plan("any", mesh, dict(zip(AXES, choice, strict=True))) for choice in choices]


def sample(mesh: MeshSpec, count: int, seed: int) -> list[Plan]:
    plans = all_plans(mesh)
    return plans if count >= len(plans) else random.Random(seed).sample(plans, count)


@functools.cache
def lesson() -> tuple[Examples, dict, tuple]:
    """Returns examples of many classes, initial values, and losses and values after two steps in float64."""
    from course_lib.models.sentiment import initial_values
    from tests.tf import oracles

    features = oracles.random_examples(NUM_EXAMPLES, DIMS[0]).features
    labels = np.random.default_rng(1).integers(0, DIMS[2], NUM_EXAMPLES)
    examples, values = Examples(features, labels), initial_values(dims=DIMS)
    return examples, values, oracles.train_numpy(values, examples, 2, batch_size=NUM_EXAMPLES // 2)


def accepted(plan: Plan) -> bool:
    from course_lib.models.sentiment import MLP

    try:
        MLP(lesson()[1], plan)
    except CourseError:
        return False
    return True


def tensorflow_can_lay_out(plan: Plan) -> bool:
    from course_lib.devices.dtensor import create_mesh

    course_lib.start_tensorflow()
    from tensorflow.experimental import dtensor

    mesh = create_mesh(plan.mesh)
    try:
        for axes in TENSORS:
            dtensor.Layout([plan.splits.get(axis, UNSHARDED) for axis in axes], mesh)
    except ValueError:
        return False
    return True


def trains_rightly(plan: Plan) -> bool:
    from course_lib.models.sentiment import MLP
    from course_lib.training.evaluate import evaluate
    from course_lib.training.run import train
    from tests.tf import oracles

    examples, values, (losses, expected) = lesson()
    model = MLP(values, plan)
    with train(model, examples, epochs=2, batch_size=NUM_EXAMPLES // 2) as run:
        found = [next(run).loss for _step in losses]
    present = model.values()
    evaluated = np.subtract(evaluate(model, examples), oracles.evaluate_numpy(present, examples))
    values_off = max(np.abs(present[name] - expected[name]).max() for name in expected)
    return max(np.abs(np.subtract(found, losses)).max(), values_off, np.abs(evaluated).max()) < 1e-5


def disagreements(plans: list[Plan]) -> list[dict[str, str]]:
    """Returns the plans that are accepted and do not train rightly, or refused although there are layouts."""
    return [
        dict(plan.splits)
        for plan in plans
        if accepted(plan) != tensorflow_can_lay_out(plan) or (accepted(plan) and not trains_rightly(plan))
    ]


def report(mesh: MeshSpec, count: int, seed: int = 0) -> dict:
    plans = sample(mesh, count, seed)
    num_accepted = sum(map(accepted, plans))
    refused = len(plans) - num_accepted
    return {"disagreements": disagreements(plans), "accepted": num_accepted, "refused": refused}


if __name__ == "__main__":
    course_lib.setup(devices=math.prod(mesh_of(sys.argv[1]).sizes))
    print(json.dumps(report(mesh_of(sys.argv[1]), int(sys.argv[2]))))
