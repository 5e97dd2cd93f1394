# %% [markdown]
# # How long will a step take?
#
# Training [GPT-3](https://arxiv.org/abs/2005.14165) took 3.14 · 10²³ floating-point operations (**FLOPs**).
# An A100 performs at most 312 · 10¹² of them a second, so a single A100 would need 32 years.
# Take 1,024 of them, and you should be done in 11 days.
#
# You won't be. [Narayanan and others](https://arxiv.org/abs/2104.04473) estimate 34 days for this network on 1,024 A100s.
# Where do the other 23 days go?
# More than eight of them go into computing things a second time, to save memory. {Lesson:stages} explains why.
# The others are lost because no device reaches its peak, and because devices wait for one another's data.
#
# How long they wait depends on how you share out the work.
# You would like to know that *before* you rent a thousand devices.
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
# If the network fits, you can give every device a complete copy and different examples.
# Otherwise two, four or eight devices can share a copy between them, by tensor parallelism.
#
# The explorer below tries every mesh of data and tensor parallelism, and every size of micro-batch.
# It drops the plans that don't fit into memory, and shows you the fastest of the others:

# %% start tags=["modelled"]
from lessons.scale.explorer import TensorAndDataExplorer

TensorAndDataExplorer()

# %% start-read [markdown]
# Its mesh is `batch` 8 × `model` 8.
# Along `model`, eight devices share one copy of the network: its heads, its hidden units and its vocabulary.
# Along `batch`, there are eight such groups, and each takes an eighth of the examples.
#
# The upper bar is time: a step takes 13.7 s, and the devices compute for 11.4 s of them. The rest goes into communication, most of it over `model`.
# The lower bar is memory: a device uses 70.2 of its 80 GB.
# And the curve shows the time of a step on fewer devices, and on more. At first, doubling the devices halves the time. Later it doesn't: 4,096 devices are 64 times as many as 64, but only 28 times as fast.
#
# No A100 ran for this. The explorer calculates all these times, and soon you will, too.
#
# First make it harder. Choose the largest network and 4,096 H100s.
# Over how many devices does the fastest plan spread one copy of the network? And how much of the step do those devices spend computing?
# Write down the devices and the seconds. Near the end of the lesson you will know where both come from.
#
# By then you will have a *planner* of your own. It has to know how long an all-reduce takes, which all-reduces a step makes,
# how long the devices compute, and whether a plan fits into memory.
# Then it tries all plans and picks the fastest, just as the explorer does.
#
# You will see every line of it, and write two of its functions, so it is simpler than the explorer, and its numbers aren't quite the same.
# Where that matters, a note says why.
# Four techniques of the explorer are switched off here. Stages and recomputation come in {lesson:stages}, ZeRO and overlap in {lesson:which_plan}.

# %% ring-text [markdown]
# ## How long does an all-reduce take?
#
# Each message costs time in two ways, as you know from {lesson:all_reduce}.
# Before its first byte arrives, you wait for the latency $\alpha$.
# Then its bytes go through the link, at the bandwidth $\beta$.
# Estimating a transfer from these two numbers is called the *alpha–beta model*.
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
# Why two trees, and where does NCCL run them?
#
# In a single tree, half of the devices are leaves. A leaf has only one neighbor, so much of its bandwidth would be idle.
# With two trees, a device that is a leaf in one is an inner device in the other. So all of them are kept busy.
#
# NCCL also cuts each half of the payload into small chunks, and a device passes one on while it receives the next.
# This is called *pipelining*. Without it, you would pay for all the bytes again at every level of the tree.
#
# NCCL's trees connect nodes. Inside each node, the devices form a chain.
# For small payloads, NCCL uses other protocols, with less latency. So our formulas are only estimates.
# At payloads of about 1 MB, for example, NCCL reckons that a tree gets around half of the bandwidth.

# %% links-text [markdown]
# Fourteen messages in a row, against six! How many milliseconds is that?
#
# It depends on the links. We take A100s, eight to a node. Each has its own network adapter, for the messages that leave the node.
# {Lesson:all_reduce} gave numbers for such links. They are close to the figures that NCCL itself uses when it chooses between a ring and a tree:

# %% links
from dataclasses import dataclass


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


INSIDE = Link(240e9, 3.4e-6)  # between two A100s in one node
BETWEEN = Link(25e9, 14e-6)  # from an A100 to another node

# %% formulas-text [markdown]
# Now the two times. With $n$ devices and a payload of $S$ bytes, a ring sends $2(n-1)$ messages in a row.
# Each of them carries one chunk, which is $S/n$ bytes:
#
# $$T_\text{ring} = 2(n-1)\left(\alpha + \frac{S}{n\beta}\right)$$
#
# In the two trees, only $2\log_2 n$ messages follow one another. And each device sends about twice the payload, as in a ring:
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
# The tree is more than forty times as fast. Is that so for every payload?
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
# - *On the left*, only the latency matters. A ring takes $2(n-1)\,\alpha$, so every device that you add makes it slower. The trees are far ahead.
# - *On the right*, only the bytes matter. By our formulas, both take about $2S/\beta$, *however many devices there are*. The ring sends slightly fewer bytes, so it wins in the end.
#
# With 8 devices, the ring is faster from about 11 MB on. With 512 devices, the tree still leads at 10 GB.
# So take trees for small payloads and rings for large ones. And the more devices you have, the bigger a payload must be to count as large.
#
# The flat part has another lesson: an all-reduce of 100 kB takes about as long as an all-reduce of one byte.
# So a few large all-reduces are better than many small ones.

# %% levels-text [markdown]
# ## Two levels
#
# So far, all links were alike. But the links inside a node are about ten times as fast as those between nodes.
# A single ring through all 512 devices wastes them. It leaves each node through a single adapter, and the other seven adapters are idle.
#
# A *hierarchical* all-reduce uses all eight of them, in three moves. Here they are for two nodes of four devices:

# %% levels-picture
from lessons.scale.how_long.rings_and_trees import two_levels

two_levels()

# %% levels-read [markdown]
# 1. *Inside each node*, a reduce-scatter. Each device ends up with one piece of its node's sum.
# 2. *Between the nodes*, an all-reduce for each piece. A device adds its piece to the same piece in the other nodes.
# 3. *Inside each node*, an all-gather. Now every device has all pieces.
#
# So over the slow links, a device adds up only *its own piece*. With eight devices in a node, a piece is an eighth of the payload.
# Taken together, the first and third moves cost exactly what a ring all-reduce inside the node costs.
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
# How long do 512 devices take to add up 1 GB, first in one ring, and then on two levels?

# %% levels-run tags=["modelled"]
from course_lib import yours_or_ours

all_reduce = yours_or_ours("how_long-levels", all_reduce_seconds)

in_one_ring = ring_seconds(512, 1e9, BETWEEN)
on_two_levels = all_reduce(8, 64, 1e9, INSIDE, BETWEEN)
print(f"one ring:   {1000 * in_one_ring:.0f} ms")
print(f"two levels: {1000 * on_two_levels:.0f} ms")

# %% levels-run-read [markdown]
# Two levels are five times as fast as one ring, because all eight adapters of a node send at the same time.
# They aren't eight times as fast, because the moves inside the nodes take 7 of the 18 ms.

# %% note-rings [markdown]
# How does NCCL use all the adapters?
#
# It can do so without two levels: it runs several rings at once, each through a different adapter.
# For 1 GB on 512 devices, eight rings take 24 ms if every message costs 14 µs, but only 15 ms if messages inside a node cost 3.4 µs.

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
# Here is how long they take over eight devices, and over sixteen:

# %% block tags=["modelled"]
for nodes in [1, 2]:
    one = all_reduce(8, nodes, 134e6, INSIDE, BETWEEN)
    print(f"{8 * nodes:2} devices: {320 * one:.2f} s")

