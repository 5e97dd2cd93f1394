"""One of several workers; TF_CONFIG says which: python worker.py [FOLDER] [--steps 6] [--pause 0]."""

import argparse
import faulthandler
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints; all workers see it")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--pause", type=float, default=0, help="seconds after a step")
options = parser.parse_args()

faulthandler.dump_traceback_later(300, exit=True)  # TensorFlow's own limit: an hour
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver, workers = strategy.cluster_resolver, strategy.num_replicas_in_sync
assert resolver.task_type != "chief", "give all tasks the job `worker`: worker 0 does what a chief would"
worker = resolver.task_id or 0  # None without TF_CONFIG
print(f"worker {worker} of {workers}", flush=True)


BATCH = 32
y = np.arange(96) % 4
x = np.random.default_rng(0).normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
with strategy.scope():
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(4)]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers])
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)


def batches(epoch):
    order = np.random.default_rng([0, epoch]).permutation(len(y))
    dataset = tf.data.Dataset.from_tensor_slices((x[order].astype("float32"), y[order]))
    rule = tf.data.Options()
    rule.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.batch(BATCH).with_options(rule)


@tf.function
def train_step(x, y):
    def of_replica(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
            loss = tf.reduce_sum(losses) / BATCH
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss, tf.shape(x)[0]

    of_replicas = strategy.run(of_replica, (x, y))
    return [strategy.reduce("SUM", each, axis=None) for each in of_replicas]


@tf.function
def total(number):  # over all workers: each waits here for the others
    return strategy.reduce("SUM", strategy.run(tf.identity, (number,)), axis=None)


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    total(step.read_value())
    raise SystemExit(75)  # by convention: try again


step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
if newest := options.folder and tf.train.latest_checkpoint(options.folder):
    checkpoint.restore(newest).assert_existing_objects_matched()
    print(f"goes on after step {int(step)}", flush=True)
assert total(step.read_value()) == workers * step, "others restored another step"
kept = options.folder if worker == 0 else None  # nobody reads what the others save
manager = tf.train.CheckpointManager(checkpoint, kept or tempfile.mkdtemp(), max_to_keep=3)
ending = tf.distribute.experimental.TerminationConfig(exit_fn=leave)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(resolver, manager, termination_config=ending)
while step < options.steps:
    epoch, at = divmod(int(step), len(y) // BATCH)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples = train_step(*batch)
        step.assign_add(1)
        print(f"step {int(step)} loss {loss:.9f} examples {examples}", flush=True)
        handler.save_checkpoint_if_preempted()
        time.sleep(options.pause)
    manager.save()
total(step.read_value())  # all end together
