# %% [markdown]
# # How eight devices add up
#
# You train a network of a billion weights on eight devices, with data parallelism.
# In every step, each device computes a gradient from its own examples.
# That is a billion numbers in float32, or 4 GB, and then all eight devices need the sum.
#
# The obvious way is for every device to send its gradient to every other.
# On links of 25 GB/s this takes 1.12 s. Over 100,000 steps, that makes 31 hours of sending.
# There is an algorithm that gets the same sum over the same links in 8 hours.
# It fits on half a page, and you will write it.
#
# Getting that sum to every device is the all-reduce of {lesson:communication}. There you saw where it comes from.
# Now we ask: *how do eight devices add up, and what does it cost?*
#
# **After this lesson you can**
#
# - write an all-reduce, and say how many bytes each device sends;
# - tell four collectives apart by what each device holds afterwards;
# - estimate how long an all-reduce takes, before you rent the devices.
#
# **Time:** 35 minutes.
# **You need to know:** what a sharded tensor is ({lesson:mesh_and_layout}), and where all-reduces come from ({lesson:communication}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% gradients-text [markdown]
# ## Eight gradients
#
# Let's make the gradients small enough to look at: 64 numbers on each device, or 256 bytes.
# Together they are a DTensor of eight rows, one row on each device.
# We take whole numbers, so that no sum is rounded.

# %% gradients
tf = course_lib.start_tensorflow()
import numpy as np
from tensorflow.experimental import dtensor

from course_lib import collectives, shard, to_numpy

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
one_row_each = dtensor.Layout(["batch", WHOLE], mesh)

rng = np.random.default_rng(0)
numbers = rng.integers(0, 10, (8, 64)).astype("float32")
gradients = shard(numbers, one_row_each)

# %% total-text [markdown]
# What do the devices exchange when you ask TensorFlow for the sum of the rows?


# %% total
def sum_of_rows(gradients):
    return tf.reduce_sum(gradients, axis=0)


for each in collectives(sum_of_rows, gradients):
    print(each)

# %% total-read [markdown]
# It is one all-reduce. Its payload is the array being added up, 256 bytes.
#
# The list doesn't say how the devices do it. So let's do it ourselves. Each row is one device's array, and TensorFlow's sum is there to check ours:

# %% parts
parts = list(numbers)
expected_sum = to_numpy(sum_of_rows(gradients))
print(len(parts), "arrays of", parts[0].nbytes, "bytes")

# %% two-text [markdown]
# ## Two devices
#
# With two devices it is easy. Each sends its array to the other and adds what it receives. We write this for *one* device, and both run it at the same time.
# In it, `mine` is the array of this device, and `device.id` is its number, 0 or 1.


# %% two
from lessons.layouts.all_reduce.messages import run_on_each


def add_two(mine, device):
    other = 1 - device.id
    device.send(other, mine)
    return mine + device.receive(other)


exchange = run_on_each(add_two, [[1, 2], [10, 20]])
for device_id, result in enumerate(exchange.results):
    print("device", device_id, "has", result)

# %% two-read [markdown]
# `run_on_each` gave `[1, 2]` to device 0 and `[10, 20]` to device 1, and started `add_two` on both.
# Now both have the sum. That is an all-reduce, the smallest one there is!
#
# Note that `send` doesn't wait until the array has arrived. `receive` waits.

# %% note-devices [markdown]
# How `run_on_each` simulates the devices.
#
# Every device is a Python thread, which calls your function with the device's own array.
# `device.send(other, array)` sends a copy. `device.receive(other)` waits for the next array from that device.

# %% deadlock-text [markdown]
# Does it matter which comes first, sending or receiving? Let's swap the two:


# %% deadlock tags=["error"]
def receive_first(mine, device):
    other = 1 - device.id
    received = device.receive(other)
    device.send(other, mine)
    return mine + received


try:
    # Give up within a second
    run_on_each(receive_first, [[1, 2], [10, 20]], seconds=1)
