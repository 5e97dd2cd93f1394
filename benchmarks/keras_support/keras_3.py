"""What Keras 3 distributes over eight virtual devices, with the backend that KERAS_BACKEND names.

    KERAS_BACKEND=tensorflow .venv/bin/python benchmarks/keras_support/keras_3.py fit
    KERAS_BACKEND=jax build/jax-venv/bin/python benchmarks/keras_support/keras_3.py fit

It needs Keras and its backend (`make jax` installs both), and nothing of the course. Each case prints whether
the variables are distributed, and how far its numbers are from those without a distribution.

Source: https://keras.io/api/distribution/
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from example import (
    BATCH_SIZE,
    CLASSES,
    FEATURES,
    HIDDEN,
    LEARNING_RATE,
    answer,
    batches,
    difference,
    examples,
    first_values,
)

BACKEND = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
NUM_DEVICES = 8
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={NUM_DEVICES}"
os.environ["PJRT_NPROC"] = "32"  # else XLA makes too few threads on few cores, and a collective hangs
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402

DIMS = {"batch": 4, "model": 2}
RIGHT = {".*hidden/kernel": (None, "model"), ".*hidden/bias": ("model",), ".*logits/kernel": ("model", None)}
MISSPELT = {".*hiden/kernel": (None, "model")}


def main() -> None:
    """Runs the case that the command line names."""
    if BACKEND == "tensorflow":
        _eight_cpus()
    answer(CASES)


def arguments() -> Mapping[str, Any]:
    """Gives a layer its layouts as arguments, as tf_keras takes them."""
    layout = keras.distribution.TensorLayout((None, "model"), _mesh())
    layer = keras.layers.Dense(HIDDEN, kernel_layout=layout)
    layer.build((None, FEATURES))
    return {"distributed": _is_distributed(layer.kernel)}


def patterns() -> Mapping[str, Any]:
    """Lays out a model by the paths of its variables, and compares its logits."""
    features, _labels = examples()
    return _compared(lambda model: [model.predict(features, verbose=0)])


def training_step() -> Mapping[str, Any]:
    """Trains with a step of one's own."""
    return _compared(_own_steps)


def fit() -> Mapping[str, Any]:
    """Trains with `fit`."""
    return _compared(lambda model: [_fitted(model).history["loss"], *model.get_weights()])


def data_parallel() -> Mapping[str, Any]:
    """Trains with `fit` where the batch alone is split."""
    return _compared(
        lambda model: [_fitted(model).history["loss"], *model.get_weights()],
        keras.distribution.DataParallel(devices=_devices()),
    )


def evaluate() -> Mapping[str, Any]:
    """Evaluates and predicts."""
    features, labels = examples()

    def measured(model: Any) -> list[Any]:
        _compiled(model)
        return [model.evaluate(features, labels, verbose=0), model.predict(features, verbose=0)]

    return _compared(measured)


def unmatched_pattern() -> Mapping[str, Any]:
    """Misspells a pattern, so that no variable has such a path."""
    with _model_parallel(MISSPELT).scope():
        model = _model()
    return {"distributed": any(map(_is_split, model.weights))}


def equal_seeds() -> Mapping[str, Any]:
    """Draws initial values twice from one seed, under two layouts."""
    drawn = []
    for layouts in (RIGHT, MISSPELT):
        keras.utils.set_random_seed(1)
        with _model_parallel(layouts).scope():
            model = _model(values=None)
            distributed = _is_distributed(model.weights[0])
            drawn.append([keras.ops.convert_to_numpy(variable.value) for variable in model.weights])
        if layouts is RIGHT:
            is_distributed = distributed
    return {"distributed": is_distributed, "difference": difference(*drawn)}


