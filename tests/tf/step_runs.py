"""Training steps under many plans: the collectives that are predicted beside those that TensorFlow runs.

Usage: step_runs.py MESH COUNT, with a mesh such as 4x3, and how many legal plans to draw, in a process with
as many devices as it needs. Prints their number and those in which the two differ.
"""

import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping

import numpy as np

import course_lib
from course_lib import CourseError, MeshSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import BATCH, Plan
from tests.tf.plan_runs import mesh_of

SIZES = (
    48,
    24 * 3,
    24 * 5,
    24 * 7,
    24 * 11,
)  # the batch and then the layers: 2, 3, 4, 6, 8 and 12 divide all


def told_and_seen(plan: Plan, model_class: type, sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Returns the collectives of a step as predicted, as CPUs run them, and as observed."""
    from course_lib.devices.graphs import collectives
    from course_lib.training.trainer import Trainer

    spec = model_class.spec
    model = model_class(spec.initial_values(sizes, 0, "he"), plan)
    trainer = Trainer(model)
    inputs, labels = (
        np.ones((2, *(sizes[axis] for axis in spec.inputs)), "float32"),
        np.zeros((2, sizes[BATCH])),
    )
    batches = trainer.send(inputs, labels.astype("int32"))
    arguments = batches.inputs, batches.labels, trainer._number(2)
    seen = collectives(trainer._train_on_stack, *arguments, mesh=plan.mesh)
    told = spec.step_collectives(plan, sizes).collectives
    return [str(each.as_run("CPU")) for each in told], list(map(str, seen))


def differs(plan: Plan, model_class: type, sizes: Mapping[str, int]) -> str:
    """Returns how a step differs from its prediction, whatever the order; "" where it does not."""
    told, seen = map(Counter, told_and_seen(plan, model_class, sizes))
    return "" if told == seen else f"{dict(plan.splits)}: only told {told - seen}, only seen {seen - told}"


def report(mesh: MeshSpec, count: int) -> dict:
    from course_lib.models import sentiment

    model_class = sentiment.MLP
    sizes = dict(zip((BATCH, *model_class.spec.layers), SIZES, strict=False))
    plans = legal_plans(mesh, model_class)
    chosen = plans if count >= len(plans) else random.Random(0).sample(plans, count)
    found = [differs(plan, model_class, sizes) for plan in chosen]
    return {"plans": len(found), "disagreements": [each for each in found if each]}


def legal_plans(mesh: MeshSpec, model_class: type) -> list[Plan]:
    axes = (BATCH, *model_class.spec.layers)
    choices = itertools.product([UNSHARDED, *mesh.names], repeat=len(axes))
    plans = (Plan("any", mesh, dict(zip(axes, choice, strict=True))) for choice in choices)
    return [plan for plan in plans if is_legal(plan, model_class)]


def is_legal(plan: Plan, model_class: type) -> bool:
    try:
        for axes in model_class.spec.tensors.values():
            plan.layout(axes)
    except CourseError:
        return False
    return True


if __name__ == "__main__":
    wanted = mesh_of(sys.argv[1])
    course_lib.setup(devices=wanted.size)
    print(json.dumps(report(wanted, int(sys.argv[2]))))
