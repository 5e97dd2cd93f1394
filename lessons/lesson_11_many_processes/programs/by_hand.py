"""Runs the workers' program on a machine that somebody set up by hand: it gets the index that it is told.

    python -m lessons.lesson_11_many_processes.programs.by_hand INDEX [ARGUMENT ...]

Elsewhere who starts the processes writes each TF_CONFIG. Here the index in it is replaced, right or wrong.
"""

from __future__ import annotations

import json
import os
import sys

from lessons.lesson_11_many_processes.programs import multi_worker
from lessons.lesson_11_many_processes.programs.lines import run
from lessons.lesson_11_many_processes.programs.places import TF_CONFIG


def main() -> None:
    """Takes the index for its own, and trains."""
    config = json.loads(os.environ[TF_CONFIG])
    config["task"]["index"] = sys.argv.pop(1)
    os.environ[TF_CONFIG] = json.dumps(config)
    multi_worker.main()


if __name__ == "__main__":
    run(main)
