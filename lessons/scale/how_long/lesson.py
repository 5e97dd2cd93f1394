# %% [markdown]
# # How long will a step take?
#
# Training [GPT-3](https://arxiv.org/abs/2005.14165) took 3.14 · 10²³ floating-point operations (**FLOPs**).
# An A100 can perform at most 312 · 10¹² of them a second. A single A100 would need 32 years.
# Take 1,024 of them, and you should be done in 11 days.
#
# You won't be. [Narayanan and others](https://arxiv.org/abs/2104.04473) estimate 34 days for this network on 1,024 A100s.
# Where do the other 23 days go?
# More than eight of them go into computing things a second time, to save memory ({lesson:stages} explains why).
# The rest are lost because devices never reach their peak, and because they wait for each other's data.
# How long they wait depends on how you share out the work.
# You would like to know that *before* you rent a thousand devices.
#
# So our question is: *how long does a training step take on devices that we don't have?*
#
# **After this lesson you can**
#
# - calculate how long an all-reduce takes, inside a node and between nodes;
# - add up the time and the memory of a training step, for any number of devices;
# - write a planner that finds the fastest way to share out the work, and compare it with a published run.
#
# **Time:** 35 minutes.
# **You need to know:** the ring ({lesson:all_reduce}), what a transformer block exchanges ({lesson:transformer_block}),
# micro-batches ({lesson:large_trainings}), and the 16 bytes of a parameter ({lesson:zero_and_fsdp}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% start-text [markdown]
# ## Start at the end
#
# Somebody gives you 64 A100s to train a transformer of 18 billion parameters. How do you share out the work?
# You can give every device the whole network and different examples, if the network fits.
# Or several devices share one copy of the network, by tensor parallelism: two of them, or four, or eight.
#
# The explorer below tries every mesh of data and tensor parallelism, and every size of micro-batch.
# It drops the plans that don't fit into memory. Of the others, it shows you the fastest:

# %% start tags=["modelled"]
from lessons.scale.explorer import TensorAndDataExplorer

TensorAndDataExplorer()

# %% start-read [markdown]
# Nothing ran on an A100 here, and nothing will in this lesson. All these times are calculated.
# At the end we compare such a time with a published one.
#
# Let's read the plan. The mesh is `batch` 8 × `model` 8.
# Along `model`, eight devices share one copy of the network: its heads, its hidden units and its vocabulary.
# Along `batch`, there are eight such groups. Each takes an eighth of the examples.
#
# - *The upper bar is time.* A step takes 13.7 s. The devices compute for 11.4 s.
#   Communication over `model` takes 1.96 s, and communication over `batch` 0.34 s. The sign ↗ says that `batch` leaves the node.
# - *The lower bar is memory.* A device uses 70.2 of its 80 GB. The optimizer takes 28.3 GB, and the activations take 32.5 GB.
# - *The step uses 45 % of the devices' peak.* Papers call this number **model FLOPs utilization** (MFU).
# - *Three other plans are at most 5 % slower.* A calculation like this can't tell which of the four is really the fastest.
# - *Faster plans don't fit into memory.* So memory is what keeps this step from being faster.
# - *Four techniques are not allowed.* With them, a step would take 11.5 s. They belong to {lesson:stages}.
# - *The curve* shows the fastest plan on fewer devices, and on more. At first, twice as many devices take half the time.
#   Later they don't. 4,096 devices are 28 times as fast as 64, and not 64 times.
#
# Now make it harder. Choose the largest network and 4,096 H100s.
# Over how many devices does the fastest plan spread one copy of the network? And what share of the step do those devices spend computing?
# Write down both numbers. Near the end of the lesson you will know where they come from.
#
# By then you will have written a planner of your own. It needs four things:
# the time of an all-reduce, the list of all-reduces in a step, the time to compute, and the memory.
# We take them in this order.

# %% ring-text [markdown]
# ## How long does an all-reduce take?
#
# Each message costs time in two ways, as you know from {lesson:all_reduce}.
# Before its first byte arrives, you wait for the latency $\alpha$.
# Then its bytes go through the link, at the bandwidth $\beta$.
#
# Eight devices in a *ring* cut the payload into eight chunks. Each chunk goes round the ring almost twice:
# once to be added up, and once to bring the total to every device.
# That makes 14 messages, and each has to wait for the one before it.
#
# In a *tree*, sums go up to the root, and the total comes down again.
# With eight devices, only six messages must follow one another: three up and three down.
# NCCL, NVIDIA's library, runs two trees at the same time, each with half of the payload. This is called a **double binary tree**.
#
# Here are the ring and the two trees. Press *Forward*, and watch the two counters:

# %% ring-picture
from lessons.scale.how_long.rings_and_trees import ring_beside_tree

ring_beside_tree()

# %% note-trees [markdown]
# Why two trees?
#
# In a single tree, half of the devices are leaves. A leaf has only one neighbor, so much of its bandwidth would be idle.
# A device that is a leaf in one of the two trees is an inner device in the other. So all of them are kept busy.
#
# NCCL also cuts each half of the payload into small chunks.
# If a device passed a message on only after receiving all of it, you would pay for its bytes again at every level of the tree.
# With small chunks, it passes one on while it receives the next. This is called *pipelining*,
# and with it the number of levels hardly affects the time that the bytes take.
#
# NCCL expects less of trees than our formula below: at payloads of about 1 MB, it reckons with around half of the bandwidth.

