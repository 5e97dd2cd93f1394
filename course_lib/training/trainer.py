"""Trainers: who knows how to run steps, on a mesh or on one device, for any model and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from course_lib.aborts import explaining_aborts
from course_lib.data.examples import Examples
from course_lib.models.model import Model, Update
from course_lib.runtime import start_tensorflow
from course_lib.training.batches import Features, Labels, Weights
from course_lib.training.compiled import Compiled, repeated
from course_lib.training.evaluate import count_hits, evaluate_checked, example_losses
from course_lib.training.examples import to_examples
from course_lib.training.optimizers.optimizer import Optimizer

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
        weights: `[stack, batch] global`, 1 for an example and 0 for a row that fills up; None for all 1.
        count: the number of batches.
    """

    inputs: Any
    labels: Any
    weights: Any | None
    count: int


class Trainer(Protocol):
    """What a `TrainingRun` needs of whoever trains."""

    def examples(self, given: Any) -> Examples:
        """Returns examples that can be trained or evaluated on, or raises a `CourseError`."""

    def send(self, inputs: Features, labels: Labels, weights: Weights | None) -> Batches:
        """Returns a stack of batches, `[stack, batch, ...] global`, on the devices."""

    def steps(self, batches: Batches, count: int) -> Callable[[], tuple[Sums, Sums]]:
        """Trains on the first `count` of the batches.

        Returns:
            A function that waits, and returns for each batch the sum of its losses and the number of right
            answers before its update, `[stack] global` each.
        """

    def end_epoch(self, batches: Batches) -> None:
        """Makes the model ready to be evaluated; weights, slots and counters stay as they are, to the bit."""

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """Returns the mean loss and the accuracy over what `examples` returned, each counted once."""

    def is_finite(self) -> bool:
        """Returns whether every variable of the model holds finite numbers."""

    def state(self) -> list[Any]:
        """Returns the present values of everything that training changes."""

    def set_state(self, state: list[Any]) -> None:
        """Goes back to what `state` returned."""

    def content(self) -> Mapping[str, Any]:
        """Returns what a checkpoint holds, by name, as `tf.train.Checkpoint` takes it."""

    def identity(self) -> Mapping[str, object]:
        """Returns what may not change when a training is resumed, as JSON holds it."""


