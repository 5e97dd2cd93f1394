# %% [markdown]
# # Scaling out
#
# A transformer is to be trained on 512 devices, or on 4,096.
# Which mesh, which axes split over which dimension, and how long does a step take?
# You want to know before you rent them.
#
# After this lesson you can
#
# - say which tensors a training step adds up among devices, and check it on eight virtual devices;
# - compute the time and the memory of a step from a few numbers of the machine,
#   and compare many meshes and plans;
# - write a transformer block with DTensor, train it equal to one device,
#   and move its checkpoint to another mesh.
#
# **Time:** 60 minutes.
# **You need to know:** collectives from {lesson:communication},
# named axes from {lesson:splitting_the_model}, checkpoints from {lesson:any_mesh}.
#
# > **Where this was run.** TensorFlow 2.21 on virtual CPUs.
# > What is said of GPUs and TPUs here is arithmetic, held against what others published; we ran none.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% scale-out-text [markdown]
# ## The finished thing
#
# Choose a network, a kind of device, and how many of them.
# The explorer tries meshes of `model`, which splits heads, hidden units and vocabulary (tensor parallelism),
# `stage`, which gives each stage some of the blocks (pipeline parallelism),
# and `batch`, which splits the examples (data parallelism),
# with the optimizer's state, the gradients and the variables split over `batch` or not
# (ZeRO-1 to ZeRO-3, which is also called FSDP), and with more or less computed again.
# It shows the fastest plans that fit: how long a step takes, and what a device has in memory.
# In this lesson you build a smaller one in cells, without stages and ZeRO;
# then the library's is held against what was published.
#
# Choose the largest network, 4,096 H100s and a batch of 2,048.
# Over how many devices does the fastest plan that fits split the network?

# %% scale-out tags=["modelled"]
from lessons.scale.how_long.explorer import ScaleOutExplorer

ScaleOutExplorer()

# %% ring-text [markdown]
# ## The time of an all-reduce
#
# In a ring each of $n$ devices sends $2(n-1)$ messages of an $n$-th of the payload ({lesson:all_reduce}).
# A message takes a fixed time, the *latency*, and then its bytes divided by the *bandwidth*.
# In trees the sums go up to a root and come down from there: some $2 \log_2 n$ messages follow each other.
# With a pair of trees about twice the payload goes through a device, as in a ring.
#
# The numbers below are for nodes of eight A100s (a *node* is a machine of its own),
# and close to those with which NVIDIA's library NCCL chooses between rings and trees:
# 240 GB/s each way inside a node, 25 GB/s from each device to other nodes.
# Measure yours before you trust them.

# %% ring tags=["modelled"]
import math

INSIDE, BETWEEN, PER_NODE = (240e9, 3.4e-6), (25e9, 14e-6), 8  # bytes a second, seconds of a message


def ring(num_devices, num_bytes, link):
    bandwidth, latency = link
    return 2 * (num_devices - 1) * (latency + num_bytes / num_devices / bandwidth)


def tree(num_devices, num_bytes, link):
    bandwidth, latency = link
    return 2 * math.log2(num_devices) * latency + 2 * num_bytes / bandwidth


print(f"8 kB: {1e3 * ring(8, 8e3, INSIDE):.2f} ms, 8 GB: {1e3 * ring(8, 8e9, INSIDE):.1f} ms")

# %% predict-tree [markdown]
# 512 devices form one ring, with the bandwidth and the latency between nodes on each of its links.
# With a payload of 1 MB the ring takes 14.4 milliseconds.
# How many does a tree take?
# The base-2 logarithm of 512 is 9.
#
# - [x] `0.33`
#   2 × 9 latencies, up and down, are 0.25, and twice the payload takes 0.08.
#   The ring has 1,022 messages of 2 kB: nearly all of its time is latency.
# - [ ] `7.2`
#   That is half of the ring's time, which is nearly all latency.
#   But the tree has 18 latencies in a row for 1,022.
# - [ ] `14.4`
#   In both about twice the payload goes through a device.
#   But here the latency decides, and the ring has 1,022 messages.
# - [ ] `28.8`
#   With a large payload both take about equally long; here the latency decides.

