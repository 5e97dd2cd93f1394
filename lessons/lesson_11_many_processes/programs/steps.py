"""A run in several processes: its arguments, and step by step what each process tells and where it waits."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from course_lib import i18n
from lessons.lesson_11_many_processes.cluster_spec import Place
from lessons.lesson_11_many_processes.programs.limit import opened
from lessons.lesson_11_many_processes.programs.lines import say

if TYPE_CHECKING:
    from course_lib.training.run import TrainingRun


def parser(description: str) -> argparse.ArgumentParser:
    """Returns a parser that knows steps, batches, checkpoints, and how long others are waited for."""
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add = made.add_argument
    add("--steps", type=int, default=20, help="of the whole training")
    add("--examples", type=int, default=160, help="of the training set")
    add("--batch", type=int, default=32, help="examples in a global batch")
    add("--checkpoints", metavar="DIR", help="where to save after each epoch and go on from")
    add("--wait", type=float, default=300.0, metavar="SECONDS", help="for the others, until all have started")
    add("--pause", type=float, default=0.0, metavar="SECONDS", help="after each step, to watch")
    hold = "where all take each step together: wait after this one until another process is gone"
    add("--hold", type=int, metavar="STEP", help=hold)
    add("--digits", type=int, default=4, help="of the losses that are told")
    add("--language", choices=i18n.languages(), default=i18n.SOURCE_LANGUAGE, help="in which it speaks")
    return made


def epochs(arguments: argparse.Namespace) -> int:
    """Returns how many epochs the steps begin."""
    return -(-int(arguments.steps) // max(int(arguments.examples) // int(arguments.batch), 1))


def take_steps(
    training: TrainingRun,
    place: Place,
    arguments: argparse.Namespace,
    *,
    after_step: Callable[[], object] = lambda: None,
    of_saved: str = "",
) -> None:
    """Trains until the last step that is asked for, and tells each loss and each checkpoint.

    Args:
        training: the run, one step a call.
        place: this process and the others.
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
                while place.others and all(map(opened, place.others.values())):
                    time.sleep(0.1)
            after_step()
            if record.step == arguments.steps:
                break
        elif arguments.checkpoints:
            say(f"saved after step {record.step}{of_saved}")
    training.close()
    if arguments.checkpoints and not training.finished:
        say(f"saved after step {training.step}{of_saved}")
