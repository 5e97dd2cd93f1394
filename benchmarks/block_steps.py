"""Times of training steps of a transformer block on virtual devices, for `how_long`."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.plain_loop import definitions
from course_lib import syllabus
from course_lib.specs.plan import BATCH

NETWORK = syllabus.module("how_long.measured_steps").NETWORK
PLANS = syllabus.module("how_long.measured_steps").PLANS

PROGRAM = Path(__file__).parents[1] / "notebooks/plain/transformer_block.py"
BATCH_SIZES = (24, 96)
TURNS, STEPS = 5, 4  # of each case, whose medians are written


def measure() -> list[dict[str, Any]]:
    """Returns the seconds of a step on each mesh with each batch size, each case in turn."""
    cases = [(name, size, _training(name, size)) for name in PLANS for size in BATCH_SIZES]
    seconds: dict[tuple[str, int], list[float]] = {}
    for _turn in range(TURNS):
        for name, size, step in cases:
            start = time.perf_counter()
            for _step in range(STEPS):
                step()
            seconds.setdefault((name, size), []).append((time.perf_counter() - start) / STEPS)
    medians = {case: median(times) for case, times in seconds.items()}
    return [{"mesh": name, "batch_size": size, "seconds": each} for (name, size), each in medians.items()]


def _training(name: str, batch_size: int) -> Any:
    """Returns a function that takes a step and waits for its loss; it has taken two."""
    program, (spec, splits) = definitions(PROGRAM), PLANS[name]
    sizes = {**NETWORK.sizes, BATCH: batch_size}
    program |= {"SIZES": sizes, "VARIABLES": NETWORK.variables, "SPLITS": splits}
    devices = [f"CPU:{at}" for at in range(spec.size)]
    mesh = program["dtensor"].create_mesh(list(spec.dims), devices=devices)
    draw = np.random.default_rng(0)
    shapes = {each: [sizes[axis] for axis in axes] for each, axes in NETWORK.variables.items()}
    values = {each: draw.normal(0, 0.02, shape).astype("float32") for each, shape in shapes.items()}
    block = program["Block"](values, mesh)
    tokens = draw.integers(0, sizes["vocabulary"], (batch_size, sizes["sequence"])).astype("int32")
    examples = [program["place"](tokens, (BATCH, "sequence"), mesh) for _each in range(2)]

    def step() -> None:
        program["dtensor"].unpack(program["train_step"](block, *examples, 1e-3))[0].numpy()

    for _warming in range(2):
        step()
    return step
