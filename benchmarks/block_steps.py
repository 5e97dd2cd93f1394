"""Times of training steps of a transformer block on virtual devices, for `how_long`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import program
from course_lib import syllabus
from course_lib.explorers.measuring import median_seconds
from course_lib.specs.plan import BATCH

NETWORK = syllabus.module("how_long.measured_steps").NETWORK
PLANS = syllabus.module("how_long.measured_steps").PLANS

BATCH_SIZES = (24, 96)
TURNS, STEPS = 5, 4  # of each case


def measure() -> list[dict[str, Any]]:
    """Returns the median seconds of a step on each mesh with each batch size; the cases take turns."""
    cases = [(name, size) for name in PLANS for size in BATCH_SIZES]
    medians = median_seconds([_steps(name, size) for name, size in cases], TURNS)
    return [
        {"mesh": name, "batch_size": size, "seconds": seconds / STEPS}
        for (name, size), seconds in zip(cases, medians, strict=True)
    ]


def _steps(name: str, batch_size: int) -> Callable[[], object]:
    """Returns a function that takes steps, each of which waits for its loss."""
    block, (spec, splits) = program("transformer_block"), PLANS[name]
    draw, sizes = np.random.default_rng(0), {**NETWORK.sizes, BATCH: batch_size}
    for each, axes in NETWORK.variables.items():
        block.values[each] = draw.normal(0, 0.02, [sizes[axis] for axis in axes]).astype("float32")
    devices = [f"CPU:{at}" for at in range(spec.size)]
    mesh = block.dtensor.create_mesh(list(spec.dims), devices=devices)
    tensors = {**NETWORK.variables, "tokens": (BATCH, "sequence")}
    layouts = block.make_layouts(tensors, splits, mesh)
    tokens = draw.integers(0, sizes["vocabulary"], (batch_size, sizes["sequence"])).astype("int32")
    placed = block.place(tokens, layouts["tokens"])
    model, rate = block.Model(layouts), np.float32(1e-3)

    def steps() -> None:
        for _step in range(STEPS):
            loss = block.train_step(block.logits_of, model, placed, placed, rate)
            block.dtensor.unpack(loss)[0].numpy()

    return steps