except course_lib.CourseError as error:
    print(error)

# %% deadlock-read [markdown]
# The message names device 0. But device 1 was waiting too, for device 0. This is a **deadlock**.
# Ours was caught by a timeout. Real devices often just hang.
#
# It can happen to you even if you never write a `send`.
# If seven devices enter an all-reduce and the eighth never does, the seven wait.

# %% note-hang [markdown]
# When a collective hangs.
#
# On several machines, TensorFlow notices a process that has died, and the all-reduce of the others fails ({lesson:failures}).
# It doesn't notice a process that is merely stuck, and then the others wait.
# For that, set `timeout_seconds` in `tf.distribute.experimental.CommunicationOptions`:
# a collective that takes longer then fails with a `DeadlineExceededError`. By default there is no timeout.

# %% naive-heading [markdown]
# ## Everyone to everyone
#
# Now for eight. The obvious way is for every device to send its array to all the others.
# `device.count` is the number of devices:


# %% naive
def naive_all_reduce(mine, device):
    for other in range(device.count):
        if other != device.id:
            device.send(other, mine)

    total = mine
    for other in range(device.count):
        if other != device.id:
            total = total + device.receive(other)
    return total


# %% try-out-text [markdown]
# Is the result right? How many bytes are sent? And how long does it take?
#
# To measure time, we need a unit that doesn't depend on the hardware. Ours is the time that one byte takes to cross a link, a *byte time*.
# Each device has one link, and can send and receive on it at the same time.


# %% try-out
def try_out(all_reduce):
    exchange = run_on_each(all_reduce, parts)
    num_right = 0
    for result in exchange.results:
        if np.array_equal(result, expected_sum):
            num_right += 1
    sent = exchange.bytes_sent
    print("right on", num_right, "devices")
    print("bytes sent by each: ", *sent)
    print(f"bytes sent in total: {sum(sent):,}")
    print(f"byte times it takes: {exchange.time:,}")


try_out(naive_all_reduce)

# %% naive-read [markdown]
# All eight devices have TensorFlow's sum. But each has sent its 256 bytes seven times,
# which makes 1,792 bytes and takes 1,792 byte times.
# For our gradient of 4 GB, that is 28 GB from each device, or 1.12 s at 25 GB/s.
#
# For a large array, that is wasteful: all eight devices collect the same arrays and add up the same numbers.
# Why not let *one* device add, and send the sum to the others?


# %% root
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


# %% predict-busiest [markdown]
# Eight devices hold an array of 256 bytes each.
# Seven of them send theirs to device 0, which adds up all eight and sends the sum to each of the seven.
# How many bytes does the busiest device send, the one that sends most?
#
# - [x] `1792`
#   Device 0 sends a sum of 256 bytes seven times.
# - [ ] `256`
#   That is what each of the other seven sends. Device 0 sends more.
# - [ ] `512`
#   No device sends just two arrays: seven send one, and device 0 sends the sum to seven others.
# - [ ] `3584`
#   That is what all eight devices send together: 7 × 256 bytes to device 0, and 7 × 256 back.

# %% reveal-busiest
exchange = run_on_each(through_device_0, parts)
reveal("all_reduce-busiest", max(exchange.bytes_sent))

# %% root-run
try_out(through_device_0)

# %% root-read [markdown]
# In total, the devices send a quarter of what they sent before: 3,584 bytes instead of 14,336.
# And it takes twice as long! First, seven arrays squeeze in through the link of device 0. Then the sum leaves through it seven times. Meanwhile, the other links are idle most of the time.
#
# So the total doesn't tell you the time. Look at the busiest device:
# **how much it sends, how much it receives, and how long it waits for others.**
# Before, every device sent 1,792 bytes while it received 1,792. Device 0 sends and receives as much, but one after the other: it can send nothing until everything has arrived.