# %% reveal-tree
reveal("how_long-tree", round(1e3 * tree(512, 1e6, BETWEEN), 2))

# %% levels-text [markdown]
# Devices of a node are joined ten times as fast.
# So let an all-reduce that leaves the node have two levels: the devices of a node add up among themselves,
# each exchanges its part with those of its own place in the other nodes,
# and the devices of a node join the parts.
# An eighth of the payload is then for each device to exchange with other nodes.
# Between nodes the cell takes a ring or a tree, which is faster.
# It prints what 1 GB takes in one ring, in two levels, and for 64 devices in as many nodes.


# %% levels tags=["modelled"]
def all_reduce(num_devices, stride, num_bytes):
    inside = math.gcd(PER_NODE // stride, num_devices) if PER_NODE % stride == 0 else 1
    between, part = num_devices // inside, num_bytes / inside  # nodes, and what is left for them
    outside = min(ring(between, part, BETWEEN), tree(between, part, BETWEEN))
    return ring(inside, num_bytes, INSIDE) + outside


print(f"ring(512): {1e3 * ring(512, 1e9, BETWEEN):.0f} ms")
print(f"all_reduce(512, stride=1): {1e3 * all_reduce(512, 1, 1e9):.0f} ms")
print(f"all_reduce(64, stride=8): {1e3 * all_reduce(64, 8, 1e9):.0f} ms")

# %% stride-text [markdown]
# `stride` says how far apart the devices of a group are numbered.
# On the mesh `batch` 64 × `model` 8 those along `model` are neighbours, those along `batch` eight apart.
# No two of the latter share a node, so all that they exchange leaves it.
# The last dimension of a mesh stays in a node if its size divides eight:
# let it be the one that exchanges most.
#
# ## What a step adds up
#
# A product adds up over the axes that its result lacks.
# Where a plan splits such an axis, each device has a part of every sum,
# and an all-reduce adds the parts ({lesson:communication}).
# On the way back the gradient of a factor has the factor's axes,
# and adds up over those of the other two tensors that it lacks.
# One rule serves all three tensors of a product:
#
# > A tensor is added up over each mesh dimension that splits an axis of its product which the tensor lacks.
#
# It holds for sums that are no products, too: the mean of the losses,
# the squares of a normalisation, the sum of a softmax.
# Where several products read a tensor, the parts of its gradient are added on the device first.
# (A split sequence has more exchanges than the rule tells.)
#
# **Exercise 1.** Write `added_up(how, splits)`.
#
# - `how` is a product as `tf.einsum` has it, such as `"bsd,df->bsf"`; each letter is an axis.
# - `splits` says which mesh dimension splits an axis, such as `{"b": "batch", "f": "model"}`.
# - Return three sets of mesh dimensions: over which the gradient of the first factor is added up,
#   that of the second, and the result; with the examples above `[{"model"}, {"batch"}, set()]`.


# %% exercise-added
def added_up(how, splits):
    # solution begin
    tensors = how.replace("->", ",").split(",")
    axes = set("".join(tensors))
    return [{splits[axis] for axis in axes - set(own) if axis in splits} for own in tensors]
    # solution end


# %%
check("how_long-added", added_up)

# %% block-text [markdown]
# ## A transformer block
#
# Tokens of `vocabulary` kinds become vectors of `features` numbers.
# In the *attention* each of `heads` heads makes a query, a key and a value of each token;
# a token takes the values of those tokens whose keys are like its query.
# Two dense layers follow, with `hidden` units between them.
# What attention and dense layers make is added to `x`.
# Together they are a *block*; our network has one, and is called so, too.
#
# The plan splits the examples over `batch`, and heads and hidden units over `model`.
# Attention then needs no exchange until `out` adds up over the heads.

# %% shapes
import numpy as np

from course_lib import collectives, outcome, shard, yours_or_ours

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

SIZES = {"batch": 32, "sequence": 8, "vocabulary": 12, "features": 32, "heads": 4, "size": 8, "hidden": 64}
VARIABLES = {"embedding": ("vocabulary", "features"), "position": ("sequence", "features")}
VARIABLES |= dict.fromkeys(["query", "key", "value"], ("features", "heads", "size"))
VARIABLES |= {"out": ("heads", "size", "features"), "gain_1": ("features",), "gain_2": ("features",)}
VARIABLES |= {"up": ("features", "hidden"), "up_bias": ("hidden",), "down": ("hidden", "features")}
VARIABLES |= {"head": ("features", "vocabulary")}
SPLITS = {"batch": "batch", "heads": "model", "hidden": "model"}

# %% attend-text [markdown]
# **Exercise 2.** Write `attend(n, query, key, value)` with `tf.einsum` and `tf.nn.softmax`.
#
# - `n` is `[batch, sequence, features]`; the three weights are `[features, heads, size]`.
# - The score of a token for each token, itself too, is the product of its query with that one's key,
#   added up over `size` and divided by the root of `size`.
#   Softmax makes shares of all scores of a token.
# - Return the values, added up by these shares: `[batch, heads, sequence, size]`.
#
# The check has other sizes than `SIZES`.
# It calls your function in a `tf.function` on 4 × 2 devices, compares it with NumPy,
# and looks for collectives: there should be none.


# %% exercise-attend
def attend(n, query, key, value):
    # solution begin
    q, k, v = (tf.einsum("bsd,dhk->bhsk", n, each) for each in (query, key, value))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / query.shape[-1] ** 0.5
    return tf.einsum("bhst,bhtk->bhsk", tf.nn.softmax(scores), v)
    # solution end


# %%
check("how_long-attend", attend)

# %% block-why [markdown]
# Here is the rest: a normalisation stands before attention and before the dense layers,
# each place in the sequence has a vector of its own (`position`),
# and at the end `head` makes a logit for each token of the vocabulary.
# Where your `attend` is not right yet, the course's takes its place.
# At its end a layout for `query` is tried that no plan can have:
# `model` cannot split features and heads at once.

# %% block
attention = yours_or_ours("how_long-attend", attend)


def normalised(x, gain):
    return gain * x * tf.math.rsqrt(tf.reduce_mean(x * x, axis=-1, keepdims=True) + 1e-6)


def logits_of(block, tokens):
    x = tf.einsum("bsv,vd->bsd", tf.one_hot(tokens, SIZES["vocabulary"]), block.embedding) + block.position
    mixed = attention(normalised(x, block.gain_1), block.query, block.key, block.value)
    x = x + tf.einsum("bhsk,hkd->bsd", mixed, block.out)
    units = tf.einsum("bsd,df->bsf", normalised(x, block.gain_2), block.up) + block.up_bias
    x = x + tf.einsum("bsf,fd->bsd", tf.nn.relu(units), block.down)
    return tf.einsum("bsd,dv->bsv", x, block.head)


# %% place
def place(array, axes, mesh):
    if mesh is None:  # one device
        return tf.constant(array)
    return shard(array, dtensor.Layout([SPLITS.get(axis, dtensor.UNSHARDED) for axis in axes], mesh))


class Block(tf.Module):
    def __init__(self, values, mesh):
        super().__init__()
        kind = tf.Variable if mesh is None else dtensor.DVariable
        for name, axes in VARIABLES.items():
            setattr(self, name, kind(place(values[name], axes, mesh)))


def examples(number, mesh):
    tokens = np.random.default_rng(number).integers(0, 12, (32, 8)).astype("int32")
    pair = tokens, np.roll(tokens, 1, axis=1)  # to each place belongs the token before it
    return [place(each, ("batch", "sequence"), mesh) for each in pair]


# %% step
def step(block, tokens, targets, learning_rate):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits_of(block, tokens))
        loss = tf.reduce_mean(losses)
    weights = block.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # all gradients are there
        weight.assign_sub(learning_rate * gradient)
    return loss


