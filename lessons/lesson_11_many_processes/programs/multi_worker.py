"""Trains under a MultiWorkerMirroredStrategy, as one of the workers that TF_CONFIG names; alone without it.

    python -m lessons.lesson_11_many_processes.programs.multi_worker --steps 20 --checkpoints DIR
    python -m lessons.lesson_11_many_processes.programs.multi_worker --fit --steps 20
    python -m lessons.lesson_11_many_processes.programs.multi_worker --shards file

Start it on each machine, with the same arguments and code, and with TF_CONFIGs that differ in the task only.
The folder of checkpoints must be the same one for all, as on a file system that they share. Started again,
all of them go on from the newest checkpoint. SIGTERM to any of them has all of them save and end with status
75; Kubernetes and Slurm send it before they take a machine away.

Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib.data import fashion
from course_lib.runtime import setup
from lessons.lesson_11_many_processes.cluster_jobs import WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task
from lessons.lesson_11_many_processes.programs.limit import within
from lessons.lesson_11_many_processes.programs.lines import leave, run, say
from lessons.lesson_11_many_processes.programs.peers import compare, explaining_lost_peers, facts_of
from lessons.lesson_11_many_processes.programs.steps import epochs, parser, take_steps

if TYPE_CHECKING:
    from course_lib.data.examples import Examples
    from course_lib.training.run import TrainingRun

ENDED_TO_GO_ON = 75  # what sysexits.h calls a temporary failure: start it again
POLICIES = ("data", "file", "off")
FILTERS, HIDDEN = (4, 8), 16  # a small model, so that processes that share two cores show something soon
_FILES, _EXAMPLES_IN_A_FILE = 4, 4
LEARNING_RATE = 0.01


def main() -> None:
    """Does what the command line says, as the process that TF_CONFIG says."""
    arguments = parsed()
    setup(language=arguments.language, devices=1)
    place = place_of_worker(arguments.index)
    examples = fashion.load_fashion(num_train=arguments.examples, num_test=1).train
    with within(arguments.wait, place.others):
        strategy = make_strategy()
    with explaining_lost_peers(place.others):
        compare(place, facts_of(arguments, examples))
        say(f"{place.task} of {len(place.cluster.tasks)}, {strategy.num_replicas_in_sync} replicas")
        if arguments.shards:
            for policy in arguments.shards:
                show_shards(strategy, policy)
            say("done")
        elif arguments.fit:
            fit(strategy, examples, arguments)
        else:
            train(strategy, place, examples, arguments)


def place_of_worker(index: str | None = None) -> Place:
    """Returns the place that TF_CONFIG names, with another index if one is given; alone if it is not set."""
    if "TF_CONFIG" not in os.environ:
        return ClusterSpec({WORKER: ["localhost:1"]}).place(Task(WORKER))
    if index is not None:
        config = json.loads(os.environ["TF_CONFIG"])
        config["task"]["index"] = index
        os.environ["TF_CONFIG"] = json.dumps(config)
    return ClusterSpec.from_tf_config(os.environ["TF_CONFIG"])


def make_strategy() -> Any:
    """Returns the strategy; it must be there before anything else of TensorFlow's is used.

    Left to itself TensorFlow takes its own ring on GPUs too.
    """
    tf = importlib.import_module("tensorflow")
    tf.get_logger().setLevel("ERROR")
    carries = "NCCL" if tf.config.list_physical_devices("GPU") else "AUTO"
    experimental = tf.distribute.experimental
    options = experimental.CommunicationOptions(
        implementation=experimental.CommunicationImplementation[carries]
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def train(strategy: Any, place: Place, examples: Examples, arguments: argparse.Namespace) -> None:
    """Trains step by step, with the trainer and the run of lesson 10."""
    from course_lib.models.fashion import convolutional
    from course_lib.training import Settings, StrategyTrainer, TrainingRun
    from course_lib.training.checkpoints import CheckpointFolder
    from lessons.lesson_11_many_processes.checkpoints import OthersCheckpoints

    tf = importlib.import_module("tensorflow")
    with strategy.scope():
        optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)
    model = convolutional(strategy, filters=FILTERS, hidden=HIDDEN)
    trainer = StrategyTrainer(model, optimizer, strategy)
    settings = Settings(epochs(arguments), arguments.batch)
    kind = CheckpointFolder if place.saves else OthersCheckpoints
    folder = kind(arguments.checkpoints) if arguments.checkpoints else None
    training = TrainingRun(trainer, examples, settings=settings, checkpoints=folder, steps_per_call=1)
    wait_for_all(strategy)  # all have restored: only now may the chief save into the folder they read
    save_if_preempted = _saves_when_preempted(strategy, training, folder.path) if folder else lambda: None
    of_saved = "" if place.saves else ", and thrown away"
    take_steps(training, place, arguments, after_step=save_if_preempted, of_saved=of_saved)
    wait_for_all(strategy)  # who ends early is missed by those that still save
    say("done")


def fit(strategy: Any, examples: Examples, arguments: argparse.Namespace) -> None:
    """Trains with `fit` of tf_keras: that of Keras 3 fails under this strategy."""
    tf, tf_keras = (importlib.import_module(name) for name in ("tensorflow", "tf_keras"))
    layers, drawn = tf_keras.layers, tf_keras.initializers.GlorotUniform
    with strategy.scope():
        model = tf_keras.Sequential(
            [
                tf_keras.Input((28, 28, 1)),
                layers.Flatten(),
                layers.Dense(HIDDEN, "relu", kernel_initializer=drawn(1)),
                layers.Dense(10, kernel_initializer=drawn(2)),
            ]
        )
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf_keras.optimizers.SGD(LEARNING_RATE), loss)
    dataset = tf.data.Dataset.from_tensor_slices((examples.features, examples.labels))
    dataset = with_policy(dataset.batch(arguments.batch, drop_remainder=True), "data")

    def tell(epoch: int, logs: Any) -> None:
        say(f"epoch {epoch + 1} loss {logs['loss']:.{arguments.digits}f}")

    callbacks = [tf_keras.callbacks.LambdaCallback(on_epoch_end=tell)]
    model.fit(dataset, epochs=epochs(arguments), verbose=0, callbacks=callbacks)
    say("done")


def show_shards(strategy: Any, policy: str) -> None:
    """Says which examples of a numbered data set, in four files, this worker gets."""
    from course_lib.distributed_input import received_examples

    tf = importlib.import_module("tensorflow")
    numbers = np.arange(_FILES * _EXAMPLES_IN_A_FILE).reshape(_FILES, _EXAMPLES_IN_A_FILE)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{number}.txt" for number in range(_FILES)]
        for name, of_file in zip(names, numbers, strict=True):
            np.savetxt(name, of_file, fmt="%d")
        examples = tf.data.TextLineDataset(names).map(lambda line: tf.strings.to_number(line, tf.int64))
        batches = with_policy(examples.batch(_EXAMPLES_IN_A_FILE), policy)
        received = received_examples(strategy, batches, most_batches=numbers.size)
    for number, parts in enumerate(received.batches):
        indices = (str(index) for part in parts for index in part)
        say(" ".join([f"{policy} batch {number} examples", *indices]))


def with_policy(dataset: Any, policy: str) -> Any:
    """Returns the data set with a rule how it is divided among workers: one of `POLICIES`.

    Source: https://www.tensorflow.org/tutorials/distribute/input (Sharding).
    """
    tf = importlib.import_module("tensorflow")
    options = tf.data.Options()
    policies = tf.data.experimental.AutoShardPolicy
    options.experimental_distribute.auto_shard_policy = getattr(policies, policy.upper())
    return dataset.with_options(options)


def wait_for_all(strategy: Any) -> None:
    """Waits until all workers have come here."""
    tf = importlib.import_module("tensorflow")
    one = strategy.run(tf.function(lambda: tf.constant(1.0)))
    strategy.reduce(tf.distribute.ReduceOp.SUM, one, axis=None).numpy()


def _saves_when_preempted(strategy: Any, training: TrainingRun, folder: Path) -> Any:
    """Returns what to call after each step: when a worker has got SIGTERM, all save after the same step."""
    tf = importlib.import_module("tensorflow")
    os.environ.setdefault("GCE_METADATA_IP", "127.0.0.1:9")  # it would ask there if this is Google's cloud

    def end() -> None:
        say(f"SIGTERM: saved after step {training.step}, to go on from there")
        wait_for_all(strategy)
        leave(ENDED_TO_GO_ON)

    experimental = tf.distribute.experimental
    ending = experimental.TerminationConfig(save_fn=training.close, exit_fn=end, grace_period=0)
    unused = tf.train.CheckpointManager(tf.train.Checkpoint(), str(folder / "unused"), max_to_keep=1)
    handler = experimental.PreemptionCheckpointHandler(
        strategy.cluster_resolver, unused, termination_config=ending
    )
    return handler.save_checkpoint_if_preempted


def parsed() -> argparse.Namespace:
    """Returns the arguments of the command line."""
    made = parser(__doc__.partition("\n")[0])
    made.add_argument("--fit", action="store_true", help="train with fit of tf_keras; it saves nothing")
    rules = "only say which examples this worker gets, by these rules"
    made.add_argument("--shards", nargs="+", choices=POLICIES, metavar="RULE", help=rules)
    made.add_argument("--index", help="of this task, on a machine set up by hand; in place of TF_CONFIG's")
    return made.parse_args()


if __name__ == "__main__":
    run(main)
