"""The same training in JAX on eight host devices: the MLP with batch normalisation under SGD.

Run by a Python that has JAX (`make jax`), which needs neither TensorFlow nor the course. For each line on
stdin, "data" (a mesh of 8) or "model" (4 by 2) and a number of steps, it prints the seconds a step.

Source: https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
# XLA makes one thread a device where cores are few: a collective hangs once one of them does something else.
os.environ["PJRT_NPROC"] = "32"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# Else later steps take the threads that a collective waits for: on two busy cores it then aborts or hangs.
jax.config.update("jax_cpu_enable_async_dispatch", False)

BATCH_SIZE, FEATURES, HIDDEN, CLASSES = 64, 1200, 48, 2
EPSILON, LEARNING_RATE, MOMENTUM = 1e-5, 1e-2, 0.9
MESHES = {"data": (8, 1), "model": (4, 2)}  # batch, model
AXES = {
    "hidden_weight": (None, "model"),
    "hidden_bias": ("model",),
    "logits_weight": ("model", None),
    "logits_bias": (None,),
    "moving_mean": ("model",),
    "moving_variance": ("model",),
}
BATCH_AXES = (("batch", None), ("batch",))  # inputs, labels
TRAINED = ("hidden_weight", "hidden_bias", "logits_weight", "logits_bias")


def initial_values() -> dict[str, np.ndarray]:
    """Returns He's initial values, `[...] global`."""
    random = np.random.default_rng(0)
    shapes = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,), (HIDDEN,), (HIDDEN,))
    values = {name: np.zeros(shape, np.float32) for name, shape in zip(AXES, shapes, strict=True)}
    for name in ("hidden_weight", "logits_weight"):
        deviation = np.sqrt(2 / values[name].shape[0])
        values[name] = random.normal(0, deviation, values[name].shape).astype(np.float32)
    values["moving_variance"] += 1
    return values


def loss_of(trained: dict[str, Any], inputs: Any, labels: Any) -> tuple[Any, Any]:
    """Returns the summed cross entropy, and the right answers and batch moments."""
    hidden = jax.nn.relu(inputs @ trained["hidden_weight"] + trained["hidden_bias"])
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    normal = (hidden - mean) / jnp.sqrt(variance + EPSILON)
    logits = normal @ trained["logits_weight"] + trained["logits_bias"]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return losses.sum(), ((logits.argmax(axis=1) == labels).sum(), mean, variance)


def train_step(values: dict[str, Any], inputs: Any, labels: Any) -> tuple[dict[str, Any], Any, Any]:
    """Returns the values after one step of SGD, the summed loss and the number of right answers."""
    trained = {name: values[name] for name in TRAINED}
    differentiate = jax.value_and_grad(loss_of, has_aux=True)
    (loss, (hits, mean, variance)), gradients = differentiate(trained, inputs, labels)
    new = {name: values[name] - LEARNING_RATE * gradients[name] for name in TRAINED}
    for name, moment in (("moving_mean", mean), ("moving_variance", variance)):
        new[name] = MOMENTUM * values[name] + (1 - MOMENTUM) * moment
    return new, loss, hits


def training(scheme: str) -> Callable[[int], float]:
    """Returns a function that trains some steps on batches from the host and returns the seconds a step."""
    mesh = Mesh(np.array(jax.devices()).reshape(MESHES[scheme]), ("batch", "model"))
    layouts = {name: NamedSharding(mesh, PartitionSpec(*axes)) for name, axes in AXES.items()}
    batch_layouts = tuple(NamedSharding(mesh, PartitionSpec(*axes)) for axes in BATCH_AXES)
    whole = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(train_step, donate_argnums=0, out_shardings=(layouts, whole, whole))
    random = np.random.default_rng(0)
    features = random.standard_normal((100 * BATCH_SIZE, FEATURES), np.float32)
    labels = (features[:, :100].sum(axis=1) > 0).astype(np.int32)
    state = jax.device_put(initial_values(), layouts)

    def seconds_a_step(num_steps: int) -> float:
        nonlocal state
        start, records = time.perf_counter(), list[Any]()
        for at in range(num_steps):
            rows = slice(at % 100 * BATCH_SIZE, (at % 100 + 1) * BATCH_SIZE)
            batch = jax.device_put((features[rows], labels[rows]), batch_layouts)
            state, *record = step(state, *batch)
            records.append(record)
        jax.device_get(records)
        return (time.perf_counter() - start) / num_steps

    return seconds_a_step


def main() -> None:
    """Answers each line on stdin."""
    made: dict[str, Callable[[int], float]] = {}
    for line in sys.stdin:
        scheme, num_steps = line.split()
        if scheme not in made:
            made[scheme] = training(scheme)
            made[scheme](8)  # compiles
        print(made[scheme](int(num_steps)), flush=True)


if __name__ == "__main__":
    main()
