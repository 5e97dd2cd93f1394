"""Examples as readers have them, made into what training takes, or refused."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext

_PAIR = 2


def to_examples(given: Any, input_shape: Sequence[int], num_classes: int) -> Examples:
    """Returns examples that a model can be trained or evaluated on.

    Numbers are converted to float32 features and int64 labels where that loses nothing but digits.

    Args:
        given: `Examples`, or a pair of features and labels: arrays, lists or tensors.
        input_shape: the shape of one example's features, as the model takes it.
        num_classes: the number of classes that the model tells apart.

    Raises:
        CourseError: there are no examples, shapes do not fit, a feature is not a finite number, or a label
            is not the number of a class.
    """
    features, labels = _pair(given)
    _require_shapes(features, labels, tuple(input_shape))
    return Examples(_to_float32(features), _to_class_numbers(labels, num_classes))


def fingerprint(examples: Examples) -> str:
    """Returns a short digest of the examples: other examples, or another order, give another one."""
    digest = hashlib.blake2b(digest_size=8)
    for array in (examples.features, examples.labels):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _pair(given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if isinstance(given, Examples):
        return given.features, given.labels
    try:
        if isinstance(given, (tuple, list)) and len(given) == _PAIR:
            return np.asarray(given[0]), np.asarray(given[1])
        reason = type(given).__name__
    except (TypeError, ValueError) as error:  # rows of unlike lengths
        reason = str(error)
    raise CourseError(
        _("These cannot be used as examples: {reason}.", reason=reason),
        allowed=_("Examples, or a pair (features, labels) of arrays, lists or tensors"),
        cure=_("Write for example (features, labels), a row and a label for each example."),
    )


def _require_shapes(
    features: npt.NDArray[Any], labels: npt.NDArray[Any], input_shape: tuple[int, ...]
) -> None:
    if features.ndim != 1 + len(input_shape) or labels.shape != features.shape[:1] or not len(features):
        raise CourseError(
            _(
                "The features have the shape {features}, the labels {labels}.",
                features=features.shape,
                labels=labels.shape,
            ),
            allowed=_("[examples, features] and [examples], with at least one example"),
            cure=_("Give one row of features and one label for each example."),
        )
    given, wanted = math.prod(features.shape[1:]), math.prod(input_shape)
    if features.shape[1:] != input_shape:
        raise CourseError(
            ngettext(
                "The examples have {count} feature, the model takes {wanted}.",
                "The examples have {count} features, the model takes {wanted}.",
                given,
                wanted=wanted,
            ),
            allowed=ngettext("rows of {count} feature", "rows of {count} features", wanted),
            cure=_("Make the model for examples of this size, or cut the examples to what it takes."),
        )


def _to_float32(features: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if features.dtype.kind not in "fiub":
        raise CourseError(
            _("The features are {dtype}.", dtype=features.dtype),
            allowed=_("real numbers; they are converted to float32"),
            cure=_("Make numbers of them first."),
        )
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused below
        converted = features.astype(np.float32, copy=False)
    if not np.isfinite(converted).all():
        raise CourseError(
            _(
                "Row {row} has a feature that is not a finite number.",
                row=int(np.argwhere(~np.isfinite(converted))[0][0]),
            ),
            allowed=_("finite numbers that float32 can hold"),
            cure=_("Look at how this row was made."),
        )
    return converted


def _to_class_numbers(labels: npt.NDArray[Any], num_classes: int) -> npt.NDArray[np.int64]:
    numbers = labels.dtype.kind in "fiub"
    fit = numbers & (labels >= 0) & (labels < num_classes) if numbers else np.zeros(labels.shape, bool)
    whole = fit & (np.floor(labels) == labels) if numbers else fit
    if not whole.all():
        raise CourseError(
            ngettext(
                "There is a label {label}, but the model has {count} class.",
                "There is a label {label}, but the model has {count} classes.",
                num_classes,
                label=labels[~whole][0],
            ),
            allowed=_("whole numbers from {least} to {most}", least=0, most=num_classes - 1),
            cure=_("Number the classes from 0, or make the model with more of them."),
        )
    return labels.astype(np.int64, copy=False)
