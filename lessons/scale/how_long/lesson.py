# %% [markdown]
# # How long will a step take?
#
# Training [GPT-3](https://arxiv.org/abs/2005.14165) took 3.14 · 10²³ floating-point operations (**FLOPs**).
# An A100 performs up to 312 · 10¹² of them a second.
# If 1,024 A100s did nothing but compute at that speed, they would be done in 11 days.
#
# [Narayanan and others](https://arxiv.org/abs/2104.04473) estimate 34 days for this network on 1,024 A100s.
# Where do the other 23 days go? For more than eight of them, the devices compute things a second time, to save memory ({lesson:stages}).
# The rest is lost because no device computes at full speed all the time, and because devices wait for one another's data.
#
# How long they wait depends on how you share out the work.
# You would like to know that before you rent a thousand devices. So our question is:
# *how long does a training step take on devices that we don't have?*
#
# **After this lesson you can**
#
# - estimate how long a training step takes on many devices, and whether it fits into their memory;
# - decide when to split a network over more devices, and when to add replicas;
# - write a planner that finds the fastest way to share out the work, and compare it with a published run.
#
# **Time:** 55 minutes.
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
#
# With data parallelism, every device holds the whole network and takes its own examples. With tensor parallelism, several devices share one copy of the network. You can also combine the two.
#
# The explorer below tries all combinations, and all sizes of micro-batch.
# It drops the plans that don't fit into memory, and shows you the fastest of the others:

# %% start tags=["modelled"]
from lessons.scale.explorer import TensorAndDataExplorer

TensorAndDataExplorer()

# %% start-read [markdown]
# Its mesh is `batch` 8 × `model` 8.
# Along `model`, eight devices share one copy of the network.
# Along `batch`, there are eight such groups, and each takes an eighth of the examples.
#
# The upper bar says how long a step takes: 13.7 s. It has three parts.
#
# - *Computing* takes 11.4 s.
# - *All-reduces over `model`* take 1.96 s. They add up activations.
# - *All-reduces over `batch`* take 0.34 s. They add up gradients.
#
# The lower bar says how much memory a device uses: 70.2 of its 80 GB.
#
# No A100 ran for this. The explorer calculates these numbers, and in this lesson you calculate them, too.
# In the end you have a *planner* that tries all plans and finds the fastest, just as the explorer does.
# It is simpler than the explorer, so its numbers are slightly different.
# The four techniques that are switched off here come later: stages and recomputation in {lesson:stages}, ZeRO and overlap in {lesson:memory_and_time}.
#
# Now look at the curve. It shows how long a step takes on other numbers of devices.
# At first, twice as many devices take half the time. Later they don't:
# 4,096 devices are 64 times as many as 64, but only 28 times as fast. Your planner will show you why.

# %% ring-text [markdown]
# ## How long does an all-reduce take?
#
# You know from {lesson:all_reduce} that a message costs time in two ways.
# First you wait for the latency $\alpha$, until its first byte arrives.
# Then its bytes go through the link, at the bandwidth $\beta$.
# An estimate that uses only these two numbers is called the *alpha–beta model*.
#
# In a *ring* of eight devices, the payload is cut into eight chunks. A chunk goes around the ring almost twice: once to be added up, once to bring the total to every device.
# That takes 14 messages, and each has to wait for the one before it.
#
# In a *tree*, sums go up to the root, and then the total comes down.
# Among eight devices, only six messages must follow one another: three up and three down.
# NVIDIA's library NCCL runs two trees at the same time, each with half of the payload. This is called a **double binary tree**.
#
# Here are the ring and the two trees. Press *Forward*, and watch the two counters:

# %% ring-picture
from lessons.scale.how_long.rings_and_trees import ring_beside_tree

ring_beside_tree()

# %% links-text [markdown]
# Fourteen messages in a row, against six! How many milliseconds is that?
#
# That depends on the links. We take A100s, eight to a node. Each A100 has its own network adapter, for the messages that leave the node.
# Here are the numbers of {lesson:all_reduce} for such links:

# %% links
from dataclasses import dataclass


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


INSIDE = Link(240e9, 3.4e-6)  # between two A100s in one node
BETWEEN = Link(25e9, 14e-6)  # from an A100 to another node

# %% formulas-text [markdown]
# Say that $n$ devices have a payload of $S$ bytes each.
# In a ring, $2(n-1)$ messages follow one another, and each of them carries a chunk of $S/n$ bytes:
#
# $$T_\text{ring} = 2(n-1)\left(\alpha + \frac{S}{n\beta}\right)$$
#
# In the two trees, $2\log_2 n$ messages follow one another. Here, too, the payload is cut into chunks:
# while one chunk goes up to the next level, the chunk behind it already follows. So more levels don't make the bytes take longer.
# In both trees together, a device sends about twice the payload, just as in a ring:
#
# $$T_\text{tree} = 2\,\alpha\log_2 n + \frac{2S}{\beta}$$

