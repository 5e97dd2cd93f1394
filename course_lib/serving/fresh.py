"""Asking an export in a process of its own, which knows TensorFlow and nothing of this library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from course_lib.serving.loading import require_texts

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


def ask(path: str | os.PathLike[str], texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Returns the probabilities that a new process answers, `[texts, classes] global`.

    Raises:
        CourseError: the texts are not a list with at least one text, all of them strings.
        subprocess.CalledProcessError: the process failed; its `stderr` says why.
    """
    asked = require_texts(texts)
    lines = [json.dumps(asked[at : at + _TEXTS_IN_A_LINE]) for at in range(0, len(asked), _TEXTS_IN_A_LINE)]
    # -I keeps the folder of the notebook and PYTHONPATH out, and with them this library's sources.
    command = [sys.executable, "-I", "-c", PROGRAM, os.fspath(path)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return np.concatenate([json.loads(line) for line in done.stdout.splitlines()])
