"""Three all-reduces by hand beside TensorFlow's own: what each device sends, and how long a ring takes.

Run it: python all_reduce.py
"""

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

WHOLE = dtensor.UNSHARDED


class Device:
    """One of several devices that send each other arrays."""

    def __init__(self, device_id, inboxes):
        self.id = device_id
        self.count = len(inboxes)
        self.next = (device_id + 1) % self.count
        self.previous = (device_id - 1) % self.count
        self.inboxes = inboxes  # of each receiver, one for each sender
        self.bytes_sent = 0

    def send(self, other, array):
        copy = np.array(array)
        self.bytes_sent += copy.nbytes
        self.inboxes[other][self.id].put(copy)

    def receive(self, other):
        return self.inboxes[self.id][other].get()  # waits until there is one


def run_on_each(function, parts):
    """Runs a function on all devices at the same time, each in a thread; returns results and bytes sent."""
    inboxes = [[SimpleQueue() for _ in parts] for _ in parts]
    devices = [Device(device_id, inboxes) for device_id in range(len(parts))]
    with ThreadPoolExecutor(len(parts)) as threads:
        results = list(threads.map(function, parts, devices))
    return results, [device.bytes_sent for device in devices]


def naive_all_reduce(mine, device):
    for other in range(device.count):
        if other != device.id:
            device.send(other, mine)

    total = mine
    for other in range(device.count):
        if other != device.id:
            total = total + device.receive(other)
    return total


def through_device_0(mine, device):
    if device.id == 0:
        # Collect the arrays and add them up
        total = mine
        for other in range(1, device.count):
            total = total + device.receive(other)
        # Hand out the sum
        for other in range(1, device.count):
            device.send(other, total)
    else:
        device.send(0, mine)
        total = device.receive(0)
    return total


def ring_all_reduce(mine, device):
    n = device.count
    chunks = np.array_split(mine, n)
    current = (device.id - 1) % n

    # Reduce-scatter: add your own numbers to what arrives
    for _ in range(n - 1):
        device.send(device.next, chunks[current])
        arriving = device.receive(device.previous)
        current = (current - 1) % n
        chunks[current] = chunks[current] + arriving

    # All-gather: keep what arrives
    for _ in range(n - 1):
        device.send(device.next, chunks[current])
        arriving = device.receive(device.previous)
        current = (current - 1) % n
        chunks[current] = arriving

    return np.concatenate(chunks)


def ring_seconds(devices, num_bytes, bandwidth, latency):
    steps = 2 * (devices - 1)
    chunk = num_bytes / devices
    return steps * (latency + chunk / bandwidth)


@tf.function
def sum_of_rows(gradients):
    return tf.reduce_sum(gradients, axis=0)


# Each device holds one row of 64 numbers
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
rng = np.random.default_rng(0)
rows = rng.integers(0, 10, (8, 1, 64)).astype("float32")
gradients = dtensor.pack(list(rows), dtensor.Layout(["batch", WHOLE], mesh))

parts = []
for component in dtensor.unpack(gradients):
    parts.append(component.numpy()[0])

# TensorFlow's own all-reduce: every device holds the total
totals = dtensor.unpack(sum_of_rows(gradients))

for all_reduce in (naive_all_reduce, through_device_0, ring_all_reduce):
    results, sent = run_on_each(all_reduce, parts)
    for result, total in zip(results, totals):
        assert np.array_equal(result, total.numpy())
    print(f"{all_reduce.__name__:>16}: bytes sent by each device:", *sent)

# A billion weights in float32; bytes per second and seconds, published for A100s
for name, bandwidth, latency in (("in one node", 240e9, 3.4e-6), ("between nodes", 25e9, 14e-6)):
    print(f"{name:>16}: 4 GB in {ring_seconds(8, 4e9, bandwidth, latency):.3f} s,", end=" ")
    print(f"4 kB in {1e6 * ring_seconds(8, 4e3, bandwidth, latency):.0f} µs")