# %% ring-heading [markdown]
# ## Around a ring
#
# Could the total stay at 3,584 bytes *and* be shared evenly? Then each device would send 448 bytes.
# That is what happens in a **ring**. Each device sends to the next one only, and the last one sends to the first.
# The array is cut into *chunks*, as many as there are devices. In each step, every device sends one chunk.
#
# Below is the picture that you know from {lesson:whole_game}. It has four devices, and so four chunks, A to D.
# This time, press *Forward* and follow chunk A, the first column:

# %% stepper
from lessons.layouts.all_reduce.ring_explorer import RingExplorer

RingExplorer(num_devices=4)

# %% stepper-read [markdown]
# Chunk A sets out from device 1. Devices 2, 3 and 0 each add their own numbers to it.
# Device 0 is the last of them, so after three steps it has the complete sum of chunk A.
# At the same time, device 1 completes chunk B, device 2 chunk C, and device 3 chunk D.
# This half of the all-reduce is a **reduce-scatter**: the sum is complete, but scattered over the devices.
#
# In the other three steps, the complete chunks travel around the ring, and every device keeps a copy of each.
# This half is an all-gather.
#
# In the end, each device has sent a quarter of the array six times. That is 5,040 bytes, or 1.5 times the array.

# %% ring-exercise-text [markdown]
# **Exercise 1.** Write the ring, for any number of devices.
# `ring_all_reduce(mine, device)` returns the sum of all arrays.
# A device may send to the next one only, and receive from the previous one only.
#
# - `device.next` and `device.previous` are the numbers of its neighbors.
# - `np.array_split(mine, n)` cuts an array into a list of `n` chunks. `np.concatenate(chunks)` joins them again.
# - Each half has `device.count - 1` steps. In each step, a device sends one chunk and receives one.
# - Device 1 begins with chunk 0 (A in the picture), device 2 with chunk 1, and device 0 with the last chunk.
#   In general, a device begins with chunk `(device.id - 1) % device.count`.
# - After that, a device passes on the chunk that it has just received.
#   The index goes down by one each time, wrapping round from 0 to the last chunk.
# - In the first half, a device adds its own numbers to each chunk that arrives.
#
# The check also counts bytes and byte times, and it tries arrays that can't be cut into equal chunks.


# %% exercise-ring
def ring_all_reduce(mine, device):
    # solution begin
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
    # solution end


# %%
check("all_reduce-ring", ring_all_reduce)

# %% ring-text [markdown]
# How does your ring compare? Until the check accepts it, the next cell runs ours.

# %% ring
from course_lib import yours_or_ours

ring = yours_or_ours("all_reduce-ring", ring_all_reduce)
try_out(ring)

# %% ring-read [markdown]
# The total is that of `through_device_0`, to the byte. But now it is shared evenly, and no link is ever idle:
# 448 byte times instead of 3,584!
#
# Why 448? A chunk has 256 / 8 = 32 bytes. There are 7 steps in each half, and each device sends a chunk in each of
# the 14 steps: 14 × 32 = 448. The naive way takes four times as much.
# With a billion weights, it is 7 GB instead of 28 GB in every step, and 8 hours of sending instead of 31.

# %% note-rounding [markdown]
# Real gradients are rounded, and then the order of additions matters.
#
# A different algorithm, or a different number of devices, adds in a different order. So the sums can differ in the last digits.
# But all devices of one ring hold the same bits, because each chunk is completed once and then copied.

# %% predict-sixteen [markdown]
# Eight devices add up an array of 256 bytes in a ring, by a reduce-scatter and then an all-gather.
# Each device sends 448 bytes.
# Now the ring has 16 devices, and the array still has 256 bytes.
# How many bytes does each device send?
#
# - [x] `480`
#   There are 15 steps in each half, and a chunk has 16 bytes: 30 × 16 = 480.
# - [ ] `896`
#   That is twice 448. There are about twice as many steps, but a chunk has only half as many bytes.
# - [ ] `448`
#   Nearly. A chunk has half as many bytes, but there are 30 steps, a little more than twice 14.
# - [ ] `3840`
#   That is 15 × 256: every device would send its array to every other one.

