"""The trainer of a Keras 3 model under a strategy of tf.distribute, right on every number of replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from course_lib.aborts import explaining_aborts
from course_lib.data.examples import Examples
from course_lib.models.variables import digest
from course_lib.runtime import start_tensorflow
from course_lib.strategies.checks import require_in_scope
from course_lib.training.batches import Features, Labels, Weights, padded
from course_lib.training.compiled import repeated
from course_lib.training.evaluate import example_losses
from course_lib.training.examples import to_examples
from course_lib.training.replica_batches import ReplicaBatches, sent_batches
from course_lib.training.trainer import Sums

tf = start_tensorflow()

_ROWS = 1024  # of an evaluated batch

# The digest of each model's values when it was first given to a trainer.
_origins: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class StrategyTrainer:
    """Trains a Keras 3 model where a strategy put it; under every strategy as on one device.

    Each replica divides the losses of its rows by the examples of the global batch, so that the sum of the
    gradients over the replicas is the gradient of one device. A replica may get fewer rows than others, or
    none: rows of weight 0 fill it up, which keeps the shapes of the compiled function.

    Dropout draws the same mask on every replica, so that a training with it follows from the seeds and the
    number of replicas, and differs from one device. Not for what takes the rows of one replica apart, such as
    BatchNormalization that is not synchronised, an `activity_regularizer`, or `clipnorm`.

    Attributes:
        model: the model, which gives logits.
        optimizer: the optimizer of Keras, built for the model.
        strategy: what runs the replicas.

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Training loop).
    """

    def __init__(self, model: Any, optimizer: Any, strategy: Any) -> None:
        """Takes a model that was made in the strategy's scope.

        Args:
            model: begins with `tf.keras.Input` and gives logits.
            optimizer: a new one, or one that was built for this model.
            strategy: such as a `MirroredStrategy`, or `tf.distribute.get_strategy()` for one device.

        Raises:
            CourseError: the model or the optimizer was made outside the strategy's scope.
        """
        require_in_scope(strategy, model, optimizer)
        self.model, self.optimizer, self.strategy = model, optimizer, strategy
        if not optimizer.built:
            with strategy.scope():
                optimizer.build(model.trainable_variables)
        self._seeds = _seed_states(model)
        self._train = tf.function(self._train_on_stack, autograph=False)
        self._evaluate = tf.function(self._evaluate_rows, autograph=False)
        values = {str(at): variable.numpy() for at, variable in enumerate(model.variables)}
        _origins.setdefault(model, digest(values))

    def examples(self, given: Any) -> Examples:
        """Returns the examples as the model takes them."""
        return to_examples(given, self.model.input_shape[1:], self.model.output_shape[-1])

    def send(self, inputs: Features, labels: Labels, weights: Weights | None) -> ReplicaBatches:
        """Returns a stack of batches, each replica having been sent its own rows."""
        return sent_batches(self.strategy, inputs, labels, weights)

    @explaining_aborts()
    def steps(self, batches: Any, count: int) -> Callable[[], tuple[Sums, Sums]]:
        """Trains on the first `count` of the batches that `send` returned, in one call of TensorFlow."""
        rows = batches.inputs, batches.labels, batches.weights
        losses, hits = self._train(*rows, batches.sizes, tf.constant(count))
        return lambda: (losses.numpy(), hits.numpy())

    def end_epoch(self, batches: Any) -> None:
        """Does nothing: the layers of Keras keep what they need for evaluation up to date in each step."""

    @explaining_aborts()
    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """Returns the mean loss and the accuracy over what `examples` returned, each counted once."""
        loss, hits = 0.0, 0.0
        for inputs, labels, weights in padded(examples, min(_ROWS, len(examples))):
            sent = sent_batches(self.strategy, inputs[np.newaxis], labels[np.newaxis], weights[np.newaxis])
            sums = self._evaluate(sent.inputs, sent.labels, sent.weights)
            loss, hits = loss + float(sums[0]), hits + float(sums[1])
        return loss / len(examples), hits / len(examples)

    def is_finite(self) -> bool:
        """Returns whether every variable of the model holds finite numbers."""
        return all(bool(np.isfinite(variable.numpy()).all()) for variable in self.model.variables)

    def state(self) -> list[Any]:
        """Returns the present values of the model, its seeds and the optimizer; tensors cannot be changed."""
        return [tf.identity(variable.value) for variable in self._variables()]

    def set_state(self, state: list[Any]) -> None:
        """Goes back to what `state` returned, on every replica."""
        for variable, value in zip(self._variables(), state, strict=True):
            variable.assign(value)

    def content(self) -> dict[str, Any]:
        """Returns the model, the optimizer, and the seeds, which TensorFlow does not find in the model."""
        seeds = {"seeds": self._seeds} if self._seeds else {}
        return {"model": self.model, "optimizer": self.optimizer, **seeds}

    def identity(self) -> dict[str, object]:
        """Returns the optimizer's settings and which model it began with; any strategy may go on with it."""
        settings = {name: value for name, value in self.optimizer.get_config().items() if name != "name"}
        return {
            "optimizer": type(self.optimizer).__name__,
            **settings,
            "model": type(self.model).__name__,
            "layers": [type(layer).__name__ for layer in self.model.layers],
            "initial_values": _origins[self.model],
        }

    def _variables(self) -> list[Any]:
        return [*self.model.variables, *self.optimizer.variables]

    def _train_on_stack(
        self, inputs: Any, labels: Any, weights: Any, sizes: Any, count: Any
    ) -> tuple[Any, Any]:
        """Trains on the first batches; returns the summed losses and the hits of each, `[stack]`."""
        at, unknown = tf.range(tf.size(sizes)), tf.zeros(sizes.shape)

        def train(step: Any, losses: Any, hits: Any) -> tuple[Any, Any]:
            loss, hit = self._sums(self._train_on_part, (inputs, labels, weights, sizes, step))
            due = tf.equal(at, step)
            return tf.where(due, loss, losses), tf.where(due, hit, hits)

        losses, hits = repeated(count, train, unknown, unknown)
        return losses, hits

    def _evaluate_rows(self, inputs: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        return self._sums(self._evaluate_part, (inputs, labels, weights))

    def _sums(self, on_replica: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        """Returns the sums over the replicas of the two numbers that each of them returns."""
        losses, hits = self.strategy.run(on_replica, arguments)
        return self._sum(losses), self._sum(hits)

    def _sum(self, per_replica: Any) -> Any:
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)

    def _train_on_part(
        self, inputs: Any, labels: Any, weights: Any, sizes: Any, step: Any
    ) -> tuple[Any, Any]:
        """Trains on the rows of this replica; returns their summed loss and right answers."""
        rows, classes, counted = (tf.gather(part, step) for part in (inputs, labels, weights))
        with tf.GradientTape() as tape:
            logits = tf.cast(self.model(rows, training=True), tf.float32)
            losses = example_losses(logits, classes, None)
            objective = tf.nn.compute_average_loss(losses, counted, tf.gather(sizes, step))
            if self.model.losses:
                objective += tf.nn.scale_regularization_loss(self.model.losses)
        gradients = tape.gradient(objective, self.model.trainable_variables)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return tf.reduce_sum(counted * losses), _hits(logits, classes, counted)

    def _evaluate_part(self, inputs: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        rows, classes, counted = (tf.gather(part, 0) for part in (inputs, labels, weights))
        logits = tf.cast(self.model(rows, training=False), tf.float32)
        return tf.reduce_sum(example_losses(logits, classes, counted)), _hits(logits, classes, counted)


def _seed_states(model: Any) -> list[Any]:
    """Returns the variables from which layers such as dropout draw.

    `tf.train.Checkpoint` does not find them in a model of Keras 3: they must be named beside it.
    """
    of_layers = set(map(id, model.weights))
    return [variable for variable in model.variables if id(variable) not in of_layers]


def _hits(logits: Any, labels: Any, weights: Any) -> Any:
    right = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
    return tf.reduce_sum(weights * tf.cast(right, tf.float32))