shapes = {name: [SIZES[axis] for axis in axes] for name, axes in VARIABLES.items()}
draw = np.random.default_rng(0).normal
values = {name: draw(0, 0.2, shape).astype("float32") for name, shape in shapes.items()}
values |= {name: np.ones(shapes[name], "float32") for name in ("gain_1", "gain_2")}
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
print(outcome(dtensor.Layout, ["model", "model", "unsharded"], mesh))

# %% predict-model [markdown]
# How many all-reduces over `model` does a step of this block take?
# `model` splits the weights `query`, `key`, `value`, `out`, `up` and `down`.
#
# - [ ] `2`
#   Those are the two forward: `out` adds up over the heads, `down` over the hidden units.
#   On the way back the inputs of attention and of the dense layers have gradients that add up over them, too.
# - [x] `4`
#   Two forward, for `out` and `down`, and two on the way back.
#   Query, key and value have one input:
#   TensorFlow adds its three gradients on each device, and then once among devices.
# - [ ] `6`
#   That has an all-reduce for each of the three gradients of the attention's input.
#   TensorFlow adds these up on each device first.
# - [ ] `12`
#   That is two for each weight.
#   A product takes one only where it adds up over a split axis.

# %% reveal-model
observed = collectives(step, Block(values, mesh), *examples(0, mesh), 0.2)
reveal("how_long-model", sum("model" in each.mesh_dims for each in observed))

