"""A coordinator, a worker or a server; TF_CONFIG says which: python coordinator.py [FOLDER] [--epochs 2]."""

import argparse
import faulthandler
import json
import os
import socket
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--pause", type=float, default=0, help="seconds after an epoch")
options = parser.parse_args()

if "TF_CONFIG" not in os.environ:  # alone: a worker and a server in this process
    sockets = [socket.create_server(("127.0.0.1", 0)) for _job in range(3)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    cluster = {job: [each] for job, each in zip(("chief", "worker", "ps"), addresses)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    for each in sockets:
        each.close()
    inside = [tf.distribute.Server(cluster, job, 0, protocol="grpc") for job in ("worker", "ps")]

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec()
if resolver.task_type != "chief":
    tf.distribute.Server(cluster, resolver.task_type, resolver.task_id, protocol="grpc").join()

partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(2048, cluster.num_tasks("ps"))
faulthandler.dump_traceback_later(300, exit=True)  # TensorFlow itself waits without a limit
strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
faulthandler.cancel_dump_traceback_later()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

random = np.random.default_rng(0)
y = np.arange(96) % 4
x = (random.normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]).astype("float32")
with strategy.scope():
    W1 = tf.Variable(random.normal(0, 0.2, (64, 16)).astype("float32"), name="W1")
    W2 = tf.Variable(random.normal(0, 0.4, (16, 4)).astype("float32"), name="W2")
    updates, done = (tf.Variable(0, dtype=tf.int64, trainable=False) for _ in range(2))
parts = [part for whole in (W1, W2) for part in getattr(whole, "variables", [whole])]
for part in parts:
    print(part.name, part.shape, "on ps", tf.DeviceSpec.from_string(part.device).task, flush=True)


def loss_of(x, y):
    logits = tf.nn.relu(x @ tf.convert_to_tensor(W1)) @ tf.convert_to_tensor(W2)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    for part, gradient in zip(parts, tape.gradient(loss, parts)):
        part.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return tf.distribute.coordinator.experimental_get_current_worker_index()


def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).repeat().batch(32)


checkpoint = tf.train.Checkpoint(W1=W1, W2=W2, updates=updates, done=done)
manager = tf.train.CheckpointManager(checkpoint, options.folder or tempfile.mkdtemp(), max_to_keep=3)
manager.restore_or_initialize()
iterator = iter(coordinator.create_per_worker_dataset(batches))
while done < options.epochs:
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _step in range(5)]
    coordinator.join()
    done.assign_add(1)
    took = sorted(int(each.fetch()) for each in steps)  # which worker did it
    print(f"epoch {int(done)} loss {loss_of(x, y):.3f} workers {took} updates {int(updates)}", flush=True)
    manager.save()
    time.sleep(options.pause)