# %% ring
import math


def ring_seconds(devices, num_bytes, link):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (link.latency + chunk / link.bandwidth)


def tree_seconds(devices, num_bytes, link):
    messages = 2 * math.log2(devices)
    return messages * link.latency + 2 * num_bytes / link.bandwidth


# %% ring-run-text [markdown]
# Eight A100s in one node add up a small payload, and then a large one. How long does each take?

# %% ring-run tags=["modelled"]
small = ring_seconds(8, 8e3, INSIDE)
large = ring_seconds(8, 8e9, INSIDE)
print(f"8 kB: {1000 * small:.2f} ms")
print(f"8 GB: {1000 * large:.1f} ms")

# %% ring-read [markdown]
# The second payload is a million times as large as the first. It takes only about 1,200 times as long.
# With the small payload, nearly all the time is latency, 14 times 3.4 µs. With the large one, nearly all the time goes into the bytes.
#
# So with a small payload, the number of messages is what counts, and it grows with the number of devices. Let's take 512.

# %% predict-tree [markdown]
# 512 devices form one ring. All its links are like those between nodes: 25 GB/s, and a latency of 14 microseconds.
# An all-reduce of 1 MB takes 14.4 milliseconds in this ring.
# How many milliseconds does it take in a double binary tree with the same links? (The base-2 logarithm of 512 is 9.)
#
# - [x] `0.33`
#   Nine messages up and nine down must follow one another. Their 18 latencies make 0.25 milliseconds, and twice the payload takes 0.08.
#   In the ring, 1,022 messages follow one another. Each carries only 2 kB, so nearly all the time is latency.
# - [ ] `7.2`
#   That is half the time of the ring. But the ring waits for 1,022 latencies, and the tree only for 18.
# - [ ] `14.4`
#   A device does send about as many bytes in the tree as in the ring. But at 1 MB, it is the latency that counts.
# - [ ] `28.8`
#   The tree needs fewer messages in a row than the ring. At 1 MB, that makes it faster.

# %% reveal-tree
milliseconds = 1000 * tree_seconds(512, 1e6, BETWEEN)
reveal("how_long-tree", round(milliseconds, 2))

# %% curves-text [markdown]
# The tree is more than forty times as fast. Is it faster for every payload?
# Here are rings and trees between nodes, for payloads from 1 kB to 10 GB:

# %% curves
from lessons.scale.how_long.rings_and_trees import time_against_payload


def ring_between(devices, num_bytes):
    return ring_seconds(devices, num_bytes, BETWEEN)


def tree_between(devices, num_bytes):
    return tree_seconds(devices, num_bytes, BETWEEN)


time_against_payload(ring_between, tree_between)

# %% curves-read [markdown]
# Every curve is flat on the left and climbs on the right.
#
# - *On the left*, only the latency counts. Every added device makes a ring slower. The trees are far ahead.
# - *On the right*, only the bytes count. By our formulas, an all-reduce then takes about $2S/\beta$, *with 512 devices hardly longer than with 8*.
#   The ring sends slightly fewer bytes than the trees, so in the end it is a little faster.
#
# So take trees for small payloads, and rings for large ones.
# What is large depends on the number of devices. With 8 devices, the ring is faster from about 11 MB on. With 512, the trees still lead at 10 GB.

# %% levels-text [markdown]
# ## Two levels
#
# So far, all links were alike. But the links inside a node are about ten times as fast as those between nodes.
# One ring through all 512 devices can't use that. It leaves each node through one adapter and comes in through another, so most of the eight are idle.
#
# A *hierarchical* all-reduce uses all eight adapters. It has three moves. Here they are for two nodes of four devices:

# %% levels-picture
from lessons.scale.how_long.rings_and_trees import two_levels

two_levels()

# %% levels-read [markdown]
# 1. *Inside each node*, a reduce-scatter. Each device ends up with one piece of its node's sum.
# 2. *Between the nodes*, an all-reduce of each piece. A device adds its piece to the same piece in the other nodes.
# 3. *Inside each node*, an all-gather. Now every device has all pieces.
#
# So over the slow links, a device sends only *its own piece*. With eight devices in a node, that is an eighth of the payload.
# The first and the third move together are a ring all-reduce inside the node, and they take just as long.
#
# **Exercise 1.** Write `all_reduce_seconds(per_node, nodes, num_bytes, inside, between)`. It returns how long a hierarchical all-reduce takes.
#
# - There are `nodes` nodes with `per_node` devices each. Each device has a payload of `num_bytes` bytes.
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
# 512 devices add up 1 GB. How long does that take in one ring, and how long on two levels?

