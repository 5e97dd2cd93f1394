"""Values that readers give and see: read as plain ones, compared, and written, in one way each."""

from __future__ import annotations

import re
import reprlib
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _

Array = npt.NDArray[Any]

ROUNDING = 1e-6  # of a float32, as a part of the largest number
_AT_ZERO, _TO_WHOLE = 1e-6, 1e-9
_MOST_PARTS = 32  # of a value that is shown whole
_EXACT_BELOW = 2**53  # from here on every float is whole
_PYTHONS = (bool, int, float, str, tuple, list, dict)
_TENSORFLOWS = {"tensorflow", "keras", "tf_keras"}  # the packages that make its types
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class NotAnswered(Exception):  # noqa: N818 - it is a state, not a fault
    """An answer still holds the `...` that the notebook came with."""


def answered(value: Any) -> Any:
    """Returns `value` as it is.

    Raises:
        NotAnswered: it is `...`, or a tuple, list or dict with `...` somewhere in it.
    """
    if value is ...:
        raise NotAnswered
    for part in _parts(value):
        answered(part)
    return value


def plain(value: Any) -> Any:
    """Returns an answer as a plain value, however it is written.

    Numbers of NumPy and TensorFlow become Python's, and so do fractions; lists, arrays, tensors, shapes
    and ranges become tuples; DTensor's own meshes and layouts become specs; an explorer becomes the sharding
    that is chosen in it, or the `CourseError` that refuses the choice. All else stays.

    >>> plain([np.float32(0.5), np.array([1, 2])])
    (0.5, (1, 2))
    """
    value = _of_python(value)
    if isinstance(value, (list, tuple, range)):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def same(value: object, expected: object, relative: float = ROUNDING, absolute: float = _AT_ZERO) -> bool:
    """Returns whether two plain values agree.

    Whole numbers must be equal, and not-a-number agrees with itself alone. `True` is not 1.

    Args:
        value: what was given.
        expected: what it is compared with.
        relative: by how much fractions may be off, as a part of the largest number.
        absolute: by how much they may be off besides.

    >>> same(0.5000001, 0.5), same(7, 8), same((1.0, 2), (1, 2)), same((3.0,), 3), same(True, 1)
    (True, False, True, False, False)
    """
    mine, right = _as_numbers(value), _as_numbers(expected)
    if right is not None:
        if mine is None or mine.shape != right.shape:
            return False
        if "f" not in (mine.dtype.kind, right.dtype.kind):
            return bool(np.all(mine == right))
        largest = float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right)))
        allowed = _TO_WHOLE if right.dtype.kind in "iu" else relative * largest + absolute
        return bool(np.allclose(mine, right, rtol=0, atol=allowed, equal_nan=True))
    pairs = _pairs(value, expected)
    if pairs is not None:
        return all(same(ours, theirs, relative, absolute) for _place, ours, theirs in pairs)
    return type(value) is type(expected) and bool(value == expected)


def first_difference(value: object, expected: object, relative: float, place: str = "") -> tuple[str, object]:
    """Returns the first part of a long value that differs from the expected one, behind its place."""
    if isinstance(value, dict) or is_long(value):
        for inner, ours, theirs in _pairs(value, expected) or ():
            if not same(ours, theirs, relative):
                return first_difference(ours, theirs, relative, place + inner)
    return place, value


def num_parts(value: object) -> int:
    """Returns how many values a plain value holds; one where it holds no others."""
    return sum(map(num_parts, _parts(value))) or 1


def is_long(value: object) -> bool:
    """Returns whether a plain value has too many parts to be shown."""
    return num_parts(value) > _MOST_PARTS


def shown(value: object, digits: int = 3) -> str:
    """Returns a value as Python writes it, the same on every machine: rounded numbers, and no address.

    >>> shown((2, 4)), shown(np.float32(0.14814815)), shown(np.eye(2)), shown("equal")
    ('(2, 4)', '0.148', '[[1.0, 0.0], [0.0, 1.0]]', "'equal'")
    """
    return _ADDRESS.sub("", _Text(digits).repr(value))


def outlined(value: object) -> str:
    """Returns a plain value as text with six digits; of a long one its shape.

    >>> outlined((0.1, (1, 2))), outlined(tuple(range(100)))
    ('(0.1, (1, 2))', 'an array of the shape (100,)')
    """
    numbers = _as_numbers(value)
    if numbers is None or not is_long(value):
        return shown(value, digits=6).replace("`", "'")  # it stands between backticks
    return _("an array of the shape {shape}", shape=numbers.shape)


class _Text(reprlib.Repr):
    """Writes values as Python does, those of NumPy and TensorFlow as Python's, long ones in part."""

    def __init__(self, digits: int) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = _MOST_PARTS
        self.maxstring = self.maxother = 100
        self._digits = digits

    def repr1(self, value: Any, level: int) -> str:
        return super().repr1(_of_python(value), level)

    def repr_float(self, value: float, _level: int) -> str:
        """Returns a number with a fraction, or one too large to have any, with as many digits as are told."""
        exact = value.is_integer() and abs(value) < _EXACT_BELOW
        return repr(value if exact else float(f"{value:.{self._digits}g}"))


def _parts(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (tuple, list)) else []


def _pairs(value: object, expected: object) -> list[tuple[str, object, object]] | None:
    """Returns the parts of two values with their place; None where these are no tuples or dicts alike."""
    if isinstance(value, tuple) and isinstance(expected, tuple) and len(value) == len(expected):
        return [(f"[{at}]", *pair) for at, pair in enumerate(zip(value, expected, strict=True))]
    if isinstance(value, dict) and isinstance(expected, dict) and value.keys() == expected.keys():
        return [(str(name), value[name], expected[name]) for name in expected]
    return None


def _as_numbers(value: object) -> Array | None:
    """Returns a plain value as an array of numbers; None if it is not one, or not of one shape."""
    if isinstance(value, bool) or not isinstance(value, (int, float, tuple)):
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    has_truths = bool in map(type, np.asarray(value, object).flat)  # among numbers NumPy makes `True` 1
    return array if array.dtype.kind in "iuf" and not has_truths else None


def _of_python(value: Any) -> Any:
    """Returns what holds numbers as Python's numbers and lists, and what says who holds what as a spec."""
    if type(value) in _PYTHONS:
        return value
    if isinstance(value, (np.generic, np.ndarray, Real, Decimal)):
        return _of_numbers(value)
    if callable(getattr(type(value), "as_list", None)):  # a TensorShape, without importing TensorFlow
        return value.as_list()
    if hasattr(type(value), "sharding"):  # an explorer
        try:
            return value.sharding
        except CourseError as error:  # which refuses the choice
            return error
    makers = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return value if makers.isdisjoint(_TENSORFLOWS) else _of_tensorflow(value)


def _of_numbers(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return int(value) if isinstance(value, Integral) else float(value)


def _of_tensorflow(value: Any) -> Any:
    from course_lib.devices import dtensor  # with TensorFlow, which has made the value

    name = type(value).__name__
    if name in ("Layout", "Mesh"):
        return dtensor.layout_spec(value) if name == "Layout" else dtensor.mesh_spec(value)
    if not callable(getattr(value, "numpy", None)):
        return value
    try:
        return np.asarray(value.numpy()).tolist()  # an array, or a single string
    except dtensor.tf.errors.UnimplementedError:  # of a DTensor that is split
        return dtensor.to_numpy(value).tolist()
