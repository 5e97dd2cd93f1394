"""The code of a reader's answer, for the programs of a lesson that go on with it."""

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
    "failures-resume": """
def resume(worker, checkpoint, folder, all_reduce_min):
    own = max(numbers_in(folder), default=0)
    common = all_reduce_min(own)
    if common == 0 and own > 0:
        raise ValueError("another worker sees no checkpoint")
    if common > 0:
        checkpoint.restore(f"{folder}/ckpt-{common}")
    own_folder = folder if worker == 0 else tempfile.mkdtemp()
    return tf.train.CheckpointManager(
        checkpoint,
        own_folder,
        max_to_keep=3,
    )
""",
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


def source_of(exercise_id: str, answer: Callable[..., Any]) -> str:
    """Returns the cell of a reader's function, or our function where the reader's is not right yet."""
    if not check(exercise_id, answer).passed:
        return OURS[exercise_id]
    lines, _start = inspect.findsource(answer)
    return "".join(lines)


def write_own(file: Path, exercise_id: str, answer: Callable[..., Any]) -> None:
    """Writes what `source_of` returns into a file, after the imports that it needs."""
    file.write_text(f"{_IMPORTS}\n\n{source_of(exercise_id, answer).strip()}\n")
