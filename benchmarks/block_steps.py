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
    block_program, (spec, splits) = program("transformer_block"), PLANS[name]
    sizes = {**NETWORK.sizes, BATCH: batch_size}
    block_program.SIZES, block_program.VARIABLES, block_program.SPLITS = sizes, NETWORK.variables, splits
    dtensor = block_program.dtensor
    mesh = dtensor.create_mesh(list(spec.dims), devices=[f"CPU:{at}" for at in range(spec.size)])
    draw = np.random.default_rng(0)
    shapes = {each: [sizes[axis] for axis in axes] for each, axes in NETWORK.variables.items()}
    values = {each: draw.normal(0, 0.02, shape).astype("float32") for each, shape in shapes.items()}
    block = block_program.Block(values, mesh)
    tokens = draw.integers(0, sizes["vocabulary"], (batch_size, sizes["sequence"])).astype("int32")
    examples = [block_program.place(tokens, (BATCH, "sequence"), mesh) for _each in range(2)]

    def steps() -> None:
        for _step in range(STEPS):
            dtensor.unpack(block_program.train_step(block, *examples, 1e-3))[0].numpy()

    return steps
