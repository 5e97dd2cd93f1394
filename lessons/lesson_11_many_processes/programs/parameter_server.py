"""Trains with parameter servers, as the coordinator, a worker or a server: TF_CONFIG says which.

    python -m lessons.lesson_11_many_processes.programs.parameter_server --steps 60 --checkpoints DIR

Start it once for each task. TF_CONFIG names one chief, which coordinates, and workers and servers (ps), which
serve until they are ended. A worker may be killed and started again at any time: its steps are given to
others meanwhile. A lost server takes its part of the variables with it; then start all again, and they go on
from the newest checkpoint.

Source: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
"""

from __future__ import annotations

import argparse
import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from course_lib.data import mnist
from course_lib.runtime import setup
from lessons.lesson_11_many_processes.cluster_jobs import CHIEF, PS, WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place
from lessons.lesson_11_many_processes.programs.limit import opened, within
from lessons.lesson_11_many_processes.programs.lines import run, say
from lessons.lesson_11_many_processes.programs.peers import explaining_lost_peers
from lessons.lesson_11_many_processes.programs.steps import parser

if TYPE_CHECKING:
    from course_lib.data.examples import Examples

SHAPES = {
    "hidden_weight": (784, 32),
    "hidden_bias": (32,),
    "logits_weight": (32, 10),
    "logits_bias": (10,),
}
_LEARNING_RATE = 0.05
_LEAST_PART_BYTES = 16 * 2**10  # what is smaller stays whole, on one server
_LOOK_SECONDS = 0.2


def main() -> None:
    """Does what TF_CONFIG says: coordinates, computes gradients, or holds variables."""
    arguments = parsed()
    setup(language=arguments.language, devices=1)
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # a lost server is told at once
    place = ClusterSpec.from_tf_config(os.environ["TF_CONFIG"])
    if place.task.job != CHIEF:
        serve(place)
    examples = mnist.load_mnist(num_train=arguments.examples, num_test=1).train
    with within(arguments.wait, place.others):
        while not all(map(opened, place.others.values())):  # TensorFlow fails where one is not there yet
            time.sleep(_LOOK_SECONDS)
        strategy = make_strategy(place.cluster.num_tasks(PS))
    with explaining_lost_peers(place.others):
        _watch({name: address for name, address in place.others.items() if name.startswith(WORKER)})
        coordinate(strategy, examples, arguments)


def parsed() -> argparse.Namespace:
    """Returns the arguments of the command line."""
    return parser(__doc__.partition("\n")[0]).parse_args()


def serve(place: Place) -> None:
    """Lets the coordinator use this process, until it is ended from outside."""
    tf = importlib.import_module("tensorflow")
    cluster = tf.train.ClusterSpec(place.cluster.jobs)
    task = place.task
    server = tf.distribute.Server(cluster, job_name=task.job, task_index=task.index, protocol="grpc")
    say(f"{task} serves")
    server.join()


def make_strategy(num_servers: int) -> Any:
    """Returns the strategy; large variables are cut into as many parts as there are servers."""
    tf = importlib.import_module("tensorflow")
    partitioners = tf.distribute.experimental.partitioners
    return tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        variable_partitioner=partitioners.MinSizePartitioner(_LEAST_PART_BYTES, max_shards=num_servers),
    )


