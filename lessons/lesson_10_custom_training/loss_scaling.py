"""Loss scaling: what each replica makes of the losses of its examples, and what their sum comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.specs.drawing import DrawsItself
from course_lib.specs.received import split

Parts = tuple[tuple[float, ...], ...]

DIVISIONS = GLOBAL, FULL, REPLICA, KERAS, TWICE = ("global", "full", "replica", "keras", "twice")
WEIGHT = 3  # of y = 3 x; the targets 2 x - 1 make the losses 2, 3, 4, ... and the gradients 1, 2, 3, ...


@dataclass(frozen=True)
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

    >>> scaling = LossScaling(((2, 3), (4, 5)), gradients=((1, 2), (3, 4)), batch_size=4)
    >>> scaling.reports, scaling.total, scaling.mean, scaling.metric
    ((1.25, 2.25), 3.5, 3.5, 1.75)

    Attributes:
        losses: the loss of each example, replica by replica; a replica may have none.
        gradients: the gradient of each loss with respect to one weight, likewise.
        batch_size: the number of examples in a full global batch.
        division: one of `DIVISIONS`.

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Define the loss function);
    https://github.com/keras-team/keras/blob/v3.13.0/keras/src/losses/loss.py (reduce_values).
    """

    drawn_by = "lessons.lesson_10_custom_training.loss_scaling_picture"

    losses: Parts
    gradients: Parts
    batch_size: int
    division: str = GLOBAL

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
        return sum(map(math.fsum, self.losses)) / self.num_examples

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
        return sum(map(math.fsum, self.gradients)) / self.num_examples

    @property
    def gradient_reports(self) -> tuple[float, ...]:
        """The gradient on each replica; over no example it is 0 even where the loss is NaN."""
        return tuple(self._report(part, empty=0.0) for part in self.gradients)

    @property
    def gradient(self) -> float:
        """The sum over the replicas of their gradients: what the optimizer is given."""
        return math.fsum(self.gradient_reports)

    @property
    def loss_is_right(self) -> bool:
        """Whether the sum over the replicas is the true mean."""
        return math.isclose(self.total, self.mean)

    @property
    def gradient_is_right(self) -> bool:
        """Whether the sum of the gradients is the gradient of the true mean."""
        return math.isclose(self.gradient, self.true_gradient)

    def divisors(self, own: int) -> tuple[int, ...]:
        """Returns the numbers by which a replica with so many examples divides, one after the other."""
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
        divisors = self.divisors(len(part))
        if 0 in divisors:
            return empty if self.division == REPLICA else 0.0
        return math.fsum(part) / math.prod(divisors)


def of_a_line(num_replicas: int, batch_size: int, num_examples: int, division: str) -> LossScaling:
    """Returns the losses of the model `y = 3 x`, so that each gradient can be computed by hand.

    The examples are x = 1, 2, 3, ... with the targets 2 x - 1, the loss of one is the absolute error.

    >>> line = of_a_line(num_replicas=2, batch_size=4, num_examples=4, division="global")
    >>> line.losses, line.gradients, line.gradient
    (((2, 3), (4, 5)), ((1, 2), (3, 4)), 2.5)
    """
    inputs = range(1, num_examples + 1)
    losses = [abs(WEIGHT * x - (2 * x - 1)) for x in inputs]
    return LossScaling(split(losses, num_replicas), split(inputs, num_replicas), batch_size, division)
