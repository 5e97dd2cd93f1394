"""Batches: which rows, in which order, checked on the host before TensorFlow sees them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext


@lru_cache(maxsize=4)
def shuffled(num_examples: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Returns the order of the rows in one epoch: the same for the same seed and epoch, on every machine."""
    random = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    order = random.permutation(num_examples).astype(np.int64)
    order.flags.writeable = False  # it is shared with whoever asks again
    return order


def stack(
    examples: Examples, rows: npt.NDArray[np.int64], num_batches: int, batch_size: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Returns `num_batches` batches on top of each other; where `rows` runs out, its rows come again.

    The stack has the same shape at the end of an epoch as elsewhere, so that TensorFlow traces once. Who
    takes it must know how many of its batches are real.

    Args:
        examples: the examples to take from.
        rows: the numbers of the rows to take, in order.
        num_batches: the number of batches.
        batch_size: the number of examples in a batch.

    Returns:
        Features `[num_batches, batch_size, features] global` and labels `[num_batches, batch_size] global`.
    """
    taken = np.resize(rows, (num_batches, batch_size))
    return examples.features[taken], examples.labels[taken]


def padded(
    examples: Examples, num_rows: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Yields every example once, in order, in batches of `num_rows` of which the last is filled up.

    Args:
        examples: the examples.
        num_rows: the number of rows in a batch.

    Yields:
        Features `[num_rows, features] global`, labels `[num_rows] global`, and weights `[num_rows] global`:
        1 for an example, 0 for a row that only fills up.
    """
    for start in range(0, len(examples), num_rows):
        real = min(num_rows, len(examples) - start)
        rows = np.resize(np.arange(start, start + real), num_rows)
        weights = (np.arange(num_rows) < real).astype(np.float32)
        yield examples.features[rows], examples.labels[rows], weights


def fingerprint(examples: Examples) -> str:
    """Returns a short digest of the examples: other examples, or another order, give another one."""
    digest = hashlib.blake2b(digest_size=8)
    for array in (examples.features, examples.labels):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def require_examples(examples: Examples, num_features: int, num_classes: int) -> None:
    """Checks that a model can be trained or evaluated on the examples.

    Args:
        examples: the examples.
        num_features: the number of features that the model takes.
        num_classes: the number of classes that it tells apart.

    Raises:
        CourseError: there are none, shapes or types are wrong, a feature is not finite, or a label is not
            the number of a class.
    """
    features, labels = examples.features, examples.labels
    if features.ndim != 2 or labels.shape != (len(features),) or not len(features):  # noqa: PLR2004
        raise CourseError(
            _(
                "The features have the shape {features}, the labels {labels}.",
                features=features.shape,
                labels=labels.shape,
            ),
            allowed=_("[examples, features] and [examples], with at least one example"),
            cure=_("Give one row of features and one label for each example."),
        )
    if features.shape[1] != num_features:
        raise CourseError(
            ngettext(
                "The examples have {count} feature, the model takes {wanted}.",
                "The examples have {count} features, the model takes {wanted}.",
                features.shape[1],
                wanted=num_features,
            ),
            allowed=ngettext("rows of {count} feature", "rows of {count} features", num_features),
            cure=_("Make the model with initial_values(dims=({given}, ...)).", given=features.shape[1]),
        )
    _require_numbers(features, labels, num_classes)


def _require_numbers(
    features: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], num_classes: int
) -> None:
    if features.dtype != np.float32 or labels.dtype != np.int64:
        raise CourseError(
            _(
                "The features are {features}, the labels {labels}.",
                features=features.dtype,
                labels=labels.dtype,
            ),
            allowed=_("float32 and int64"),
            cure=_('Convert them, for example with features.astype("float32").'),
        )
    if not np.isfinite(features).all():
        raise CourseError(
            _(
                "Row {row} has a feature that is not a finite number.",
                row=int(np.argwhere(~np.isfinite(features))[0][0]),
            ),
            allowed=_("finite numbers"),
            cure=_("Look at how this row was made."),
        )
    wrong = labels[(labels < 0) | (labels >= num_classes)]
    if len(wrong):
        raise CourseError(
            ngettext(
                "There is a label {label}, but the model has {count} class.",
                "There is a label {label}, but the model has {count} classes.",
                num_classes,
                label=int(wrong[0]),
            ),
            allowed=_("0 to {last}", last=num_classes - 1),
            cure=_("Number the classes from 0, or make the model with more of them."),
        )


def require_settings(epochs: int, learning_rate: float, seed: int) -> None:
    """Checks the settings of a training that do not depend on the model or the examples.

    Raises:
        CourseError: epochs is no whole number from 1, seed none from 0, or the learning rate no finite
            number above 0.
    """
    if not _is_whole(epochs, 1):
        raise CourseError(
            _("{epochs!r} epochs cannot be trained.", epochs=epochs),
            allowed=_("whole numbers from 1"),
            cure=_("Give the number of epochs in all, for example epochs=3."),
        )
    if not isinstance(learning_rate, Real) or not (math.isfinite(learning_rate) and learning_rate > 0):
        raise CourseError(
            _("{learning_rate!r} cannot be a learning rate.", learning_rate=learning_rate),
            allowed=_("finite numbers above 0"),
            cure=_("The lessons use 1e-2 on the summed loss of a batch of 64."),
        )
    if not _is_whole(seed, 0):
        raise CourseError(
            _("{seed!r} cannot be a seed.", seed=seed),
            allowed=_("whole numbers from 0"),
            cure=_("Give for example seed=0."),
        )


def require_not_beyond(step: int, steps_per_epoch: int, epochs: int, folder: str) -> None:
    """Checks that a resumed training has not already gone further than it is asked to go.

    Raises:
        CourseError: the checkpoint is from a step after the last of `epochs`.
    """
    if step > epochs * steps_per_epoch:
        trained = -(-step // steps_per_epoch)
        raise CourseError(
            ngettext(
                "The training in {folder} is already in epoch {trained}; {count} epoch was asked for.",
                "The training in {folder} is already in epoch {trained}; {count} epochs were asked for.",
                epochs,
                folder=folder,
                trained=trained,
            ),
            allowed=ngettext("at least {count} epoch in all", "at least {count} epochs in all", trained),
            cure=_("Ask for more epochs, or give another folder to start afresh."),
        )


def require_one_batch(num_examples: int, batch_size: int) -> None:
    """Checks that the training set fills a batch.

    Raises:
        CourseError: it does not.
    """
    if num_examples < batch_size:
        raise CourseError(
            ngettext(
                "{count} training example does not fill one batch of {batch_size}.",
                "{count} training examples do not fill one batch of {batch_size}.",
                num_examples,
                batch_size=batch_size,
            ),
            allowed=_("batches of at most {num_examples}", num_examples=num_examples),
            cure=_("Use a smaller batch or more examples."),
        )


def require_same(given: Mapping[str, object], saved: Mapping[str, object], folder: str) -> None:
    """Checks that a training continues the one that a checkpoint holds.

    Raises:
        CourseError: a setting differs.
    """
    for setting, value in given.items():
        if saved.get(setting) != value:
            raise CourseError(
                _(
                    "The checkpoints in {folder} are of a run with {setting} = {saved}; now it is {given}.",
                    folder=folder,
                    setting=setting,
                    saved=saved.get(setting),
                    given=value,
                ),
                allowed=_("the settings, examples and initial values that the training began with"),
                cure=_("Set {setting} back, or give the new training a folder of its own.", setting=setting),
            )


def _is_whole(number: object, least: int) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least
