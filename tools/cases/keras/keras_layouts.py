"""What a Keras distributes over eight virtual devices: tf_keras with DTensor's layouts, and Keras 3.

    .venv/bin/python tools/cases/keras/keras_layouts.py tf_keras fit_arrays
    .venv/bin/python tools/cases/keras/keras_layouts.py keras_tensorflow fit_arrays
    build/jax-venv/bin/python tools/cases/keras/keras_layouts.py keras_jax fit_arrays

It needs that Keras and its backend (`make jax` installs Keras and JAX), and nothing of the course. A case is
what a model does. Its numbers are held to those of the same layers on one device, and each variable and each
slot of the optimizer must be split as was asked.

With DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1 in the environment, DTensor leaves each all-reduce by
itself: then what a step of tf_keras writes and reads again is right.

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_keras_tutorial
Source: https://keras.io/api/distribution/
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

BATCH_SIZE, FEATURES, HIDDEN, CLASSES, STEPS = 16, 20, 48, 2, 20
NUM_DEVICES, DIMS = 8, {"batch": 4, "model": 2}
IS_TF_KERAS, IS_JAX = (name in sys.argv[1:] for name in ("tf_keras", "keras_jax"))
os.environ["KERAS_BACKEND"] = "jax" if IS_JAX else "tensorflow"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={NUM_DEVICES}"
os.environ["PJRT_NPROC"] = "32"  # else XLA makes too few threads on few cores, and a collective hangs
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if IS_JAX:
    import jax
else:
    import tensorflow as tf
    from tensorflow.experimental import dtensor

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES)
keras = import_module("tf_keras" if IS_TF_KERAS else "keras")

if IS_TF_KERAS:
    MESH = dtensor.create_mesh(list(DIMS.items()), devices=[f"CPU:{each}" for each in range(NUM_DEVICES)])
else:
    devices = keras.distribution.list_devices("cpu")
    MESH = keras.distribution.DeviceMesh(tuple(DIMS.values()), list(DIMS), devices)
PATTERN = "{layer}.{part}" if IS_TF_KERAS else ".*{layer}/{part}"  # how a LayoutMap names a variable
SPECS = {  # `model` splits the hidden units in two
    "hidden": {"kernel": (None, "model"), "bias": ("model",)},
    "logits": {"kernel": ("model", None), "bias": (None,)},
}
SHARDS = {  # what a device then holds of each shape
    (FEATURES, HIDDEN): (FEATURES, HIDDEN // 2),
    (HIDDEN,): (HIDDEN // 2,),
    (HIDDEN, CLASSES): (HIDDEN // 2, CLASSES),
    (CLASSES,): (CLASSES,),
}
Layouts = Mapping[str, Any]  # by patterns of names


def found(row: str) -> Mapping[str, Any]:
    """Returns whether all is split as was asked, and how far a row's numbers are from those on one device."""

    def numbers(layouts: Layouts, **options: Mapping[str, Any]) -> tuple[list[Any], bool]:
        model = made(layouts, **options)
        if row != "equal_seeds":
            model.set_weights(first_values())
        return ROWS[row](model), is_as_asked(model)

    options = {
        layer: {f"{part}_layout": layout(*specs) for part, specs in parts.items()}
        for layer, parts in SPECS.items()
    }
    misspelt = {"hidden": "hiden"} if row == "unmatched_pattern" else {}
    layouts = {
        PATTERN.format(layer=misspelt.get(layer, layer), part=part): layout(*specs)
        for layer, parts in SPECS.items()
        for part, specs in parts.items()
    }
    with nullcontext() if IS_TF_KERAS else model_parallel(layouts):
        ours, distributed = numbers({}, **options) if row == "arguments" else numbers(layouts)
    if row == "unmatched_pattern":
        return {"mistaken": True}
    return {"distributed": distributed, "difference": difference(ours, numbers({})[0])}


def first_values() -> list[np.ndarray]:
    """Returns equal values for equal shapes, whichever Keras they go to."""
    random = np.random.default_rng(3)
    shapes = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
    return [random.normal(0, 0.3, shape).astype(np.float32) for shape in shapes]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Returns `[examples, features]` and `[examples]`: a batch for each step, none like another."""
    features = np.random.default_rng(5).random((STEPS * BATCH_SIZE, FEATURES), np.float32)
    return features, (features.sum(axis=1) > FEATURES / 2).astype(np.int64)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the examples batch by batch."""
    features, labels = (np.split(array, STEPS) for array in examples())
    return list(zip(features, labels, strict=True))


