"""What tf_keras (Keras 2) distributes over eight virtual devices with DTensor's layouts.

    .venv/bin/python benchmarks/keras_support/tf_keras_layouts.py fit_arrays

It needs tensorflow and tf-keras, and nothing of the course.

With DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1 in the environment, DTensor leaves each all-reduce by
itself: then what a step writes and reads again is right.

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_keras_tutorial
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from example import (
    BATCH_SIZE,
    DIMS,
    NUM_DEVICES,
    STEPS,
    Finding,
    Layouts,
    Subject,
    batches,
    examples,
    first_values,
    layers,
)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tf_keras
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED
RIGHT = {
    "hidden.kernel": (WHOLE, "model"),
    "hidden.bias": ("model",),
    "logits.kernel": ("model", WHOLE),
    "logits.bias": (WHOLE,),
}
MISSPELT = {"hiden.kernel": (WHOLE, "model")}

Step = Callable[[Any, Any], Any]


class TfKeras(Subject):
    """tf_keras: a model is made under a LayoutMap; its optimizer and its batches need the mesh."""

    steps = {"steps": STEPS}  # noqa: RUF012 - the same for all

    def model(self, layouts: Layouts | None = None, *, drawn: bool = False) -> Any:
        """Returns the model, laid out by the names of its variables."""
        tf_keras.utils.set_random_seed(1)
        if layouts is None:
            model = tf_keras.Sequential(layers(tf_keras))
        else:
            layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=_mesh())
            for pattern, entries in layouts.items():
                layout_map[pattern] = _layout(entries, layout_map.get_default_mesh())
            with layout_map.scope():
                model = tf_keras.Sequential(layers(tf_keras))
        return model if drawn else _filled(model)

    def dataset(self, model: Any) -> Any:
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

    def local_shape(self, variable: Any) -> tuple[int, ...]:
        """Returns the shape of what the first device holds of a variable."""
        tensor = variable.read_value()
        part = dtensor.unpack(tensor)[0] if dtensor.is_dtensor(tensor) else tensor
        return tuple(part.shape)

    def values(self, model: Any) -> list[np.ndarray]:
        """Returns the variables of a model, each sent to every device."""
        return [_whole(variable.read_value()) for variable in model.weights]

    def compiled(self, model: Any, **options: Any) -> Any:
        """Returns the model with an optimizer that is told its mesh."""
        mesh = _mesh_of(model)
        return super().compiled(model, **options, **({} if mesh is None else {"mesh": mesh}))

    def arguments(self) -> Finding:
        """Gives layers their layouts as arguments, and compares the logits."""
        tf_keras.utils.set_random_seed(1)
        mesh = _mesh()
        layouts = {
            layer: {f"{part}_layout": _layout(RIGHT[f"{layer}.{part}"], mesh) for part in ("kernel", "bias")}
            for layer in ("hidden", "logits")
        }
        return self.compared(_logits, _filled(tf_keras.Sequential(layers(tf_keras, **layouts))))

    def patterns(self) -> Finding:
        """Lays out a model by the names of its variables, and compares the logits."""
        return self.compared(_logits)

    def training_step(self) -> Finding:
        """Trains with a compiled step of one's own: loss, gradients, `apply_gradients`."""
        return self.compared(lambda model: self._own_steps(model, tf.function(_step(model))))

    def training_step_apart(self) -> Finding:
        """Trains with a step that computes gradients in a compiled function and applies them outside it."""
        return self.compared(
            lambda model: self._own_steps(model, _step(model, tf.function(_loss_and_gradients)))
        )

    def weights_checkpoint(self) -> Finding:
        """Does as `weights_h5` with a checkpoint of TensorFlow's."""
        return self.saved_and_loaded("weights")

    def _own_steps(self, model: Any, step: Step) -> list[Any]:
        mesh, _compiled = _mesh_of(model), self.compiled(model)
        return [[float(step(*_sent(batch, mesh))) for batch in batches()], *self.values(model)]


def _mesh() -> Any:
    devices = [f"CPU:{device_id}" for device_id in range(NUM_DEVICES)]
    return dtensor.create_mesh(list(DIMS.items()), devices=devices)


def _layout(entries: tuple[str | None, ...], mesh: Any) -> Any:
    return dtensor.Layout(list(entries), mesh)


def _filled(model: Any) -> Any:
    model.set_weights(first_values())
    return model


def _mesh_of(model: Any) -> Any | None:
    """Returns the mesh of the variables; None where they lie on one device."""
    layout = getattr(model.weights[0], "layout", None)
    return None if layout is None else layout.mesh


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


def _logits(model: Any) -> list[Any]:
    inputs, _labels = _sent(batches()[0], _mesh_of(model))
    return [_whole(tf.function(model)(inputs))]


def _loss_and_gradients(model: Any, features: Any, labels: Any) -> tuple[Any, list[Any]]:
    loss_of = tf_keras.losses.sparse_categorical_crossentropy
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of(labels, model(features, training=True), from_logits=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def _step(model: Any, loss_and_gradients: Callable[..., Any] = _loss_and_gradients) -> Step:
    def step(features: Any, labels: Any) -> Any:
        loss, gradients = loss_and_gradients(model, features, labels)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def _whole(tensor: Any) -> np.ndarray:
    """Returns the whole tensor, having sent it to every device."""
    if not dtensor.is_dtensor(tensor):
        return tensor.numpy()
    layout = dtensor.fetch_layout(tensor)
    replicated = dtensor.relayout(tensor, dtensor.Layout.replicated(layout.mesh, len(tensor.shape)))
    return dtensor.unpack(replicated)[0].numpy()


def main() -> None:
    """Runs the case that the command line names."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES)
    TfKeras(tf_keras, RIGHT, MISSPELT).answer()


if __name__ == "__main__":
    main()