# %% rule-text [markdown]
# The others, over `batch`, are the gradient of each variable, and the mean of the loss.
# What is added up has the size of a tensor's part on one device, so the rule predicts the payloads, too.
# The library declares the same block by its axes, and goes through all of its products.
# With another `attend` than ours, also a right one, TensorFlow may exchange other sums.

# %% predicted
from course_lib import MeshSpec, Plan
from lessons.scale.how_long.networks import transformer

network = transformer(sequence=8, features=32, heads=4, vocabulary=12, hidden=64)
plan = Plan("4 × 2", MeshSpec([("batch", 4), ("model", 2)]), SPLITS)
told = [str(each.collective) for each in network.exchanges(plan, batch_size=32)]
seen = [str(each) for each in collectives(step, Block(values, mesh), *examples(0, mesh), 0.2)]
for exchange in sorted(set(told) | set(seen)):
    print(f"told {told.count(exchange)}, seen {seen.count(exchange)}: {exchange}")

# %% lanes-text [markdown]
# Here is the step as lanes, one for each device.
# Press *Forward*: the all-reduces light up one by one, each with its mesh dimension and its payload.

# %% lanes
from lessons.scale.how_long.block_explorer import BlockExplorer

BlockExplorer()

# %% train-text [markdown]
# A test holds this on six meshes, among them two of 6 devices, and with vocabulary and features split.
#
# ## Trained, and moved
#
# The block learns to name the token before each token (before the first: the last),
# which only its attention can tell.
# `train` saves at its end, and begins at the newest checkpoint if there is one.
# The cell after it prints the first losses and whether the last one on 4 × 2 is below 0.1,
# and counts the losses within 0.001 of one device.

# %% train
import tempfile

train_step = tf.function(step)


def train(dims, folder, steps):
    mesh = dims and dtensor.create_mesh(dims, device_type="CPU")
    count = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(block=Block(values, mesh), step=count)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    if newest := manager.latest_checkpoint:
        checkpoint.restore(newest).assert_existing_objects_matched()
    for _ in range(steps):
        yield float(train_step(checkpoint.block, *examples(int(count), mesh), 0.2))
        count.assign_add(1)
    manager.save()


# %% moved
folder = tempfile.mkdtemp()
trained = list(train([("batch", 4), ("model", 2)], folder, 50))
moved = list(train([("batch", 2), ("model", 4)], folder, 10))
one = list(train(None, tempfile.mkdtemp(), 60))
differences = np.abs(np.subtract(trained + moved, one))
print(f"{trained[0]=:.2f} {one[0]=:.2f} {trained[-1] < 0.1=}")
print(f"4 × 2: {sum(differences[:50] < 1e-3)} / 50, 2 × 4: {sum(differences[50:] < 1e-3)} / 10")