def checkpoint() -> Mapping[str, Any]:
    """Saves the weights of a distributed model and loads them into one that is not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.weights.h5"
        with _model_parallel(RIGHT).scope():
            model = _model()
            model.save_weights(path)
        other = _model(values=None)
        other.load_weights(path)
    return {
        "distributed": _is_distributed(model.weights[0]),
        "difference": difference(other.get_weights(), first_values()),
    }


CASES: dict[str, Callable[[], Mapping[str, Any]]] = {
    function.__name__: function
    for function in (
        arguments,
        patterns,
        training_step,
        fit,
        data_parallel,
        evaluate,
        unmatched_pattern,
        equal_seeds,
        checkpoint,
    )
}


def _compared(found: Callable[[Any], list[Any]], distribution: Any = None) -> Mapping[str, Any]:
    """Returns how far what a distributed model gives is from what the same model gives on one device."""
    with (distribution or _model_parallel(RIGHT)).scope():
        model = _model()
        ours = found(model)
    return {"distributed": _is_distributed(model.weights[0]), "difference": difference(ours, found(_model()))}


def _eight_cpus() -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES)


def _devices() -> list[str]:
    devices: list[str] = keras.distribution.list_devices("cpu")
    return devices


def _mesh() -> Any:
    return keras.distribution.DeviceMesh(tuple(DIMS.values()), list(DIMS), _devices())


def _model_parallel(layouts: Mapping[str, tuple[str | None, ...]]) -> Any:
    layout_map = keras.distribution.LayoutMap(_mesh())
    for pattern, axes in layouts.items():
        layout_map[pattern] = axes
    return keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch")


def _model(values: Any = ...) -> Any:
    """Returns the model with the first values that every case starts from; None leaves Keras's own."""
    layers = [
        keras.Input((FEATURES,)),
        keras.layers.Dense(HIDDEN, activation="relu", name="hidden"),
        keras.layers.Dense(CLASSES, name="logits"),
    ]
    model = keras.Sequential(layers, name="model")
    if values is not None:
        model.set_weights(first_values())
    return model


def _compiled(model: Any) -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(LEARNING_RATE), loss, metrics=["accuracy"])


def _fitted(model: Any) -> Any:
    features, labels = examples()
    _compiled(model)
    return model.fit(features, labels, batch_size=BATCH_SIZE, shuffle=False, verbose=0)


def _own_steps(model: Any) -> list[Any]:
    steps = {"tensorflow": _tensorflow_steps, "jax": _jax_steps}
    return steps[BACKEND](model)


def _loss_of(logits: Any, labels: Any) -> Any:
    return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))


def _tensorflow_steps(model: Any) -> list[Any]:
    import tensorflow as tf

    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _loss_of(model(features, training=True), labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients)
        return loss

    return [[float(step(*map(tf.constant, batch))) for batch in batches()], *model.get_weights()]


def _jax_steps(model: Any) -> list[Any]:
    """Trains without side effects, as JAX asks: values in, new values out.

    Source: https://keras.io/guides/writing_a_custom_training_loop_in_jax/
    """
    import jax

    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build(model.trainable_variables)
    distribution = keras.distribution.distribution()

    def loss_of(trained: Any, others: Any, features: Any, labels: Any) -> Any:
        logits, others = model.stateless_call(trained, others, features, training=True)
        return _loss_of(logits, labels), others

    @jax.jit
    def step(trained: Any, others: Any, slots: Any, features: Any, labels: Any) -> Any:
        differentiate = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = differentiate(trained, others, features, labels)
        return loss, *optimizer.stateless_apply(slots, gradients, trained), others

    def sent(array: Any) -> Any:
        if distribution is None:
            return array
        return keras.distribution.distribute_tensor(array, distribution.get_data_layout(array.shape))

    trained = [variable.value for variable in model.trainable_variables]
    others = [variable.value for variable in model.non_trainable_variables]
    slots, losses = [variable.value for variable in optimizer.variables], []
    for features, labels in batches():
        loss, trained, slots, others = step(trained, others, slots, sent(features), sent(labels))
        losses.append(float(loss))
    return [losses, *map(np.asarray, trained)]


def _is_distributed(variable: Any) -> bool:
    """Returns whether more than one device holds the variable or a part of it."""
    if BACKEND == "jax":
        return len(variable.value.sharding.device_set) > 1
    return hasattr(variable.value, "layout")  # a DVariable has one; others lie on `variable.value.device`


def _is_split(variable: Any) -> bool:
    """Returns whether a device holds less than the whole variable."""
    if BACKEND == "jax":
        shape: tuple[int, ...] = variable.shape
        return bool(variable.value.sharding.shard_shape(shape) != shape)
    return hasattr(variable.value, "layout") and variable.value.layout.num_shards(0) > 1


if __name__ == "__main__":
    main()