# %% levels-run tags=["modelled"]
from course_lib import yours_or_ours

all_reduce = yours_or_ours("how_long-levels", all_reduce_seconds)

in_one_ring = ring_seconds(512, 1e9, BETWEEN)
on_two_levels = all_reduce(8, 64, 1e9, INSIDE, BETWEEN)
print(f"one ring:   {1000 * in_one_ring:.0f} ms")
print(f"two levels: {1000 * on_two_levels:.0f} ms")

# %% levels-run-read [markdown]
# Two levels are five times as fast as one ring, because all eight adapters of a node send at the same time.
# They aren't eight times as fast, because the moves inside the nodes also take time.

# %% note-nccl [markdown]
# What does NCCL really do?
#
# NCCL has another way to use all the adapters: it runs several rings at once, each through a different adapter.
# By our formula, they take 15 to 24 ms for 1 GB on 512 devices. It depends on how much latency we count inside a node.
#
# Its trees connect nodes, and inside a node the devices form a chain. It runs two of them, because half of the devices in a tree are leaves.
# A leaf has only one neighbor, so much of its bandwidth is idle. But the leaves of one tree are inner devices of the other.
#
# For small payloads, NCCL uses other protocols, with less latency. At about 1 MB, it expects a tree to get around half of the bandwidth.
# So our formulas are only estimates.

# %% predict-node [markdown]
# The eight devices of a node add up 1 GB. Then sixteen devices, in two nodes, add up 1 GB with a hierarchical all-reduce.
# A link carries 240 GB/s inside a node, and 25 GB/s between nodes.
# Compare the sixteen devices with the eight: how many times as long do they take?
#
# - [ ] `1.0`
#   In one ring, sixteen devices send hardly more than eight. But here an eighth of the payload leaves the node, at a tenth of the speed.
# - [x] `1.7`
#   Inside the nodes nothing changes: a device sends 1.75 times the payload.
#   It also sends an eighth of the payload to the other node. That is a fourteenth as much, but over a link that is about ten times as slow.
#   So the second node adds about 0.7 of the time.
# - [ ] `2.0`
#   There are twice as many devices, but what each of them sends doesn't double.
# - [ ] `10`
#   That would be the whole payload at a tenth of the speed. Only an eighth of it leaves the node.

# %% reveal-node
eight = all_reduce(8, 1, 1e9, INSIDE, BETWEEN)
sixteen = all_reduce(8, 2, 1e9, INSIDE, BETWEEN)
reveal("how_long-node", round(sixteen / eight, 1))

# %% node-read [markdown]
# {Lesson:transformer_block} left a question open. There, a step made 320 all-reduces of 134 MB over eight devices. How long do these take?
# Here is the answer, and below it the time for sixteen devices:

# %% block tags=["modelled"]
for nodes in [1, 2]:
    one = all_reduce(8, nodes, 134e6, INSIDE, BETWEEN)
    print(f"{8 * nodes:2} devices: {320 * one:.2f} s")

# %% block-read [markdown]
# In two nodes, they take more than half a second instead of a third. But is the formula right?
# The [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook) measured the bandwidth of all-reduces on H100s, eight to a node. Its median gives the times in the last column, for a payload of 256 MB. Our formula takes 371 GB/s inside a node and 50 GB/s between nodes:
#
# | H100s | formula | measured |
# | ---: | ---: | ---: |
# | 8 | 1.3 ms | 1.0 ms |
# | 64 | 2.6 ms | 5.1 ms |
# | 512 | 2.7 ms | 15.5 ms |
#
# By the formula, 512 devices take hardly longer than 64. The measured median is three times as long, and almost six times what the formula says.
# With many nodes, the measurements also spread: the fastest on 512 devices come close to the formula, and the slowest are far above it.
# So for gradients between many nodes, the planner below is too optimistic.
#
# ## Which all-reduces does a step make?
#
# You found the rule in {lesson:transformer_block}: an all-reduce completes a sum whose terms are split over devices.
# On a mesh of `batch` and `model`, a step has two kinds of such sums:
#
# - *Activations.* `model` splits the heads and the hidden units, so every block makes four all-reduces over `model`.
#   Two belong to the forward pass and two to the backward pass, and all have the same size. They come with every micro-batch.
# - *Gradients of weights.* `batch` splits the examples, so the gradients need an all-reduce over `batch`.
#   It comes once a step, because each device first adds up its own gradients over all micro-batches.
#
# Let's calculate both for the network of the explorer. It has 40 blocks, with 48 heads in each:


# %% network
@dataclass
class Network:
    blocks: int
    width: int  # features of a token
    heads: int


SEQUENCE = 2048  # tokens of an example
VOCABULARY = 51200

network = Network(blocks=40, width=6144, heads=48)

# %% plan-text [markdown]
# Next comes the plan. On the explorer's mesh, eight devices together hold one copy of the network.
# Such a group is a **data-parallel replica**. (In {lesson:strategies}, it was one device.)
#
# `tensor` is the number of devices in a replica, and `data` is the number of replicas. These are the sizes of `model` and `batch`; papers call them $t$ and $d$.
#
# A replica takes one micro-batch after another. So a plan also says how many examples a micro-batch has, its **micro-batch size**,
# and how many micro-batches each replica takes in a step:


# %% plan
@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int


plan = Plan(data=8, tensor=8, examples=2, microbatches=32)

# %% machine-text [markdown]
# 8 replicas × 32 micro-batches × 2 examples make 512 examples in a step.
# Why only 2 examples in a micro-batch? Because of memory; we'll come to that.
#
# How long an all-reduce takes depends on where its devices are.
# The devices of a node have consecutive numbers, and so do those of a replica.
# Here are two nodes, for three values of `tensor`:

# %% machine-picture
from lessons.scale.how_long.step_pictures import nodes_of

nodes_of([2, 8, 16])

# %% machine-read [markdown]
# Devices of one color are a replica, and they add up activations.
# If `tensor` is 2 or 8, a replica fits into a node. If `tensor` is 16, it fills two nodes, and its activations have to leave the node.
#
# The devices with thick edges, one of each replica, add up gradients with device 0.
# If `tensor` is 2, four of them share each node. If `tensor` is 8, each is in a different node.
#
# So for each kind of all-reduce we need two numbers: how many of its devices are in each node, and how many nodes there are.
# `spread` returns both. Its argument `room` says how many of these devices fit into one node:

# %% machine
NODE = 8  # devices in a node


def spread(devices, room):
    # `room`: how many members of the group fit into one node.
    # Every node takes equally many, so `gcd`, not `min`
    per_node = math.gcd(devices, room)
    nodes = devices // per_node
    return per_node, nodes


for tensor in [2, 8, 16]:
    per_node, nodes = spread(tensor, NODE)
    print(f"tensor {tensor:2}: {per_node} in each node, nodes: {nodes}")

# %% a100-text [markdown]
# The planner also has to know the machine: how fast a device computes, how much memory it has, and its links.
#
# An A100 has a peak of 312 · 10¹² FLOPs a second, but no training run reaches the peak. We take 52 % of it.
# This is the only number in the planner that we *fitted*: we chose it so that the finished planner of {lesson:stages}
# agrees with a published run of this very network, on 256 A100s. With it, the two differ by less than 3 %.


# %% a100
@dataclass
class Machine:
    flops: float  # per second, as matrix products reach them
    memory: float  # bytes of a device
    inside: Link
    between: Link


PEAK_SHARE = 0.52  # fitted to one run
A100 = Machine(PEAK_SHARE * 312e12, 80e9, INSIDE, BETWEEN)

# %% one-text [markdown]
# How long does one all-reduce of activations take? A micro-batch has 2 × 2,048 tokens. Each token has 6,144 features, and in mixed precision a feature takes 2 bytes.
# That makes 50 MB:


# %% one tags=["modelled"]
def over_tensor(machine, plan, num_bytes):
    per_node, nodes = spread(plan.tensor, NODE)
    links = machine.inside, machine.between
    return all_reduce(per_node, nodes, num_bytes, *links)


one = over_tensor(A100, plan, 2 * 2048 * 6144 * 2)
print(f"{1000 * one:.2f} ms")

# %% exchange-text [markdown]
# That isn't much. But each of the 40 blocks makes four of them, in each of the 32 micro-batches:


# %% exchange tags=["modelled"]
def tensor_seconds(network, machine, plan):
    # In one micro-batch
    tokens = plan.examples * SEQUENCE
    num_bytes = 2 * tokens * network.width
    times = 4 * network.blocks
    return times * over_tensor(machine, plan, num_bytes)


activations = tensor_seconds(network, A100, plan)
print(f"a micro-batch: {activations:.3f} s")
print(f"32 of them:    {32 * activations:.2f} s")

# %% exchange-read [markdown]
# A step makes 5,120 of these all-reduces, and together they take 2.1 s.
#
# Next come the gradients. A device has one for each parameter that it holds, so we count its parameters.
# A block has 12 · width² of them: 4 · width² in attention, and 8 · width² in the dense layers, which papers call the MLP.
# The embedding of the vocabulary comes on top. The `tensor` devices of a replica share all of these:


# %% parameters
def parameters_held(network, plan):
    blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (blocks + embedding) / plan.tensor


parameters = parameters_held(network, plan)
print(f"{parameters / 1e9:.1f} · 10⁹")

# %% gradients-text [markdown]
# A device holds 2.3 billion gradients of 2 bytes each. It adds them up with one device from each of the other replicas.
#
# How many of these devices share a node? As many as there are replicas in it. In our plan that is one, because a replica fills its node. For a replica larger than a node, `max` makes it one, too:


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
print(f"{gradients:.2f} s")

# %% gradients-read [markdown]
# All 4.6 GB leave the node, and yet they take only 0.32 s. The activations take more than six times as long.
# One all-reduce of activations is far smaller, and it stays on the fast links inside the node. But there are 5,120 of them.
#
# In all, a device communicates for 2.4 s in each step. Is that a lot? It depends on how long the device computes.

# %% note-others [markdown]
# What do we leave out?
#
# - *Some all-reduces*: those of the logits, of the loss and of the embedding. They come only once for the whole network, not once for each block.
# - *A second matrix of the vocabulary*, for the logits. Many networks use that of the embedding for both, and the published network below is counted like that, too.
# - *Gradients in float32.* Megatron-LM, for example, keeps and adds them up in float32 even for bfloat16 weights.
#   Then a parameter takes 18 bytes of memory, and its gradient 4 bytes in an all-reduce.
# - *Nodes that are filled unequally.* `spread` takes the greatest common divisor, so that each node gets the same number of devices.
#   Twelve devices are really eight in one node and four in another; `spread(12, 8)` puts four into each of three nodes.

# %% arithmetic-text [markdown]
# ## How long do the devices compute?
#
# Follow one token through the forward pass. It takes part in three kinds of products:
#
# - *With the weights of each block.* Every weight takes one multiplication and one addition, which is 2 FLOPs.
# - *In attention.* The token's query is multiplied by 2,048 keys, and its attention weights by 2,048 values.
# - *With the unembedding*, also called the LM head. It makes a logit for each of the 51,200 tokens of the vocabulary.
#
# For each of these products, the backward pass has two: one for the gradient of each factor.
# So it takes twice the FLOPs of the forward pass, and both together take three times as many:


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


compute = compute_seconds(network, A100, plan)
print(f"a micro-batch: {compute:.3f} s")
print(f"32 of them:    {32 * compute:.1f} s")

# %% step-text [markdown]
# Now you have all three parts of a step. Put them together:


# %% step tags=["modelled"]
from lessons.scale.how_long.step_pictures import step_over_time


def step_seconds(network, machine, plan):
    compute = compute_seconds(network, machine, plan)
    activations = tensor_seconds(network, machine, plan)
    gradients = gradient_seconds(network, machine, plan)
    return plan.microbatches * (compute + activations) + gradients


step_over_time(compute, activations, 32, gradients)

# %% step-read [markdown]
# A step takes 14.2 s. For 2.4 s of it, no device is computing, because in our model a device waits for each of its all-reduces.
# Real programs hide some of them behind computing, as {lesson:transformer_block} says.
# (The picture draws all the all-reduces of a micro-batch in one piece. In fact, each block has its own four.)
#
# Does the explorer agree?

# %% beside tags=["modelled"]
from lessons.scale.how_long.step_pictures import steps_beside

planned = {
    "computing": 32 * compute,
    "model": 32 * activations,
    "batch": gradients,
}
explored = {"computing": 11.4, "model": 1.96, "batch": 0.339}
steps_beside({"explorer": explored, "planner": planned})

# %% beside-read [markdown]
# It does. With a few short functions, your step comes within 4 % of the explorer's, and no part of it is more than 9 % off.
# But the explorer only calculates, just as you do. At the end of the lesson, we compare your planner with a measured step.

# %% note-shares [markdown]
# Why don't the two agree completely?
#
# Your planner computes at 52 % of the peak, fitted to one published run. The explorer computes matrix products at 57 %, fitted to another run, and also counts the time in which a device reads and writes its own memory.
# The explorer's micro-batches are larger, too, and it counts the second matrix of the vocabulary.
#
# The 45 % that the explorer shows is something else: a share of the *whole step*, communication included.
# Papers call it the **model FLOPs utilization** (MFU). For your planner's step it is 43 %.

# %% fit-heading [markdown]
# ## Does it fit?
#
# Our replica has eight devices. With two, the all-reduces of activations would take less time. So why eight?
#
# The reason is memory. Each parameter takes 16 bytes, as you know from {lesson:zero_and_fsdp}.
# For the 2.3 billion parameters of a device, that makes:

# %% state
BYTES = {"variables": 2, "gradients": 2, "optimizer": 12}

state = sum(BYTES.values()) * parameters
print(f"{state / 1e9:.1f} GB")

# %% memory-text [markdown]
# Then there are the activations, which a device keeps until the backward pass.
# [Korthikanti and others](https://arxiv.org/abs/2205.05198) have worked out how many bytes they take:
#
# - A block keeps 34 bytes for every feature of every token.
#   Tensor parallelism splits 24 of these bytes among the devices of a replica. The other 10 stay on each device.
# - Attention also keeps 5 bytes for every pair of tokens, in each head. Tensor parallelism splits the heads.
#
# The logits come on top, once for the whole network. Here is the sum for our micro-batch of two examples:

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


print(f"{activation_bytes(network, plan) / 1e9:.1f} GB")

# %% held-text [markdown]
# So a device holds 36.9 GB for its parameters, and 23.2 GB of activations. That fits into 80 GB.
# Could a micro-batch be larger? Here are one, two and four examples, with a line at 80 GB:


# %% held
from lessons.scale.plan_bars import plans_against_memory


def memory_held(network, plan):
    parameters = parameters_held(network, plan)
    held = {}
    for name, num_bytes in BYTES.items():
        held[name] = num_bytes * parameters
    held["activations"] = activation_bytes(network, plan)
    return held