# %% block-read [markdown]
# They take a third of a second in one node, and more than half a second in two.
#
# So says the formula. Here it is for 256 MB on H100s, eight to a node (371 and 50 GB/s).
# Beside it are times that follow from bandwidths measured for the [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook):
#
# | H100s | formula | measured |
# | ---: | ---: | ---: |
# | 8 | 1.3 ms | 1.0 ms |
# | 64 | 2.6 ms | 5.1 ms |
# | 512 | 2.7 ms | 15.5 ms |
#
# By the formula, 512 devices take hardly longer than 64. In fact they took three times as long, almost six times what the formula says.
# So where gradients go between many nodes, the planner below is too optimistic.
#
# ## Which all-reduces does a step make?
#
# You found the rule in {lesson:transformer_block}: an all-reduce completes a sum whose terms are split over devices.
# On a mesh of `batch` and `model`, a step has two kinds of such sums:
#
# - *Activations.* `model` splits the heads and the hidden units. So every block takes four all-reduces over `model`:
#   two in the forward pass, of activations, and two in the backward pass, of their gradients.
#   All four have the same size, and they come in every micro-batch.
# - *Gradients of weights.* `batch` splits the examples. So the gradient of every weight takes an all-reduce over `batch`.
#   It comes once a step, because each device first adds up its own gradients over all micro-batches.
#
# Let's work this out for the network of the explorer. It has 40 blocks, and 48 heads in each:


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
# Such a group is a **data-parallel replica**. In {lesson:strategies} a replica was a single device, and now it is a group of them.
# From here on, `tensor` is the number of devices in a replica, and `data` is the number of replicas. Papers write $t$ and $d$ for them.
# So `tensor` is the size of `model`, and `data` is the size of `batch`.
#
# In a step, a replica takes one micro-batch after another. So a plan needs two more numbers:
# how many examples are in a micro-batch, the **micro-batch size**, and how many micro-batches there are.
# These four numbers are all that this `Plan` holds:


# %% plan
@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int


plan = Plan(data=8, tensor=8, examples=2, microbatches=32)

# %% machine-text [markdown]
# A step has 8 replicas × 32 micro-batches × 2 examples, which is 512 examples.
# A micro-batch has only 2 examples because of memory; we'll come to that.
#
# Which of these devices share a node? The devices of a node have consecutive numbers, and so have the devices of a replica.
# Here are two nodes, for three values of `tensor`:

# %% machine-picture
from lessons.scale.how_long.step_pictures import nodes_of

nodes_of([2, 8, 16])

# %% machine-read [markdown]
# Look at the colors first. They show who adds up activations.
# If `tensor` is 2 or 8, a replica stays inside a node, and so do its activations. If `tensor` is 16, a replica fills two nodes, and its activations have to leave the node.
#
# The thick edges show who adds up gradients with device 0: one device of each replica.
# If `tensor` is 2, four of them share each node. If `tensor` is 8, all of them are in different nodes.
#
# So for each kind of all-reduce, you need two numbers: how many devices of the group are in each node, and over how many nodes the group is spread.
# Say that a node has room for `room` of them:

# %% machine
NODE = 8  # devices in a node


def spread(devices, room):
    # `room`: how many members of the group fit into one node
    per_node = math.gcd(devices, room)
    nodes = devices // per_node
    return per_node, nodes


for tensor in [2, 8, 16]:
    per_node, nodes = spread(tensor, NODE)
    print(f"tensor {tensor:2}: {per_node} in each node, nodes: {nodes}")

# %% note-spread [markdown]
# Why a greatest common divisor?
#
# `all_reduce` needs equally many devices in each node. For powers of two and for multiples of eight, the greatest common divisor says how many they are.
# For other numbers, it is an approximation. Take twelve devices: really, eight of them are in one node and four in another.
# `spread(12, 8)` puts four into each of three nodes.

# %% a100-text [markdown]
# The planner still has to know the machine: how fast it computes, how much memory it has, and its links.
#
# An A100 has a peak of 312 · 10¹² FLOPs a second, but no training run reaches the peak. We take 52 % of it.
# This is the only number in the planner that we *fitted*. We chose it so that the finished planner of {lesson:stages} comes within 2 % of one published run of this very network, on 256 A100s.


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
# Now for the activations. A micro-batch has 2 × 2,048 tokens. Each token has 6,144 features, and in mixed precision a feature takes 2 bytes.
# So one all-reduce carries 50 MB. How long does it take?


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
# A step makes 5,120 of these all-reduces, and they take 2.1 s.
#
# Next come the gradients. A device has one for each parameter that it holds, so we count those.
# A block has 12 · width² parameters: 4 · width² in attention, and 8 · width² in the dense layers, which papers call the MLP.
# In addition, there is the embedding of the vocabulary. A replica divides all of them among its `tensor` devices:


