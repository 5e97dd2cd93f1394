"""Two Adams that train wrongly without a word: lesson 7 finds them out.

Both stand in https://www.tensorflow.org/guide/core/distribution (github.com/tensorflow/docs, commit 50afd98).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.models.model import Model, Update
from course_lib.training.optimizers.adam import Adam, AdamSlots


class CountingSlots(AdamSlots):
    """Slots whose counter is a number of Python's.

    Attributes:
        count: how often `updates` ran as Python: in a `tf.function` once, while it is traced.
    """

    count = 0


class PythonCountAdam(Adam):
    """Adam with the bias correction of the first step for ever, once it is in a `tf.function`."""

    def slots(self, model: Model) -> CountingSlots:
        """Returns slots of zeros and a count."""
        return CountingSlots(model)

    def updates(self, variables: Mapping[str, Any], gradients: Mapping[str, Any], slots: Any) -> list[Update]:
        """Returns new values of the variables and of both their averages."""
        slots.count += 1
        rate = self.corrected_rate(slots.count)
        updates: list[Update] = []
        for name, variable in variables.items():
            mean, square = slots.means[name], slots.squares[name]
            new_mean, new_square = self.averages(gradients[name], mean, square)
            moved = self.moved(variable, rate, new_mean, new_square)
            updates += [(variable, moved), (mean, new_mean), (square, new_square)]
        return updates


class WriteThenReadAdam(Adam):
    """Adam that writes its slots, then reads them: under DTensor it can be given what they held before."""

    def updates(
        self, variables: Mapping[str, Any], gradients: Mapping[str, Any], slots: AdamSlots
    ) -> list[Update]:
        """Writes the slots, and returns new values of the variables alone."""
        slots.steps.assign_add(1)
        rate = self.corrected_rate(slots.steps)
        updates: list[Update] = []
        for name, variable in variables.items():
            mean, square = slots.means[name], slots.squares[name]
            new_mean, new_square = self.averages(gradients[name], mean, square)
            mean.assign(new_mean)
            square.assign(new_square)
            updates.append((variable, self.moved(variable, rate, mean, square)))
        return updates
