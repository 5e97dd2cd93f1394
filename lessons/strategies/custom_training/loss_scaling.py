"""Loss scaling: what each replica makes of the losses of its examples, and what their sum comes to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lessons.strategies.global_batches import split

DIVISIONS = GLOBAL, FULL, REPLICA, KERAS, TWICE = ("global", "full", "replica", "keras", "twice")


@dataclass(frozen=True)
class LossScaling:
    """The losses of one global batch, divided on each replica and then summed.

    The model is y = 3 x, and the loss of an example is |y - (2 x - 1)|. With x = 1, 2, 3, ... the losses are
    2, 3, 4, ..., and their gradients are x. What each replica divides the sum of its losses by, and where
    the sum over the replicas then is the mean of all losses:

    | division    | divides by                                      | right                      |
    | ----------- | ----------------------------------------------- | -------------------------- |
    | `"global"`  | the number of examples in this global batch     | always                     |
    | `"full"`    | the batch size                                  | if the batch is full       |
    | `"replica"` | the number of the replica's own examples        | on one replica             |
    | `"keras"`   | that, and the number of replicas                | if the parts are equal     |
    | `"twice"`   | that, and the number of replicas once more      | on one replica             |

    >>> scaling = LossScaling(num_replicas=2, batch_size=4, num_examples=4)
    >>> scaling.reports, scaling.total, scaling.mean, scaling.metric, scaling.gradient
    ((1.25, 2.25), 3.5, 3.5, 1.75, 2.5)

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Define the loss function);
    https://github.com/keras-team/keras/blob/v3.13.0/keras/src/losses/loss.py (reduce_values).
    """

    num_replicas: int
    batch_size: int
    num_examples: int
    division: str = GLOBAL

    @property
    def gradients(self) -> tuple[tuple[float, ...], ...]:
        """The gradient of each example's loss with respect to the weight, replica by replica."""
        return split(range(1, self.num_examples + 1), self.num_replicas)

    @property
    def losses(self) -> tuple[tuple[float, ...], ...]:
        """The loss of each example, replica by replica; a replica may have none."""
        return tuple(tuple(x + 1 for x in part) for part in self.gradients)

    @property
    def mean(self) -> float:
        """The true mean of all losses."""
        return sum(map(sum, self.losses)) / self.num_examples

    @property
    def true_gradient(self) -> float:
        """The gradient of the true mean."""
        return sum(map(sum, self.gradients)) / self.num_examples

    @property
    def reports(self) -> tuple[float, ...]:
        """What each replica returns; `tf.reduce_mean` over no example is NaN."""
        return tuple(self._divided(self.losses, empty=math.nan if self.division == REPLICA else 0.0))

    @property
    def gradient_reports(self) -> tuple[float, ...]:
        """The gradient on each replica; over no example it is 0 even where the loss is NaN."""
        return tuple(self._divided(self.gradients, empty=0.0))

    @property
    def total(self) -> float:
        """The sum over the replicas of what they return."""
        return math.fsum(self.reports)

    @property
    def gradient(self) -> float:
        """The sum over the replicas of their gradients: what the optimizer is given."""
        return math.fsum(self.gradient_reports)

    @property
    def metric(self) -> float:
        """What a `Mean` metric shows that was updated with what each replica returns."""
        return self.total / self.num_replicas

    def divisors(self, own: int) -> tuple[int, ...]:
        """Returns the numbers by which a replica with so many examples divides, one after the other."""
        return {
            GLOBAL: (self.num_examples,),
            FULL: (self.batch_size,),
            REPLICA: (own,),
            KERAS: (own, self.num_replicas),
            TWICE: (own, self.num_replicas, self.num_replicas),
        }[self.division]

    def _divided(self, parts: tuple[tuple[float, ...], ...], *, empty: float) -> Iterator[float]:
        for part in parts:
            divisors = self.divisors(len(part))
            yield sum(part) / math.prod(divisors) if 0 not in divisors else empty