# %% cost-text [markdown]
# On 2 × 4 devices the training went on where it stood on 4 × 2:
# a checkpoint holds no mesh ({lesson:any_mesh}).
#
# ## The time and the memory of a step
#
# Now a network for hundreds of devices: 40 blocks with 6,144 features, 18.7 billion parameters
# (18.4 in the paper of Narayanan and others, 2021, which counts one matrix for `embedding` and `head`).
# Its products are all that we count;
# the library also counts normalisations, softmax, biases and the way of tensors to memory.
# The letters are `b` for the batch, `s` and `t` for the sequence, `d` features, `h` heads, `k` size,
# `f` hidden and `v` vocabulary.
# `sums` names each tensor that a plan adds up, over which mesh dimension, its axes, and how many there are;
# `result 6` is made by product 6, counted from 0.
#
# A product takes two operations for each combination of its letters, and the way back has two products more.
# Of a block only the input is kept: the rest is computed again on the way back, which makes four products.
# The batch is cut into four *micro-batches*, one after another.
# So activations and their gradients are added up four times a step,
# activations of blocks eight times, since they are computed twice.
# The gradients of weights add up on the device, and among devices once.
#
# An A100 makes 312 · 10¹² operations a second at most.
# We take 48 % of that: with it these cells come within 12 % of four trainings of that paper,
# which a test holds; the library, which counts more, takes 57 %.
# In mixed precision a number takes 2 bytes, its gradient 2, and Adam keeps 12:
# two averages, and the weight itself in float32.

# %% products
BLOCKS, MICROBATCHES = 40, 4
NUMBERS = {"b": 1024, "s": 2048, "t": 2048, "d": 6144, "h": 48, "k": 128, "f": 24576, "v": 51200}
PRODUCTS = [  # what is multiplied, how, and how often
    (("tokens", "embedding"), "bsv,vd->bsd", 1),
    (("normed", "query"), "bsd,dhk->bhsk", BLOCKS),
    (("normed", "key"), "btd,dhk->bhtk", BLOCKS),
    (("normed", "value"), "btd,dhk->bhtk", BLOCKS),
    (("queries", "keys"), "bhsk,bhtk->bhst", BLOCKS),
    (("shares", "values"), "bhst,bhtk->bhsk", BLOCKS),
    (("mixed", "out"), "bhsk,hkd->bsd", BLOCKS),
    (("normed again", "up"), "bsd,df->bsf", BLOCKS),
    (("units", "down"), "bsf,fd->bsd", BLOCKS),
    (("x", "head"), "bsd,dv->bsv", 1),
]
WEIGHTS = {"embedding", "query", "key", "value", "out", "up", "down", "head"}

# %% sums
rule = yours_or_ours("how_long-added", added_up)


def sums(splits):
    found = {}
    for number, (names, how, times) in enumerate(PRODUCTS):
        tensors = zip((*names, f"result {number}"), how.replace("->", ",").split(","), rule(how, splits))
        for name, axes, dims in tensors:
            for dim in dims:
                found[name, dim] = axes, times  # once for each tensor, whoever reads it
    return found


sums({"b": "batch", "h": "model", "f": "model"})


# %% cost tags=["modelled"]
def count(axes, local):
    return math.prod(local[axis] for axis in {*axes} & {*local})


def cost(splits, mesh):
    local = {axis: size / mesh[splits[axis]] if axis in splits else size for axis, size in NUMBERS.items()}
    local["b"] /= MICROBATCHES
    flops = sum(2 * times * (4 if times > 1 else 3) * count(how, local) for _, how, times in PRODUCTS)
    parts = {"computing": MICROBATCHES * flops / (0.48 * 312e12), "batch": 0, "model": 0}
    for (name, dim), (axes, times) in sums(splits).items():
        twice = name.startswith("result") and times > 1  # computed again on the way back
        passes = 1 if name in WEIGHTS else MICROBATCHES * (1 + twice)
        stride = mesh["model"] if dim == "batch" else 1  # the devices of `model` are neighbours
        parts[dim] += times * passes * all_reduce(mesh[dim], stride, 2 * count(axes, local))
    numbers = sum(count(axes, local) * times for axes, times in sums({"b": "batch"}).values())
    kept = BLOCKS * count("bsd", local) + sum(count(how.split("->")[1], local) for _, how, _ in PRODUCTS)
    return parts, numbers * (2 + 2 + 12) + 2 * kept


