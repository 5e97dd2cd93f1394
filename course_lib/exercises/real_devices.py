"""Judging distributed code on real devices, where a mistake must not end the process.

What would end it is met before: by a rehearsal on ordinary tensors, which raise where DTensors of unlike
number types end the process, and by reading the code. TensorFlow itself stays as it is.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow


@contextlib.contextmanager
def on_devices() -> Iterator[tuple[Any, Any]]:
    """Starts TensorFlow; what an exercise gives `judge` as `run` calls the reader's function in the block.

    Yields:
        The modules `tensorflow` and `course_lib.dtensor`.

    Raises:
        CourseError: a failed exchange between devices has made all later ones impossible.
    """
    tf, dtensor = start_tensorflow(), importlib.import_module("course_lib.dtensor")
    with importlib.import_module("course_lib.aborts").explaining_aborts():
        yield tf, dtensor


def rehearsal(function: Any, **stand_ins: Callable[..., Any]) -> Callable[..., Any] | None:
    """Returns a reader's function as it is, but that it sees other functions under these global names.

    Returns:
        The copy; None of a callable that Python did not make from `def` or `lambda`.
    """
    plain = _plain(function)
    if plain is None:
        return None
    copy = FunctionType(
        plain.__code__,
        {**plain.__globals__, **stand_ins},
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    copy.__kwdefaults__ = plain.__kwdefaults__
    return copy


def refuse_new_axis(function: Any) -> None:
    """Checks that a reader's function adds no axis in square brackets, which is unsafe on a DTensor.

    Raises:
        CourseError: it does.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(_plain(function) or function)))
    except (OSError, TypeError, SyntaxError):  # there is no source to read
        return
    if any(_is_new_axis(node) for node in ast.walk(tree)):
        raise CourseError(
            _("A new axis in square brackets, such as `x[:, None]`, can end the process on a DTensor."),
            allowed=_("slices without None or tf.newaxis"),
            cure=_("Write tf.expand_dims(x, axis) or tf.reshape(x, shape)."),
        )


def _plain(function: Any) -> FunctionType | None:
    function = inspect.unwrap(function) if callable(function) else function  # of a tf.function, too
    return function if isinstance(function, FunctionType) else None


def _is_new_axis(node: ast.AST) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(
        (isinstance(entry, ast.Constant) and entry.value is None)
        or (isinstance(entry, ast.Attribute) and entry.attr == "newaxis")
        for entry in entries
    )