# %% parameters
def parameters_held(network, plan):
    blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (blocks + embedding) / plan.tensor


parameters = parameters_held(network, plan)
print(f"{parameters / 1e9:.1f} · 10⁹")

# %% gradients-text [markdown]
# These 2.3 billion gradients take 2 bytes each, and a device adds them up with its partners.
# Its partners are one device from each replica, so a node holds as many of them as it holds replicas.
# In our plan that is a single one, because a replica fills its node. If a replica is larger than a node, it is still one, and `max` takes care of that:


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
# All 4.6 GB leave the node, and yet they take only 0.32 s.
# Each all-reduce of activations is far smaller, and it stays in the node, on links that are ten times as fast.
# But there are 5,120 of them, and together they take more than six times as long as the gradients.
#
# In all, a device communicates for 2.4 s in each step. Whether that is a lot depends on how long it computes.

# %% note-others [markdown]
# What do we leave out?
#
# We leave out the all-reduces of the logits, of the loss and of the embedding. They come once for the whole network, and not once for each block.
#
# We also count the matrix of the embedding only once, though the logits need a matrix of the same size.
# Many networks use one matrix for both, and the published networks below are counted like that, too.
#
# Our gradients take 2 bytes each. Megatron-LM, for example, keeps the gradients of bfloat16 weights in float32, and adds them up like that.
# Then a parameter takes 18 bytes of memory, and its gradient 4 bytes in an all-reduce.

# %% arithmetic-text [markdown]
# ## How long do the devices compute?
#
# Follow one token through the forward pass. It takes part in three kinds of products:
#
# - *With the weights of each block.* Every weight takes one multiplication and one addition, which is 2 FLOPs.
# - *In attention*, where its query meets 2,048 keys, and its attention weights meet 2,048 values.
# - *With the unembedding*, also called the LM head, which makes a logit for each of the 51,200 tokens of the vocabulary.
#
# In the backward pass, each product costs two more: one for the gradient of each of its factors.
# So the backward pass takes twice the FLOPs of the forward pass, and both together take three times as many:


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
# A step takes 14.2 s. For 2.4 s of it, no device is computing.
# The picture draws all the all-reduces of a micro-batch in one piece, though in fact each block has its own four.
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

# %% note-shares [markdown]
# Why don't the two agree completely, and what are 45, 52 and 57 %?
#
# All three percentages are shares of the devices' peak. You meet them in different places:
#
# - *52 %* is how fast your planner computes. It was fitted to one published run.
# - *57 %* is how fast the explorer computes its matrix products. It was fitted to another run.
#   On top of that, the explorer counts the time in which a device reads and writes its own memory.
# - *45 %* is what the explorer prints for its plan. It is measured over the *whole step*, communication included.
#   Papers call this the **model FLOPs utilization** (MFU). For your planner's step it is 43 %.
#
# There are two smaller differences. The explorer's micro-batches are larger, and it also counts the second matrix of the vocabulary.

# %% fit-heading [markdown]
# ## Does it fit?
#
# Look at the plan once more. Our replica has eight devices. With two, the activations would take less time. So why eight?
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
#   Tensor parallelism splits 24 of these bytes among its devices. The other 10 stay on each device.
# - Attention keeps 5 bytes for every pair of tokens, in each head. Tensor parallelism splits the heads.
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
# So a device holds 36.9 GB for its parameters and 23.2 GB of activations. That fits into 80 GB.
# Could a micro-batch be larger? Here are one, two and four examples, with the line at 80 GB:


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
# With four examples, a device would need 83.3 GB. So two is the most, and that is why our plan has two.

