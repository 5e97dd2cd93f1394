r"""What Keras 3 and tf_keras train under each strategy of tf.distribute, with `fit` and with a custom loop.

    .venv/bin/python tools/cases/keras/under_strategy.py mirrored fit keras_3

It needs tensorflow and tf-keras, and nothing of the course. A strategy of several processes runs as one of
them, which TF_CONFIG describes; `tools/cases/keras/tables.py` starts all of them, on this machine.

Each case trains for 20 steps. It prints whether the variables stand where the strategy puts them, each with
its copies, and how far copies and told losses are from the same training in NumPy. Parameter servers update
as workers come, in no fixed order, so of them it prints the loss before and after.

Source: https://www.tensorflow.org/guide/distributed_training
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import example
import numpy as np
from example import BATCH_SIZE, LEARNING_RATE, MOMENTUM, STEPS, difference

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras as keras_3
import tensorflow as tf
import tf_keras

TASK = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("type", "")
TWO_CPUS = ["CPU:0", "CPU:1"]


def one_device() -> Any:
    """Returns a strategy of a device that TensorFlow would not choose by itself."""
    return tf.distribute.OneDeviceStrategy("CPU:1")


def mirrored() -> Any:
    """Returns a strategy that copies variables to two devices."""
    return tf.distribute.MirroredStrategy(TWO_CPUS, tf.distribute.ReductionToOneDevice())


def central_storage() -> Any:
    """Returns a strategy of two devices with the variables on the first."""
    return tf.distribute.experimental.CentralStorageStrategy(TWO_CPUS, "CPU:0")


def parameter_server() -> Any:
    """Returns the strategy of the cluster in TF_CONFIG."""
    return tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())


def tpu() -> Any:
    """Returns a strategy of the TPU cores that there are."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


# How each is made, how many parts train at a time, and on which device each copy of a variable stands.
STRATEGIES: Mapping[str, tuple[Callable[[], Any], int, list[str]]] = {
    "default": (tf.distribute.get_strategy, 1, ["CPU:0"]),
    "one_device": (one_device, 1, ["CPU:1"]),
    "mirrored": (mirrored, 2, TWO_CPUS),
    "central_storage": (central_storage, 2, ["CPU:0"]),
    "multi_worker": (tf.distribute.MultiWorkerMirroredStrategy, 2, ["CPU:0"]),  # in each of two processes
    "parameter_server": (parameter_server, 1, ["job:ps"]),
    "tpu": (tpu, 1, ["TPU:0"]),
}


def fit(strategy: Any, model: Any, keras: Any) -> list[float]:
    """Trains with `fit`; returns the mean of its losses."""
    with strategy.scope():
        model.compile(model.optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses: list[float] = model.fit(dataset(), steps_per_epoch=STEPS, verbose=0).history["loss"]
    return losses


def loop(strategy: Any, model: Any, keras: Any) -> list[float]:
    """Trains with a custom loop; returns the loss of each step."""
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica_step(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = loss_of(labels, model(features, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH_SIZE)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(iterator: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=next(iterator)), axis=None)

    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        iterator = iter(coordinator.create_per_worker_dataset(dataset))
        losses = [coordinator.schedule(step, args=(iterator,)) for _step in range(STEPS)]
        coordinator.join()
        return [float(loss.fetch()) for loss in losses]
    iterator = iter(strategy.experimental_distribute_dataset(dataset()))
    return [float(step(iterator)) for _step in range(STEPS)]


def found(name: str, way: Callable[..., list[float]], keras: Any) -> Mapping[str, Any]:
    """Trains 20 steps, and returns what became of variables and losses."""
    make_strategy, num_parts, places = STRATEGIES[name]
    strategy, is_late = make_strategy(), name == "parameter_server"
    with strategy.scope():
        model = keras.Sequential(example.layers(keras), name="model")
        model.set_weights(example.first_values())
        # With momentum, where gradients come late, the loss rose in some runs.
        model.optimizer = keras.optimizers.SGD(LEARNING_RATE, momentum=0.0 if is_late else MOMENTUM)
    losses = way(strategy, model, keras)
    held = [copies_of(variable) for variable in model.weights]
    distributed = strategy.num_replicas_in_sync == num_parts and all(
        len(copies) == len(places)
        and all(place in copy.device for copy, place in zip(copies, places, strict=True))
        for copies in held
    )
    copies = [[each.numpy() for each in copies] for copies in zip(*held, strict=True)]
    if is_late:  # of Keras 3's counter of steps, workers overwrite each other's counts
        return {"distributed": distributed, "losses": list(map(mean_loss, (example.first_values(), *copies)))}
    expected, expected_values = example.trained()
    return {
        "distributed": distributed and int(model.optimizer.iterations.numpy()) == STEPS,
        "difference": max(difference(values, expected_values) for values in copies),
        "reported_difference": difference(losses, [np.mean(expected)] if way is fit else expected),
    }


def dataset() -> Any:
    """Returns the examples in batches for all replicas together, again and again."""
    rows = tf.data.Dataset.from_tensor_slices(example.examples())
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return rows.batch(BATCH_SIZE, drop_remainder=True).repeat().with_options(options)


def copies_of(variable: Any) -> list[Any]:
    """Returns what a variable consists of: a copy for each device that holds one."""
    held = variable.value if isinstance(variable, keras_3.Variable) else variable
    return list(getattr(held, "values", [held]))


def mean_loss(values: list[np.ndarray]) -> float:
    """Returns the mean loss of all examples with these values of the variables."""
    return example.loss_and_gradients(values, *example.examples())[0]


def main() -> None:
    """Runs the case that the command line names; where TF_CONFIG makes this process a server, serves."""
    if TASK == "ps" or (TASK == "worker" and "chief" in os.environ["TF_CONFIG"]):
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        place = {"job_name": resolver.task_type, "task_index": resolver.task_id}
        tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", **place).join()
    if not TASK:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy, way, keras = sys.argv[1:]
    kerases = {"keras_3": keras_3, "tf_keras": tf_keras}
    print(json.dumps(found(strategy, {"fit": fit, "loop": loop}[way], kerases[keras])))


if __name__ == "__main__":
    main()
