"""Relayouts that TensorFlow 2.21 gets wrong in silence, shown in processes of their own.

The second of them can end in an aborted collective, after which the process that ran it can run no other.

Usage: python -m lessons.lesson_02_communication.silent
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.runtime import setup, start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import numbered_tensor

_NUM_DEVICES = 12
_MOST_TRIES, _MOST_PROCESSES = 30, 20

Message = tuple[int, int]  # from device, to device


@dataclass(frozen=True)
class Silent:
    """What came out wrong though nothing was refused.

    Attributes:
        swapped: of an all-to-all over 12 devices the messages, from device and to device, that brought the
            values of another one.
        three_axes: what device 1 of a mesh 2 × 2 × 2 held after a relayout of three axes.
        three_axes_right: what it should have held.
    """

    swapped: tuple[Message, ...]
    three_axes: tuple[int, ...]
    three_axes_right: tuple[int, ...]


def same_names(num_devices: int) -> list[tuple[Message, ...]]:
    """Returns the messages among devices that get one name if their two numbers are joined.

    >>> same_names(11), same_names(12)
    ([], [((1, 10), (11, 0)), ((1, 11), (11, 1))])
    """
    messages = defaultdict(list)
    for sender, receiver in itertools.permutations(range(num_devices), 2):
        messages[f"{sender}{receiver}"].append((sender, receiver))
    return [tuple(each) for each in messages.values() if len(each) > 1]


def seen() -> Silent:
    """Returns what goes wrong, from processes of their own; it tries until all that can go wrong did."""
    swapped: set[Message] = set()
    # With fewer threads than devices a collective is sooner aborted, and then nothing more can be seen.
    environment = {**os.environ, "TF_NUM_INTEROP_THREADS": str(_NUM_DEVICES)}
    for _process in range(_MOST_PROCESSES):
        command = [sys.executable, "-m", __name__]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        three_axes, found = json.loads(run.stdout.splitlines()[-1])
        swapped |= set(map(tuple, found))
        if swapped >= _doomed():
            break
    return Silent(tuple(sorted(swapped)), *map(tuple, three_axes))


def _doomed() -> set[Message]:
    """Returns the messages that another one shares its name with."""
    return set(itertools.chain(*same_names(_NUM_DEVICES)))


def _relayout_of_three_axes() -> list[list[int]]:
    """Returns what device 1 holds after `dtensor.relayout`, and what it should hold."""
    cube = MeshSpec([("x", 2), ("y", 2), ("z", 2)])
    source, target = LayoutSpec(["z", "x", UNSHARDED], cube), LayoutSpec(["y", UNSHARDED, "x"], cube)
    numbers = numbered_tensor((2, 2, 2))
    on_device_1 = _relaid(numbers, source, target)[1], target.of(numbers.shape).split(numbers)[1]
    return [part.ravel().astype(int).tolist() for part in on_device_1]


def _swapped() -> set[Message]:
    """Returns the messages that brought another's values, from tries until all did that can."""
    line = MeshSpec([("x", _NUM_DEVICES)])
    rows, columns = LayoutSpec(["x", UNSHARDED], line), LayoutSpec([UNSHARDED, "x"], line)
    numbers = numbered_tensor((_NUM_DEVICES, _NUM_DEVICES))  # row s, column r: what s sends to r
    found: set[Message] = set()
    for _try in range(_MOST_TRIES):
        try:
            held = np.concatenate(_relaid(numbers, rows, columns), axis=1)
        except Exception:  # the collective was aborted: no other will run in this process
            break
        found |= {(int(sender), int(receiver)) for sender, receiver in np.argwhere(held != numbers)}
        if found >= _doomed():
            break
    return found


def _relaid(numbers: Any, source: LayoutSpec, target: LayoutSpec) -> list[Any]:
    """Returns the components after `dtensor.relayout`, without the course's own care."""
    tf = start_tensorflow()
    dtensor = tf.experimental.dtensor
    devices = [f"CPU:{device_id}" for device_id in range(source.mesh.size)]
    mesh = dtensor.create_mesh(list(source.mesh.dims), devices=devices)
    before, after = (dtensor.Layout(list(each.sharding_specs), mesh) for each in (source, target))
    parts = [tf.constant(part) for part in source.of(numbers.shape).split(numbers)]
    moved = dtensor.relayout(dtensor.pack(parts, before), after)
    return [component.numpy() for component in dtensor.unpack(moved)]


if __name__ == "__main__":
    setup(devices=_NUM_DEVICES)
    print(json.dumps([_relayout_of_three_axes(), sorted(_swapped())]))  # the latter spoils the process
