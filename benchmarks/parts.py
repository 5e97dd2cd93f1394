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
    FEATURES,
    HIDDEN,
    LESSON,
    SCHEMES,
    STEPS_IN_A_CALL,
    Dims,
    Steps,
    Train,
    seconds_a_step,
    stacked_batches,
    stacks_on_disk,
)
from course_lib import collectives

ALONE = [("nothing", 8)]  # a mesh whose dimension splits no axis
WHOLE_SPECS = {name: [LESSON.WHOLE] * len(spec) for name, spec in LESSON.specs.items()}

Parts = dict[str, Any]


def measure() -> dict[str, Parts]:
    """Returns the parts of a step of each scheme: medians, in seconds, its measurements taking turns.

    `packing` is sending each device its part of the batches; `dispatch` a step with one number in place of
    each tensor and nothing to exchange; `adam` what it takes longer with a device's weights and
    a single review; `reviews` what as many reviews as a device has take beyond that; `collectives` what the
    scheme's `step` takes beyond all three, on batches that lie on the devices already; `loop` a step of the
    program's training from files, and `single` one that is called by itself, its loss read each time;
    `unread` the same with the losses read together, after as many steps as a call of `loop` has; `means` the
    same as `single` with loss and accuracy reduced apart from the gradients. `one_means` and `one_loop` are
    times of `means` and `loop` on one device. Then come the number of the step's collectives, and the bytes
    that a device holds of all their results.
    """
    stacks = stacks_on_disk()
    return {scheme: _of_a_step(*of_mesh, stacks) for scheme, of_mesh in SCHEMES.items()}


def _of_a_step(dims: Dims, specs: Any, stacks: Any) -> Parts:
    steps, batches, sizes = Steps(dims, specs), stacked_batches(), dict(dims)
    share = FEATURES // sizes.get("feature", 1), HIDDEN // sizes.get("model", 1)
    placed = steps.placed(*batches)
    medians = seconds_a_step(
        {
            "packing": _calls(lambda: steps.placed(*batches)),
            "tiny": _alone(1, (1, 1)),
            "one": _alone(1, share),
            "share": _alone(BATCH_SIZE // sizes["batch"], share),
            "step": steps.on_devices(placed),
            "loop": Steps(dims, specs).together(stacks),
            "single": Steps(dims, specs).one_by_one(stacks),
            "unread": Steps(dims, specs).one_by_one(stacks, read_every=STEPS_IN_A_CALL),
            "means": Steps(dims, specs).one_by_one(stacks, means=True),
            "one_means": Steps([], specs).one_by_one(stacks, means=True),
            "one_loop": Steps([], specs).together(stacks),
        }
    )
    single = LESSON.place(batches[0][0], steps.layouts["x"]), LESSON.place(batches[1][0], steps.layouts["y"])
    step, rate = np.float32(1), LESSON.LEARNING_RATE
    found = collectives(LESSON.train_step, steps.model, *single, step, rate, combine=True)
    return {
        "packing": medians["packing"],
        "dispatch": medians["tiny"],
        "adam": medians["one"] - medians["tiny"],
        # Next to nothing: turns differ by more
        "reviews": max(0.0, medians["share"] - medians["one"]),
        "collectives": medians["step"] - medians["share"],
        "step": medians["step"],
        "loop": medians["loop"],
        "single": medians["single"],
        "unread": medians["unread"],
        "means": medians["means"],
        "one_means": medians["one_means"],
        "one_loop": medians["one_loop"],
        "num_collectives": len(found),
        "payload_bytes": sum(each.payload_bytes for each in found),
    }


def _alone(batch_size: int, sizes: tuple[int, int]) -> Train:
    """Returns steps on a mesh where every device has all of tensors of these sizes."""
    steps, stack = Steps(ALONE, WHOLE_SPECS, sizes), (STEPS_IN_A_CALL, batch_size)
    rows = np.random.standard_normal((*stack, sizes[0])).astype("float32")
    return steps.on_devices(steps.placed(rows, np.zeros(stack, int)))


def _calls(call: Callable[[], object]) -> Train:
    return lambda num_steps: [call() for _call in range(num_steps // STEPS_IN_A_CALL)]
