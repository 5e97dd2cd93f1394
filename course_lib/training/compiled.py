"""Functions that DTensor compiles when they are first called, and what it needs to be told meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from course_lib.devices.combining import no_combining
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

_MOST_COMPILATIONS = 4


class Compiled:
    """A function that is compiled at its first call, and anew if TensorFlow refuses the name of its loop.

    Now and then TensorFlow gives the loop of a newly compiled function the name of an older one, and refuses
    it before anything ran; compiled again it gets another name (docs/decisions/compiled-again.md).
    """

    def __init__(self, function: Callable[..., Any], *, combine_all_reduces: bool) -> None:
        """Takes the function, and whether all-reduces that are ready together become one.

        Args:
            function: what `tf.function` takes, with `repeated` for its loops over tensors: AutoGraph, which
                would translate Python's, takes seconds, and failed once.
            combine_all_reduces: pays where they are small (docs/decisions/all-reduces.md).
        """
        self._function, self._combine = function, combine_all_reduces
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Returns what the function does."""
        return self._compile(arguments) if self._compiled is None else self._compiled(*arguments)

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        for attempt in range(_MOST_COMPILATIONS):
            compiled = tf.function(self._function, autograph=False)
            try:
                with contextlib.nullcontext() if self._combine else no_combining():
                    result = compiled(*arguments)
            except tf.errors.InvalidArgumentError as error:
                name_is_taken = "a different function with the same name already exists" in str(error)
                if not name_is_taken or attempt == _MOST_COMPILATIONS - 1:
                    raise
            else:
                self._compiled = compiled
                break
        return result


def repeated(count: Any, turn: Callable[..., tuple[Any, ...]], *carried: Any) -> Any:
    """Returns what a loop in a compiled function carries after `count` turns.

    Args:
        count: the number of turns, a tensor.
        turn: takes the turn's number, from 0, and what is carried; returns what is carried on.
        carried: the tensors that the first turn gets.
    """
    end = tf.cast(count, tf.int32)
    _end, *last = tf.while_loop(
        lambda step, *_carried: step < end,
        lambda step, *before: (step + 1, *turn(step, *before)),
        (tf.constant(0), *carried),
    )
    return last
