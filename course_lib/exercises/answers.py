"""What a reader may give as an answer: the many ways to write one value, read as one plain value."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
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

    Numbers of NumPy, TensorFlow, `fractions` and `decimal` become Python's; lists, arrays, tensors, shapes
    and ranges become tuples; DTensor's own meshes and layouts become specs; an explorer becomes the sharding
    that is chosen in it, or the `CourseError` that refuses the choice. All else stays.

    >>> plain([np.float32(0.5), np.array([1, 2])])
    (0.5, (1, 2))
    """
    if isinstance(value, (list, tuple, range)):
        return tuple(plain(part) for part in value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (Fraction, Decimal)):
        return int(value) if value == int(value) else float(value)
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


def numbers(value: object) -> Iterator[float]:
    """Yields the numbers in a plain value, from the first to the last."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    for part in parts:
        yield from numbers(part)
    if _is_number(value):
        yield value  # type: ignore[misc]


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


def wrong_kind(answer: object, right: object, given: object) -> str | None:
    """Returns which kind of value is asked for, or None where the answer is of that kind.

    Args:
        answer: what the reader gave, as a plain value.
        right: the right answer, as a plain value.
        given: what the reader gave, as it was.
    """
    if isinstance(answer, CourseError) and isinstance(right, Sharding):
        return _("The explorer refuses this choice: {problem}", problem=answer.problem)
    return None if _fits(answer, right) else asked_for(right, given)


def asked_for(right: object, given: object) -> str:
    """Returns the sentence that says which kind of value is asked for, and what was given instead."""
    if isinstance(right, tuple) and isinstance(given, (tuple, list)):
        misfits = [part for part in given if not any(_fits(plain(part), example) for example in right)]
        if right and misfits:
            return _("In each place of the answer: {text}", text=asked_for(right[0], misfits[0]))
    kind, given_type = _kind(right), type(given).__name__
    if isinstance(right, tuple) and not all(_is_number(part) for part in right):
        kind = "list"
    texts = {
        "truth": _("Answer with True or False; this is a value of the type `{given}`.", given=given_type),
        "number": _("Answer with a number; this is a value of the type `{given}`.", given=given_type),
        "text": _("Answer with a text in quotes; this is a value of the type `{given}`.", given=given_type),
        "numbers": _(
            "Answer with a tuple or list of numbers; the check cannot use this `{given}`.", given=given_type
        ),
        "list": _(
            "Answer with a tuple or list whose parts are as the exercise asks; the check cannot use this"
            " `{given}`.",
            given=given_type,
        ),
        "dictionary": _("Answer with a dictionary; this is a value of the type `{given}`.", given=given_type),
        "layout": _(
            "Answer with a layout, LayoutSpec(entries, mesh); this is a value of the type `{given}`.",
            given=given_type,
        ),
        "mesh": _(
            "Answer with a mesh, MeshSpec([(name, size), (name, size)]); this is a value of the type"
            " `{given}`.",
            given=given_type,
        ),
        "choice": _(
            "Give the explorer itself to the check; this is a value of the type `{given}`.", given=given_type
        ),
        "function": _(
            "Answer with a function: its name, not a call of it. This is a value of the type `{given}`.",
            given=given_type,
        ),
    }
    unknown = _(
        "The check cannot read this answer of type `{kind}`. Read once more what kind of value is asked for.",
        kind=given_type,
    )
    return texts.get(kind, unknown)


def _same(answer: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return (
            isinstance(answer, tuple)
            and len(answer) == len(expected)
            and all(_same(ours, theirs) for ours, theirs in zip(answer, expected, strict=True))
        )
    if isinstance(expected, Sharding):  # how many bytes an element takes is not what was chosen
        return isinstance(answer, Sharding) and (answer.layout, answer.global_shape) == (
            expected.layout,
            expected.global_shape,
        )
    if _is_number(answer) and isinstance(expected, float):
        return math.isclose(answer, expected, rel_tol=_ROUNDING, abs_tol=_ROUNDING_TO_WHOLE)  # type: ignore[arg-type]
    if isinstance(answer, float) and _is_number(expected):
        return math.isclose(answer, expected, rel_tol=_ROUNDING_TO_WHOLE)  # type: ignore[arg-type]
    if isinstance(answer, bool) is not isinstance(expected, bool):
        return False
    return (answer == expected) is True


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: dict[str, type | tuple[type, ...]] = {
    "truth": bool,
    "number": (int, float),
    "text": str,
    "numbers": tuple,
    "dictionary": dict,
    "layout": LayoutSpec,
    "mesh": MeshSpec,
    "choice": (Sharding, CourseError),
}


def _kind(value: object) -> str:
    """Returns the name of the kind of a plain value; "" for one that has none."""
    found = next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "")
    return found or ("function" if callable(value) else "")


def _fits(answer: object, right: object) -> bool:
    """Returns whether an answer is of the kind of the right one, and the parts of a tuple of its parts'."""
    if not isinstance(right, tuple):
        return _kind(right) in ("", _kind(answer))
    return isinstance(answer, tuple) and all(
        not right or any(_fits(part, example) for example in right) for part in answer
    )


def _of_numpy(value: Any) -> object:
    if value.ndim:
        return plain(value.tolist())
    number = value.item()
    return float(number) if isinstance(number, np.floating) else number  # Python has no longdouble


def _is_tensorflows(value: object) -> bool:
    """Returns whether TensorFlow, or a Keras, made the type of a value; imports neither."""
    makers = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return not makers.isdisjoint({"tensorflow", "keras", "tf_keras"})


def _of_object(value: Any) -> object:
    if callable(getattr(type(value), "as_list", None)):  # a TensorShape, without importing TensorFlow
        return plain(value.as_list())
    if hasattr(type(value), "sharding_specs") and hasattr(type(value), "sharding"):  # an explorer
        return _chosen(value)
    return _of_tensorflow(value) if _is_tensorflows(value) else value


def _of_tensorflow(value: Any) -> object:
    name = type(value).__name__
    if name in ("Layout", "Mesh"):
        dtensor = importlib.import_module("course_lib.dtensor")
        return dtensor.layout_spec(value) if name == "Layout" else dtensor.mesh_spec(value)
    return plain(_fetched(value)) if callable(getattr(value, "numpy", None)) else value


def _fetched(tensor: Any) -> object:
    try:
        return tensor.numpy()
    except Exception:  # what TensorFlow says of a sharded one
        return importlib.import_module("course_lib.dtensor").to_numpy(tensor)


def _chosen(explorer: Any) -> Sharding | CourseError:
    try:
        chosen: Sharding = explorer.sharding
    except CourseError as error:
        return error
    return chosen