def difference(ours: Any, theirs: Any) -> float:
    """Returns the largest difference between numbers in the same place."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(np.asarray(one) - np.asarray(other)))) for one, other in pairs)


def layout(*specs: str | None) -> Any:
    """Returns a layout on the mesh."""
    if IS_TF_KERAS:
        return dtensor.Layout([each or dtensor.UNSHARDED for each in specs], MESH)
    return keras.distribution.TensorLayout(specs, MESH)


def model_parallel(layouts: Layouts) -> AbstractContextManager[Any]:
    """Returns the scope in which a model of Keras 3 is distributed where it is made, and used."""
    layout_map = keras.distribution.LayoutMap(MESH)
    layout_map.update(layouts)
    return keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch").scope()


def made(layouts: Layouts, **options: Mapping[str, Any]) -> Any:
    """Returns the model as Keras draws its values from seed 1; options by the name of their layer."""
    keras.utils.set_random_seed(1)
    scope: AbstractContextManager[Any] = nullcontext()
    if IS_TF_KERAS and layouts:
        layout_map = keras.dtensor.experimental.LayoutMap(mesh=MESH)
        layout_map.update(layouts)
        scope = layout_map.scope()
    with scope:
        hidden = keras.layers.Dense(HIDDEN, activation="relu", name="hidden", **options.get("hidden", {}))
        logits = keras.layers.Dense(CLASSES, name="logits", **options.get("logits", {}))
        return keras.Sequential([keras.Input((FEATURES,)), hidden, logits], name="model")


def compiled(model: Any) -> Any:
    """Returns the model with Adam, which is told the mesh of tf_keras's variables, and a loss."""
    adam = keras.optimizers.Adam(1e-2, **({"mesh": MESH} if is_on_mesh(model) else {}))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


def is_on_mesh(model: Any) -> bool:
    """Returns whether the variables of a model of tf_keras have layouts."""
    return getattr(model.weights[0], "layout", None) is not None


def dataset(model: Any) -> Any:
    """Returns the examples batch by batch, as the model takes them."""
    if not IS_TF_KERAS:
        return Batches()
    rows = tf.data.Dataset.from_tensor_slices(examples())
    if not is_on_mesh(model):
        return rows.batch(BATCH_SIZE)
    layouts = (layout("batch", None), layout("batch"))
    return dtensor.DTensorDataset(
        dataset=rows, mesh=MESH, layouts=layouts, global_batch_size=BATCH_SIZE, batch_dim="batch"
    )


class Batches(keras.utils.Sequence if IS_TF_KERAS else keras.utils.PyDataset):  # type: ignore[misc]
    """The examples batch by batch, for any backend of Keras 3."""

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        return batches()[at]


def sent(model: Any, array: np.ndarray) -> Any:
    """Returns an array as a tensor; for a distributed model with its first axis split over `batch`."""
    if IS_JAX:
        distribution = keras.distribution.distribution()
        specs = distribution and distribution.get_data_layout(array.shape)
        return keras.distribution.distribute_tensor(array, specs) if distribution else array
    tensor = tf.constant(array)
    return dtensor.relayout(tensor, layout(*("batch", None)[: array.ndim])) if is_on_mesh(model) else tensor


def is_as_asked(model: Any) -> bool:
    """Returns whether the first device holds its part of each variable, and of each slot, and no more."""
    optimizer = getattr(model, "optimizer", None)
    variables = [*model.weights, *(optimizer.variables if optimizer else ())]
    shapes = ((tuple(each.shape), local_shape(each)) for each in variables)
    return all(part == SHARDS[shape] for shape, part in shapes if shape)


def local_shape(variable: Any) -> tuple[int, ...]:
    """Returns the shape of what the first device holds of a variable."""
    if IS_JAX:
        return tuple(variable.value.addressable_shards[0].data.shape)
    tensor = variable.read_value() if IS_TF_KERAS else variable.value.read_value()
    return tuple((dtensor.unpack(tensor)[0] if dtensor.is_dtensor(tensor) else tensor).shape)


def values(model: Any) -> list[np.ndarray]:
    """Returns the variables of a model, `[...] global` each."""
    return [whole(each.read_value()) for each in model.weights] if IS_TF_KERAS else model.get_weights()


