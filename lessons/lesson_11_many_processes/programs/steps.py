"""A run in several processes, step by step: what each process tells, and where it waits."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lessons.lesson_11_many_processes.cluster.ports import opened
from lessons.lesson_11_many_processes.programs.lines import say
from lessons.lesson_11_many_processes.programs.places import Peers

if TYPE_CHECKING:
    from course_lib.training.run import TrainingRun


def take_steps(
    training: TrainingRun,
    peers: Peers,
    arguments: argparse.Namespace,
    *,
    after_step: Callable[[], object] = lambda: None,
    of_saved: str = "",
) -> None:
    """Trains until the last step that is asked for, and tells each loss and each checkpoint.

    Args:
        training: the run, one step a call.
        peers: this process and the others.
        arguments: of the command line.
        after_step: what to call after each step.
        of_saved: what to add where a checkpoint is told.
    """
    from course_lib.training.records import StepRecord

    if training.start_step:
        say(f"goes on after step {training.start_step}")
    for record in training:
        if isinstance(record, StepRecord):
            say(f"step {record.step} loss {record.loss:.{arguments.digits}f}")
            time.sleep(arguments.pause)
            if record.step == arguments.hold:
                while peers.others and all(map(opened, peers.others.values())):
                    time.sleep(0.1)
            after_step()
            if record.step == arguments.steps:
                break
        elif arguments.checkpoints:
            say(f"saved after step {record.step}{of_saved}")
    training.close()
    if arguments.checkpoints and not training.finished:
        say(f"saved after step {training.step}{of_saved}")