rows = []
for examples in [1, 2, 4]:
    each = Plan(8, 8, examples, 64 // examples)
    label = f"examples = {examples}"
    rows.append((label, memory_held(network, each)))

plans_against_memory(rows, A100.memory)

# %% held-read [markdown]
# Four examples would need 83.3 GB. Three would fit, but the 64 examples of a replica can't be divided into threes. So our plan has two.

# %% note-activations [markdown]
# Then how can the explorer take eight?
#
# It needs only about 4 GB of activations for an example, and your planner needs 11.6 GB.
# The explorer's network has no dropout, but the 34 bytes and the 5 bytes include what dropout has to keep.
# The explorer also splits the other 10 bytes, by sequence parallelism. {Lesson:transformer_block} has a note on it.
#
# So your planner drops some plans that fit in the explorer.

# %% sizes-text [markdown]
# Back to the eight devices of a replica. Here are five meshes, with one example in each micro-batch.
# The labels say how long a step takes:

# %% sizes tags=["modelled"]
rows = []
for tensor in [1, 2, 4, 8, 16]:
    data = 64 // tensor
    each = Plan(data, tensor, examples=1, microbatches=512 // data)
    seconds = step_seconds(network, A100, each)
    label = f"tensor = {tensor}: {seconds:.1f} s"
    rows.append((label, memory_held(network, each)))

plans_against_memory(rows, A100.memory)

# %% sizes-read [markdown]
# From top to bottom, the bars get shorter and the steps get longer.
#
# With the whole network on every device, a step would be fastest. But each device would have to hold 353 GB.
# The first plan that fits has `tensor` 8. With `tensor` 16 there is plenty of room, but the activations leave the node, and a step takes 19.8 s instead of 14.5 s.
#
# So on 64 devices, *split the network over as many devices as memory demands, and no more*.
# Use the remaining devices for more replicas.
#
# ## When are there too many devices?
#
# Suppose that you get more than 64 devices. By this rule, `tensor` stays at 8, and you add replicas.
# The batch stays the same: papers call this *strong scaling*. At some point, another replica hardly helps.
#
# To find that point, compare how long the devices compute in a step with how long their gradients take:

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
# But it has as many gradients as before, so their all-reduce takes about as long as before.
# At about 2,048 devices, the lines cross. Beyond that, the devices exchange gradients for longer than they compute: the step is communication-bound.
# If all-reduces are as slow as the measured ones above, the lines cross at fewer devices.
#
# What matters is how many tokens a replica has in each step.
# At a certain number of tokens, computing takes exactly as long as exchanging the gradients. We call this number the **break-even batch**.
# You can work it out without the picture.

# %% predict-break-even [markdown]
# Replicas of eight A100s, each in a node of its own, train with data parallelism.
# For each parameter that it holds, a device performs 6 FLOPs for each token. It performs 162 · 10¹² FLOPs a second.
# Once a step, it also sends the parameter's gradient, 2 bytes, about twice over a link of 25 GB/s.
# For how many tokens in a replica does computing take as long as sending? Choose the nearest.
#
# - [ ] `40`
#   40 tokens take 240 FLOPs, and these take 1.5 ps. Sending the gradient takes 4 bytes / 25 GB/s = 160 ps.
# - [x] `4000`
#   Sending 2 bytes twice makes 4 bytes, and 4 bytes / 25 GB/s = 160 ps. In 160 ps, a device performs about 26,000 FLOPs.
#   At 6 FLOPs for each token, they are enough for some 4,300 tokens. The planner also counts the FLOPs of attention, and gets 4,100.
# - [ ] `400000`
#   400,000 tokens take 2.4 million FLOPs, and these take about 15,000 ps. Sending the gradient takes only 160 ps.


# %% reveal-break-even
def break_even_tokens(network, machine):
    # One example for each of many replicas, a node to a replica
    plan = Plan(data=512, tensor=8, examples=1, microbatches=1)
    compute = compute_seconds(network, machine, plan)
    gradients = gradient_seconds(network, machine, plan)
    return SEQUENCE * gradients / compute


tokens = break_even_tokens(network, A100)
reveal("how_long-break-even", 1000 * round(tokens / 1000))

# %% break-even-why [markdown]
# 4,100 tokens are two of our examples. On 2,048 devices, there are 256 replicas, and each gets two of the 512 examples: that is where the lines cross.
# With more replicas, each gets less than that, and communication takes most of the step.
# This is the main reason why the explorer's curve bends. To use more devices well, you need a larger batch.
#
# That is even more true for faster devices. The peak of an H100 is about three times that of an A100, but its links between nodes are only twice as fast.
# If it reaches the same share of its peak, its break-even batch is about one and a half times as large.
# And if all-reduces are as slow as the measured one on 512 H100s, it is almost six times as large again.

# %% note-critical [markdown]
# Isn't this called *critical batch size*?
#
# Some authors do call it that. But in {lesson:faster}, the critical batch size was the size of the whole batch beyond which more examples save fewer and fewer steps
# ([McCandlish and others](https://arxiv.org/abs/1812.06162)). It doesn't depend on the devices.
# Divide it by the break-even batch, and you know about how many replicas are worth having.

# %% planner-text [markdown]
# ## Your planner
#
# You can now calculate the time and the memory of any plan. A planner needs one thing more: a list of all plans.
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
print(f"{len(found)} / {len(plans)}")
for seconds, plan in found[:3]:
    print(f"{seconds:.1f} s  {plan}")

# %% fastest-read [markdown]
# Of 30 plans, 5 fit. The explorer found 9, because its activations are smaller. But both have the mesh 8 × 8 in their fastest plan.
#
# The second plan has the same mesh, with one example in each micro-batch. It makes twice as many all-reduces, so it waits for twice as many latencies.
# In the third plan, a replica has sixteen devices, and its activations leave the node.
#
# So the fastest plan has the smallest replicas that fit. Does that hold for any number of devices?

# %% predict-many [markdown]
# On 64 A100s, the fastest plan for a network of 18 billion parameters has `tensor` 8: eight devices of one node share one copy of the network.
# Now you have 4,096 A100s, and the batch still has 512 examples.
# What is `tensor` in the fastest plan?
#
# - [ ] `4`
#   With more devices, there are more replicas. But each device holds as much as before, and with `tensor` 4 that is 92 GB.
# - [ ] `8`
#   That plan fits, and its activations stay inside the node. But it has 512 replicas with a single example each,
#   and that is only half of the break-even batch. Their gradients take twice as long as computing.
# - [x] `16`
#   Each device then holds half as many parameters, so its gradients take half as long. The activations now leave the node.
#   But a replica has only two examples, so there are few activations to exchange.

# %% reveal-many
plans = plans_for(network, 4096, 512)
seconds, fastest = ranked(network, A100, plans)[0]
reveal("how_long-many", fastest.tensor)

# %% many-text [markdown]
# A replica would fit into one node, yet the fastest plan spreads it over two. How long does each part of the step take, in both plans?

# %% many tags=["modelled"]
steps = {}
for tensor, examples in [(8, 1), (16, 2)]:
    plan = Plan(4096 // tensor, tensor, examples, microbatches=1)
    steps[f"tensor = {tensor}"] = {
        "computing": compute_seconds(network, A100, plan),
        "model": tensor_seconds(network, A100, plan),
        "batch": gradient_seconds(network, A100, plan),
    }

steps_beside(steps)

# %% many-read [markdown]
# Computing takes equally long in both plans. With `tensor` 16, the activations take 0.11 s instead of 0.04 s, but the gradients take only half as long.
#
# Why was it different on 64 devices? There, a replica took 64 examples in each step. Now it takes one or two.
# Activations are exchanged for each example, but gradients only once a step. So with few examples, gradients count for more.
# And the larger `tensor` is, the fewer gradients each device has to exchange.
#
# So the rule holds *while each replica has plenty of tokens*. Near the break-even batch, a larger replica can be faster.
# The explorer says the same. Choose 4,096 devices at the top of this lesson, and its mesh is `batch` 256 × `model` 16.

# %% one-block-text [markdown]
# ## Is any of this true?
#
# So far, we have compared one calculated step with another. Now let's compare your planner with measurements: first with a small one, then with a large one.
#
# [Korthikanti and others](https://arxiv.org/abs/2205.05198) timed a single block of a network with 22 billion parameters. Eight A100s of one node shared the block, and took a micro-batch of 4 examples.
# What does your planner say? A step through two blocks takes one block longer than a step through one:

# %% one-block tags=["modelled"]
block_plan = Plan(data=1, tensor=8, examples=4, microbatches=1)


def step_through(blocks):
    small = Network(blocks, width=6144, heads=64)
    return step_seconds(small, A100, block_plan)


one_block = step_through(2) - step_through(1)
print(f"{1000 * one_block:.1f} ms")

# %% largest-text [markdown]
# They measured 7.7 ms for the forward pass and 11.9 ms for the backward pass. That's 19.6 ms, so your planner's block is 8 % too slow.
# This is close: the one number that we fitted comes from another network, on 256 devices.
#
# Now for the large one. To measure how fast training is, Narayanan and others ran steps of a network of 145.6 billion parameters on 1,536 A100s.
# By their figures, a step of 2,304 examples took 24.8 s.
#
# How many devices does a replica of this network need? Here is what a device holds for its parameters alone, if 16 or 32 devices share the network:

# %% largest
largest = Network(blocks=80, width=12288, heads=96)

for tensor in [16, 32]:
    plan = Plan(data=1, tensor=tensor, examples=1, microbatches=1)
    state = 16 * parameters_held(largest, plan)
    print(f"tensor {tensor}: {state / 1e9:5.1f} GB")

# %% largest-read [markdown]
# On 16 devices, the parameters alone don't fit. On 32, they leave only 7 GB for activations.
# So a replica needs at least 32 devices, and these are four nodes. Here is your planner's fastest plan, beside the published step:

# %% published tags=["modelled"]
plans = plans_for(largest, 1536, 2304)
seconds, plan = ranked(largest, A100, plans)[0]
print(f"{seconds:.1f} s  {plan}")

compute = compute_seconds(largest, A100, plan)
activations = tensor_seconds(largest, A100, plan)
planned = {
    "computing": plan.microbatches * compute,
    "model": plan.microbatches * activations,
    "batch": gradient_seconds(largest, A100, plan),
}
steps_beside({"planner": planned, "published": {"whole": 24.8}})

# %% published-read [markdown]
# Your planner's best step takes 39.9 s. They really ran a step in 24.8 s!
#
# Computing isn't to blame: it takes only 17.0 s. But the activations take another 22.4 s.
# In your planner, a replica has 48 devices. These are six nodes, so every all-reduce of activations goes between nodes.
#
# Narayanan and others had the same devices, the same links and the same 80 GB. So they must split the network in a way that your planner doesn't know. {Lesson:stages} finds it.

# %% note-true [markdown]
# Why 48 devices, and where do the 24.8 s come from?
#
# On 32 devices, the activations of a single example take up 27 GB in your planner, and only 7 GB are left.
# The next number that divides both the 1,536 devices and the 96 heads is 48.
#
# The 24.8 s follow from the 148 · 10¹² FLOPs a second that the paper reports for each device.
# Its FLOPs count every forward pass twice, because these runs compute it twice; {lesson:stages} says why. Those of this lesson count it once.
#
# And how good is the explorer? On virtual CPUs, two of its numbers were fitted to six steps. It then predicted six others, from 10 % too short to 16 % too long, but virtual CPUs have no links.
# The site's page *How good is the model?* compares it with all the published runs that we found. Usually it is off by up to a third.

# %% plain-heading [markdown]
# ## The plain program
#
# [`how_long.py`](../plain/how_long.py) is the planner of this lesson in one file. `python how_long.py 64 256` ranks the plans for 64 and for 256 devices.
# Put in your own network and your own links.

# %% takeaways [markdown]
# ## Takeaways
#
# - A small all-reduce takes as many latencies as there are messages that must follow one another.
#   By our formula, a large one takes about twice the payload divided by the bandwidth, and hardly longer on more devices. Measured ones get slower with more nodes.
# - While each replica has plenty of tokens, split the network over as many devices as memory demands, and no more.
#   With few tokens, a larger replica can be faster, even over two nodes.
# - Below its break-even batch, a replica exchanges gradients for longer than it computes. More devices then need a larger batch.

# %% score
score("how_long")
