"""The arguments that all programs have. What is wrong with them is told in the language that they name."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from course_lib import i18n
from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _

_MOST_SECONDS, _MOST_DIGITS = 10**6, 20
T = TypeVar("T")


class RefusedError(Exception):
    """Carries a CourseError through argparse, which would swallow it as a ValueError."""

    def __init__(self, error: CourseError) -> None:
        super().__init__(error)
        self.error = error


class Parser(argparse.ArgumentParser):
    """A parser whose errors are CourseErrors."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:  # a Namespace, or what was given to fill
        """Returns the arguments.

        Raises:
            CourseError: one is unknown, missing, or not what it should be.
        """
        try:
            return super().parse_args(*args, **kwargs)
        except RefusedError as refused:
            raise refused.error from None

    def error(self, message: str) -> NoReturn:
        """Raises what argparse itself finds wrong."""
        raise RefusedError(
            CourseError(
                _("The command line is not understood: {reason}.", reason=message.rstrip(".")),
                allowed=_("the options that --help lists, each followed by its value"),
                cure=_("Read what they are, with --help, and mend the command."),
            )
        )


def parser(description: str) -> Parser:
    """Returns a parser that knows steps, batches, checkpoints, and how long others are waited for."""
    made = Parser(description=description, add_help=False, allow_abbrev=False)
    add = made.add_argument
    add("-h", "--help", action="help", help=_("show this text"))
    add("--steps", type=at_least(1, "--steps"), default=20, help=_("of the whole training (20)"))
    add("--examples", type=at_least(1, "--examples"), default=160, help=_("of the training set (160)"))
    add("--batch", type=at_least(1, "--batch"), default=32, help=_("examples in a global batch (32)"))
    add("--checkpoints", type=_folder, metavar="DIR", help=_("where to save after each epoch and go on from"))
    for name, default, text in (
        ("--wait", 300.0, _("for the others (300)")),
        (
            "--start",
            300.0,
            _("for TensorFlow to start in all of them (300): on a busy machine it takes a minute"),
        ),
        ("--pause", 0.0, _("after each step, to watch")),
    ):
        add(name, type=_seconds(name), default=default, metavar=_("SECONDS"), help=text)
    digits = at_least(0, "--digits", _MOST_DIGITS)
    add("--digits", type=digits, default=4, help=_("of the losses that are told (4)"))
    languages = i18n.languages()
    spoken = _("in which it speaks: {names} (en)", names=_(", ").join(languages))
    add("--language", type=named("--language", languages), default=i18n.SOURCE_LANGUAGE, help=spoken)
    return made


def add_hold(options: argparse._ActionsContainer) -> None:
    """Adds --hold, for programs in which all take each step together."""
    text = _("wait after this step until another process is gone: to kill one there")
    options.add_argument("--hold", type=at_least(1, "--hold"), metavar="STEP", help=text)


def speak(words: Sequence[str] | None = None) -> None:
    """Takes the language that the command line names, before anything is said; a wrong one is told later."""
    given = list(sys.argv[1:] if words is None else words)
    for word, following in pairwise([*given, ""]):
        option, equals, value = word.partition("=")
        code = value if equals else following
        if option == "--language" and code in i18n.languages():
            i18n.set_language(code)


def epochs(arguments: argparse.Namespace) -> int:
    """Returns how many epochs the steps begin."""
    return -(-int(arguments.steps) // max(int(arguments.examples) // int(arguments.batch), 1))


def at_least(least: int, option: str, most: int | None = None) -> Callable[[str], int]:
    """Returns what argparse makes a whole number with, from `least` on."""

    def number(text: str) -> int:
        value = int(text) if text.isascii() and text.removeprefix("-").isdecimal() else text
        cure = _("Write for example {example}.", example=f"{option} {least or 4}")
        return whole_number(value, _given(option, text), least=least, most=most, cure=cure)

    return _through_argparse(number)


def named(option: str, names: Iterable[str]) -> Callable[[str], str]:
    """Returns what argparse takes one of these names with."""

    def name(text: str) -> str:
        one_of(text, names, _given(option, text), cure=_("Name one of these."))
        return text

    return _through_argparse(name)


def _seconds(option: str) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if 0 <= value <= _MOST_SECONDS:
            return value
        raise CourseError(
            _given(option, text),
            allowed=_("seconds from {least} to {most}", least=0, most=_MOST_SECONDS),
            cure=_("Write for example {example}.", example=f"{option} 60"),
        )

    return _through_argparse(seconds)


def _folder(text: str) -> str:
    path = Path(text).absolute()
    # Not Path.exists, which raises PermissionError below a folder that is closed to this user.
    there = next(each for each in (path, *path.parents) if os.path.exists(each))
    if text and there.is_dir() and os.access(there, os.X_OK | (os.R_OK if there == path else os.W_OK)):
        return text
    raise RefusedError(
        CourseError(
            _given("--checkpoints", text),
            allowed=_("a folder that can be read and written, or one that is not there yet"),
            cure=_("Write for example {example}.", example="--checkpoints checkpoints"),
        )
    )


def _through_argparse(made: Callable[[str], T]) -> Callable[[str], T]:
    def refusing(text: str) -> T:
        try:
            return made(text)
        except CourseError as error:
            raise RefusedError(error) from None

    return refusing


def _given(option: str, text: str) -> str:
    return _("{option} is {text!r}.", option=option, text=text)
