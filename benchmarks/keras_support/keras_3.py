"""What Keras 3 distributes over eight virtual devices, with the backend that KERAS_BACKEND names.

    KERAS_BACKEND=tensorflow .venv/bin/python benchmarks/keras_support/keras_3.py fit_arrays
    KERAS_BACKEND=jax build/jax-venv/bin/python benchmarks/keras_support/keras_3.py fit_arrays

It needs Keras and its backend (`make jax` installs both), and nothing of the course.

Source: https://keras.io/api/distribution/
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from example import (
    DIMS,
    FEATURES,
    HIDDEN,
    LEARNING_RATE,
    NUM_DEVICES,
    STEPS,
    Finding,
    Held,
    Layouts,
    Subject,
    batches,
    first_values,
    is_as_asked,
    layers,
)

BACKEND = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={NUM_DEVICES}"
os.environ["PJRT_NPROC"] = "32"  # else XLA makes too few threads on few cores, and a collective hangs
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402

RIGHT = {".*hidden/kernel": (None, "model"), ".*hidden/bias": ("model",), ".*logits/kernel": ("model", None)}
MISSPELT = {".*hiden/kernel": (None, "model")}


class Keras3(Subject):
    """Keras 3: a model is distributed where it is made, and used, in the scope of a `ModelParallel`."""

    def model(self, layouts: Layouts | None = None, *, drawn: bool = False) -> Any:
        """Returns the model, distributed by the paths of its variables."""
        keras.utils.set_random_seed(1)
        with _scope(layouts):
            model = keras.Sequential(layers(keras), name="model")
        if not drawn:
            model.set_weights(first_values())
        return model

    def dataset(self, model: Any) -> Any:
        """Returns the examples batch by batch, for any backend."""
        del model
        return _Batches()

    def local_shape(self, variable: Any) -> tuple[int, ...]:
        """Returns the shape of what the first device holds of a variable."""
        return _local_shape(variable.value)

    def compared(self, work: Callable[[Any], list[Any]], model: Any = None) -> Finding:
        """Returns how far a model is from one on one device, having worked in the distribution's scope."""

        def in_its_scope(model: Any) -> list[Any]:
            with _scope(RIGHT) if model is distributed else nullcontext():
                return work(model)

        distributed = self.model(RIGHT) if model is None else model
        return super().compared(in_its_scope, distributed)

    def arguments(self) -> Finding:
        """Gives a layer its layouts as arguments, as tf_keras takes them."""
        layout = keras.distribution.TensorLayout((None, "model"), _mesh())
        layer = keras.layers.Dense(HIDDEN, kernel_layout=layout)
        layer.build((None, FEATURES))
        return {"distributed": is_as_asked([(tuple(layer.kernel.shape), self.local_shape(layer.kernel))])}

    def patterns(self) -> Finding:
        """Lays out a model by the paths of its variables, and compares its logits."""
        features, _labels = batches()[0]
        return self.compared(lambda model: [keras.ops.convert_to_numpy(model(features))])

    def training_step(self) -> Finding:
        """Trains with a step of one's own."""
        steps = {"tensorflow": self._tensorflow_steps, "jax": self._jax_steps}[BACKEND]
        held: Held = []  # of the first model, the distributed one
        found = self.compared(lambda model: steps(model, held))
        return {**found, "distributed": is_as_asked(held)}

    def _tensorflow_steps(self, model: Any, held: Held) -> list[Any]:
        import tensorflow as tf

        optimizer = self.compiled(model).optimizer
        optimizer.build(model.trainable_variables)

        @tf.function
        def step(features: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = _loss_of(model(features, training=True), labels)
            optimizer.apply(tape.gradient(loss, model.trainable_variables))
            return loss

        losses = [float(step(*map(tf.constant, batch))) for batch in batches()]
        held[:] = held or self.held(model)
        return [losses, *model.get_weights()]

    def _jax_steps(self, model: Any, held: Held) -> list[Any]:
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
        held[:] = held or [(array.shape, _local_shape(array)) for array in (*trained, *slots)]
        return [losses, *map(np.asarray, trained)]


class _Batches(keras.utils.PyDataset):
    """The examples batch by batch, for any backend."""

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        return batches()[at]


def _mesh() -> Any:
    devices = keras.distribution.list_devices("cpu")
    return keras.distribution.DeviceMesh(tuple(DIMS.values()), list(DIMS), devices)


def _scope(layouts: Layouts | None) -> AbstractContextManager[Any]:
    """Returns the scope of a distribution; for None one that distributes nothing."""
    if layouts is None:
        return nullcontext()
    layout_map = keras.distribution.LayoutMap(_mesh())
    for pattern, axes in layouts.items():
        layout_map[pattern] = axes
    scope: AbstractContextManager[Any] = keras.distribution.ModelParallel(
        layout_map=layout_map, batch_dim_name="batch"
    ).scope()
    return scope


def _loss_of(logits: Any, labels: Any) -> Any:
    return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))


def _local_shape(value: Any) -> tuple[int, ...]:
    if BACKEND == "jax":
        return tuple(value.addressable_shards[0].data.shape)
    from tensorflow.experimental import dtensor

    tensor = value.read_value()
    part = dtensor.unpack(tensor)[0] if dtensor.is_dtensor(tensor) else tensor
    return tuple(part.shape)


def main() -> None:
    """Runs the case that the command line names."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        virtual = [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES
        tf.config.set_logical_device_configuration(cpu, virtual)
    Keras3(keras, RIGHT, MISSPELT).answer()


if __name__ == "__main__":
    main()