def whole(tensor: Any) -> np.ndarray:
    """Returns a tensor, sent to every device, as an array."""
    if IS_JAX or not dtensor.is_dtensor(tensor):
        return np.asarray(tensor)
    replicated = dtensor.Layout.replicated(dtensor.fetch_layout(tensor).mesh, len(tensor.shape))
    return dtensor.unpack(dtensor.relayout(tensor, replicated))[0].numpy()


def logits(model: Any) -> list[np.ndarray]:
    """Returns what a model gives for the first batch."""
    features = sent(model, batches()[0][0])
    return [whole((tf.function(model) if IS_TF_KERAS else model)(features))]


def fitted(model: Any, *data: Any, **options: Any) -> list[Any]:
    """Trains with `fit`; returns loss and variables."""
    history = compiled(model).fit(*data, shuffle=False, verbose=0, **options)
    return [history.history["loss"], *values(model)]


def own_steps(model: Any, *, apart: bool = False) -> list[Any]:
    """Trains with a step of one's own in one compiled function, or with the gradients applied outside it."""
    optimizer = compiled(model).optimizer

    def loss_and_gradients(features: Any, labels: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            loss = mean_loss(labels, model(features, training=True))
        return loss, tape.gradient(loss, model.trainable_variables)

    gradients_of = tf.function(loss_and_gradients) if apart else loss_and_gradients

    def step(features: Any, labels: Any) -> Any:
        loss, gradients = gradients_of(features, labels)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    optimizer.build(model.trainable_variables)
    step = step if apart else tf.function(step)
    losses = [float(step(*(sent(model, each) for each in batch))) for batch in batches()]
    return [losses, *values(model)]


def own_steps_in_jax(model: Any) -> list[Any]:
    """Trains with a step without side effects, as JAX asks: values in, new values out.

    Source: https://keras.io/guides/writing_a_custom_training_loop_in_jax/
    """
    optimizer = compiled(model).optimizer
    optimizer.build(model.trainable_variables)

    def loss_of(trained: Any, features: Any, labels: Any) -> Any:
        return mean_loss(labels, model.stateless_call(trained, [], features, training=True)[0])

    @jax.jit
    def step(trained: Any, slots: Any, features: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(trained, features, labels)
        return loss, *optimizer.stateless_apply(slots, gradients, trained)

    trained, slots = ([each.value for each in some.variables] for some in (model, optimizer))
    losses = []
    for batch in batches():
        loss, trained, slots = step(trained, slots, *(sent(model, each) for each in batch))
        losses.append(float(loss))
    for variable, value in zip(model.variables + optimizer.variables, trained + slots, strict=True):
        if value.addressable_shards[0].data.shape != local_shape(variable):
            raise ValueError(f"{variable.path} is split in another way after the training")
        variable.assign(value)
    return [losses, *values(model)]


def mean_loss(labels: Any, logits: Any) -> Any:
    """Returns the mean loss of some examples."""
    losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return losses.mean() if IS_JAX else tf.reduce_mean(losses)


def reloaded(model: Any, name: str) -> list[np.ndarray]:
    """Saves the weights under this name; returns those of a model on one device that loads them."""
    other = made({})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / name)
        model.save_weights(path)
        other.load_weights(path)
    return values(other)


ROWS: dict[str, Callable[[Any], list[Any]]] = {
    "arguments": logits,
    "patterns": logits,
    "unmatched_pattern": logits,
    "equal_seeds": values,
    "training_step": own_steps_in_jax if IS_JAX else own_steps,
    "training_step_apart": partial(own_steps, apart=True),
    "fit_arrays": lambda model: fitted(model, *examples(), batch_size=BATCH_SIZE),
    "fit_dataset": lambda model: fitted(model, dataset(model), steps_per_epoch=STEPS),
    "evaluate_arrays": lambda model: [
        compiled(model).evaluate(*examples(), batch_size=BATCH_SIZE, verbose=0)
    ],
    "evaluate_dataset": lambda model: [compiled(model).evaluate(dataset(model), steps=STEPS, verbose=0)],
    "predict_arrays": lambda model: [model.predict(examples()[0], batch_size=BATCH_SIZE, verbose=0)],
    "predict_dataset": lambda model: [model.predict(dataset(model), steps=STEPS, verbose=0)],
    "weights_h5": lambda model: reloaded(model, "model.weights.h5"),
    "weights_checkpoint": lambda model: reloaded(model, "weights"),
}

if __name__ == "__main__":
    print(json.dumps(found(sys.argv[2])))
