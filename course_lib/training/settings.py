"""The settings of a training, checked when it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
        seed: of the order of the rows.

    Raises:
        CourseError: the number of epochs or the batch size is no whole number from 1.
    """

    epochs: int
    batch_size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        problem = _("{epochs!r} epochs cannot be trained.", epochs=self.epochs)
        cure = _("Give the number of epochs in all, for example epochs=3.")
        whole_number(self.epochs, problem, least=1, cure=cure)
        require_batch_size(self.batch_size)

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