# %% note-activations [markdown]
# Then how can the explorer take eight?
#
# Its activations for eight examples take up 32.5 GB, which is 4 GB for each. Ours take up 11.6 GB for each. There are two reasons:
#
# - The explorer's network has no dropout. The 34 bytes and the 5 bytes include what dropout has to keep.
# - The explorer also uses sequence parallelism, which splits the other 10 bytes as well. {Lesson:transformer_block} has a note on it.
#
# So your planner will drop some plans that fit in the explorer.

# %% sizes-text [markdown]
# Now you can see why a replica takes eight devices. Here are five meshes, with one example at a time.
# Each label has the time of a step:

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
# Read the labels from top to bottom: each step is slower than the one above it.
# With the whole network on every device, a step would take only 12.4 s. But each device would have to hold 353 GB.
# The first plan that fits has `tensor` 8. With `tensor` 16 there is plenty of room, but now all activations leave the node,
# and a step takes 19.8 s instead of 14.5 s.
#
# So on 64 devices, *split the network over as many devices as memory demands, and no more*.
# All remaining devices go to data parallelism.
#
# ## When are there too many devices?
#
# More devices then mean more replicas, and at some point another replica hardly helps.
# To find that point, keep the network, the batch and `tensor` 8, and add replicas. More devices for the same batch: papers call this *strong scaling*.
# Here is how long the devices compute in a step, and how long their gradients take:

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
# But each device has as many gradients as before, so their all-reduce takes about as long as before.
# At about 2,048 devices, the lines cross. Beyond that, the devices exchange gradients for longer than they compute: the step is communication-bound.
#
# So a replica needs a certain number of tokens in each step, or its devices mostly wait.
# We call this number its **break-even batch**: at this many tokens, computing takes exactly as long as exchanging the gradients.
# You can work it out without the picture.

# %% predict-break-even [markdown]
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
# 4,100 tokens are two of our examples. With 512 examples, then, 256 replicas (the 2,048 devices of the picture) get two examples each, and already compute for less than half of each step.
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
    tokens = break_even_tokens(network, machine)
    print(f"{name}: {round(tokens, -2):,.0f}")

# %% h100-read [markdown]
# On H100s, a replica needs about three examples instead of two: its tokens take a third of the time, but its gradients take half, not a third.
# And if all-reduces are as slow as the measured one on 512 H100s, it needs almost six times as many.

# %% note-critical [markdown]
# Isn't this called *critical batch size*?
#
# Some authors do call it that. But in {lesson:faster}, the critical batch size was something else:
# the size of the whole batch beyond which more examples save hardly any steps
# ([McCandlish and others](https://arxiv.org/abs/1812.06162)). It depends on the data and on the network, but not on the devices.
#
# You need both. The critical batch size says how large the whole batch should be at most.
# The break-even batch says how large the share of a replica should be at least.
# So the first, divided by the second, is about how many replicas are worth having.

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
print(f"{len(found)} / {len(plans)}")
for seconds, plan in found[:3]:
    print(f"{seconds:.1f} s  {plan}")

# %% fastest-read [markdown]
# Of 30 plans, 5 fit. The explorer found 9, because its activations are smaller. But the fastest plan has the mesh 8 × 8 in both.
#
# The second plan has the same mesh, with one example at a time. It makes twice as many all-reduces of half the size,
# so it waits for twice as many latencies. The third has a replica on sixteen devices, and its activations leave the node.
#
# So the fastest plan has the smallest replicas that fit. Does that hold for any number of devices?

# %% predict-many [markdown]
# On 64 A100s, the fastest plan for a network of 18 billion parameters has `tensor` 8: eight devices share one copy of the network, and they are all in one node.
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
# A replica would fit into one node, and yet it spans two in the fastest plan. How long does each part of the step take, in both plans?

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
# The devices compute for 0.18 s in both plans. With `tensor` 16, the activations take 0.07 s longer, but the gradients take half as long, 0.18 s instead of 0.37 s.
#
# Why was it different on 64 devices? There, a replica took 64 examples in each step. Now it takes one or two.
# Activations are exchanged for each example, but gradients only once a step. So the fewer examples a replica has, the more its gradients count.
# And the larger `tensor` is, the fewer gradients each device has to exchange.
#
# So the rule holds *while each replica has plenty of tokens*. Near the break-even batch, a larger replica can be faster.
# Your planner finds that out because it tries every `tensor`, and so does the explorer: choose 4,096 devices at the top of this lesson, and its mesh is `batch` 256 × `model` 16.
#
# Now for the devices and the seconds that you wrote down. Here is the explorer once more, with the largest network and 4,096 H100s:

# %% largest-explorer tags=["modelled"]
TensorAndDataExplorer("146", "H100", devices=4096)

# %% largest-text [markdown]
# One copy of the network is spread over 32 devices, the size of `model`. And the upper bar says that of the 1.54 s, they compute for only 0.44 s.
#
# The 32 must come from memory. Here is what each device would hold for its parameters if 16 or 32 devices shared this network:

# %% largest
largest = Network(blocks=80, width=12288, heads=96)

for tensor in [16, 32]:
    plan = Plan(data=1, tensor=tensor, examples=1, microbatches=1)
    state = 16 * parameters_held(largest, plan)
    print(f"tensor {tensor}: {state / 1e9:5.1f} GB")

# %% largest-read [markdown]
# On 16 devices, the parameters alone don't fit. On 32, they leave 7 GB for activations, and the explorer needs only 4. So a replica takes 32 devices, which are four nodes.
#
# That explains the seconds, too. Every all-reduce of activations leaves the node, and together they take 0.72 s.
# And 128 replicas get only four of the 512 examples each. That is little to compute, so the gradients, with 0.38 s, take nearly as long.
#
# Memory forces the replicas out of their nodes, and there the devices mostly wait. You may doubt that such networks are really trained like this.

# %% true-text [markdown]
# ## Is any of this true?
#
# So far we have compared one planner with another. Now let's compare yours with a measurement.
#
# To measure how fast training is, Narayanan and others ran steps of this largest network, 145.6 billion parameters, on 1,536 A100s.
# By their figures, a step of 2,304 examples took 24.8 s. Here is what your planner says:

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
# Your planner's best step takes 39.9 s. That is 1.61 times as long as the step that they really ran!
#
# Computing isn't to blame. It takes 17.0 s, well below their 24.8 s. But the activations take another 22.4 s.
# In your planner, a replica doesn't even fit on 32 devices, so it has 48. These span six nodes, and all activations go between nodes.
#
# Narayanan and others had the same devices, the same links and the same 80 GB. So they must know a way to split a network
# that your planner doesn't know. In {lesson:stages} we go and find it.

# %% note-true [markdown]
# Why 48 devices and not 32, and where do the 24.8 s come from?
#
# Your planner needs 48 devices where the explorer needs 32, because its activations are larger. The note under *Does it fit?* says why.
# On each of 32 devices, they would take up 27 GB.
#
# For 4,096 devices, your planner finds no plan at all. There `tensor` must be a power of two: 32 is too small, and 64 doesn't divide the 96 heads.
#
# The 24.8 s are calculated from the paper, which reports 148 · 10¹² FLOPs a second for each device.
# These runs compute every forward pass twice, and the paper counts it twice. {Lesson:stages} says why they do it.
# If you divide the FLOPs of this lesson by 148 · 10¹², you get less.
#
# And how good is the explorer? It predicted steps on virtual CPUs between 10 % too short and 16 % too long, but these have no links.
# The page *How good is the model?* has all the published runs that we found.

# %% plain-heading [markdown]
# ## The plain program
#
# [`how_long.py`](../plain/how_long.py) is the planner of this lesson in one file. `python how_long.py 64 256` ranks the plans for 64 and for 256 devices.
# Put in your own network and your own links.

# %% takeaways [markdown]
# ## Takeaways
#
# - By our formula, a large all-reduce takes about twice the payload divided by the bandwidth, however many devices there are. Measured ones get slower with more nodes.
#   A small one takes as many latencies as there are messages that must follow one another.
# - While each replica has plenty of tokens, split the network over as many devices as memory demands, and no more.
#   With few tokens, gradients take most of the time, and more devices in a replica can be faster, even over two nodes.
# - Below its break-even batch, a replica exchanges gradients for longer than it computes. More devices then need a larger batch.

# %% score
score("how_long")
