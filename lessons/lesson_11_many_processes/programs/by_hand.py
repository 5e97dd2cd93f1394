"""Runs the workers' program on a machine that somebody set up by hand: it gets the index that it is told.

    python -m lessons.lesson_11_many_processes.programs.by_hand INDEX [ARGUMENT ...]

Elsewhere who starts the processes writes each TF_CONFIG. Here the index in it is replaced, right or wrong.
"""

from __future__ import annotations

import json
import os
import sys

from course_lib.errors import CourseError
from course_lib.i18n import _
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.programs import multi_worker
from lessons.lesson_11_many_processes.programs.arguments import speak
from lessons.lesson_11_many_processes.programs.lines import run
from lessons.lesson_11_many_processes.programs.places import TF_CONFIG


def main() -> None:
    """Takes the index for its own, and trains."""
    speak()
    if not sys.argv[1:]:
        raise CourseError(
            _("The index is missing."),
            allowed=_("an index, then the arguments of the workers' program"),
            cure=_(
                "Write for example {example}.",
                example="python -m lessons.lesson_11_many_processes.programs.by_hand 0 --steps 20",
            ),
        )
    index, *arguments = sys.argv[1:]
    config = with_index(os.environ.get(TF_CONFIG, ""), index)
    ClusterSpec.from_tf_config(config)  # where it is not set, the program would train alone
    os.environ[TF_CONFIG] = config
    sys.argv[1:] = arguments
    multi_worker.main()


def with_index(tf_config: str, index: str) -> str:
    """Returns a TF_CONFIG with another index; what is none stays, for who reads it to tell.

    >>> with_index('{"cluster": {"worker": ["host0:1"]}, "task": {"type": "worker", "index": 0}}', "1")
    '{"cluster": {"worker": ["host0:1"]}, "task": {"type": "worker", "index": "1"}}'
    """
    try:
        config = json.loads(tf_config)
        config["task"]["index"] = index
    except (ValueError, KeyError, TypeError):
        return tf_config
    return json.dumps(config)


if __name__ == "__main__":
    run(main)
