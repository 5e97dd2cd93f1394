"""An all-to-all over 12 CPUs, which TensorFlow 2.21 gets wrong in silence, tried in processes of their own.

It can end in an aborted collective, after which the process that ran it can run no other.

Usage: python -m lessons.layouts.communication.silent
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import defaultdict

import numpy as np

from course_lib.runtime import setup, start_tensorflow

_NUM_DEVICES = 12
_MOST_TRIES, _MOST_PROCESSES = 30, 20

Message = tuple[int, int]  # from device, to device


def doomed(num_devices: int = _NUM_DEVICES) -> set[Message]:
    """Returns the messages among devices whose two numbers, joined, are those of another one as well.

    >>> doomed(11), sorted(doomed(12))
    (set(), [(1, 10), (1, 11), (11, 0), (11, 1)])
    """
    messages = defaultdict(list)
    for sender, receiver in itertools.permutations(range(num_devices), 2):
        messages[f"{sender}{receiver}"].append((sender, receiver))
    return {each for of_a_name in messages.values() if len(of_a_name) > 1 for each in of_a_name}


def swapped() -> list[Message]:
    """Returns the messages that brought another's values, from processes that try until all did that can."""
    found: set[Message] = set()
    # With fewer threads than devices a collective is sooner aborted, and then nothing more can be seen.
    environment = {**os.environ, "TF_NUM_INTEROP_THREADS": str(_NUM_DEVICES)}
    for _process in range(_MOST_PROCESSES):
        command = [sys.executable, "-m", __name__]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found |= set(map(tuple, json.loads(run.stdout.splitlines()[-1])))
        if found >= doomed():
            break
    return sorted(found)


def _swapped_here() -> set[Message]:
    """Returns the messages that brought another's values, from relayouts in this process."""
    setup(devices=_NUM_DEVICES)
    dtensor = start_tensorflow().experimental.dtensor
    line = dtensor.create_mesh([("x", _NUM_DEVICES)], device_type="CPU")
    rows = dtensor.Layout(["x", dtensor.UNSHARDED], line)
    columns = dtensor.Layout([dtensor.UNSHARDED, "x"], line)
    numbers = np.arange(_NUM_DEVICES**2, dtype=np.float32).reshape(_NUM_DEVICES, -1)
    matrix = dtensor.pack(np.split(numbers, _NUM_DEVICES), rows)  # row s, column r: what s sends to r
    found: set[Message] = set()
    for _try in range(_MOST_TRIES):
        try:
            held = np.concatenate(dtensor.unpack(dtensor.relayout(matrix, columns)), axis=1)
        except Exception:  # the collective was aborted: no other will run in this process
            break
        found |= {(int(sender), int(receiver)) for sender, receiver in np.argwhere(held != numbers)}
        if found >= doomed():
            break
    return found


if __name__ == "__main__":
    print(json.dumps(sorted(_swapped_here())))  # it spoils the process