# %% reveal-sixteen
ones = [np.ones(64, "float32")] * 16
exchange = run_on_each(ring, ones)
reveal("all_reduce-sixteen", max(exchange.bytes_sent))

# %% sixteen-read [markdown]
# Twice as many devices, and each sends only 32 bytes more! With $n$ devices and a payload of $S$ bytes,
# a chunk has $S / n$ bytes, and there are $2(n - 1)$ steps. So each device sends
#
# $$2(n-1) \cdot \frac{S}{n} = 2 \, \frac{n-1}{n} \, S$$
#
# For four devices, that is 1.5 times the array, as in the picture.
# For eight devices it is 1.75 times. That is why, in {lesson:communication}, each device sent 4,480 bytes for a payload of 2,560.
# And it is less than twice the array, *however many devices there are*.
# With our 4 GB, each of eight devices sends 7 GB, and each of 4,096 devices sends almost 8 GB.
# As far as bytes go, data parallelism scales to thousands of devices.
#
# Can it be done with less? No. As long as the devices do the adding, not the network, the busiest must send at least this much. Patarasuk and Yuan proved it in 2009.

# %% four-heading [markdown]
# ## Four collectives
#
# You have written three collectives in this lesson, not one: the all-reduce and its two halves.
# A fourth is needed when a tensor is split by rows, and you want it split by columns:
# the all-to-all of {lesson:communication}.
#
# Here are all four, before and after.
# A color stands for a device, and a letter for a chunk. A cell with four colors is a complete sum:

# %% four
from lessons.layouts.all_reduce.four_collectives import FourCollectives

FourCollectives()

# %% four-read [markdown]
# In the all-to-all, device 0 gets chunk A of every device, device 1 gets chunk B of every device, and so on.
# Nothing is added up. Each device had a row, and now it has a column.
#
# How much does each of $n$ devices send? Let $S$ be the size of all chunks A, B, C, ... together.
# (It is the payload of {lesson:communication}, except in a reduce-scatter, after which a device holds only one chunk.)
# In an all-reduce, each device sends $2 \frac{n - 1}{n} S$, which makes 448 bytes for our payload of 256 and 8 devices.
# In each of the other three it is half as much, $\frac{n - 1}{n} S$, or 224 bytes.
#
# So an all-reduce costs as much as its two halves, and something can go between them: the update.
# After the reduce-scatter, each device has the gradient of one chunk, and updates the weights of that chunk.
# Then the all-gather hands out the new weights.
# The traffic stays the same, and each of eight devices keeps only an eighth of Adam's averages.
# This is ZeRO-1. You'll build it in {lesson:zero_and_fsdp}.

# %% note-cpus [markdown]
# What TensorFlow does on CPUs.
#
# TensorFlow's own all-reduce on CPUs is also a ring.
# But DTensor runs each all-gather as an all-reduce of the whole array ({lesson:communication}), and on CPUs each reduce-scatter, too.
# So on CPUs, ZeRO sends twice as much.

# %% time-heading [markdown]
# ## How long does it take?
#
# Sending a message costs you twice. First you wait for it to get going: the **latency**.
# Then its bytes have to squeeze through the link, at the link's **bandwidth**.
#
# **Exercise 2.** Write `ring_seconds(devices, num_bytes, bandwidth, latency)`.
# It returns how many seconds an all-reduce takes in a ring.
# The steps come one after another, and each of them costs one latency plus the time to transfer one chunk.
# `num_bytes` is the payload, `bandwidth` is in bytes per second, and `latency` is in seconds.


# %% exercise-seconds
def ring_seconds(devices, num_bytes, bandwidth, latency):
    # solution begin
    steps = 2 * (devices - 1)
    chunk = num_bytes / devices
    return steps * (latency + chunk / bandwidth)
    # solution end


