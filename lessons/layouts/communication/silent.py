"""An all-to-all over 12 CPUs, which TensorFlow 2.21 gets wrong in silence, tried in processes of their own.

It can end in an aborted collective, after which the process that ran it can run no other.

Usage: python -m lessons.layouts.communication.silent
"""

from __future__ import annotations

import json
import sys

import numpy as np

from course_lib import processes
from course_lib.runtime import setup, start_tensorflow

_NUM_DEVICES = 12
_MOST_TRIES, _MOST_PROCESSES = 30, 20

Message = tuple[int, int]  # from device, to device
# TensorFlow joins both numbers to a name, so that of 12 devices two messages are called 110 and two 111.
_OF_ONE_NAME = {(1, 10), (11, 0), (1, 11), (11, 1)}


def swapped() -> list[Message]:
    """Returns the messages that brought another's values, from processes that try until all did that can."""
    found: set[Message] = set()
    # With fewer threads than devices a collective is sooner aborted, and then nothing more can be seen.
    environment = {"TF_NUM_INTEROP_THREADS": str(_NUM_DEVICES)}
    for _process in range(_MOST_PROCESSES):
        run = processes.run([sys.executable, "-m", __name__], environment=environment)
        run.check_returncode()
        found |= set(map(tuple, json.loads(run.stdout.splitlines()[-1])))
        if found >= _OF_ONE_NAME:
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
        if found >= _OF_ONE_NAME:
            break
    return found


if __name__ == "__main__":
    print(json.dumps(sorted(_swapped_here())))  # it spoils the process
