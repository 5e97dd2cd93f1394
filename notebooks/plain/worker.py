"""One of several workers, saving and resuming; TF_CONFIG says which.

python worker.py FOLDER [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import math
import tempfile  # new
import time  # new

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", help="of checkpoints")  # new
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
parser.add_argument("--pause", type=float, default=0)  # new
parser.add_argument("--start-timeout", type=int, default=300)  # new
parser.add_argument("--step-timeout", type=int, default=300)  # new
args = parser.parse_args()

faulthandler.dump_traceback_later(args.start_timeout, exit=True)  # new
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver = strategy.cluster_resolver
worker = resolver.task_id or 0
workers = strategy.num_replicas_in_sync
print(f"worker {worker} of {workers}", flush=True)
if args.replicas and workers != args.replicas:
    raise ValueError(f"{workers} of {args.replicas} replicas")

BATCH = 32
random = np.random.default_rng(0)
y = np.arange(args.examples) % 4
x = random.normal(size=(len(y), 64)) + 4 * np.eye(4, 64)[y]
steps_per_epoch = math.ceil(len(y) / BATCH)

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
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.batch(BATCH).with_options(options)


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


# From here to `while`, all is new
assert resolver.task_type != "chief", "call every task `worker`"
folder = args.folder
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
# A restore can get stuck too
faulthandler.dump_traceback_later(args.step_timeout, exit=True)


latest = tf.train.latest_checkpoint(folder)
if latest is not None:
    checkpoint.restore(latest).assert_existing_objects_matched()


@tf.function
def sum_over_workers(number):
    numbers = strategy.run(tf.identity, (number,))
    return strategy.reduce("SUM", numbers, axis=None)


average = int(sum_over_workers(step.read_value())) / workers
if int(step) != average:
    raise ValueError(f"step {int(step)}, on average {average:g}")


def barrier():
    sum_over_workers(tf.constant(0.0))


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    barrier()  # wait until all have saved
    raise SystemExit(75)


# The handler restores what lies in its manager's folder: nothing
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


if step > 0:
    print(f"resumes after step {int(step)}", flush=True)
while step < args.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(args.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        # new: ends a step that takes too long
        faulthandler.dump_traceback_later(args.step_timeout, exit=True)
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
        handler.save_checkpoint_if_preempted()  # new
        time.sleep(args.pause)  # new
    manager.save()  # new: the epoch has ended
barrier()  # new: no worker ends before the others