def coordinate(strategy: Any, examples: Examples, arguments: argparse.Namespace) -> None:
    """Has the workers take steps, in no fixed order, and tells how far they are after each epoch."""
    tf = importlib.import_module("tensorflow")
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    variables, updates = make_variables(strategy)
    tell_places(variables)
    checkpoint = tf.train.Checkpoint(variables=variables, updates=updates)
    manager = None
    if arguments.checkpoints:
        manager = tf.train.CheckpointManager(checkpoint, arguments.checkpoints, max_to_keep=3)
        manager.restore_or_initialize()
    step = make_step(strategy, variables, updates)
    batches = iter(coordinator.create_per_worker_dataset(lambda: _batches(examples, arguments.batch)))
    done = counted = int(updates.numpy())
    steps_per_epoch = max(len(examples) // arguments.batch, 1)
    if done:
        say(f"goes on after {done} steps")
    while done < arguments.steps:
        workers = []
        for _step in range(min(steps_per_epoch, arguments.steps - done)):
            time.sleep(arguments.pause)
            workers.append(coordinator.schedule(step, args=(batches,)))
        coordinator.join()
        took = Counter(f"worker {int(worker.fetch())}" for worker in workers)
        done += took.total()
        loss = float(loss_of(variables, examples.features, examples.labels))
        say(f"step {done} loss {loss:.{arguments.digits}f}")
        before, counted = counted, int(updates.numpy())  # a step whose worker died may count twice
        by_worker = ", ".join(f"{name} took {count}" for name, count in sorted(took.items()))
        say(f"{by_worker}; the servers count {counted - before} updates")
        if manager:
            manager.save(done)
            say(f"saved after {done} steps")
    say(f"{done} of {arguments.steps} steps done")


def make_variables(strategy: Any) -> tuple[dict[str, Any], Any]:
    """Returns the variables, on the servers, large ones in parts; and one that counts the updates."""
    tf = importlib.import_module("tensorflow")
    drawn = tf.keras.initializers.HeNormal(seed=0)
    with strategy.scope():
        variables = {
            name: tf.Variable(drawn(shape) if len(shape) > 1 else tf.zeros(shape), name=name)
            for name, shape in SHAPES.items()
        }
        return variables, tf.Variable(0, dtype=tf.int64, trainable=False, name="updates")


def tell_places(variables: Mapping[str, Any]) -> None:
    """Says where each part of each variable lies."""
    tf = importlib.import_module("tensorflow")
    for name, variable in variables.items():
        parts = getattr(variable, "variables", [variable])  # a whole one has none
        for number, part in enumerate(parts):
            device = tf.DeviceSpec.from_string(part.device)
            which = f" part {number} of {len(parts)}" if len(parts) > 1 else ""
            say(f"{name}{which} {list(part.shape)} on {device.job} {device.task}")


def loss_of(variables: Mapping[str, Any], features: Any, labels: Any) -> Any:
    """Returns the mean loss; a variable in parts is read as the whole."""
    tf = importlib.import_module("tensorflow")
    whole = {name: tf.convert_to_tensor(variable) for name, variable in variables.items()}
    hidden = tf.nn.relu(features @ whole["hidden_weight"] + whole["hidden_bias"])
    logits = hidden @ whole["logits_weight"] + whole["logits_bias"]
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def make_step(strategy: Any, variables: Mapping[str, Any], updates: Any) -> Callable[[Any], Any]:
    """Returns what a worker does in a step: it changes each part on its server, and says which one it is."""
    tf = importlib.import_module("tensorflow")
    parts = [part for whole in variables.values() for part in getattr(whole, "variables", [whole])]

    def on_worker(features: Any, labels: Any) -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(variables, features, labels)
        for part, gradient in zip(parts, tape.gradient(loss, parts), strict=True):
            part.assign_sub(_LEARNING_RATE * gradient)
        updates.assign_add(1)

    def step(batches: Any) -> Any:
        strategy.run(on_worker, args=next(batches))
        return tf.distribute.coordinator.experimental_get_current_worker_index()

    return tf.function(step)  # type: ignore[no-any-return]


def _batches(examples: Examples, batch_size: int) -> Any:
    tf = importlib.import_module("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
    return dataset.shuffle(len(examples)).repeat().batch(batch_size)


def _watch(addresses: Mapping[str, str]) -> None:
    """Says from now on which of these no longer answers, and which does again."""

    def look() -> None:
        there = dict.fromkeys(addresses, True)
        while True:
            for name, address in addresses.items():
                if opened(address) != there[name]:
                    there[name] = not there[name]
                    say(f"{name} {'answers again' if there[name] else 'no longer answers'}")
            time.sleep(_LOOK_SECONDS)

    threading.Thread(target=look, daemon=True).start()


if __name__ == "__main__":
    run(main)
