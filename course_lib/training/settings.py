"""The settings of a training: checked when it begins, and held against a checkpoint when it is resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Real

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _, ngettext
from course_lib.specs.plan import require_batch_size
from course_lib.training.batches import BatchOrder


@dataclass(frozen=True)
class Settings:
    """What a reader decides beside the model and the examples.

    Attributes:
        epochs: the number of epochs in all, those before a resumption included.
        batch_size: the number of rows in a global batch.
        learning_rate: how far each variable moves against its gradient.
        seed: of the order of the rows.

    Raises:
        CourseError: the number of epochs or the batch size is no whole number from 1, or the learning rate no
            finite number above 0.
    """

    epochs: int
    batch_size: int = 64
    learning_rate: float = 1e-2
    seed: int = 0

    def __post_init__(self) -> None:
        problem = _("{epochs!r} epochs cannot be trained.", epochs=self.epochs)
        cure = _("Give the number of epochs in all, for example epochs=3.")
        whole_number(self.epochs, problem, least=1, cure=cure)
        require_batch_size(self.batch_size)
        require_learning_rate(self.learning_rate)

    def order(self, num_examples: int) -> BatchOrder:
        """Returns which rows each step takes.

        Raises:
            CourseError: the examples do not fill a batch.
        """
        order = BatchOrder(num_examples, self.batch_size, self.seed)
        if not order.steps_per_epoch:
            raise CourseError(
                ngettext(
                    "{count} training example does not fill one batch of {batch_size}.",
                    "{count} training examples do not fill one batch of {batch_size}.",
                    num_examples,
                    batch_size=self.batch_size,
                ),
                allowed=_("batches of at most {num_examples}", num_examples=num_examples),
                cure=_("Use a smaller batch or more examples."),
            )
        return order

    def identity(self) -> dict[str, object]:
        """Returns what may not change when a training is resumed; it may go on for more epochs."""
        return {name: value for name, value in asdict(self).items() if name != "epochs"}


def require_not_beyond(step: int, order: BatchOrder, epochs: int, folder: str) -> None:
    """Checks that a resumed training has not already gone further than it is asked to go.

    Raises:
        CourseError: the checkpoint is from a step after the last of `epochs`.
    """
    if step > epochs * order.steps_per_epoch:
        trained = -(-step // order.steps_per_epoch)
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


def require_same(given: Mapping[str, object], saved: Mapping[str, object], folder: str) -> None:
    """Checks that a training continues the one that a checkpoint holds.

    Args:
        given: the identity of the training.
        saved: what the checkpoint holds in its place.
        folder: where the checkpoint is.

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


def require_learning_rate(learning_rate: float) -> None:
    """Checks a learning rate.

    Raises:
        CourseError: it is no finite number above 0.
    """
    if not (isinstance(learning_rate, Real) and math.isfinite(learning_rate) and learning_rate > 0):
        raise CourseError(
            _("{learning_rate!r} cannot be a learning rate.", learning_rate=learning_rate),
            allowed=_("finite numbers above 0"),
            cure=_("A summed loss over 64 rows takes about 1e-2."),
        )