# %% predict-critical [markdown]
# Computing takes longer, the more tokens of the batch a device has; the all-reduce of the gradients does not:
# it has as many bytes as the weights.
# The critical batch is the number of tokens on each device at which both take equally long.
# Which power of ten is it for the network above, if each of 512 devices could hold all of its weights?
# A parameter takes 8 operations a token, at 150 · 10¹² a second.
# Its gradient of 2 bytes crosses each link about twice: all of it inside a node, at 240 GB/s,
# and an eighth of it, for each device of a node, between nodes, at 25 GB/s.
#
# - [ ] `10`
#   For 10 tokens a parameter computes for 5 · 10⁻¹³ s.
#   Its gradient takes about 3.7 · 10⁻¹¹ s, some seventy times as long.
# - [x] `1000`
#   Inside the node a gradient takes some 1.7 · 10⁻¹¹ s, and between nodes 2 · 10⁻¹¹ s.
#   In this time a parameter computes for some 700 tokens; the nearest power of ten is 1000.
# - [ ] `100000`
#   With 100,000 tokens a device computes some 150 times as long as it exchanges.

# %% reveal-critical
parts, _ = cost({"b": "batch"}, {"batch": 512, "model": 1})
critical = NUMBERS["b"] * NUMBERS["s"] / 512 * parts["batch"] / parts["computing"]
reveal("how_long-critical", 10 ** round(math.log10(critical)))

# %% planner-text [markdown]
# At the critical batch at least half of a step is exchange, unless it overlaps with computing:
# stay well above it.
# Each plan has its own: where `model` is 8, all that a device exchanges over `batch` leaves the node,
# and the critical batch is some 3,200 tokens, which the eight devices of `model` share.
# More devices then need a larger batch, which a training may not bear.
#
# ## All plans
#
# `plans` goes through all ways to make a mesh `batch` × `model` of so many devices,
# and all choices of what `model` splits: heads, hidden units, vocabulary.
# What does not divide is left out.
# For five sizes of `model` the cell after it prints the fastest plan, whether it fits into memory or not.

# %% plans
from itertools import combinations


