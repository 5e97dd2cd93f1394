"""What a training step spends its time on, in the three schemes: each part measured by itself, in turns.

A step with nothing to exchange has the sizes that one device has in the scheme, on a mesh whose dimension
splits nothing: the eight devices do a device's work, each for itself. With one number in place of each tensor
it takes what TensorFlow takes to start the operations. What a step takes beyond it goes to the collectives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.steps import (
    BATCH_SIZE,
    LESSON,
    MESHES,
    STEPS_IN_A_CALL,
    Dims,
    Steps,
    Train,
    random_examples,
    seconds_a_step,
)
from course_lib import collectives
from course_lib.data.examples import Examples

ALONE = [("nothing", 8)]  # a mesh whose dimension splits no axis

Parts = dict[str, Any]


def measure() -> dict[str, Parts]:
    """Returns the parts of a step of each scheme: medians, in seconds, its measurements taking turns.

    `packing` is choosing rows on the host and sending each device its own; `dispatch` a step with one number
    in place of each tensor and nothing to exchange; `arithmetic` what it takes longer with as many numbers as
    a device has of each tensor; `collectives` what the scheme's `step` takes beyond both, on batches that lie
    on the devices already; `loop` a step of the training loop. Then come the number of its collectives, and
    the bytes that a device holds of all their results.
    """
    examples = random_examples()
    return {scheme: _of_a_step(dims, examples) for scheme, dims in MESHES.items()}


def _of_a_step(dims: Dims, examples: Examples) -> Parts:
    steps = Steps(dims)
    split = {axis: dict(dims).get(dim, 1) for axis, dim in LESSON.SPLITS.items()}
    features, hidden = 1200 // split["features"], 48 // split["hidden"]
    alone = _on_devices(Steps(ALONE, (features, hidden, 2)), BATCH_SIZE // split["batch"], features)
    turns = {
        "packing": _calls(lambda: steps.chosen(examples, STEPS_IN_A_CALL)),
        "tiny": _calls(_on_devices(Steps(ALONE, (1, 1, 1)), 1, 1)),
        "share": _calls(alone),
        "step": _calls(_on_devices(steps, BATCH_SIZE, 1200)),
        "loop": steps.together(examples),
    }
    medians = seconds_a_step(turns)
    found = collectives(steps.step, *steps.chosen(examples), combine=True)
    return {
        "packing": medians["packing"],
        "dispatch": medians["tiny"],
        "arithmetic": medians["share"] - medians["tiny"],
        "collectives": medians["step"] - medians["share"],
        "step": medians["step"],
        "loop": medians["loop"],
        "num_collectives": len(found),
        "payload_bytes": sum(each.payload_bytes for each in found),
    }


def _on_devices(steps: Steps, batch_size: int, features: int) -> Callable[[], object]:
    """Returns a call of several steps on batches that lie on the devices already."""
    stack = STEPS_IN_A_CALL, batch_size
    rows = np.random.standard_normal((*stack, features)).astype("float32")
    batches = steps.packed(rows, np.zeros(stack, int))
    return lambda: steps.several(*batches).numpy()


def _calls(call: Callable[[], object]) -> Train:
    return lambda num_steps: [call() for _call in range(num_steps // STEPS_IN_A_CALL)]
