"""Asking an export in a process of its own, which knows TensorFlow and nothing of this library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PROGRAM = """\
import json, sys
import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
answer = served.signatures["serving_default"]
for line in sys.stdin:
    texts = tf.constant(json.loads(line))
    found = answer(texts=texts)["probabilities"]
    print(json.dumps(found.numpy().tolist()))
"""

_TEXTS_IN_A_LINE = 2_048
_TIMEOUT_SECONDS = 600.0  # to start, to load and to answer


def ask(path: str | os.PathLike[str], texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Returns the probabilities that a new process answers, `[texts, classes] global`."""
    starts = range(0, len(texts), _TEXTS_IN_A_LINE)
    lines = [json.dumps(list(texts[start : start + _TEXTS_IN_A_LINE])) for start in starts]
    # -I keeps the folder of the notebook and PYTHONPATH out. Where this library is installed it can be found;
    # the program does not ask for it.
    command = [sys.executable, "-I", "-c", PROGRAM, os.fspath(path)]
    answered = subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=_TIMEOUT_SECONDS,
    )
    return np.concatenate([json.loads(line) for line in answered.stdout.splitlines()])