# %%
check("all_reduce-seconds", ring_seconds)

# %% links-text [markdown]
# Now put in numbers. A100s usually come eight to a machine (a **node**), joined by NVLink.
# Nodes are connected by a network. The figures are published estimates (a note below says whose):

# %% links tags=["modelled"]
# Between two A100s in one node: bytes per second, seconds
INSIDE_BANDWIDTH = 240e9
INSIDE_LATENCY = 3.4e-6

# From an A100 to another node
BETWEEN_BANDWIDTH = 25e9
BETWEEN_LATENCY = 14e-6

GRADIENT = 4e9  # a billion numbers in float32
ring_seconds = yours_or_ours("all_reduce-seconds", ring_seconds)
inside = ring_seconds(8, GRADIENT, INSIDE_BANDWIDTH, INSIDE_LATENCY)
between = ring_seconds(
    8, GRADIENT, BETWEEN_BANDWIDTH, BETWEEN_LATENCY
)
print(f"eight A100s in one node:    {1000 * inside:3.0f} ms")
print(f"eight A100s in eight nodes: {1000 * between:3.0f} ms")

# %% note-figures [markdown]
# Where these figures come from, and how to measure your own.
#
# NVIDIA's library NCCL assumes 20 GB/s for each of the twelve NVLinks of an A100.
# The network is an adapter of 200 Gbit/s for each device.
# The latencies are NCCL's estimates for large messages (in `tuning.cc` of its source).
# For small messages, NCCL has a faster protocol, for which it assumes 2.7 µs instead of 14 µs.
# So the times of small all-reduces in this lesson are on the high side. We have measured none of this.
#
# A node of eight A100s often has eight adapters, and eight rings side by side use them all.
# The bytes can then take as little as an eighth of the time.
# {Lesson:how_long} has an all-reduce that makes use of such nodes.
#
# To measure your own, run `nccl-tests`. Its `algbw` is the payload divided by the time.
# For an all-reduce, its `busbw` is $2(n-1)/n$ times that, to be compared with the link's bandwidth.

# %% note-inside [markdown]
# How to put a mesh dimension inside the nodes.
#
# List it last when you create the mesh. Devices are numbered so that neighbors along the last dimension come one after another.
# On a mesh of `batch` 8 × `model` 8, devices 0 to 7 form one row, along `model`.
# If these eight share a node, every sum over `model` stays inside.

# %% links-read [markdown]
# Inside a node the all-reduce is almost ten times as fast: our 31 hours of sending, 8 with the ring, become 49 minutes!
# So if your mesh has two dimensions, *put the busier one inside the nodes*.
#
# And the latency? It doesn't show in these times. Let's make the ring longer, with one device in each node, and compute the two parts of its time separately:

# %% longer tags=["modelled"]
for nodes in (8, 64, 512, 4096):
    steps = 2 * (nodes - 1)
    waiting = steps * BETWEEN_LATENCY
    sending = steps * (GRADIENT / nodes) / BETWEEN_BANDWIDTH
    print(
        f"{nodes:>4} nodes:",
        f"{1000 * sending:3.0f} ms of sending,",
        f"{1000 * waiting:5.1f} ms of waiting",
    )

# %% longer-read [markdown]
# The sending grows by only a seventh. But every node makes the ring two steps longer, and the waiting goes from 0.2 to 115 ms. So a single ring through thousands of nodes is a bad idea.
# In a *tree*, far fewer messages have to wait for one another; {lesson:how_long} compares the two.
#
# You don't need thousands of devices to feel the latency. A small payload will do.

