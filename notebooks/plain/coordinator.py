"""A coordinator, a worker or a server; TF_CONFIG says which.

python coordinator.py [FOLDER] [--epochs 2]
"""

import argparse
import faulthandler
import json
import os
import socket
import tempfile

import numpy as np
import tensorflow as tf


def serve_unless_coordinator():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    job, index = resolver.task_type, resolver.task_id
    if job != "chief":
        server = tf.distribute.Server(
            resolver.cluster_spec(),
            job,
            index,
            protocol="grpc",
        )
        server.join()  # until somebody ends the process
    return resolver


parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--epochs", type=int, default=2)
options = parser.parse_args()

if "TF_CONFIG" not in os.environ:
    # Alone: a worker and a server in this process
    local = "127.0.0.1"
    sockets = [socket.create_server((local, 0)) for _ in range(3)]
    ports = [each.getsockname()[1] for each in sockets]
    jobs = ("chief", "worker", "ps")
    spec = {}
    for each, port in zip(jobs, ports):
        spec[each] = [f"{local}:{port}"]
    task = {"type": "chief", "index": 0}
    config = {"cluster": spec, "task": task}
    os.environ["TF_CONFIG"] = json.dumps(config)
    for held in sockets:
        held.close()
    inside = []
    for each in ("worker", "ps"):
        server = tf.distribute.Server(spec, each, 0, protocol="grpc")
        inside.append(server)

resolver = serve_unless_coordinator()

y = np.arange(96) % 4
noise = np.random.default_rng(0).normal(size=(96, 64))
x = (noise + 4 * np.eye(4, 64)[y]).astype("float32")


def strategy_with_time_limit(partitioner):
    # Ends the process if the others aren't there in five minutes
    faulthandler.dump_traceback_later(300, exit=True)
    strategy = tf.distribute.ParameterServerStrategy(
        resolver,
        partitioner,
    )
    faulthandler.cancel_dump_traceback_later()
    return strategy


def run_epoch(coordinator, train_step, iterator, num_steps, save):
    steps = []
    for _ in range(num_steps):
        step = coordinator.schedule(train_step, args=(iterator,))
        steps.append(step)
    coordinator.join()
    save()
    losses = [step.fetch() for step in steps]
    return sum(losses) / num_steps


servers = resolver.cluster_spec().num_tasks("ps")
partitioners = tf.distribute.experimental.partitioners
partitioner = partitioners.MinSizePartitioner(
    min_shard_bytes=2048,
    max_shards=servers,
)
strategy = strategy_with_time_limit(partitioner)

random = np.random.default_rng(0)
initial_W1 = random.normal(0, 0.2, (64, 16)).astype("float32")
initial_W2 = random.normal(0, 0.4, (16, 4)).astype("float32")
with strategy.scope():
    W1 = tf.Variable(initial_W1)
    W2 = tf.Variable(initial_W2)


def shards_of(variable):
    if hasattr(variable, "variables"):
        return list(variable.variables)
    return [variable]  # it is not split


for name, variable in (("W1", W1), ("W2", W2)):
    for shard in shards_of(variable):
        server = tf.DeviceSpec.from_string(shard.device).task
        print(name, shard.shape, "on server", server, flush=True)

with strategy.scope():
    updates = tf.Variable(0, dtype=tf.int64, trainable=False)


def batches():
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return dataset.shuffle(96).repeat().batch(32)


def loss_of(x, y):
    hidden = tf.nn.relu(x @ tf.convert_to_tensor(W1))
    logits = hidden @ tf.convert_to_tensor(W2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return tf.reduce_mean(losses)


shards = shards_of(W1) + shards_of(W2)


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    gradients = tape.gradient(loss, shards)
    for shard, gradient in zip(shards, gradients):
        shard.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return loss


with strategy.scope():
    epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
checkpoint = tf.train.Checkpoint(
    W1=W1,
    W2=W2,
    updates=updates,
    epoch=epoch,
)
folder = options.folder or tempfile.mkdtemp()
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)


def save():
    epoch.assign_add(1)
    manager.save()


def train(train_step):
    manager.restore_or_initialize()
    iterator = iter(coordinator.create_per_worker_dataset(batches))
    for _ in range(int(epoch), options.epochs):
        loss = run_epoch(coordinator, train_step, iterator, 5, save)
        reached = f"epoch {int(epoch)} loss {loss:.3f}"
        print(reached, "updates", int(updates), flush=True)


if __name__ == "__main__":
    train(train_step)