class ModelTrainer:
    """Trains a model where it lies, on the mesh of its plan or on one device.

    Attributes:
        model: the model.
        optimizer: what makes new values of gradients.
        slots: the optimizer's own variables.
    """

    def __init__(self, model: Model, optimizer: Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.slots = optimizer.slots(model)
        held = model.spec.bytes_on_a_device(model.sizes, model.plan)
        combine = sum(held[name] for name in model.trained) <= _MOST_COMBINED_BYTES
        self._train = Compiled(self._train_on_stack, combine_all_reduces=combine)
        self._catch_up = Compiled(self._catch_up_on_stack, combine_all_reduces=combine)

    def examples(self, given: Any) -> Examples:
        """Returns the examples as the model takes them."""
        return to_examples(given, self.model.input_shape, self.model.num_classes)

    def send(self, inputs: Features, labels: Labels, weights: Weights | None) -> Batches:
        """Returns a stack of batches, each device having been sent its own rows."""
        place, spec = self.model.place, self.model.spec
        sent = None if weights is None else place.send(weights, ("stack", *spec.labels))
        return Batches(
            place.send(inputs, ("stack", *spec.inputs)),
            place.send(labels, ("stack", *spec.labels)),
            sent,
            len(labels),
        )

    def steps(self, batches: Batches, count: int) -> Callable[[], tuple[Sums, Sums]]:
        """Trains on the first `count` of the batches, in one call of TensorFlow."""
        losses, hits = self._train(batches.inputs, batches.labels, batches.weights, self._number(count))
        fetch = self.model.place.fetch
        return lambda: (fetch(losses), fetch(hits))

    def end_epoch(self, batches: Batches) -> None:
        """Lets the untrained variables, such as moving moments, catch up with the weights.

        Until then they average over steps in which the weights moved on (docs/decisions/moments-catch-up.md).
        """
        if len(self.model.trained) < len(self.model.spec.variables):
            self._catch_up(batches.inputs, batches.weights, self._number(batches.count))

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """Returns the mean loss and the accuracy, each example counted once."""
        return evaluate_checked(self.model, examples)

    def is_finite(self) -> bool:
        """Returns whether every variable of the model holds finite numbers."""
        return all(bool(np.isfinite(value).all()) for value in self.model.values().values())

    @explaining_aborts()
    def state(self) -> list[Any]:
        """Returns the values of all variables; tensors cannot be changed, so nothing is copied."""
        return [variable.read_value() for variable in self._variables()]

    @explaining_aborts()
    def set_state(self, state: list[Any]) -> None:
        """Writes the values of all variables."""
        write(zip(self._variables(), state, strict=True))

    def content(self) -> dict[str, Any]:
        """Returns the model, and the optimizer's slots if it has any."""
        return {"model": self.model} if self.slots is None else {"model": self.model, "optimizer": self.slots}

    def identity(self) -> dict[str, object]:
        """Returns the optimizer with its settings, and which model it began with."""
        model = {"model": type(self.model).__name__, "sizes": dict(self.model.sizes)}
        return {**self.optimizer.identity(), **model, "initial_values": self.model.origin}

    def _variables(self) -> list[Any]:
        return [*self.model.variables, *(() if self.slots is None else self.slots.variables)]

    def _number(self, count: int) -> Any:
        """Returns a number of steps as int16: DTensor compiles small int32 inputs into the function."""
        return self.model.place.send(np.array(count, np.int16), ())

    def _train_on_stack(self, inputs: Any, labels: Any, weights: Any | None, count: Any) -> tuple[Any, Any]:
        """Returns the losses and hits, `[stack] global` each, of training on the first batches of a stack.

        Each turn of the loop writes the variables once, at its end (docs/decisions).
        """
        at, unknown = tf.range(inputs.shape[0]), tf.zeros(inputs.shape[:1])

        def train(step: Any, losses: Any, hits: Any) -> tuple[Any, Any]:
            batch = [None if part is None else tf.gather(part, step) for part in (inputs, labels, weights)]
            loss, hit, updates = self._train_on_batch(*batch)
            sums = tf.where(tf.equal(at, step), loss, losses), tf.where(tf.equal(at, step), hit, hits)
            write(updates)
            return sums

        losses, hits = repeated(count, train, unknown, unknown)
        return losses, hits

    def _train_on_batch(self, inputs: Any, labels: Any, weights: Any | None) -> tuple[Any, Any, list[Update]]:
        """Returns the summed loss and the right answers of a batch, and every update that it makes.

        Nothing here says how many devices there are: the layouts of the variables and of the batch do.
        """
        model, variables = self.model, self.model.trained
        with tf.GradientTape() as tape:
            logits, updates = model.train_logits(inputs, weights)
            losses = example_losses(logits, labels, weights)
            loss = tf.reduce_sum(losses)
            objective = loss if model.loss_reduction == "sum" else loss / _num_examples(losses, weights)
        gradients = tape.gradient(objective, variables)
        updates = [*updates, *self.optimizer.updates(variables, gradients, self.slots)]
        return loss, count_hits(model, logits, labels, weights), updates

    def _catch_up_on_stack(self, inputs: Any, weights: Any | None, count: Any) -> None:
        def move(step: Any) -> tuple[()]:
            batch_weights = None if weights is None else tf.gather(weights, step)
            _logits, updates = self.model.train_logits(tf.gather(inputs, step), batch_weights)
            write(updates)
            return ()

        repeated(count, move)


def write(updates: Iterable[Update]) -> None:
    """Writes new values: the only place that does so, called once a step and last.

    A function that wrote a DVariable and then read it could be given the old value.
    """
    for variable, value in updates:
        variable.assign(value)


def _num_examples(losses: Any, weights: Any | None) -> Any:
    return float(losses.shape[0]) if weights is None else tf.reduce_sum(weights)
