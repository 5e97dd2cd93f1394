"""The arguments that all programs have."""

from __future__ import annotations

import argparse

from course_lib import i18n


def parser(description: str) -> argparse.ArgumentParser:
    """Returns a parser that knows steps, batches, checkpoints, and how long others are waited for."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
    )
    add = made.add_argument
    add("--steps", type=positive, default=20, help="of the whole training")
    add("--examples", type=positive, default=160, help="of the training set")
    add("--batch", type=positive, default=32, help="examples in a global batch")
    add("--checkpoints", metavar="DIR", help="where to save after each epoch and go on from")
    add("--wait", type=float, default=300.0, metavar="SECONDS", help="for the others, until all have started")
    add("--pause", type=float, default=0.0, metavar="SECONDS", help="after each step, to watch")
    hold = "where all take each step together: wait after this one until another process is gone"
    add("--hold", type=positive, metavar="STEP", help=hold)
    add("--digits", type=int, default=4, help="of the losses that are told")
    add("--language", choices=i18n.languages(), default=i18n.SOURCE_LANGUAGE, help="in which it speaks")
    return made


def positive(text: str) -> int:
    """Returns a whole number from 1 on, for argparse, which reports a ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def epochs(arguments: argparse.Namespace) -> int:
    """Returns how many epochs the steps begin."""
    return -(-int(arguments.steps) // max(int(arguments.examples) // int(arguments.batch), 1))
