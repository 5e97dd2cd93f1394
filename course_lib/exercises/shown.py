"""Inputs and results of a reader's function in few characters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.answers import plain
from course_lib.i18n import _

_MOST_NUMBERS = 24
_MOST_CHARACTERS = 100


def input_text(function: Callable[..., Any], inputs: Sequence[Any]) -> str:
    """Returns the arguments of a call with the names that `function` gives them.

    >>> input_text(lambda losses, weights: 0, ([2.0, 4.5], [1.0, 0.0]))
    '`losses = [2, 4.5]`, `weights = [1, 0]`'
    """
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # some of Python's own functions have none
        names = []
    texts = [value_text(plain(value)) for value in inputs]
    if len(names) != len(texts):
        return _(", ").join(f"`{text}`" for text in texts)
    return _(", ").join(f"`{name} = {text}`" for name, text in zip(names, texts, strict=True))


def value_text(value: object) -> str:
    """Returns a plain value as Python would write it, its numbers with six digits; of a long one its shape.

    >>> value_text((0.1, (1, 2))), value_text(tuple(range(100)))
    ('[0.1, [1, 2]]', '100 values')
    """
    if isinstance(value, tuple):
        return _long_text(value) if is_long(value) else "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, float):
        return f"{value:.6g}"
    return _short(value)


def is_long(value: object) -> bool:
    """Returns whether a plain value has too many numbers to be shown."""
    return _count(value) > _MOST_NUMBERS


def _long_text(value: tuple[object, ...]) -> str:
    try:
        shape = np.shape(np.asarray(value))
    except ValueError:  # parts of unlike shapes
        shape = (len(value),)
    if len(shape) == 1:
        return _("{count} values", count=len(value))
    return _("an array of the shape {shape}", shape=shape)


def _count(value: object) -> int:
    return sum(map(_count, value)) if isinstance(value, tuple) else 1


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + " …"
