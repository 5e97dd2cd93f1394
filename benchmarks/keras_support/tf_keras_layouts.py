"""What tf_keras (Keras 2) distributes over eight virtual devices with DTensor's layouts.

    .venv/bin/python benchmarks/keras_support/tf_keras_layouts.py fit_arrays

It needs tensorflow and tf-keras, and nothing of the course. Each case prints whether the variables are
distributed, and how far its numbers are from those of the same layers without layouts, on one device.

With DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1 in the environment, DTensor leaves each all-reduce by
itself: then what a step writes and reads again is right.

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_keras_tutorial
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
    STEPS,
    answer,
    batches,
    difference,
    examples,
    first_values,
)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tf_keras
from tensorflow.experimental import dtensor

NUM_DEVICES, DIMS = 8, {"batch": 4, "model": 2}
WHOLE = dtensor.UNSHARDED
RIGHT = {
    "hidden.kernel": (WHOLE, "model"),
    "hidden.bias": ("model",),
    "logits.kernel": ("model", WHOLE),
    "logits.bias": (WHOLE,),
}
MISSPELT = {"hiden.kernel": (WHOLE, "model")}


def main() -> None:
    """Runs the case that the command line names."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES)
    answer(CASES)


def arguments() -> Mapping[str, Any]:
    """Gives layers their layouts as arguments, and compares the logits."""
    tf_keras.utils.set_random_seed(1)
    mesh = _mesh()
    return _compared(_logits, _model({name: _layout(entries, mesh) for name, entries in RIGHT.items()}))


def patterns() -> Mapping[str, Any]:
    """Lays out a model by the names of its variables, and compares the logits."""
    return _compared(_logits)


def unmatched_pattern() -> Mapping[str, Any]:
    """Misspells a pattern, so that no variable has such a name."""
    return {"distributed": any(map(_is_split, _mapped(MISSPELT).weights))}


def equal_seeds() -> Mapping[str, Any]:
    """Draws initial values twice from one seed, under two layouts."""
    split, whole = (_values(_mapped(layouts, drawn=True)) for layouts in (RIGHT, {}))
    return {"distributed": True, "difference": difference(split, whole)}


def training_step() -> Mapping[str, Any]:
    """Trains with a compiled step of one's own: loss, gradients, `apply_gradients`."""
    return _compared(_own_steps)


def fit_arrays() -> Mapping[str, Any]:
    """Trains with `fit` on NumPy arrays."""
    features, labels = examples()

    def trained(model: Any) -> list[Any]:
        history = _compiled(model).fit(features, labels, batch_size=BATCH_SIZE, shuffle=False, verbose=0)
        return [history.history["loss"], *_values(model)]

    return _compared(trained)


def fit_dataset() -> Mapping[str, Any]:
    """Trains with `fit` on a DTensorDataset."""

    def trained(model: Any) -> list[Any]:
        history = _compiled(model).fit(_dataset(model), epochs=1, steps_per_epoch=STEPS, verbose=0)
        return [history.history["loss"], *_values(model)]

    return _compared(trained)


def evaluate() -> Mapping[str, Any]:
    """Evaluates on a data set."""
    return _compared(lambda model: [_compiled(model).evaluate(_dataset(model), steps=STEPS, verbose=0)])


def predict() -> Mapping[str, Any]:
    """Predicts on NumPy arrays."""
    features, _labels = examples()
    return _compared(lambda model: [model.predict(features, batch_size=BATCH_SIZE, verbose=0)])


def weights() -> Mapping[str, Any]:
    """Saves the weights of a distributed model and loads them into one that is not."""
    model, other = _mapped(RIGHT), _model(drawn=True)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "weights")
        model.save_weights(path)
        other.load_weights(path).assert_existing_objects_matched()
    return {
        "distributed": _is_split(model.weights[0]),
        "difference": difference(_values(other), first_values()),
    }


CASES: dict[str, Callable[[], Mapping[str, Any]]] = {
    function.__name__: function
    for function in (
        arguments,
        patterns,
        unmatched_pattern,
        equal_seeds,
        training_step,
        fit_arrays,
        fit_dataset,
        evaluate,
        predict,
        weights,
    )
}


def _compared(found: Callable[[Any], list[Any]], model: Any = None) -> Mapping[str, Any]:
    """Returns how far what a distributed model gives is from what the same layers give on one device."""
    model = _mapped(RIGHT) if model is None else model
    return {
        "distributed": _is_split(model.weights[0]),
        "difference": difference(found(model), found(_model())),
    }


