"""Who runs steps, on a mesh or on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.models.sentiment import MLP, Update
from course_lib.runtime import start_tensorflow
from course_lib.training.batches import Features, Labels
from course_lib.training.compiled import Compiled, repeated
from course_lib.training.evaluate import evaluate, example_losses, right_answers

tf = start_tensorflow()

Sums = npt.NDArray[np.float32]

# Of the gradients on one device: from about here on, copying them together costs more than an all-reduce.
_MOST_COMBINED_BYTES = 2**20


@dataclass(frozen=True)
class Batches:
    """Batches on top of each other, on the devices.

    Attributes:
        inputs: `[stack, batch, ...] global`.
        labels: `[stack, batch] global`.
        count: the number of batches.
    """

    inputs: Any
    labels: Any
    count: int


class Trainer:
    """Trains a model where it lies, on the mesh of its plan or on one device, by plain gradient descent.

    Attributes:
        model: the model.
        learning_rate: how far a step moves each variable against its gradient.
    """

    def __init__(self, model: MLP, learning_rate: float = 1e-2) -> None:
        self.model, self.learning_rate = model, learning_rate
        held = model.spec.bytes_on_a_device(model.sizes, model.plan)
        combine = sum(held[name] for name in model.trained) <= _MOST_COMBINED_BYTES
        self._train = Compiled(self._train_on_stack, combine_all_reduces=combine)
        self._catch_up = Compiled(self._catch_up_on_stack, combine_all_reduces=combine)

    def send(self, inputs: Features, labels: Labels) -> Batches:
        """Returns a stack of batches, `[stack, batch, ...] global`, each device having been sent its rows."""
        place, spec = self.model.place, self.model.spec
        return Batches(
            place.send(inputs, ("stack", *spec.inputs)),
            place.send(labels, ("stack", *spec.labels)),
            len(labels),
        )

    def steps(self, batches: Batches, count: int) -> Callable[[], tuple[Sums, Sums]]:
        """Trains on the first `count` of the batches, in one call of TensorFlow.

        Returns:
            A function that waits, and returns for each batch the sum of its losses and the number of right
            answers before its update, `[stack] global` each.
        """
        losses, hits = self._train(batches.inputs, batches.labels, self._number(count))
        fetch = self.model.place.fetch
        return lambda: (fetch(losses), fetch(hits))

    def end_epoch(self, batches: Batches) -> None:
        """Lets the moving moments catch up with the weights.

        Until then they average over steps in which the weights moved on (docs/decisions/moments-catch-up.md).
        """
        self._catch_up(batches.inputs, self._number(batches.count))

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """Returns the mean loss and the accuracy, each example counted once."""
        return evaluate(self.model, examples)

    def is_finite(self) -> bool:
        """Returns whether every variable of the model holds finite numbers."""
        return all(bool(np.isfinite(value).all()) for value in self.model.values().values())

    def state(self) -> list[Any]:
        """Returns the values of all variables; tensors cannot be changed, so nothing is copied."""
        return [variable.read_value() for variable in self.model.variables]

    def set_state(self, state: list[Any]) -> None:
        """Writes the values of all variables."""
        write(zip(self.model.variables, state, strict=True))

    def _number(self, count: int) -> Any:
        """Returns a number of steps as int16: DTensor compiles small int32 inputs into the function."""
        return self.model.place.send(np.array(count, np.int16), ())

    def _train_on_stack(self, inputs: Any, labels: Any, count: Any) -> tuple[Any, Any]:
        """Returns the losses and hits, `[stack] global` each, of training on the first batches of a stack.

        Each turn of the loop writes the variables once, at its end (docs/decisions).
        """
        at, unknown = tf.range(inputs.shape[0]), tf.zeros(inputs.shape[:1])

        def train(step: Any, losses: Any, hits: Any) -> tuple[Any, Any]:
            loss, hit, updates = self._train_on_batch(tf.gather(inputs, step), tf.gather(labels, step))
            sums = tf.where(tf.equal(at, step), loss, losses), tf.where(tf.equal(at, step), hit, hits)
            write(updates)
            return sums

        losses, hits = repeated(count, train, unknown, unknown)
        return losses, hits

    def _train_on_batch(self, inputs: Any, labels: Any) -> tuple[Any, Any, list[Update]]:
        """Returns the summed loss and the right answers of a batch, and every update that it makes.

        Nothing here says how many devices there are: the layouts of the variables and of the batch do.
        """
        model, variables = self.model, self.model.trained
        with tf.GradientTape() as tape:
            logits, moments = model.train_logits(inputs)
            loss = tf.reduce_sum(example_losses(logits, labels))
        gradients = tape.gradient(loss, variables)
        steps = [
            (variable, variable - self.learning_rate * gradients[name])
            for name, variable in variables.items()
        ]
        return loss, tf.reduce_sum(right_answers(model, logits, labels)), [*moments, *steps]

    def _catch_up_on_stack(self, inputs: Any, count: Any) -> None:
        def move(step: Any) -> tuple[()]:
            _logits, moments = self.model.train_logits(tf.gather(inputs, step))
            write(moments)
            return ()

        repeated(count, move)


def write(updates: Iterable[Update]) -> None:
    """Writes new values: the only place that does so, called once a step and last.

    A function that wrote a DVariable and then read it could be given the old value.
    """
    for variable, value in updates:
        variable.assign(value)
