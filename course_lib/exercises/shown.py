"""Inputs and results of a reader's function in few characters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.answers import plain
from course_lib.i18n import _

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MOST_PARTS = 32
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
    return _long_text(value) if isinstance(value, tuple) and is_long(value) else _written(value)


def is_long(value: object) -> bool:
    """Returns whether a plain value has too many parts, or too many digits, to be shown."""
    return num_parts(value) > _MOST_PARTS or len(_written(value)) > _MOST_CHARACTERS


def num_parts(value: object) -> int:
    """Returns how many values a plain value holds; one where it holds no others."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return sum(map(num_parts, parts)) if parts else 1


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else _short(value)


def _long_text(value: tuple[object, ...]) -> str:
    try:
        shape = np.shape(np.asarray(value))
    except ValueError:  # parts of unlike shapes
        shape = (len(value),)
    if len(shape) == 1:
        return _("{count} values", count=len(value))
    return _("an array of the shape {shape}", shape=shape)


def _short(value: object) -> str:
    text = _ADDRESS.sub("", repr(value)).replace("`", "'")  # it is shown between backticks
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + " …"