def plans(num_devices):
    for model in (size for size in range(1, num_devices + 1) if num_devices % size == 0):
        mesh = {"batch": num_devices // model, "model": model}
        for axes in (axes for count in range(4) for axes in combinations("hfv", count)):
            splits = {"b": "batch", **dict.fromkeys(axes, "model")}
            whole = all(NUMBERS[axis] % mesh[dim] == 0 for axis, dim in splits.items())
            if whole and (model > 1) == bool(axes) and NUMBERS["b"] % (mesh["batch"] * MICROBATCHES) == 0:
                parts, num_bytes = cost(splits, mesh)
                yield model, "".join(axes), num_bytes, parts


# %% best tags=["modelled"]
for wanted in (1, 2, 4, 8, 16):
    found = [each for each in plans(256) if each[0] == wanted]
    model, axes, num_bytes, parts = min(found, key=lambda each: sum(each[-1].values()))
    print(f"{model=}: {sum(parts.values()):.3g} s, {num_bytes / 1e9:.3g} GB, splits {axes or '-'}")

# %% predict-node [markdown]
# On 256 A100s with 80 GB, a network of 18.7 billion parameters fits with `model` 8 or 16.
# With 4 it is a little too large.
# With 8 the all-reduces over `model` stay in a node of eight, with 16 they extend over two nodes.
# How many times as long as among 8 devices does an all-reduce of 1 GB take among 16?
# A link carries 240 GB/s in a node, and 25 GB/s between nodes.
#
# - [ ] `1.0`
#   In a ring a device sends about as many bytes among 16 as among 8.
#   But here an eighth of the payload has to leave the node, at a tenth of the speed, and that takes longer.
# - [x] `1.7`
#   Within the node it takes as long as before: a device sends 1.75 times the payload.
#   Then it exchanges an eighth of the payload with one other device, at a tenth of the speed:
#   0.7 times as long.
# - [ ] `2.0`
#   The group is twice as large, but what a device sends in it is not.
# - [ ] `10`
#   That would be all of the bytes at a tenth of the speed.
#   With two levels a device exchanges an eighth of them with the other node.

# %% reveal-node
reveal("how_long-node", round(all_reduce(16, 1, 1e9) / all_reduce(8, 1, 1e9), 1))

# %% node-text [markdown]
# `model` 16 also leaves half as many places for `batch`, so a device has twice the examples:
# in all, its all-reduces over `model` take 3.3 times as long as with `model` 8.
#
# In the explorer the fastest plan for the largest network, 4,096 H100s and a batch of 2,048
# splits it over 8 devices only, `stage` 4 × `model` 2,
# since gradients and the optimizer's state are split over `batch` as well (ZeRO-2).
# Nearly as fast is `stage` 4 × `model` 4 with the state alone (ZeRO-1).
# A batch of 512 has fewer examples to share out along `batch`: there the network is split over 64.
#
# Where memory decides, and not the batch, split the network as far as it must be;
# with `model` beyond a node only where nothing else is left.
# The other devices go to `batch`, well above the critical batch.
#
# ## Held against what was published
#
# The arithmetic knows no kernel, no cache and no congestion.
# How far off is the library's, which the explorer shows?
# It has one fitted constant, the share of its peak that an A100 reaches
# (the explorer takes it for all devices): it is fitted to the first row below.
# All else is predicted.
# Bandwidths are as the source tells them;
# inside a node of what was measured on GPUs they are NCCL's, as are all latencies of GPUs;
# those between nodes of H100s are assumed.
# Rows that say "calculated" are others' arithmetic;
# the others follow from measurements, such as operations or bytes a second.

# %% published tags=["modelled"]
from lessons.scale.how_long.published import others, trainings

for training in trainings()[:10]:
    print(training.row)
for row in others():
    print(row)

# %% measured-text [markdown]
# Whole steps of one paper's ten networks are off by 0 to +23 %: as a rule the more, the larger the network.
# The site's page *How good is the model?* has 37 more trainings, and says where the model fails.
# Measured collectives of 4 or 8 devices are off by −53 to +22 %;
# those of 64 and 512 H100s by −49 and −83 %.
# Other calculations come out within 27 %, but for the critical batch of 256 H100s (+74 %):
# there the two levels of an all-reduce run at once, here one after the other.
#
# And here, on virtual CPUs?
# `make results` measured steps of the block on six meshes, with two batches each.
# Two constants, the time of an operation and of a byte that is sent, come from three of the meshes;
# below are the other three, between 10 % too short and 16 % too long.
# Virtual devices share two cores and one memory, so this says nothing of links.

# %% measured
from lessons.scale.how_long.measured_steps import measured_steps

measured_steps()

# %% code-text [markdown]
# ## The same plan in JAX and PyTorch
#
# A plan is names, and other frameworks take the same names.
# This is the code of `plan` in JAX; `"PyTorch"` and `"TensorFlow"` are the other two.

# %% code
from course_lib import code_of

print(code_of(plan, "JAX"))

# %% takeaways [markdown]
# ## The plain programs
#
# Now write the block alone, without the library:
# train it on 4 × 2 devices, hold each loss against one device, and go on from its checkpoint on 2 × 4.
# For `shard` take `cut` and `dtensor.pack`, as in {lesson:mesh_and_layout}.
# If losses part or become nan, look at one device first: too large a learning rate looks like a wrong layout.
# [`transformer_block.py`](../plain/transformer_block.py) is our program that does it.
# [`how_long.py`](../plain/how_long.py) is a planner that has stages and ZeRO too,
# and meets the ten trainings above within 20 %: `python how_long.py 256 512`.
#
# The site's page of puzzles has twelve plans to find, from a vector's to a transformer's on 4,096 devices.
#
# ## Takeaways
#
# - A tensor is added up over each mesh dimension that splits an axis of its product which the tensor lacks.
# - Keep the dimension that exchanges most within a node:
#   put it last in the mesh, with a size that divides the devices of a node.
# - Below the critical batch the all-reduce of the gradients takes longer than all computing.

# %% score
score("how_long")
