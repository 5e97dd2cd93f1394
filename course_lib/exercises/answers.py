"""What a reader may give as an answer: the many ways to write one value, read as one plain value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.specs.sharding import Sharding

_ROUNDING = 1e-6  # of a float32
_ROUNDING_TO_WHOLE = 1e-9  # of a whole number that was computed with fractions


class NotAnswered(Exception):  # noqa: N818 - it is a state, not a fault
    """An answer still holds the `...` that the notebook came with."""


def answered(value: Any) -> Any:
    """Returns `value` as it is.

    Raises:
        NotAnswered: it is `...`, or a tuple, list or dict with `...` somewhere in it.
    """
    if value is ...:
        raise NotAnswered
    if isinstance(value, (tuple, list)):
        for part in value:
            answered(part)
    elif isinstance(value, dict):
        answered(list(value.values()))
    return value


def plain(value: Any) -> Any:
    """Returns an answer as a plain value, however it is written.

    Numbers of NumPy and TensorFlow become Python's; lists, arrays, tensors, shapes
    and ranges become tuples; DTensor's own meshes and layouts become specs; an explorer becomes the sharding
    that is chosen in it, or the `CourseError` that refuses the choice. All else stays.

    >>> plain([np.float32(0.5), np.array([1, 2])])
    (0.5, (1, 2))
    """
    if isinstance(value, (list, tuple, range)):
        return tuple(plain(part) for part in value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (np.generic, np.ndarray)):
        return _of_numpy(value)
    return _of_object(value)


def same(answer: object, expected: object) -> bool:
    """Returns whether an answer is the expected one, however it is written. Never raises.

    Fractions may be off by the rounding of a float32. `True` is not 1.

    >>> same([2, 6.0], (2, 6)), same(np.float32(0.64), 0.64), same(10.9, 10), same(True, 1)
    (True, True, False, False)
    """
    try:
        return _same(plain(answer), plain(expected))
    except Exception:
        return False


def refusal(make: Callable[..., object], *arguments: Any) -> CourseError:
    """Returns the error with which `make(*arguments)` refuses: an explorer with this choice, as an answer.

    Raises:
        ValueError: it does not refuse.
    """
    try:
        made = make(*arguments)
    except CourseError as error:
        return error
    raise ValueError(f"this is legal: {made!r}")


def _same(answer: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return (
            isinstance(answer, tuple)
            and len(answer) == len(expected)
            and all(_same(ours, theirs) for ours, theirs in zip(answer, expected, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(answer, dict)
            and answer.keys() == expected.keys()
            and all(_same(answer[name], part) for name, part in expected.items())
        )
    if isinstance(expected, Sharding):  # how many bytes an element takes is not what was chosen
        return isinstance(answer, Sharding) and (answer.layout, answer.global_shape) == (
            expected.layout,
            expected.global_shape,
        )
    return _same_single(answer, expected)


def _same_single(answer: object, expected: object) -> bool:
    if is_number(answer) and isinstance(expected, float):
        return math.isclose(answer, expected, rel_tol=_ROUNDING, abs_tol=_ROUNDING_TO_WHOLE)  # type: ignore[arg-type]
    if isinstance(answer, float) and is_number(expected):
        return math.isclose(answer, expected, rel_tol=_ROUNDING_TO_WHOLE)  # type: ignore[arg-type]
    if isinstance(answer, bool) is not isinstance(expected, bool):
        return False
    return (answer == expected) is True


def is_number(value: object) -> bool:
    """Returns whether a plain value is a number, which a truth value is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_numpy(value: Any) -> object:
    if value.ndim:
        return plain(value.tolist())
    number: object = value.item()
    return number


def _is_tensorflows(value: object) -> bool:
    """Returns whether TensorFlow, or a Keras, made the type of a value; imports neither."""
    makers = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return not makers.isdisjoint({"tensorflow", "keras", "tf_keras"})


def _of_object(value: Any) -> object:
    if callable(getattr(type(value), "as_list", None)):  # a TensorShape, without importing TensorFlow
        return plain(value.as_list())
    if hasattr(type(value), "sharding"):  # an explorer
        return _chosen(value)
    return _of_tensorflow(value) if _is_tensorflows(value) else value


def _of_tensorflow(value: Any) -> object:
    name = type(value).__name__
    if name in ("Layout", "Mesh"):
        from course_lib.devices import dtensor  # with TensorFlow, which has made the value

        return dtensor.layout_spec(value) if name == "Layout" else dtensor.mesh_spec(value)
    return plain(_fetched(value)) if callable(getattr(value, "numpy", None)) else value


def _fetched(tensor: Any) -> object:
    try:
        return tensor.numpy()
    except Exception as error:
        if type(error).__name__ != "UnimplementedError":  # which is what a sharded one raises
            raise
        from course_lib.devices.dtensor import to_numpy

        return to_numpy(tensor)


def _chosen(explorer: Any) -> Sharding | CourseError:
    try:
        chosen: Sharding = explorer.sharding
    except CourseError as error:
        return error
    return chosen