# %% predict-merged [markdown]
# A training step adds up six tensors over eight devices: 230,400, 384, 192, 8, 4 and 4 bytes.
# The devices form a ring. Each step of the ring costs a latency of 14 microseconds, and the bandwidth is 25 GB/s.
# A single all-reduce of all 230,992 bytes would take 0.21 milliseconds.
# How many milliseconds do six all-reduces take, one for each tensor, one after another?
#
# - [x] `1.19`
#   A ring of eight makes 14 steps of 14 microseconds, whatever the payload: 0.196 milliseconds.
#   Six all-reduces wait that long six times. The bytes take 0.016 milliseconds in all.
# - [ ] `0.21`
#   The bytes are the same, but they take only 0.016 of the 0.21 milliseconds. The rest is waiting.
# - [ ] `0.28`
#   That is one more latency for each of the other five. But each all-reduce has 14 steps, and each step waits.
# - [ ] `1.27`
#   Nearly. The waiting is six times as long. But all the bytes together still go only once.

# %% reveal-merged
one_by_one = 0
for num_bytes in (230_400, 384, 192, 8, 4, 4):
    one_by_one += ring_seconds(
        8, num_bytes, BETWEEN_BANDWIDTH, BETWEEN_LATENCY
    )
reveal("all_reduce-merged", round(1000 * one_by_one, 2))

# %% merged-read [markdown]
# These are the six all-reduces of the small network in {lesson:whole_game}.
# Five of them carry less than 600 bytes in all, and take four fifths of the time.
# So it pays to **fuse** small all-reduces: a single all-reduce then carries all of their arrays. TensorFlow fuses what it can.
#
# But even a single all-reduce spends nearly all of its 0.21 milliseconds waiting.
# Is the ring the right algorithm for so few bytes? If everyone sends to everyone,
# no device has to receive anything before it sends. So there is one latency to wait for, instead of 14:

# %% small tags=["modelled"]
def naive_seconds(devices, num_bytes, bandwidth, latency):
    return latency + (devices - 1) * num_bytes / bandwidth


link = (BETWEEN_BANDWIDTH, BETWEEN_LATENCY)
for num_bytes in (4, 230_992, 10_000_000):
    in_ring = 1e6 * ring_seconds(8, num_bytes, *link)
    naive = 1e6 * naive_seconds(8, num_bytes, *link)
    print(
        f"{num_bytes:>10,} bytes:",
        f"{in_ring:3.0f} µs in a ring,",
        f"{naive:4.0f} µs everyone to everyone",
    )

# %% small-read [markdown]
# For small payloads, the naive way is the faster one! The ring overtakes it at about 0.87 MB.
# That is why libraries such as NCCL choose their algorithm by the size of the payload.
#
# What about your own model? Multiply the number of its weights by 4 bytes, for gradients in float32.
# If the result is hundreds of megabytes, think about bandwidth: which links does the all-reduce use?
# If you have many small tensors, think about latency: are they fused?

# %% note-merging [markdown]
# What TensorFlow fuses.
#
# DTensor fuses all-reduces of one kind and dtype over the same devices, if none needs the result of another.
# {Lesson:faster} shows what becomes of the six all-reduces, and how to turn fusing off.
#
# A fused all-reduce can't start before its last gradient is ready, so it hardly overlaps with the backward pass.
# That is why many frameworks limit the size of a *bucket* of gradients. `tf.distribute` does so if you set
# `bytes_per_pack` in `tf.distribute.experimental.CommunicationOptions`.

# %% takeaways [markdown]
# ## The plain program
#
# [`all_reduce.py`](../plain/all_reduce.py) adds up a real DTensor in the three ways of this lesson,
# and compares them with TensorFlow. It needs only TensorFlow and NumPy.
#
# ## Takeaways
#
# - A ring all-reduce is a reduce-scatter followed by an all-gather. Each of $n$ devices sends $2(n-1)/n$ times
#   the payload, so never more than twice.
# - The total traffic doesn't tell you the time.
#   Look at what the busiest device sends and receives, and at how long devices wait.
# - Large all-reduces are bound by bandwidth, so give them the fastest links.
#   Small ones are bound by latency, so fuse them. If they stay small, other algorithms beat the ring.
#
# {Lesson:one_step} puts these sums to work: it takes one training step on eight devices.

# %% score
score("all_reduce")
