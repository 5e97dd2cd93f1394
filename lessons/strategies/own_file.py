"""Writes the answer of a reader into a file that the program of the lesson imports."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib import check

_IMPORTS = """import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor
"""

# As the lessons' own solutions
OURS = {
    "parameter_servers-epoch": """
def run_epoch(coordinator, train_step, iterator, num_steps, save):
    steps = []
    for _ in range(num_steps):
        step = coordinator.schedule(train_step, args=(iterator,))
        steps.append(step)
    coordinator.join()
    save()
    losses = [step.fetch() for step in steps]
    return sum(losses) / num_steps
""",
    "one_mesh-mine": """
def mine(array, layout):
    def piece_for(position):
        piece = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != dtensor.UNSHARDED:
                count = layout.num_shards(axis)
                pieces = np.split(piece, count, axis)
                piece = pieces[position[dimension]]
        return piece

    positions = layout.mesh.local_device_locations()
    return [piece_for(position) for position in positions]
""",
}


def write_own(file: Path, exercise_id: str, answer: Callable[..., Any]) -> None:
    """Writes the cell of a reader's function into a file, or our function where the reader's is not right."""
    own = OURS[exercise_id]
    if check(exercise_id, answer).passed:
        lines, _start = inspect.findsource(answer)
        own = "".join(lines)
    file.write_text(f"{_IMPORTS}\n\n{own.strip()}\n")
