r"""What Keras 3 and tf_keras train under each strategy of tf.distribute, with `fit` and with a custom loop.

    .venv/bin/python benchmarks/keras_support/under_strategy.py mirrored fit keras_3

It needs tensorflow and tf-keras, and nothing of the course. A strategy of several processes runs as one of
them, which TF_CONFIG describes; `benchmarks/strategy_table.py` starts all of them, on this machine.

Each case trains for 20 steps. It prints whether the variables stand where the strategy puts them, each with
its copies, and how far copies and told losses are from the same training in NumPy. Parameter servers update
as workers come, in no fixed order, so of them it prints the loss before and after.

Source: https://www.tensorflow.org/guide/distributed_training
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import oracle
from example import BATCH_SIZE, STEPS, answer, difference, examples, first_values, layers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras as keras_3
import tensorflow as tf
import tf_keras

KERAS = {"keras_3": keras_3, "tf_keras": tf_keras}
TASK = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("type", "")
TWO_CPUS = ["CPU:0", "CPU:1"]


def _tpu_strategy() -> Any:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


# How each is made, how many parts train at a time, and on which device each copy of a variable stands.
STRATEGIES: Mapping[str, tuple[Any, int, list[str]]] = {
    "default": (tf.distribute.get_strategy, 1, ["CPU:0"]),
    "one_device": (lambda: tf.distribute.OneDeviceStrategy("CPU:1"), 1, ["CPU:1"]),  # not TensorFlow's choice
    "mirrored": (
        lambda: tf.distribute.MirroredStrategy(TWO_CPUS, tf.distribute.ReductionToOneDevice()),
        2,
        TWO_CPUS,
    ),
    "central_storage": (
        lambda: tf.distribute.experimental.CentralStorageStrategy(TWO_CPUS, "CPU:0"),
        2,
        ["CPU:0"],
    ),
    "multi_worker": (tf.distribute.MultiWorkerMirroredStrategy, 2, ["CPU:0"]),  # in each of two processes
    "parameter_server": (
        lambda: tf.distribute.ParameterServerStrategy(
            tf.distribute.cluster_resolver.TFConfigClusterResolver()
        ),
        1,
        ["job:ps"],
    ),
    "tpu": (_tpu_strategy, 1, ["TPU:0"]),
}


def fit(strategy: Any, keras: Any) -> tuple[Any, list[float]]:
    """Trains with `fit`; returns the model and the mean of its losses."""
    with strategy.scope():
        model = _model(keras)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(_optimizer(keras, strategy), loss)
    history = model.fit(_dataset(), steps_per_epoch=STEPS, verbose=0)
    return model, history.history["loss"]


def loop(strategy: Any, keras: Any) -> tuple[Any, list[float]]:
    """Trains with a custom loop; returns the model and the loss of each step."""
    with strategy.scope():
        model, optimizer = _model(keras), _optimizer(keras, strategy)
        optimizer.build(model.trainable_variables)
        model.optimizer = optimizer
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica_step(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = loss_of(labels, model(features, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH_SIZE)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(iterator: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=next(iterator)), axis=None)

    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return model, _scheduled(strategy, step)
    iterator = iter(strategy.experimental_distribute_dataset(_dataset()))
    return model, [float(step(iterator)) for _step in range(STEPS)]


def _scheduled(strategy: Any, step: Any) -> list[float]:
    """Has the workers take the steps, in no fixed order."""
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    iterator = iter(coordinator.create_per_worker_dataset(_dataset))
    losses = [coordinator.schedule(step, args=(iterator,)) for _step in range(STEPS)]
    coordinator.join()
    return [float(loss.fetch()) for loss in losses]


def trained(name: str, way: Any, keras: str) -> Mapping[str, Any]:
    """Trains 20 steps, and returns what became of variables and losses."""
    make, num_parts, places = STRATEGIES[name]
    strategy = make()
    model, losses = way(strategy, KERAS[keras])
    held = [_copies(variable) for variable in model.weights]
    placed = all(
        len(copies) == len(places)
        and all(place in copy.device for copy, place in zip(copies, places, strict=True))
        for copies in held
    )
    distributed = placed and strategy.num_replicas_in_sync == num_parts
    copies = [[each.numpy() for each in copies] for copies in zip(*held, strict=True)]
    if name == "parameter_server":  # of Keras 3's counter of steps, workers overwrite each other's counts
        before, after = (oracle.mean_loss(values) for values in (first_values(), *copies))
        return {"distributed": distributed, "losses": [before, after]}
    expected, expected_values = oracle.trained()
    if way is fit:
        expected = [float(np.mean(expected))]
    return {
        "distributed": distributed and int(model.optimizer.iterations.numpy()) == STEPS,
        "difference": max(difference(values, expected_values) for values in copies),
        "reported_difference": difference(losses, expected),
    }


def _dataset() -> Any:
    """Returns the examples in batches for all replicas together, again and again."""
    dataset = tf.data.Dataset.from_tensor_slices(examples()).batch(BATCH_SIZE, drop_remainder=True).repeat()
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def _model(keras: Any) -> Any:
    model = keras.Sequential(layers(keras), name="model")
    model.set_weights(first_values())
    return model


def _optimizer(keras: Any, strategy: Any) -> Any:
    """Returns SGD; without momentum where gradients come late, since with it the loss rose in some runs."""
    late = isinstance(strategy, tf.distribute.ParameterServerStrategy)
    return keras.optimizers.SGD(oracle.LEARNING_RATE, momentum=0.0 if late else oracle.MOMENTUM)


def _copies(variable: Any) -> list[Any]:
    """Returns what a variable consists of: a copy for each device that holds one."""
    held = variable.value if isinstance(variable, keras_3.Variable) else variable
    return list(getattr(held, "values", [held]))


def main() -> None:
    """Runs the case that the command line names; where TF_CONFIG makes this process a server, serves."""
    if TASK == "ps" or (TASK == "worker" and "chief" in os.environ["TF_CONFIG"]):
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        place = {"job_name": resolver.task_type, "task_index": resolver.task_id}
        tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", **place).join()
    if not TASK:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    ways = (fit, loop)
    cases = {
        f"{strategy} {way.__name__} {keras}": partial(trained, strategy, way, keras)
        for strategy in STRATEGIES
        for way in ways
        for keras in KERAS
    }
    answer(cases)


if __name__ == "__main__":
    main()
