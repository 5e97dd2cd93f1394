"""One of several workers; TF_CONFIG says which.

python workers.py [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import math

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
args = parser.parse_args()

faulthandler.dump_traceback_later(300, exit=True)
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


step = tf.Variable(0, dtype=tf.int64)
while step < args.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(args.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
