"""Asking an export in a process of its own, which knows TensorFlow and nothing of this library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_06_save_and_serve.serving.loading import require_texts

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
    """Returns the probabilities that a new process answers, `[texts, classes] global`.

    Raises:
        CourseError: the texts are not a list with at least one text, all of them strings, or the process
            failed or did not end; its last line says why.
    """
    asked = require_texts(texts)
    lines = [json.dumps(asked[at : at + _TEXTS_IN_A_LINE]) for at in range(0, len(asked), _TEXTS_IN_A_LINE)]
    # -I keeps the folder of the notebook and PYTHONPATH out. Where this library is installed it can be found;
    # the program does not ask for it.
    command = [sys.executable, "-I", "-c", PROGRAM, os.fspath(path)]
    try:
        done = subprocess.run(
            command,
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise _no_answer(path, (error.stderr.splitlines() or [str(error)])[-1]) from error
    except subprocess.TimeoutExpired as error:
        raise _no_answer(path, _("it did not end within its time")) from error
    return np.concatenate([json.loads(line) for line in done.stdout.splitlines()])


def _no_answer(path: str | os.PathLike[str], reason: str) -> CourseError:
    return CourseError(
        _("The process that was to load {path} gave no answer: {reason}", path=path, reason=reason),
        allowed=_("a folder that serving.export has written"),
        cure=_("Load it in this process, where the error says more, or export the model again."),
    )
