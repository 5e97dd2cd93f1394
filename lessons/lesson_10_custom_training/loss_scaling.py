"""Loss scaling: what each replica makes of the losses of its examples, and what their sum comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.received import split

Parts = tuple[tuple[float, ...], ...]

DIVISIONS = GLOBAL, FULL, REPLICA, KERAS, TWICE = ("global", "full", "replica", "keras", "twice")
_SAME = 1e-9  # sums of floats in another order


@dataclass(frozen=True, init=False)
class LossScaling(DrawsItself):
    """The losses of one global batch, divided on each replica and then summed. It draws itself.

    What each replica divides the sum of its losses by, and what the sum over the replicas then is:

    | division    | divides by                                      | right                      |
    | ----------- | ----------------------------------------------- | -------------------------- |
    | `"global"`  | the number of examples in this global batch     | always                     |
    | `"full"`    | the batch size                                  | if the batch is full       |
    | `"replica"` | the number of the replica's own examples        | on one replica             |
    | `"keras"`   | that, and the number of replicas                | if the parts are equal     |
    | `"twice"`   | that, and the number of replicas once more      | on one replica             |

    >>> scaling = LossScaling([[2, 3], [4, 5]])
    >>> scaling.reports, scaling.total, scaling.mean, scaling.metric
    ((1.25, 2.25), 3.5, 3.5, 1.75)
    >>> scaling.divided("replica").total
    7.0

    Attributes:
        losses: the loss of each example, replica by replica; a replica may have none.
        gradients: the gradient of each loss with respect to one weight, likewise; None if not known.
        batch_size: the number of examples in a full global batch.
        division: one of `DIVISIONS`.

    Raises:
        CourseError: there is no example, more than the batch size, or another division.

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Define the loss function);
    https://github.com/keras-team/keras/blob/v3.13.0/keras/src/losses/loss.py (reduce_values).
    """

    drawn_by = "lessons.lesson_10_custom_training.loss_scaling_picture"

    losses: Parts
    gradients: Parts | None
    batch_size: int
    division: str

    def __init__(
        self,
        losses: Sequence[Sequence[float]],
        batch_size: int | None = None,
        *,
        gradients: Sequence[Sequence[float]] | None = None,
        division: str = GLOBAL,
    ) -> None:
        count = sum(map(len, losses))
        if not count:
            raise CourseError(
                _("There is no loss in {losses!r}.", losses=losses),
                allowed=_("a sequence of losses for each replica, with at least one loss in all"),
                cure=_("Write for example LossScaling([[2, 3], [4, 5]], gradients=[[1, 2], [3, 4]])."),
            )
        problem = _("{size!r} cannot be the batch size of these examples.", size=batch_size)
        cure = _("Give the number of examples in a full global batch, or leave it out.")
        size = count if batch_size is None else whole_number(batch_size, problem, least=count, cure=cure)
        problem = _("The losses are not divided by {division!r}.", division=division)
        one_of(division, DIVISIONS, problem, cure=_("Choose one of these."))
        object.__setattr__(self, "losses", _parts(losses))
        object.__setattr__(self, "gradients", None if gradients is None else _parts(gradients))
        object.__setattr__(self, "batch_size", size)
        object.__setattr__(self, "division", division)

    @classmethod
    def of_a_line(
        cls,
        weight: float,
        inputs: Sequence[float],
        targets: Sequence[float],
        num_replicas: int,
        *,
        batch_size: int | None = None,
        division: str = GLOBAL,
    ) -> LossScaling:
        """Returns the losses of the model `y = weight x`, so that each gradient can be computed by hand.

        The loss of an example is `|weight x - target|`, its gradient is `x` or `-x`.

        >>> line = LossScaling.of_a_line(3, inputs=[1, 2, 3, 4], targets=[1, 3, 5, 7], num_replicas=2)
        >>> line.losses, line.gradients, line.gradient
        (((2, 3), (4, 5)), ((1, 2), (3, 4)), 2.5)

        Args:
            weight: the one weight.
            inputs: `x` of each example of the global batch.
            targets: what the model should have given for each.
            num_replicas: the number of replicas, which get their parts as `split` says.
            batch_size: the number of examples in a full global batch.
            division: one of `DIVISIONS`.

        Raises:
            CourseError: as for the losses.
        """
        errors = [weight * x - target for x, target in zip(inputs, targets, strict=True)]
        slopes = [x * _sign(error) for x, error in zip(inputs, errors, strict=True)]
        return cls(
            split([abs(error) for error in errors], num_replicas),
            batch_size,
            gradients=split(slopes, num_replicas),
            division=division,
        )

    @property
    def num_replicas(self) -> int:
        """The number of replicas, those without an example too."""
        return len(self.losses)

    @property
    def num_examples(self) -> int:
        """The number of examples in this global batch."""
        return sum(map(len, self.losses))

    @property
    def mean(self) -> float:
        """The true mean: the sum of all losses divided by the number of examples."""
        return _sum(self.losses) / self.num_examples

    @property
    def reports(self) -> tuple[float, ...]:
        """What each replica returns; NaN for a mean over no example."""
        return tuple(self._report(part, empty=math.nan) for part in self.losses)

    @property
    def total(self) -> float:
        """The sum over the replicas of what they return."""
        return math.fsum(self.reports)

    @property
    def metric(self) -> float:
        """What a `Mean` metric shows that was updated with what each replica returns."""
        return self.total / self.num_replicas

    @property
    def true_gradient(self) -> float:
        """The gradient of the true mean."""
        return _sum(self._slopes()) / self.num_examples

    @property
    def gradient_reports(self) -> tuple[float, ...]:
        """The gradient on each replica; over no example it is 0 even where the loss is NaN."""
        return tuple(self._report(part, empty=0.0) for part in self._slopes())

    @property
    def gradient(self) -> float:
        """The sum over the replicas of their gradients: what the optimizer is given."""
        return math.fsum(self.gradient_reports)

    @property
    def is_right(self) -> bool:
        """Whether the sum over the replicas is the true mean, and so for the gradients."""
        right = _same(self.total, self.mean)
        return right and (self.gradients is None or _same(self.gradient, self.true_gradient))

    def divided(self, division: str) -> LossScaling:
        """Returns the same losses, divided in another way."""
        return LossScaling(self.losses, self.batch_size, gradients=self.gradients, division=division)

    def divisors(self, replica: int) -> tuple[int, ...]:
        """Returns the numbers by which a replica divides the sum of its losses, one after the other.

        >>> LossScaling([[2, 3, 4], [5]], division="keras").divisors(0)
        (3, 2)
        """
        return self._divisors(len(self.losses[replica]))

    def _divisors(self, own: int) -> tuple[int, ...]:
        return {
            GLOBAL: (self.num_examples,),
            FULL: (self.batch_size,),
            REPLICA: (own,),
            KERAS: (own, self.num_replicas),
            TWICE: (own, self.num_replicas, self.num_replicas),
        }[self.division]

    def _report(self, part: Sequence[float], *, empty: float) -> float:
        """Returns what a replica makes of the values of its examples; `empty` for a mean over none.

        Keras divides nothing by nothing without NaN; `tf.reduce_mean` does not, but its gradient is 0.
        """
        divisors = self._divisors(len(part))
        if 0 in divisors:
            return empty if self.division == REPLICA else 0.0
        return math.fsum(part) / math.prod(divisors)

    def _slopes(self) -> Parts:
        if self.gradients is None:
            raise CourseError(
                _("The gradients of these losses are not known."),
                allowed=_("losses that were given with their gradients"),
                cure=_("Write for example LossScaling([[2, 3], [4, 5]], gradients=[[1, 2], [3, 4]])."),
            )
        return self.gradients


def _parts(values: Sequence[Sequence[float]]) -> Parts:
    return tuple(tuple(part) for part in values)


def _sum(parts: Parts) -> float:
    return math.fsum(value for part in parts for value in part)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