# %% tree-text [markdown]
# Fourteen messages in a row, against six!
#
# With $n$ devices and a payload of $S$ bytes, the ring sends $2(n-1)$ messages in a row, and each carries $S/n$ bytes:
#
# $$T_\text{ring} = 2(n-1)\left(\alpha + \frac{S}{n\beta}\right)$$
#
# In the two trees, $2\log_2 n$ messages must follow one another, and each device sends about twice the payload:
#
# $$T_\text{tree} = 2\,\alpha\log_2 n + \frac{2S}{\beta}$$
#
# Look at the extremes. If the payload is tiny, only the latency matters.
# Then the ring takes $2(n-1)\,\alpha$, and every device that you add makes it slower. The trees are far ahead.
# If the payload is huge, only its bytes matter. Then the ring takes $\frac{n-1}{n}$ of the $2S/\beta$ that the trees take, so it is a little faster.
# And both take about as long *however many devices there are*.
# So take a ring for large payloads, and trees for small ones.
#
# Now we need numbers. Let's take A100s, eight to a node.
# Each A100 has its own network adapter, for the messages that leave the node.
# The numbers below are close to those in NCCL's own cost model, by which it chooses between rings and trees.
#
# Your own links will differ, so measure them. [nccl-tests](https://github.com/NVIDIA/nccl-tests) times all-reduces of many sizes.
# The largest ones tell you the bandwidth. Fit the latency to payloads of the size that you will send: for small ones NCCL switches to a protocol with less of it.

# %% ring
import math
from dataclasses import dataclass


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


INSIDE = Link(240e9, 3.4e-6)  # between two A100s in one node
BETWEEN = Link(25e9, 14e-6)  # from an A100 to another node


def ring_seconds(devices, num_bytes, link):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (link.latency + chunk / link.bandwidth)


def tree_seconds(devices, num_bytes, link):
    messages = 2 * math.log2(devices)
    return messages * link.latency + 2 * num_bytes / link.bandwidth


# %% ring-run-text [markdown]
# How long do eight A100s in one node take for a small payload, and for a large one?

# %% ring-run tags=["modelled"]
small = ring_seconds(8, 8e3, INSIDE)
large = ring_seconds(8, 8e9, INSIDE)
print(f"8 kB: {1000 * small:.2f} ms")
print(f"8 GB: {1000 * large:.1f} ms")

# %% ring-read [markdown]
# The second payload is a million times as large as the first. It takes only some 1,200 times as long.
# The small all-reduce spends its time on latency, 14 times 3.4 µs. The large one spends its time on bytes.
#
# Let's stay with small payloads, and go to many devices.

# %% predict-tree [markdown]
# 512 devices form one ring, and each of its links has the bandwidth and latency of a link between nodes (25 GB/s, 14 microseconds).
# An all-reduce of 1 MB then takes 14.4 milliseconds.
# How many milliseconds does it take in a double binary tree? (The base-2 logarithm of 512 is 9.)
#
# - [x] `0.33`
#   Nine messages up and nine down must follow one another: 18 latencies make 0.25 milliseconds, and twice the payload takes 0.08.
#   In the ring, 1,022 messages of 2 kB must follow one another, and nearly all of its time is latency.
# - [ ] `7.2`
#   That is half the time of the ring. But the ring waits for 1,022 latencies, and the tree only for 18.
# - [ ] `14.4`
#   In both, about twice the payload does go through each device. But at 1 MB it is the latency that matters.
# - [ ] `28.8`
#   With a huge payload, both would take about as long. At 1 MB it is the latency that matters, and the tree has fewer messages in a row.

# %% reveal-tree
milliseconds = 1000 * tree_seconds(512, 1e6, BETWEEN)
reveal("how_long-tree", round(milliseconds, 2))

# %% curves-text [markdown]
# For the same sum, the tree is more than forty times as fast. Up to which payload is it faster?
# Here are rings and trees between nodes, for payloads from 1 kB to 10 GB:

# %% curves
from lessons.scale.how_long.rings_and_trees import time_against_payload


def ring_between(devices, num_bytes):
    return ring_seconds(devices, num_bytes, BETWEEN)


def tree_between(devices, num_bytes):
    return tree_seconds(devices, num_bytes, BETWEEN)


time_against_payload(ring_between, tree_between)

# %% curves-read [markdown]
# Each curve is flat on the left, where only the latency matters. On the right, it climbs with the bytes.
# With 8 devices, the ring is faster from about 11 MB on.
# With 512 devices, the tree is faster everywhere in this picture. The ring narrows the gap but never closes it.
#
# The flat part also says that small messages are expensive. An all-reduce of 100 kB takes about as long as an all-reduce of one byte.
# So a few large all-reduces are better than many small ones.

# %% levels-text [markdown]
# ## Two levels
#
# So far, all links were alike. But the links inside a node are about ten times as fast as those between nodes.
# One ring through all 512 devices leaves each node through a single adapter. The adapters of the other seven devices are idle.
# A hierarchical all-reduce ({lesson:all_reduce}) uses all eight of them. It takes three moves. Here they are for two nodes of four devices:

# %% levels-picture
from lessons.scale.how_long.rings_and_trees import two_levels

two_levels()

# %% levels-read [markdown]
# 1. *Inside each node*, a reduce-scatter. Each device ends up with one piece of its node's sum.
# 2. *Between the nodes*, an all-reduce for each piece. A device adds its piece to the same piece in the other nodes.
# 3. *Inside each node*, an all-gather. Now every device has all pieces.
#
# So over the slow links, a device adds up only *its own piece*. With eight devices in a node, a piece is an eighth of the payload.
# And the first and the third move together are one ring all-reduce inside the node.
#
# **Exercise 1.** Write `all_reduce_seconds(per_node, nodes, num_bytes, inside, between)`.
#
# - There are `nodes` nodes, and `per_node` devices in each. Each device has a payload of `num_bytes`.
# - `inside` and `between` are links, such as `INSIDE` and `BETWEEN`.
# - Inside the nodes, take a ring. Between them, take a ring or a tree, whichever is faster.


# %% exercise-levels
def all_reduce_seconds(per_node, nodes, num_bytes, inside, between):
    # solution begin
    piece = num_bytes / per_node
    in_a_ring = ring_seconds(nodes, piece, between)
    in_a_tree = tree_seconds(nodes, piece, between)
    within = ring_seconds(per_node, num_bytes, inside)
    return within + min(in_a_ring, in_a_tree)
    # solution end


# %%
check("how_long-levels", all_reduce_seconds)

# %% levels-run-text [markdown]
# Now 512 devices add up 1 GB, in one ring and on two levels.
# For comparison, the third line has only 64 devices, each alone in its node:

# %% levels-run tags=["modelled"]
from course_lib import yours_or_ours

all_reduce = yours_or_ours("how_long-levels", all_reduce_seconds)

one_ring = ring_seconds(512, 1e9, BETWEEN)
both = all_reduce(8, 64, 1e9, INSIDE, BETWEEN)
alone = all_reduce(1, 64, 1e9, INSIDE, BETWEEN)
print(f"512 devices, one ring:   {1000 * one_ring:.0f} ms")
print(f"512 devices, two levels: {1000 * both:.0f} ms")
print(f" 64 devices in 64 nodes: {1000 * alone:.0f} ms")

# %% levels-run-read [markdown]
# Two levels are five times as fast as one ring, because all eight adapters of a node send at the same time.
# NCCL can get the same effect in another way: it runs several rings at once, each through a different adapter. By our formula, eight rings would take a third longer than two levels.
#
# Now look at the last line. With an eighth as many devices, the same sum takes more than four times as long!
# Each of them is alone in its node, so it sends its whole payload over the slow links.
#
# What does it cost to leave the node at all?

# %% predict-node [markdown]
# The eight devices of a node add up 1 GB. Then sixteen devices do, in two nodes, with a hierarchical all-reduce.
# A link carries 240 GB/s inside a node, and 25 GB/s between nodes.
# How many times as long do the sixteen take as the eight?
#
# - [ ] `1.0`
#   In one ring, sixteen devices send hardly more than eight. But here an eighth of the payload leaves the node, at a tenth of the speed.
# - [x] `1.7`
#   Inside the nodes nothing changes. There a device sends 1.75 times the payload.
#   In addition, each device now sends an eighth of the payload to the other node. That is a fourteenth of 1.75, but the link is about ten times as slow.
#   So the second node adds 0.7 of the time that a node takes inside.
# - [ ] `2.0`
#   There are twice as many devices, but what each of them sends doesn't double.
# - [ ] `10`
#   That would be the whole payload at a tenth of the speed. Only an eighth of it leaves the node.

# %% reveal-node
eight = all_reduce(8, 1, 1e9, INSIDE, BETWEEN)
sixteen = all_reduce(8, 2, 1e9, INSIDE, BETWEEN)
reveal("how_long-node", round(sixteen / eight, 1))

# %% node-read [markdown]
# Now you can answer the question that {lesson:transformer_block} left open. There, a step made 320 all-reduces of 134 MB, over eight devices.
# How long do they take, over eight devices and over sixteen?

# %% block tags=["modelled"]
for nodes in (1, 2):
    one = all_reduce(8, nodes, 134e6, INSIDE, BETWEEN)
    print(f"{8 * nodes:2} devices: {320 * one:.2f} s")

# %% block-read [markdown]
# They take a third of a second in one node, and more than half a second in two.
#
# ## Which all-reduces does a step make?
#
# The rule is that of {lesson:transformer_block}:
#
# > A product involves three tensors: its result, and the gradients of its two factors.
# > Each of them is a sum over the letters that it lacks.
# > If such a letter is split, each device has only a partial sum,
# > and an all-reduce over the mesh dimension that splits the letter must complete it.
#
# On a mesh of `batch` and `model`, this makes two kinds of all-reduce:
#
# - *Activations.* `model` splits the heads and the hidden units. So each block makes four all-reduces over `model` for each micro-batch:
#   two in the forward pass, of activations, and two in the backward pass, of their gradients. All four have the same size.
# - *Gradients.* `batch` splits the examples. So the gradient of each weight takes an all-reduce over `batch`.
#   It comes once a step, because each device first adds up its own gradients over all micro-batches.
#
# Devices that together hold one copy of the network are a **data-parallel replica**. (In {lesson:strategies}, a replica was a single device.)
# From here on, `tensor` is the number of devices in a replica, and `data` is the number of replicas. Papers write $t$ and $d$ for them.
# So `tensor` is the size of `model`, and `data` is the size of `batch`.
#
# A plan has two more numbers: the **micro-batch size**, which is how many examples a replica takes at a time,
# and the number of micro-batches in a step. The `Plan` of earlier lessons held a mesh and a dictionary. Ours holds just these four numbers:


# %% plan
@dataclass
class Network:
    blocks: int
    width: int  # features of a token
    heads: int


@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int


SEQUENCE = 2048  # tokens of an example
VOCABULARY = 51200

network = Network(blocks=40, width=6144, heads=48)
plan = Plan(data=8, tensor=8, examples=2, microbatches=32)

# %% machine-text [markdown]
# That is the network of the explorer, on its mesh. We take smaller micro-batches than the explorer does, for a reason that you will see.
# A step has 8 replicas × 2 examples × 32 micro-batches, which is 512 examples.
#
# Which of these devices share a node? The devices of a node have consecutive numbers, and so have the devices of a replica:

# %% machine-picture
from lessons.scale.how_long.step_pictures import nodes_of

nodes_of([2, 8, 16])

# %% machine-read [markdown]
# - If `tensor` is 2, four replicas share a node. An all-reduce of activations stays in the node.
#   Each group that all-reduces gradients has four of its members in every node.
# - If `tensor` is 8, a replica fills a node. The activations still stay inside.
#   But the members of a group that all-reduces gradients are all in different nodes.
# - If `tensor` is 16, a replica fills two nodes. Now the activations have to leave the node.
#
# `all_reduce` needs two numbers: how many members of the group share a node, and how many nodes the group spans.
# We get the first as a greatest common divisor.
# For powers of two and multiples of eight it is exact, and otherwise it is an approximation:

# %% machine
NODE = 8  # devices in a node


def spread(devices, room):
    # `room`: how many members of the group fit into one node
    per_node = math.gcd(devices, room)
    nodes = devices // per_node
    return per_node, nodes


for tensor in [2, 8, 16, 12]:
    per_node, nodes = spread(tensor, NODE)
    print(f"tensor {tensor:2}: {per_node} in each node, nodes: {nodes}")

# %% exchange-text [markdown]
# The first three are as in the picture. The last one is an approximation: really, twelve devices have eight in one node and four in another.
#
# What does a planner need to know about a machine? Its memory, its links, and how fast it computes.
# An A100 has a peak of 312 · 10¹² FLOPs a second, but no training run reaches the peak.
# We take 52 % of it. This is the only number in the planner that is *fitted*:
# we chose it so that the planner of {lesson:stages} comes within 1 % of a published run of this very network, on 256 A100s.
# That lesson also compares its planner with nine other runs.


# %% a100
@dataclass
class Machine:
    flops: float  # per second, as matrix products reach them
    memory: float  # bytes of a device
    inside: Link
    between: Link


PEAK_SHARE = 0.52  # fitted to one run
A100 = Machine(PEAK_SHARE * 312e12, 80e9, INSIDE, BETWEEN)

# %% activations-text [markdown]
# Now for the activations. In mixed precision, an element takes 2 bytes:


# %% exchange tags=["modelled"]
def over_tensor(machine, plan, num_bytes):
    per_node, nodes = spread(plan.tensor, NODE)
    links = machine.inside, machine.between
    return all_reduce(per_node, nodes, num_bytes, *links)


def tensor_seconds(network, machine, plan):
    # In one micro-batch
    tokens = plan.examples * SEQUENCE
    num_bytes = 2 * tokens * network.width
    times = 4 * network.blocks
    return times * over_tensor(machine, plan, num_bytes)


one = tensor_seconds(network, A100, plan)
print(f"activations, a micro-batch: {one:.3f} s")
print(f"activations, 32 of them:    {32 * one:.2f} s")

# %% exchange-read [markdown]
# A micro-batch makes 160 all-reduces of 50 MB, and a step makes 5,120. They take 2.1 s.
#
# Next come the gradients, one for each parameter that a device holds.
# A block has 12 · width² parameters: 4 · width² in attention, and 8 · width² in the dense layers.
# In addition, there is the embedding of the vocabulary. A replica divides all of them among its `tensor` devices:


# %% parameters
def parameters_held(network, plan):
    blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (blocks + embedding) / plan.tensor


parameters = parameters_held(network, plan)
print(f"parameters on a device: {parameters / 1e9:.1f} billion")

# %% gradients-text [markdown]
# Each gradient is added up over a group that has one device of every replica.
# How many of these devices share a node? As many as there are replicas in a node:


# %% gradients tags=["modelled"]
def over_data(machine, plan, num_bytes):
    replicas_in_a_node = max(NODE // plan.tensor, 1)
    per_node, nodes = spread(plan.data, replicas_in_a_node)
    links = machine.inside, machine.between
    return all_reduce(per_node, nodes, num_bytes, *links)


def gradient_seconds(network, machine, plan):
    # Once a step, 2 bytes for each parameter
    num_bytes = 2 * parameters_held(network, plan)
    return over_data(machine, plan, num_bytes)


gradients = gradient_seconds(network, A100, plan)
print(f"gradients, once a step: {gradients:.2f} s")

# %% gradients-read [markdown]
# The gradients of 2.3 billion parameters take up 4.6 GB. All of this leaves the node, and it takes 0.32 s.
# The activations stay in the node, but they come 5,120 times. They take more than six times as long.
#
# Together that is 2.4 s. Is that a lot? It depends on how long the devices compute.

# %% note-others [markdown]
# What do we leave out?
#
# We leave out the all-reduces of the logits, of the loss and of the embedding. They come once for the whole network, and not once for each block.
#
# We also count the matrix of the embedding only once, though the logits need a matrix of the same size. Many networks use one matrix for both,
# and the published networks below are counted like that, too. The explorer counts both, so its parameters take up about 2 % more.
#
# Our gradients take 2 bytes each. Megatron-LM, for example, keeps the gradients of bfloat16 weights in float32, and adds them up like that.
# Then a parameter takes 18 bytes of memory, and its gradient 4 bytes in an all-reduce.

# %% arithmetic-text [markdown]
# ## How long do the devices compute?
#
# In the forward pass, each token takes one multiplication and one addition for each weight. That is 2 FLOPs.
# Attention also has two products without weights. In these, each token meets all 2,048 tokens of its example.
#
# In the backward pass, each product of the forward pass needs two others: one for the gradient of each factor.
# So the backward pass takes twice the FLOPs of the forward pass, and a step takes three times as many:


# %% arithmetic tags=["modelled"]
def compute_seconds(network, machine, plan):
    # Forward pass of one token: 12 * width**2 weights of a block
    block_flops = 2 * 12 * network.width**2
    # Queries times keys, and the weighted sum of the values
    attention_flops = 2 * 2 * SEQUENCE * network.width
    # The logits: features times vocabulary
    logit_flops = 2 * network.width * VOCABULARY

    forward = network.blocks * (block_flops + attention_flops)
    forward += logit_flops
    # In one micro-batch, forward and backward
    tokens = plan.examples * SEQUENCE
    flops = 3 * tokens * forward / plan.tensor
    return flops / machine.flops


one = compute_seconds(network, A100, plan)
print(f"a micro-batch: {one:.3f} s")
print(f"32 of them:    {32 * one:.1f} s")

# %% step-text [markdown]
# Now you have all three parts of a step. Put them together:


# %% step tags=["modelled"]
from lessons.scale.how_long.step_pictures import step_over_time


def step_seconds(network, machine, plan):
    compute = compute_seconds(network, machine, plan)
    activations = tensor_seconds(network, machine, plan)
    gradients = gradient_seconds(network, machine, plan)
    return plan.microbatches * (compute + activations) + gradients


compute = compute_seconds(network, A100, plan)
activations = tensor_seconds(network, A100, plan)
gradients = gradient_seconds(network, A100, plan)
step_over_time(compute, activations, 32, gradients)

# %% arithmetic-read [markdown]
# A step takes 14.2 s. For 2.4 s of that time, no device computes.
# The picture puts all the all-reduces of a micro-batch together. In fact each block has its own four.
#
# Does the explorer agree?

# %% beside tags=["modelled"]
from lessons.scale.how_long.step_pictures import steps_beside

step = {
    "computing": 32 * compute,
    "model": 32 * activations,
    "batch": gradients,
}
explorer = {"computing": 11.4, "model": 1.96, "batch": 0.339}
steps_beside({"explorer": explorer, "planner": step})

# %% beside-read [markdown]
# A few short functions come within 4 % of the explorer.
# The explorer takes more into account, such as the time in which a device reads and writes its own memory.
# It also assumes 57 % of the peak, because it was fitted to a different run, and its micro-batches are larger.
#
# Now look at the plan once more. Eight devices share a replica. With two devices in a replica, the activations would take less time.
# So why eight?
#
# ## Does it fit?
#
# The reason is memory. Each parameter takes 16 bytes, as you know from {lesson:zero_and_fsdp}:

# %% state
BYTES = {"variables": 2, "gradients": 2, "optimizer": 12}

parameters = parameters_held(network, plan)
for name, num_bytes in BYTES.items():
    print(f"{name:9} {num_bytes * parameters / 1e9:4.1f} GB")

# %% memory-text [markdown]
# That makes 36.9 GB. Then there are the activations, which a device keeps until the backward pass.
# [Korthikanti and others](https://arxiv.org/abs/2205.05198) have worked out how many bytes they take.
#
# - A block keeps 34 bytes for every feature of every token.
#   Tensor parallelism splits 24 of these bytes among its devices. The other 10 stay on each device.
# - Attention keeps 5 bytes for every pair of tokens, in each head. Tensor parallelism splits the heads.

# %% memory
FEATURE_SPLIT = 24  # bytes for a feature of a token
FEATURE_WHOLE = 10
PAIR = 5  # bytes for a pair of tokens, in each head


def activation_bytes(network, plan):
    tokens = plan.examples * SEQUENCE
    per_feature = FEATURE_WHOLE + FEATURE_SPLIT / plan.tensor
    features = tokens * network.width * per_feature
    heads = network.heads / plan.tensor
    pairs = PAIR * tokens * SEQUENCE * heads
    logits = 2 * tokens * VOCABULARY / plan.tensor
    return network.blocks * (features + pairs) + logits


def memory_held(network, plan):
    parameters = parameters_held(network, plan)
    held = {}
    for name, num_bytes in BYTES.items():
        held[name] = num_bytes * parameters
    held["activations"] = activation_bytes(network, plan)
    return held


print("examples  activations       all")
for examples in [1, 2, 4]:
    plan = Plan(
        data=8,
        tensor=8,
        examples=examples,
        microbatches=64 // examples,
    )
    held = memory_held(network, plan)
    activations = held["activations"] / 1e9
    everything = sum(held.values()) / 1e9
    print(f"{examples:8} {activations:9.1f} GB {everything:6.1f} GB")

# %% memory-read [markdown]
# So a replica can take two examples at a time. With four, a device would need 83.3 GB, and it has 80.
#
# But the explorer took eight. Its activations for eight examples take up 32.5 GB, which is 4 GB for each. Ours take up 11.6 GB for each. There are two reasons:
#
# - The explorer's network has no dropout. The 34 bytes and the 5 bytes include what dropout has to keep.
# - The explorer also uses sequence parallelism, which splits the other 10 bytes as well. {Lesson:transformer_block} has a note on it.
#
# So your planner will drop some plans that fit in the explorer.

# %% sizes-text [markdown]
# Back to the question: why eight devices in a replica? Here are five meshes, with one example at a time.
# Each label has the time of a step, and the line is at 80 GB:


# %% sizes tags=["modelled"]
from lessons.scale.plan_bars import plans_against_memory

rows = []
for tensor in [1, 2, 4, 8, 16]:
    data = 64 // tensor
    each = Plan(data, tensor, examples=1, microbatches=512 // data)
    seconds = step_seconds(network, A100, each)
    label = f"tensor {tensor}: {seconds:.1f} s"
    rows.append((label, memory_held(network, each)))

plans_against_memory(rows, A100.memory)

# %% sizes-read [markdown]
# Read the labels from top to bottom: each step is slower than the one above it.
# With the whole network on every device, a step would take 12.4 s. But each device would have to hold 353 GB, and even half of the network takes 179 GB.
# With `tensor` 4, a device needs 92 GB, so that doesn't fit either. With `tensor` 8 it does.
# With `tensor` 16 there is plenty of room. But now all activations leave the node, and a step takes 19.8 s instead of 14.5 s.
#
# So on 64 devices, *split the network over as many devices as memory demands, and no more*. That keeps each replica inside a node.
# All remaining devices go to data parallelism. How many replicas are worth having?
#
# ## When are there too many devices?
#
# Keep the network, the batch and `tensor` 8, and add replicas. How long do the devices compute in a step, and how long do their gradients take?

# %% crossing tags=["modelled"]
from lessons.scale.how_long.step_pictures import (
    compute_against_gradients,
)


def plan_on(devices):
    data = devices // 8
    return Plan(data, 8, examples=1, microbatches=512 // data)


def computing(devices):
    plan = plan_on(devices)
    return plan.microbatches * compute_seconds(network, A100, plan)


def adding_up(devices):
    return gradient_seconds(network, A100, plan_on(devices))


counts = [64, 128, 256, 512, 1024, 2048, 4096]
compute_against_gradients(computing, adding_up, counts)

# %% crossing-read [markdown]
# With twice as many devices, each has half as many tokens, so it computes for half the time.
# But each device has as many gradients as before, so their all-reduce takes as long as before.
# At about 2,048 devices, the lines cross. Beyond that, the devices exchange gradients for longer than they compute.
#
# The number of tokens per replica at which the lines cross is its **critical batch**. You can work it out without the picture.
# (This isn't the critical batch size of {lesson:faster}. A note below compares the two.)

# %% predict-critical [markdown]
# Replicas of eight A100s, each in a node of its own, train with data parallelism.
# For each parameter that it holds, a device performs 6 FLOPs for each token, at 162 · 10¹² FLOPs a second.
# Once a step, it also sends the 2 bytes of the parameter's gradient about twice, over a link of 25 GB/s.
# For how many tokens in a replica does computing take as long as sending? Choose the nearest.
#
# - [ ] `40`
#   40 tokens take 240 FLOPs, and these take 1.5 ps. Sending the gradient takes 4 bytes / 25 GB/s = 160 ps.
# - [x] `4000`
#   Sending 2 bytes twice makes 4 bytes, and 4 bytes / 25 GB/s = 160 ps. In 160 ps, a device performs about 26,000 FLOPs.
#   At 6 FLOPs for each token, they are enough for some 4,300 tokens. The planner also counts the FLOPs of attention, and gets 4,100.
# - [ ] `400000`
#   400,000 tokens take 2.4 million FLOPs, and these take about 15,000 ps. Sending the gradient takes only 160 ps.


# %% reveal-critical
def critical_tokens(network, machine):
    # One example for each of many replicas, a node to a replica
    plan = Plan(data=512, tensor=8, examples=1, microbatches=1)
    compute = compute_seconds(network, machine, plan)
    gradients = gradient_seconds(network, machine, plan)
    return SEQUENCE * gradients / compute


tokens = critical_tokens(network, A100)
reveal("how_long-critical", 1000 * round(tokens / 1000))

# %% critical-read [markdown]
# 4,100 tokens are two of our examples. So a batch of 512 examples is enough for 256 replicas, which are the 2,048 devices of the picture.
# That is the main reason why the explorer's curve bends. To use more devices well, you need a larger batch.
#
# Do faster devices help? An H100 computes three times as fast as an A100, but its links between nodes are only twice as fast.
# We have fitted nothing to an H100, so we assume that it also reaches 52 % of its peak:

# %% h100
H100 = Machine(
    flops=PEAK_SHARE * 989e12,
    memory=80e9,
    inside=Link(371e9, 3.4e-6),
    between=Link(50e9, 14e-6),
)

for name, machine in [("A100", A100), ("H100", H100)]:
    tokens = critical_tokens(network, machine)
    print(f"{name}: {round(tokens, -2):,.0f} tokens")

# %% h100-read [markdown]
# The critical batch grows from two examples to three.
# An H100 takes a third of the time for its tokens, but half of the time for its gradients. So each replica needs more tokens.

# %% note-critical [markdown]
# *Critical batch size* also means something else.
#
# [McCandlish and others](https://arxiv.org/abs/1812.06162) call *critical batch size* the size of the whole batch beyond which more examples
# save hardly any steps. That is the critical batch size of {lesson:faster}. It depends on the data and on the network, but not on the devices.
#
# Theirs is an upper limit for the whole batch. Ours is a lower limit for the share of a replica.
# Divide theirs by ours, and you know about how many replicas are worth having.

# %% planner-text [markdown]
# ## Your planner
#
# You have the time of a step, and its memory. A planner needs one thing more: the plans.
#
# **Exercise 2.** Write `all_plans(network, devices, batch)`. It returns a list of all possible plans for
# `devices` devices and a batch of `batch` examples. In each `Plan`,
#
# - `data` times `tensor` is `devices`;
# - `tensor` divides the network's heads, so that each device gets whole heads;
# - `data` times `examples` times `microbatches` is `batch`.
#
# `divisors(number)` lists the numbers that divide `number`.


# %% exercise-plans
def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def all_plans(network, devices, batch):
    # solution begin
    plans = []
    for tensor in divisors(devices):
        data = devices // tensor
        if network.heads % tensor == 0 and batch % data == 0:
            for examples in divisors(batch // data):
                microbatches = batch // data // examples
                plan = Plan(data, tensor, examples, microbatches)
                plans.append(plan)
    return plans
    # solution end


# %%
check("how_long-plans", all_plans)

# %% fastest-text [markdown]
# The rest is short. Drop the plans that don't fit, and sort the others by time:


# %% fastest tags=["modelled"]
plans_for = yours_or_ours("how_long-plans", all_plans)


def ranked(network, machine, plans):
    found = []
    for plan in plans:
        held = memory_held(network, plan)
        if sum(held.values()) <= machine.memory:
            seconds = step_seconds(network, machine, plan)
            found.append((seconds, plan))
    return sorted(found, key=lambda pair: pair[0])


plans = plans_for(network, 64, 512)
found = ranked(network, A100, plans)
print(f"{len(found)} of {len(plans)} plans fit")
for seconds, plan in found[:3]:
    print(f"{seconds:.1f} s  {plan}")

# %% fastest-read [markdown]
# Your planner agrees with the explorer about the mesh: 8 × 8. It finds 5 plans that fit. The explorer found 9, because its activations are smaller.
#
# The second plan has the same mesh, with one example at a time. It makes twice as many all-reduces of half the size, so it waits for twice as many latencies, and takes 0.3 s longer.
# The third has a replica on sixteen devices, and its activations leave the node.
#
# So the fastest plan splits the network over as many devices as memory demands, and no more. Is that so on any number of devices?

# %% predict-many [markdown]
# On 64 A100s, the fastest plan for a network of 18 billion parameters has `tensor` 8: eight devices share one copy of the network, and they are all in one node.
# Now you have 4,096 A100s, and the batch still has 512 examples.
# What is `tensor` in the fastest plan?
#
# - [ ] `4`
#   With more devices, there are more replicas. But each device holds as much as before, and with `tensor` 4 that is 92 GB.
# - [ ] `8`
#   That plan fits, and its activations stay inside the node. But it has 512 replicas with a single example each,
#   and that is only half of the critical batch. Their gradients take twice as long as computing.
# - [x] `16`
#   Each device then holds half as many parameters, so its gradients take half as long. The activations now leave the node.
#   But a replica has only two examples, so there are few activations to exchange.

# %% reveal-many
plans = plans_for(network, 4096, 512)
seconds, fastest = ranked(network, A100, plans)[0]
reveal("how_long-many", fastest.tensor)

# %% many-text [markdown]
# A replica would fit into one node, and yet it spans two in the fastest plan. How long does each part of the step take, in both plans?

# %% many tags=["modelled"]
for tensor, examples in [(8, 1), (16, 2)]:
    plan = Plan(4096 // tensor, tensor, examples, microbatches=1)
    compute = compute_seconds(network, A100, plan)
    activations = tensor_seconds(network, A100, plan)
    gradients = gradient_seconds(network, A100, plan)
    print(f"tensor {tensor}")
    print(f"  computing   {compute:.2f} s")
    print(f"  activations {activations:.2f} s")
    print(f"  gradients   {gradients:.2f} s")

# %% many-read [markdown]
# In both plans, a device computes for 0.18 s. With `tensor` 16, its activations take 0.07 s longer, but its gradients take half as long, 0.18 s instead of 0.37 s.
#
# Why was it different on 64 devices? There, a replica took 64 examples in each step, and now it takes one or two.
# Activations are exchanged for each example, but gradients once a step.
# The fewer examples a replica has, the more of its time goes to gradients. And with a larger `tensor`, a device has fewer gradients.
#
# So split the network no further than memory demands *while each replica has plenty of tokens*.
# Near the critical batch, let your planner also try plans that split it over more devices.
# The explorer does the same. Choose 4,096 devices at the top of this lesson, and its mesh is `batch` 256 × `model` 16.
#
# Now for the two numbers that you wrote down. Here is the explorer once more, with the largest network and 4,096 H100s:

# %% largest-explorer tags=["modelled"]
TensorAndDataExplorer("146", "H100", devices=4096)

# %% largest-text [markdown]
# The first number is 32, the size of `model`. For the second, take the upper bar: of 1.54 s, the devices compute for only 0.44 s.
#
# Why 32? How much would a device hold if 16, 32 or 48 devices shared this network?

# %% largest
largest = Network(blocks=80, width=12288, heads=96)

for tensor in [16, 32, 48]:
    plan = Plan(data=1, tensor=tensor, examples=1, microbatches=1)
    parameters = 16 * parameters_held(largest, plan) / 1e9
    activations = activation_bytes(largest, plan) / 1e9
    print(f"tensor {tensor}: parameters {parameters:5.1f} GB, ", end="")
    print(f"activations {activations:4.1f} GB")

# %% largest-read [markdown]
# With 16 devices, each would hold 146 GB for the parameters alone.
# With 32 devices, the parameters leave 7 GB for activations. The explorer needs only 4 of these, because it has no dropout and splits all activations.
#
# And why do the devices compute for so little of the step? 32 devices are four nodes, so every all-reduce of activations leaves the node. It all takes 0.72 s.
# And 512 examples over 128 replicas are only four examples for each. That is little to compute, and the gradients take nearly as long, 0.38 s.
#
# In your own planner, 32 devices are not enough. Each keeps 27 GB of activations, mostly the 10 bytes for a feature that tensor parallelism doesn't split.
# The next divisor of the 96 heads is 48, and with 48 devices the network fits. But 48 doesn't divide 4,096.
# So for 4,096 devices, your planner finds no plan at all.

# %% true-text [markdown]
# ## Is any of this true?
#
# So far we have compared one calculation with another. Now let's compare yours with a measurement.
#
# Narayanan and others trained this largest network, 145.6 billion parameters, on 1,536 A100s.
# They report 148 · 10¹² FLOPs a second for each device. From their figures, a step of 2,304 examples takes 24.8 s. (If you divide the FLOPs of this lesson by 148 · 10¹², you get less: theirs compute every forward pass twice, and {lesson:stages} says why.)
# What does your planner say?

# %% published tags=["modelled"]
plans = plans_for(largest, 1536, 2304)
seconds, plan = ranked(largest, A100, plans)[0]

print(plan)
print(f"{seconds:.1f} s, {seconds / 24.8:.2f} times the published time")

compute = compute_seconds(largest, A100, plan)
activations = tensor_seconds(largest, A100, plan)
step = {
    "computing": plan.microbatches * compute,
    "model": plan.microbatches * activations,
    "batch": gradient_seconds(largest, A100, plan),
}
steps_beside({"planner": step, "published": {"whole": 24.8}})

# %% published-read [markdown]
# Your planner's best step takes 1.61 times as long as the one that they really ran!
#
# Computing isn't to blame. It takes 17.0 s of their 24.8 s. But the activations take another 22.4 s, and the gradients 0.47 s.
# A replica has 48 devices, because it doesn't fit on 32. And 48 devices span six nodes, so all activations go between nodes.
#
# Narayanan and others had the same devices, the same links and the same 80 GB. So they must know a way to split a network
# that your planner doesn't know. Which one? That is the question of {lesson:stages}.

# %% note-true [markdown]
# And how good is the explorer?
#
# It predicted steps on virtual CPUs between 10 % too short and 16 % too long.
# But virtual CPUs have no links, so that says nothing about its latencies and bandwidths.
# The page *How good is the model?* has all the published runs that we found.

# %% plain-heading [markdown]
# ## The plain program
#
# [`how_long.py`](../plain/how_long.py) is the planner of this lesson in one file. `python how_long.py 64 256` ranks the plans for 64 and for 256 devices.
# Put in your own network and your own links.

# %% takeaways [markdown]
# ## Takeaways
#
# - A large all-reduce takes about twice the payload divided by the bandwidth, however many devices there are.
#   A small one takes as many latencies as there are messages that must follow one another.
# - While each replica has plenty of tokens, split the network over as many devices as memory demands, and no more.
#   With few tokens, gradients take most of the time, and more devices in a replica can be faster, even over two nodes.
# - Below its critical batch, a replica exchanges gradients for longer than it computes. More devices then need a larger batch.

# %% score
score("how_long")
