"""One of several workers; TF_CONFIG says which.

python worker.py [FOLDER] [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
parser.add_argument("--pause", type=float, default=0)
parser.add_argument("--patience", type=int, default=300)
options = parser.parse_args()

faulthandler.dump_traceback_later(options.patience, exit=True)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver = strategy.cluster_resolver
worker = resolver.task_id or 0
workers = strategy.num_replicas_in_sync
print(f"worker {worker} of {workers}", flush=True)
if options.replicas and workers != options.replicas:
    raise ValueError(f"{workers} of {options.replicas} replicas")

BATCH = 32
random = np.random.default_rng(0)
y = np.arange(options.examples) % 4
x = random.normal(size=(len(y), 64)) + 4 * np.eye(4, 64)[y]
steps_per_epoch = -(-len(y) // BATCH)  # rounded up

with strategy.scope():
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(16, "relu"),
            tf.keras.layers.Dense(4),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)


def batches(epoch):
    order = np.random.default_rng([0, epoch]).permutation(len(y))
    examples = x[order].astype("float32"), y[order]
    dataset = tf.data.Dataset.from_tensor_slices(examples)
    rule = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    rule.experimental_distribute.auto_shard_policy = policy
    return dataset.batch(BATCH).with_options(rule)


def replica_step(x, y):
    context = tf.distribute.get_replica_context()
    examples = context.all_reduce("SUM", tf.shape(y)[0])
    with tf.GradientTape() as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(
            y,
            model(x),
            from_logits=True,
        )
        loss = tf.reduce_sum(losses) / tf.cast(examples, "float32")
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(gradients, weights))
    return loss, tf.shape(y)[0]


@tf.function(reduce_retracing=True)
def train_step(x, y):
    loss, mine = strategy.run(replica_step, (x, y))
    loss = strategy.reduce("SUM", loss, axis=None)
    examples = strategy.reduce("SUM", mine, axis=None)
    return loss, examples, mine


assert resolver.task_type != "chief", "call every task `worker`"
folder = options.folder or tempfile.mkdtemp()
own_folder = folder if worker == 0 else tempfile.mkdtemp()
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(
    model=model,
    optimizer=optimizer,
    step=step,
)
manager = tf.train.CheckpointManager(
    checkpoint,
    own_folder,
    max_to_keep=3,
)


newest = tf.train.latest_checkpoint(folder)
if newest is not None:
    checkpoint.restore(newest).assert_existing_objects_matched()


@tf.function
def total(number):
    numbers = strategy.run(tf.identity, (number,))
    return strategy.reduce("SUM", numbers, axis=None)


def barrier():
    total(tf.constant(0.0))


average = int(total(step.read_value())) / workers
if int(step) != average:
    raise ValueError(f"step {int(step)}, on average {average:g}")


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    barrier()  # wait until all have saved
    raise SystemExit(75)


# A new handler restores what its manager's folder holds
empty_manager = tf.train.CheckpointManager(
    checkpoint,
    tempfile.mkdtemp(),
    max_to_keep=1,
)
experimental = tf.distribute.experimental
when_preempted = experimental.TerminationConfig(
    save_fn=manager.save,
    exit_fn=leave,
)
handler = experimental.PreemptionCheckpointHandler(
    resolver,
    empty_manager,
    termination_config=when_preempted,
)


if step > 0:  # new
    print(f"resumes after step {int(step)}", flush=True)
while step < options.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        seconds = options.patience  # new
        faulthandler.dump_traceback_later(seconds, exit=True)  # new
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
        handler.save_checkpoint_if_preempted()  # new
        time.sleep(options.pause)
    manager.save()  # new, at the end of an epoch
barrier()  # new: nobody ends early
