"""Whether a Keras model and its optimizer train under a strategy as they would on one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.strategies.checks import require_in_scope

tf = start_tensorflow()

_LOGIT_AXES = 2  # examples and classes
_PER_REPLICA = ("clipnorm", "clipvalue", "global_clipnorm", "gradient_accumulation_steps", "use_ema")


def require_trainable(model: Any, optimizer: Any, strategy: Any) -> None:
    """Checks a model and an optimizer before any of their variables is made or changed.

    Raises:
        CourseError: one of them is no object of Keras 3, the model has no variables yet or not in this
            strategy, it ends in probabilities, or something in it would differ from one device.
    """
    _require_keras(model, tf.keras.Model, "tf.keras.Sequential([tf.keras.Input((784,)), ...])")
    _require_keras(optimizer, tf.keras.optimizers.Optimizer, "tf.keras.optimizers.Adam()")
    require_in_scope(strategy, model, optimizer)
    _require_logits(model)
    if strategy.num_replicas_in_sync > 1:
        _require_synchronized(model)
        _require_same_on_replicas(optimizer)


def normalises_batches(model: Any) -> bool:
    """Returns whether a layer computes moments over the rows of a batch."""
    return any(isinstance(layer, tf.keras.layers.BatchNormalization) for layer in _layers(model))


def seed_states(model: Any) -> list[Any]:
    """Returns the variables from which layers such as dropout draw.

    `tf.train.Checkpoint` does not find them in a model of Keras 3: they must be named beside it.
    """
    of_layers = set(map(id, model.weights))
    return [variable for variable in model.variables if id(variable) not in of_layers]


def require_known_losses(model: Any) -> None:
    """Checks, while a step is traced, that all further losses of the model are those of its variables.

    Raises:
        CourseError: another loss depends on the rows, so that it differs from replica to replica.
    """
    of_variables = sum(variable.regularizer is not None for variable in model.trainable_variables)
    if len(model.losses) != of_variables:
        raise CourseError(
            _("A layer of the model adds a loss of its own, such as that of an activity_regularizer."),
            allowed=_("losses of the examples, and of the variables, such as kernel_regularizer"),
            cure=_("Regularise the variables, or write the loop yourself."),
        )


def require_own_optimizer(model: Any, optimizer: Any) -> None:
    """Checks that a built optimizer was built for this model.

    Raises:
        CourseError: it was built for other variables.
    """
    built_for = map(id, optimizer._trainable_variables)  # no public name
    if list(built_for) != list(map(id, model.trainable_variables)):
        raise CourseError(
            _("This optimizer belongs to another model."),
            allowed=_("a new optimizer for each model"),
            cure=_("Make another one, for example tf.keras.optimizers.Adam()."),
        )


def _layers(model: Any) -> Iterator[Any]:
    """Yields every layer, also those inside others."""
    yield from model._flatten_layers(include_self=False)


def _require_keras(given: Any, kind: Any, example: str) -> None:
    if not isinstance(given, kind):
        raise CourseError(
            _("{kind} cannot be trained under a strategy here.", kind=type(given).__name__),
            allowed=_("a model and an optimizer of Keras 3, which `tf.keras` is"),
            cure=_("Write for example {example}.", example=example),
        )


def _require_logits(model: Any) -> None:
    if len(model.output_shape) != _LOGIT_AXES:
        raise CourseError(
            _("The model's output has the shape {shape}.", shape=model.output_shape),
            allowed=_("a row of logits for each example: [batch, classes]"),
            cure=_("End the model with a dense layer, one unit a class."),
        )
    last = getattr(model.layers[-1], "activation", None)
    if last is tf.keras.activations.softmax or isinstance(model.layers[-1], tf.keras.layers.Softmax):
        raise CourseError(
            _("The model {name} ends in softmax.", name=model.name),
            allowed=_("models that give logits: the loss takes the softmax"),
            cure=_("Leave the last activation out."),
        )


def _require_synchronized(model: Any) -> None:
    for layer in _layers(model):
        if isinstance(layer, tf.keras.layers.BatchNormalization) and not layer.synchronized:
            raise CourseError(
                _(
                    "The layer {name} normalises with the moments of its own replica's rows only.",
                    name=layer.name,
                ),
                allowed=_("BatchNormalization(synchronized=True): moments of the global batch"),
                cure=_("Write `synchronized=True`; otherwise the replicas' copies of the moments differ."),
            )


def _require_same_on_replicas(optimizer: Any) -> None:
    for setting in _PER_REPLICA:
        if getattr(optimizer, setting, None):
            raise CourseError(
                _(
                    "The optimizer has {setting}={value!r}, which Keras 3 does on each replica for itself.",
                    setting=setting,
                    value=getattr(optimizer, setting),
                ),
                allowed=_("optimizers that only use the sum of the gradients"),
                cure=_("Leave {setting} out.", setting=setting),
            )