def _mesh() -> Any:
    devices = [f"CPU:{device_id}" for device_id in range(NUM_DEVICES)]
    return dtensor.create_mesh(list(DIMS.items()), devices=devices)


def _layout(entries: tuple[str, ...], mesh: Any) -> Any:
    return dtensor.Layout(list(entries), mesh)


def _mapped(layouts: Mapping[str, tuple[str, ...]], *, drawn: bool = False) -> Any:
    """Returns the model under a LayoutMap."""
    tf_keras.utils.set_random_seed(1)
    layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=_mesh())
    for pattern, entries in layouts.items():
        layout_map[pattern] = _layout(entries, layout_map.get_default_mesh())
    with layout_map.scope():
        model = _model(drawn=True)
    return model if drawn else _filled(model)


def _model(layouts: Mapping[str, Any] | None = None, *, drawn: bool = False) -> Any:
    """Returns the model with the first values that every case starts from, or those that Keras draws."""

    def dense(units: int, name: str, **options: Any) -> Any:
        if layouts:
            options |= {
                "kernel_layout": layouts[f"{name}.kernel"],
                "bias_layout": layouts[f"{name}.bias"],
            }
        return tf_keras.layers.Dense(units, name=name, **options)

    layers = [dense(HIDDEN, "hidden", activation="relu"), dense(CLASSES, "logits")]
    model = tf_keras.Sequential([tf_keras.Input((FEATURES,)), *layers])
    return model if drawn else _filled(model)


def _filled(model: Any) -> Any:
    model.set_weights(first_values())
    return model


def _mesh_of(model: Any) -> Any | None:
    """Returns the mesh of the variables; None where they lie on one device."""
    layout = getattr(model.weights[0], "layout", None)
    return None if layout is None else layout.mesh


def _options(model: Any) -> dict[str, Any]:
    """Returns what an optimizer or a metric must be told."""
    mesh = _mesh_of(model)
    return {} if mesh is None else {"mesh": mesh}


def _compiled(model: Any) -> Any:
    optimizer = tf_keras.optimizers.Adam(LEARNING_RATE, **_options(model))
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def _sent(batch: tuple[np.ndarray, np.ndarray], mesh: Any | None) -> list[Any]:
    """Returns a batch as tensors, split over `batch` where there is a mesh."""
    tensors = [tf.constant(array) for array in batch]
    if mesh is None:
        return tensors
    layouts = (("batch", WHOLE), ("batch",))
    return [
        dtensor.relayout(tensor, _layout(entries, mesh))
        for tensor, entries in zip(tensors, layouts, strict=True)
    ]


def _dataset(model: Any) -> Any:
    """Returns the examples batch by batch: a DTensorDataset for a model on a mesh."""
    rows, mesh = tf.data.Dataset.from_tensor_slices(examples()), _mesh_of(model)
    if mesh is None:
        return rows.batch(BATCH_SIZE)
    return dtensor.DTensorDataset(
        dataset=rows,
        mesh=mesh,
        layouts=(_layout(("batch", WHOLE), mesh), _layout(("batch",), mesh)),
        global_batch_size=BATCH_SIZE,
        batch_dim="batch",
    )


def _logits(model: Any) -> list[Any]:
    inputs, _labels = _sent(batches()[0], _mesh_of(model))
    return [_whole(tf.function(model)(inputs))]


def _own_steps(model: Any) -> list[Any]:
    mesh = _mesh_of(model)
    optimizer = tf_keras.optimizers.Adam(LEARNING_RATE, **_options(model))
    loss_of = tf_keras.losses.sparse_categorical_crossentropy

    @tf.function
    def step(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(labels, model(features, training=True), from_logits=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return [[float(step(*_sent(batch, mesh))) for batch in batches()], *_values(model)]


def _values(model: Any) -> list[np.ndarray]:
    return [_whole(variable.read_value()) for variable in model.weights]


def _whole(tensor: Any) -> np.ndarray:
    """Returns the whole tensor, having sent it to every device."""
    if not dtensor.is_dtensor(tensor):
        return tensor.numpy()
    layout = dtensor.fetch_layout(tensor)
    replicated = dtensor.relayout(tensor, dtensor.Layout.replicated(layout.mesh, len(tensor.shape)))
    return dtensor.unpack(replicated)[0].numpy()


def _is_split(variable: Any) -> bool:
    """Returns whether a device holds less than the whole variable."""
    layout = getattr(variable, "layout", None)
    return layout is not None and any(name != WHOLE for name in layout.sharding_specs)


if __name__ == "__main__":
    main()
