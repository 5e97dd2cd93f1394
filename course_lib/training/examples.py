"""Examples as readers have them, made into what training takes, or refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext


def to_examples(given: Any, input_shape: Sequence[int], num_classes: int) -> Examples:
    """Returns examples that a model can be trained or evaluated on, as float32 features and int64 labels.

    Args:
        given: `Examples`, or a pair of features and labels: arrays, lists or tensors.
        input_shape: the shape of one example's features, as the model takes it.
        num_classes: the number of classes that the model tells apart.

    Raises:
        CourseError: there are no examples, shapes do not fit, or a label is not the number of a class.
    """
    pair = (given.features, given.labels) if isinstance(given, Examples) else given
    features, labels = (np.asarray(part) for part in pair)
    if labels.shape != features.shape[:1] or not len(labels) or features.shape[1:] != tuple(input_shape):
        raise CourseError(
            _(
                "The features have the shape {features}, the labels {labels}.",
                features=features.shape,
                labels=labels.shape,
            ),
            allowed=_("[examples, features] and [examples], with at least one example"),
            cure=_("Make the model for examples of this size, or cut the examples to what it takes."),
        )
    examples = Examples(features.astype(np.float32, copy=False), labels.astype(np.int64, copy=False))
    _require_classes(examples, num_classes)
    return examples


def fingerprint(examples: Examples) -> str:
    """Returns a short digest of the examples: other examples, or another order, give another one."""
    digest = hashlib.blake2b(digest_size=8)
    for array in (examples.features, examples.labels):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _require_classes(examples: Examples, num_classes: int) -> None:
    classes = (examples.labels >= 0) & (examples.labels < num_classes)
    if not classes.all():
        raise CourseError(
            ngettext(
                "There is a label {label}, but the model has {count} class.",
                "There is a label {label}, but the model has {count} classes.",
                num_classes,
                label=examples.labels[~classes][0],
            ),
            allowed=_("whole numbers from {least} to {most}", least=0, most=num_classes - 1),
            cure=_("Number the classes from 0, or make the model with more of them."),
        )
