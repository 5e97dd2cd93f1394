# %% [markdown]
# # Splitting the model
#
# A single weight matrix of 50,000 × 50,000 numbers takes 10 GB in float32.
# Its gradient takes another 10, and Adam's two slots take 20 more.
# That is 40 GB for one matrix. Two of them fill an A100 of 80 GB, and a large model has many.
#
# Data parallelism, which you have used so far, is no help.
# It gives every device a copy of the whole model, so a model that doesn't fit on one device doesn't fit on a thousand.
# More devices help only if you cut the matrices, and give each device a piece.
#
# In this lesson you do that. The model and the training step hardly change; the layouts do.
# The price is communication: devices that hold pieces of one model have to talk to one another in the middle of a step.
# One question runs through the whole lesson: *how much do they have to exchange?*
#
# **After this lesson you can**
#
# - split one model over several devices, and say what each of them holds and what it exchanges;
# - lay out consecutive layers so that they fit together;
# - spot a layout that costs too much before you train with it.
#
# **Time:** 60 minutes.
# **You need to know:** a training step and its all-reduces ({lesson:one_step}),
# and what products and sums of split matrices exchange ({lesson:communication}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## One cut through the hidden units
#
# Our network is the one you split in {lesson:whole_game}. Multiplying a batch `x` of 64 reviews, 1,200 features each, by `W1` gives 48 hidden units per review. Multiplying these by `W2` gives two logits.
#
# Let's first draw who holds what under data parallelism.
# A `Plan` names a mesh, and says which of its dimensions splits which axis. `Scheme` draws it:

# %% data
from course_lib import MeshSpec, Plan
from lessons.layouts.scheme import Scheme

drawn_axes = {
    "x": ("batch", "features"),
    "W1": ("features", "hidden"),
    "W2": ("hidden", "classes"),
}
sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}

row_of_eight = MeshSpec([("batch", 8)])
data_parallel = Plan("data", row_of_eight, {"batch": "batch"})
Scheme(data_parallel, drawn_axes, sizes)

# %% model-text [markdown]
# The reviews are divided among the eight devices, but every device holds all of both weights.
# More devices would make the strips of `x` thinner. They would never make `W1` smaller.
#
# So arrange the same eight devices as a grid of 4 × 2.
# Along the first dimension, `batch`, they still divide the reviews. Along the second, `model`, they divide the *hidden units*:

# %% model
grid = MeshSpec([("batch", 4), ("model", 2)])
splits = {"batch": "batch", "hidden": "model"}
model_parallel = Plan("model", grid, splits)
Scheme(model_parallel, drawn_axes, sizes)

# %% model-read [markdown]
# Follow one hidden unit through this picture.
# A *column* of `W1` computes it, and a *row* of `W2` uses it.
# So to halve the hidden units, you cut `W1` into a left and a right half, and `W2` into a top and a bottom half.
# This is the tensor parallelism of {lesson:whole_game}.
# This cut, columns first and rows second, is best known from Megatron-LM, where `W1` is **column-parallel**, `W2` **row-parallel**.
# TensorFlow's tutorial says *model parallelism*; hence the name of our mesh dimension.
#
# Now look at devices 0 and 1. They hold the same 16 reviews, but different halves of the hidden units.
# Together they make up one complete model, and the grid has four such pairs.
# Data parallelism kept eight copies of the model; the grid keeps four.
#
# ## The split in code
#
# To make the cut, you write a layout for each tensor. Here are all six:

# %% by-hand
tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
by_hand = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}

# %% mlp-text [markdown]
# `"model"` occurs three times, once for each tensor that has hidden units:
# in the columns of `W1`, in `b1`, and in the rows of `W2`.
#
# The model and the training step are those of {lesson:one_step}.
# Read them with one question in mind: which line says how a tensor is cut?

# %% mlp
from course_lib import shard


class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()

        def variable(name):
            if layouts is None:
                return tf.Variable(values[name])
            cut = shard(values[name], layouts[name])
            return dtensor.DVariable(cut)

        self.W1 = variable("W1")
        self.b1 = variable("b1")
        self.W2 = variable("W2")
        self.b2 = variable("b2")

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        return hidden @ self.W2 + self.b2


# %% train-step
@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% pieces-text [markdown]
# None does. Each variable takes its layout from the dictionary, and DTensor does the rest.
#
# Let's see what one device got. The next cell, which is folded, loads the reviews and draws the initial weights.

# %% values tags=["known"]
import numpy as np

from course_lib import collectives, data

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

normal = np.random.default_rng(0).normal
W1 = normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

# %% pieces
mlp = MLP(values, by_hand)
x = shard(train_x[:64], by_hand["x"])
y = shard(train_y[:64], by_hand["y"])

print("x ", dtensor.unpack(x)[0].shape)
print("W1", dtensor.unpack(mlp.W1.read_value())[0].shape)
print("W2", dtensor.unpack(mlp.W2.read_value())[0].shape)

# %% pieces-read [markdown]
# Device 0 has 16 reviews and half of each weight, just as in the picture.
# Half of `W1` also means half of its gradient.
# An all-reduce over `batch` still sums this gradient over the reviews.
# In {lesson:one_step}, that all-reduce carried 1,200 × 48 numbers of 4 bytes: 230,400 bytes.
# Now it carries 1,200 × 24 numbers: 115,200 bytes.
#
# So the cut makes the model smaller, and it even saves traffic. There must be a catch.
#
# ## What does the split cost?
#
# Under data parallelism, a step took six all-reduces:
# one for each of the four gradients, one for the loss, one for the accuracy.
# All of them ran over `batch`, because everything that the devices had to add up was a sum over reviews.
# Now a second axis is split, the hidden units. Does anything in a step sum over *them*?
#
# Walk through the step as device 0. You have 16 whole reviews and half of the hidden units.
# Can you compute your hidden units? Can you get from them to the logits?
# And, in the backward pass, to the gradients of your half of the weights?
# At each point, ask the question of {lesson:communication}: *does this sum run over an axis that is split?*

# %% predict-sums [markdown]
# A network has one hidden layer, `relu(x @ W1 + b1) @ W2 + b2`. Its input `x` is the data, and no gradient of `x` is needed.
# The reviews are split over `batch`, the hidden units over `model`.
# In one training step, forward and backward, how many all-reduces run over `model`?
#
# - [ ] `0`
#   Then each device would have all that it needs.
#   But a logit sums over all 48 hidden units, and no device has more than 24 of them.
# - [x] `1`
#   A logit sums over the hidden units, and they are split.
#   Nothing else sums over them: the gradient of a hidden unit sums over the two classes,
#   and the gradients of the weights sum over the reviews.
# - [ ] `2`
#   One is for the logits. The second would be for the gradient of the layer's input,
#   but this input is the data, and nobody needs its gradient.
# - [ ] `4`
#   That would be one for the gradient of each variable. But these sum over the reviews, so they run over `batch`.

# %% reveal-sums
found = collectives(train_step, mlp, x, y, 0.5)
over_model = []
for each in found:
    if "model" in each.mesh_dims:
        over_model.append(each)
reveal("splitting_the_model-sums", len(over_model))

# %% found-text [markdown]
# There is one, and it belongs to the forward pass. In the backward pass, nothing runs over `model`! Here is the whole list:

# %% found
for each in found:
    print(each)

# %% found-read [markdown]
# The all-reduce over `model` comes first, with 128 bytes.
# With its 24 hidden units and 24 rows of `W2`, device 0 has summed half of the terms of each logit, and device 1 the other half. The all-reduce adds these two sums: 16 × 2 logits of 4 bytes.
# The other six lines are those of data parallelism: accuracy, loss and four gradients.
# Three of the gradients are half as large as before.
#
# The number of hidden units plays no part in these 128 bytes.
# With 50,000 hidden units, devices 0 and 1 would still exchange 32 numbers.
# Tensor parallelism exchanges *activations*, the outputs of layers, and no weights.
# So the payload of the forward pass grows with the batch and the width of the output, but not with the number of hidden units in between.
#
# The lanes below show when this all-reduce happens. Press *Forward* until a band joins devices 0 and 1:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("model")

# %% lanes-read [markdown]
# Four short bands appear, one for each pair. That is the catch: all devices wait there, in the middle of the forward pass. In bytes, this network still gains: with the rings of {lesson:all_reduce}, a device sends 173,384 per step, against 404,236 under data parallelism.
#
# The backward pass needs no all-reduce over `model`, because our network has no layer in front of `W1`.
# A layer there would need the gradient of `x`, a sum over hidden units. So it would take an all-reduce over `model`, as in the residual network of {lesson:communication}.
# This is the price of tensor parallelism:
# *in a deep network, every pair of layers takes one all-reduce in the forward pass, and one in the backward pass.*
#
# Before we go deeper, let's make sure that the split model computes the same as a whole one.
# We train both for five steps, and compare their losses:

# %% same
from course_lib import about

one = MLP(values)
split_model = MLP(values, by_hand)
largest = 0
for start in range(0, 5 * 64, 64):
    rows_x = train_x[start : start + 64]
    rows_y = train_y[start : start + 64]
    on_one, _ = train_step(
        one, tf.constant(rows_x), tf.constant(rows_y), 0.5
    )
    split_x = shard(rows_x, by_hand["x"])
    split_y = shard(rows_y, by_hand["y"])
    on_eight, _ = train_step(split_model, split_x, split_y, 0.5)
    largest = max(largest, abs(float(on_eight) - float(on_one)))
print("largest difference of five losses", about(largest, 0, 1e-5))

# %% same-read [markdown]
# The losses agree, up to rounding.
#
# So far, TensorFlow has inserted the all-reduce. Now you place it yourself.
#
# **Exercise 1.** Write `logits_of(x, W1, b1, W2, b2, add_up)`, the forward pass as *one device* runs it.
# The first five arguments are what this device holds under the layouts `by_hand`:
# its rows of `x`, its columns of `W1`, its part of `b1`, its rows of `W2`, and all of `b2`.
# `add_up(array)` is the all-reduce over `model`.
# It sums the arrays that the devices along `model` pass to it, and returns the sum to each.
# Return the complete logits of the device's own rows.
# Use NumPy or TensorFlow.
#
# The check runs your function on one, two and four devices along `model`, with a `b2` that isn't zero.


# %% exercise-logits
def logits_of(x, W1, b1, W2, b2, add_up):
    # solution begin
    hidden = np.maximum(x @ W1 + b1, 0)
    partial = hidden @ W2
    return add_up(partial) + b2
    # solution end


# %%
check("splitting_the_model-logits", logits_of)

# %% exercise-read [markdown]
# The trap is `b2`. Every device holds all of it, so if you add it before the all-reduce, our pairs add it twice. With our `values` you wouldn't notice that in the first loss, because `b2` begins at zero.

# %% memory-text [markdown]
# ## A model that doesn't fit
#
# You know the price now. What do you get for it?
# Our network fits on any device, so let's do the sums for a network that doesn't.
# It has 32 pairs of layers. Each pair goes from 8,192 numbers up to 32,768 hidden units and back: 17 billion weights in all.
# In float32 a weight takes 4 bytes, its gradient 4, and Adam's two slots 8.
# We have eight A100s of 80 GB, and can arrange them in four ways:

# %% memory
WIDTH, HIDDEN, PAIRS = 8192, 32768, 32
weights = 2 * WIDTH * HIDDEN * PAIRS

# Each # is 5 GB; | is a full A100
for batch, model in [(8, 1), (4, 2), (2, 4), (1, 8)]:
    gigabytes = 16 * weights / model / 1e9
    print(f"batch {batch} × model {model}: ", end="")
    print(f"{gigabytes:.0f} GB on each device")
    signs = "#" * round(gigabytes / 5)
    print(signs[:16].ljust(16) + "|" + signs[16:])

# %% memory-read [markdown]
# The whole model takes 275 GB. Not even three A100s together hold that, and data parallelism puts all of it on each one.
# Split in two, it still doesn't fit. Split in four, it takes 69 GB, which leaves little room for the activations.
# Split in eight, it takes 34 GB.
#
# Only the size of `model` counts here. Even a thousand devices along `batch` would change nothing.
#
# ## Out of memory
#
# Let's run into this limit ourselves. For that, each device needs a memory of its own,
# but our eight virtual devices share the memory of one process.
# So we give each device its own process, with 1,050 MB beyond what TensorFlow needs to start.
# The network has two weights of 5,120 × 5,120 numbers. Weights, gradients and Adam's slots take 839 MB; whatever else a step computes comes on top.
#
# The program below becomes one device of the mesh, and limits its own memory.
# Then it makes only its own columns of `W1` and rows of `W2`. `DEVICES` is the number of devices that share the hidden units:
#
# ```python
# units = HIDDEN // DEVICES
# own_W1 = np.empty((WIDTH, units), "float32")
# own_W2 = np.empty((units, WIDTH), "float32")
# ```
#
# So with two devices, no process ever holds the whole model.
# The rest is a training step with a simplified Adam, without the correction for averages that begin at zero. The next two cells, both folded, write the program to a file. Just run them:

# %% program-file tags=["known"]
from pathlib import Path

# For %%writefile, which prints another message if there is no file yet
Path("one_device.py").touch()

# %% one-device tags=["known"]
# %%writefile one_device.py
"""One device with little memory: python one_device.py DEVICES."""

import resource
import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

DEVICES = int(sys.argv[1])  # how many share the hidden units
LIMIT = 1050  # MB, beyond what TensorFlow takes to start
WIDTH, HIDDEN = 5120, 5120

# This process is one device of the mesh
dtensor.initialize_accelerator_system(
    "CPU", num_logical_cpu_devices=1
)
if DEVICES == 1:
    create_mesh = dtensor.create_mesh
else:  # the other devices are other processes
    create_mesh = dtensor.create_distributed_mesh
mesh = create_mesh([("model", DEVICES)], device_type="CPU")
position = mesh.local_device_locations()[0]

WHOLE = dtensor.UNSHARDED
replicated = dtensor.Layout([WHOLE, WHOLE], mesh)
columns = dtensor.Layout([WHOLE, "model"], mesh)
rows = dtensor.Layout(["model", WHOLE], mesh)


def draw(seed, *shape):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape, "float32")


x = dtensor.pack([draw(1, 32, WIDTH)], replicated)
y = dtensor.pack([draw(2, 32, WIDTH)], replicated)

# From here on, this process may take LIMIT more
with open("/proc/self/status") as status:
    for line in status:
        if line.startswith("VmData:"):
            taken = int(line.split()[1]) * 1024
limit = taken + LIMIT * 10**6
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def make_weights():
    """Makes this device's columns of W1 and its rows of W2."""
    units = HIDDEN // DEVICES
    own_W1 = np.empty((WIDTH, units), "float32")
    own_W2 = np.empty((units, WIDTH), "float32")
    for unit in range(units):
        # Its own seed: a unit starts alike, whoever holds it
        number = position["model"] * units + unit
        own_W1[:, unit] = 0.02 * draw([1, number], WIDTH)
        own_W2[unit] = 0.02 * draw([2, number], WIDTH)
    return [
        dtensor.DVariable(dtensor.pack([own_W1], columns)),
        dtensor.DVariable(dtensor.pack([own_W2], rows)),
    ]


def zeros_like(weight):
    zeros = dtensor.call_with_layout(
        tf.function(tf.zeros), weight.layout, weight.shape
    )
    return dtensor.DVariable(zeros)


weights = make_weights()
means = [zeros_like(weight) for weight in weights]
squares = [zeros_like(weight) for weight in weights]
print("weights and slots: made", flush=True)


# A matrix product that finds no memory aborts the process.
# The update has no product, and fails with an error instead.
# So the gradients and the update are two functions
@tf.function
def gradients_of(x, y):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(x @ weights[0])
        loss = tf.reduce_mean((hidden @ weights[1] - y) ** 2)
    return loss, tape.gradient(loss, weights)


@tf.function
def update(gradients):
    # Adam; first compute everything, then write it
    updates = []
    for i in range(2):
        mean = 0.9 * means[i] + 0.1 * gradients[i]
        square = 0.999 * squares[i] + 0.001 * gradients[i] ** 2
        change = 1e-4 * mean / (tf.sqrt(square) + 1e-7)
        updates.append((mean, square, change))
    for i, (mean, square, change) in enumerate(updates):
        means[i].assign(mean)
        squares[i].assign(square)
        weights[i].assign_sub(change)


for step in range(1, 5):
    loss, gradients = gradients_of(x, y)
    update(gradients)
    print(f"step {step}: loss {float(loss):.2f}")
dtensor.barrier(mesh, "end")  # nobody leaves before the others

# %% whole-text [markdown]
# First we start a single device, with the whole model.
# `run_devices`, a function of this lesson, starts as many processes as we ask for, and returns what each of them printed.
# It needs Linux, and takes about ten seconds each time.

# %% one-process
from lessons.layouts.splitting_the_model.device_processes import (
    run_devices,
)

for device, printed in enumerate(run_devices("one_device.py", 1)):
    print("device", device)
    print(printed)

# %% one-process-read [markdown]
# OOM means "out of memory". The weights and the slots found room, but the first step didn't. Weights, slots and gradients take 839 of the 1,050 MB. But our step also computes all new slots and weight changes before it writes any.
#
# Under plain data parallelism, every device would have to hold all of this.
# Now we start the same program, with the same limit, as two processes:

# %% two-processes
for device, printed in enumerate(run_devices("one_device.py", 2)):
    print("device", device)
    print(printed)

# %% two-processes-read [markdown]
# Now it trains, and the loss falls! The step is the same, but `model` has size 2, so each process holds half of the hidden units.
# Both print the same losses, because the all-reduce of the forward pass gives both the same output.

# %% alternatives-text [markdown]
# ## Layers that must agree
#
# Back to the price. In our network, a forward pass cost 128 bytes, because the two weights fit together: both split the hidden units over `model`. What if they don't fit? We keep `W1` as it is, and lay out `W2` in four ways:

# %% alternatives
from lessons.layouts.splitting_the_model.alternatives import (
    Alternatives,
)

plans = [
    Plan("by rows", grid, {"hidden": "model"}),
    Plan("whole", grid, {}),
    Plan("by columns", grid, {"classes": "model"}),
    Plan("over batch", grid, {"hidden": "batch"}),
]
Alternatives("W2", ("hidden", "classes"), sizes, plans)

# %% four-text [markdown]
# The first layout is ours. Let's list what the first three exchange in a forward pass.
# One warning, from {lesson:communication}: our list shows a gather as an all-reduce.


# %% four
def forward(model, x):
    return model(x)


def model_with_W2(*entries):
    layouts = dict(by_hand)
    layouts["W2"] = dtensor.Layout(entries, mesh)
    return MLP(values, layouts)


by_rows = model_with_W2("model", WHOLE)
whole_W2 = model_with_W2(WHOLE, WHOLE)
by_columns = model_with_W2(WHOLE, "model")

print("by rows:   ", *collectives(forward, by_rows, x))
print("whole:     ", *collectives(forward, whole_W2, x))
print("by columns:", *collectives(forward, by_columns, x))

# %% over-batch-text [markdown]
# The third layout, *by columns*, is the dangerous one.
# It runs without a warning, its result is right, and it carries 24 times the bytes.
# A device that computes one column of the logits needs all 48 hidden units of its reviews.
# So each pair first gathers 16 × 48 numbers, all because of how 96 numbers are laid out.
#
# The fourth layout, *over batch*, is a mistake that you notice:

# %% over-batch tags=["error"]
from course_lib import last_line

over_batch = model_with_W2("batch", WHOLE)
try:
    collectives(forward, over_batch, x)
except tf.errors.UnknownError as error:
    print(last_line(error))

# %% four-read [markdown]
# TensorFlow refuses, because `W1` splits the hidden units over `model`, and `W2` splits them over `batch`.
#
# That leaves the second layout, *whole*. It costs no more than ours: each device takes the 24 rows it needs from its own copy.
# `W2` is small, so why not leave it whole?

# %% predict-whole [markdown]
# The mesh is `batch` 4 × `model` 2. A batch of 64 reviews is split over `batch`.
# The 48 hidden units (columns of `W1`) are split over `model`, and every device holds all of `W2`, 48 × 2 in float32.
# In the forward pass, an all-reduce over `model` adds up the logits: 128 bytes.
# How many bytes do the collectives over `model` carry in a whole step: forward, backward and update?
#
# - [ ] `128` 128 bytes
#   Think of the gradient of `W2`. From 24 hidden units, a device can compute only 24 of its 48 rows.
# - [ ] `320` 320 bytes
#   It is true that a device lacks only 24 rows of the gradient, 192 bytes.
#   But the payload of a gather is the whole array that it gathers: all 48 rows.
# - [x] `512` 512 bytes
#   A device has 24 hidden units, so it can compute 24 rows of the gradient of `W2`.
#   But its variable has 48 rows. So the halves are gathered: 48 × 2 numbers, 384 bytes, in addition to the 128.
# - [ ] `3200` 3,200 bytes
#   That adds the hidden units of 16 reviews, 3,072 bytes. But they are not gathered: both products use them in halves.

# %% reveal-whole
found = collectives(train_step, whole_W2, x, y, 0.5)
payload = 0
for each in found:
    if "model" in each.mesh_dims:
        payload += each.payload_bytes
reveal("splitting_the_model-whole", payload)

# %% whole-read [markdown]
# So leaving `W2` whole is free only in the forward pass.
# A device that updates all of `W2` needs the whole gradient, and gathering it costs 384 bytes.
# For the matrix of the opening, it would cost 10 GB in every step.
# Split by its rows, as in our layouts, `W2` needs no gather.

# %% note-indivisible [markdown]
# When must a variable stay whole?
#
# An axis can be split only into equal parts. Ten classes can't be divided among eight devices, so the last bias often stays whole.
# Or you pad the axis and ignore the padding: vocabularies are often padded to a multiple of the number of devices.
#
# If a variable stays whole, its optimizer may gather several times. Adam mixes the split gradient into its slots, so the new values of slots and weight come out split ({lesson:communication}). But all three are stored whole, so each assignment gathers. To gather only once, add one line before the update:
#
# ```python
# gradient = dtensor.relayout(gradient, weight.layout)
# ```
#
# Where a gradient already has the layout of its variable, this line does nothing and costs nothing.

# %% names-text [markdown]
# ## Names instead of layouts
#
# The mistakes above are all of one kind: *two tensors share an axis, but split it differently*.
# With six layouts you can still watch out for that. A large network has hundreds.
#
# So don't write layouts. For each tensor, write down the names of its axes.
# Then say once, for each name, which mesh dimension splits it.
# Libraries for JAX call such names *logical axes*.

# %% names
axes = {
    "x": ("batch", "features"),
    "y": ("batch",),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
}
splits = {"batch": "batch", "hidden": "model"}

# %% make-layouts-text [markdown]
# The layouts follow from these two tables:


# %% make-layouts
def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entries.append(splits.get(name, WHOLE))
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


layouts = make_layouts(axes, splits, mesh)
for tensor in axes:
    print(tensor, "as by hand:", layouts[tensor] == by_hand[tensor])

# %% names-read [markdown]
# `W1` and `W2` can't disagree about the hidden units any more, because only one line says how they are split.
#
# Two mistakes are still possible. Nothing checks the spelling, and an axis missing from `splits` stays whole: `classes` on purpose, `hiden` by accident.
# And if you want an axis split in one tensor and whole in another, it needs two names, and nothing checks that the two fit. The next section shows what that can cost.

# %% skip-text [markdown]
# ## Residual connections
#
# We claimed that a deep network pays two all-reduces for every pair of layers. Let's count them.
#
# A deep network has residual connections, as in {lesson:communication}:
# each block adds its output to its input, `stream + block(stream)`.
# What these connections carry, from the first block to the last, is the **residual stream**.
# Our network has two blocks. In each, `U` widens the 48 numbers of the stream to 192 hidden units, and `D` narrows them to 48 again:


# %% residual
class Residual(tf.Module):
    def __init__(self, values, layouts):
        super().__init__()

        def variable(name):
            cut = shard(values[name], layouts[name])
            return dtensor.DVariable(cut)

        self.W_in = variable("W_in")
        self.U1 = variable("U1")
        self.D1 = variable("D1")
        self.U2 = variable("U2")
        self.D2 = variable("D2")
        self.W_out = variable("W_out")

    def __call__(self, x):
        stream = x @ self.W_in
        stream = stream + tf.nn.relu(stream @ self.U1) @ self.D1
        stream = stream + tf.nn.relu(stream @ self.U2) @ self.D2
        return stream @ self.W_out


# %% residual-axes-text [markdown]
# The axes get names, and `hidden` is split over `model`, as before. The folded cell draws the weights.

# %% residual-axes
residual_axes = {
    "W_in": ("features", "stream"),
    "U1": ("stream", "hidden"),
    "D1": ("hidden", "stream"),
    "U2": ("stream", "hidden"),
    "D2": ("hidden", "stream"),
    "W_out": ("stream", "classes"),
}

# %% residual-values tags=["known"]
residual_sizes = {
    "features": 1200,
    "stream": 48,
    "hidden": 192,
    "classes": 2,
}
residual_values = {}
for name, (rows, columns) in residual_axes.items():
    shape = (residual_sizes[rows], residual_sizes[columns])
    array = normal(0, np.sqrt(1 / shape[0]), shape)
    residual_values[name] = array.astype("float32")

# %% residual-bytes-text [markdown]
# We add up the bytes of a step, separately for each mesh dimension:


# %% residual-bytes
def bytes_over(dim, found):
    total = 0
    for each in found:
        if dim in each.mesh_dims:
            total += each.payload_bytes
    return total


layouts = make_layouts(residual_axes, splits, mesh)
network = Residual(residual_values, layouts)
found_whole = collectives(train_step, network, x, y, 0.1)
print("over model", bytes_over("model", found_whole))
print("over batch", bytes_over("batch", found_whole))

# %% residual-read [markdown]
# The 12,288 bytes over `model` are four all-reduces of 3,072 bytes, one per block in the forward pass and one in the backward pass. Each adds up 16 × 48 numbers of the stream. So the claim holds.
#
# Far more bytes run over `batch`. Three quarters of them, 230,400, are the gradient of `W_in`.
# `W_in` is the largest weight of this network, and it is still whole.
# So let's split its columns, too. They are the axis `stream`, which we add to `splits`:

# %% repeated tags=["error"]
stream_splits = dict(splits)
stream_splits["stream"] = "model"
try:
    make_layouts(residual_axes, stream_splits, mesh)
except ValueError as error:
    print(last_line(error))

# %% first-text [markdown]
# TensorFlow refuses that. `U1` has a `stream` and a `hidden` axis, and one mesh dimension can't split both.
# So the columns of `W_in` need another name. We call them `first`:

# %% first
first_axes = dict(residual_axes)
first_axes["W_in"] = ("features", "first")
first_splits = {"batch": "batch", "hidden": "model", "first": "model"}

first_layouts = make_layouts(first_axes, first_splits, mesh)
network = Residual(residual_values, first_layouts)
found_split = collectives(train_step, network, x, y, 0.1)
print("over model", bytes_over("model", found_split))
print("over batch", bytes_over("batch", found_split))

# %% first-read [markdown]
# Over `batch` we saved half of the large gradient, as we hoped. But over `model`, a step now carries four times as many bytes!
#
# To see why, follow the stream from the entrance to the exit:
#
# ```text
# halves ─┬─────────────────+─ halves ─┬─────────────────+─ halves
#         └ gather ─ block ─┘          └ gather ─ block ─┘
# ```
#
# The columns of `W_in` are split, so the stream begins in halves: each device of a pair has half of the columns.
# A block needs whole rows, so the pair gathers them. The block puts out whole rows, too. But the stream they are added to is in halves, and so is the sum: each device drops the other columns, at no cost.
# So the second block has to gather the stream once more, and so would every further block.
#
# Here is everything that runs over `model`, one by one:

# %% first-list
for each in found_split:
    if "model" in each.mesh_dims:
        print(each)

# %% first-list-read [markdown]
# With `W_in` whole, there were four all-reduces of 3,072 bytes. Now there are ten collectives.
#
# The first five are the forward pass. Each block gathers the stream, then sums its product with `D` as before: four times 3,072 bytes. The 128 bytes are new: `stream @ W_out` now sums over a split stream.
#
# The backward pass suffers more. The gradient of `U1` is a product of two matrices, and now both of them are split over `model`.
# That costs a gather of 12,288 bytes and an all-to-all of 18,432 bytes, as the note below explains.
#
# We changed the layout of a single weight, `W_in`. The first block pays dearly, each later one pays for a gather, and no block looks wrong. One line cures it: relayout the stream once, before the first block.
#
# ```text
# halves ─ gather ─ whole ─┬────────+─ whole ─┬────────+─ whole
#                          └ block ─┘         └ block ─┘
# ```

# %% cured
whole_rows = dtensor.Layout(["batch", WHOLE], mesh)


class Cured(Residual):
    def __call__(self, x):
        stream = x @ self.W_in
        stream = dtensor.relayout(stream, whole_rows)  # new
        stream = stream + tf.nn.relu(stream @ self.U1) @ self.D1
        stream = stream + tf.nn.relu(stream @ self.U2) @ self.D2
        return stream @ self.W_out


network = Cured(residual_values, first_layouts)
found_cured = collectives(train_step, network, x, y, 0.1)

# %% cured-bytes
# Each # is 5,000 bytes over batch, each o 5,000 over model
for name, found in [
    ("W_in whole", found_whole),
    ("W_in split", found_split),
    ("cured", found_cured),
]:
    over_batch = bytes_over("batch", found)
    over_model = bytes_over("model", found)
    print(f"{name}: {over_batch:,} + {over_model:,}")
    print("#" * round(over_batch / 5000), end="")
    print("o" * round(over_model / 5000))

# %% cured-read [markdown]
# Now we have the best of both. Over `batch`, the large gradient is still halved.
# Over `model`, a step carries 15,360 bytes instead of 49,664: the four all-reduces of the two blocks, and one gather at the entrance.
# In the backward pass, the relayout only slices the gradient, which costs nothing.
#
# So here is a rule: *before the first block, give the residual stream the layout that the blocks need,
# and keep it to the last block.*
# Usually the stream has to be whole along `model`, and only the insides of the blocks are split.
# Exercise 2 has a network for which another split is better.

# %% note-large [markdown]
# Where do the 12,288 and the 18,432 bytes come from?
#
# The gradient of `U1` is the product of the stream, transposed, and the gradient of the hidden units.
# In layouts, that is `[model, batch] @ [batch, model]`, and one mesh dimension can't split both axes of the result.
# So TensorFlow gathers the gradient of the hidden units, 12,288 bytes, and computes the gradient of `U1` split by rows.
# But `U1` itself is split by columns, so an all-to-all of 18,432 bytes follows.
# In the second block, TensorFlow uses the gathered stream instead, and the gradient of `U2` comes out split by columns.
# We have not found out why it doesn't do so in the first block.
#
# The backward pass has three more lines. Twice 3,072 bytes add up the gradient of a block's input, as before.
# The 384 bytes gather the gradient of `W_out`, because `W_out` is whole.
#
# You can relayout each gradient to the layout of its variable right away.
# Then the two largest payloads disappear, but the gathers in front of the blocks stay.
#
# The same product also arises when you relayout a sum from whole rows to halves.
# TensorFlow then computes the sum itself in halves, and the gradient of the sum stays in halves.
# With one such line, `dtensor.relayout(stream + hidden @ D1, halves)`, and the sum of squares as the loss, that cost 36,864 bytes more than two relayouts: first to whole rows, then to halves.

# %% narrow-text [markdown]
# **Exercise 2.** These two blocks are narrow in the middle: the stream has 256 numbers, and a block only 64 hidden units.
# The mesh `narrow` has `batch` 2 × `model` 4.

# %% narrow
narrow = dtensor.create_mesh(
    [("batch", 2), ("model", 4)], device_type="CPU"
)


# x: 32 × 256, U1 and U2: 256 × 64, D1 and D2: 64 × 256
def narrow_loss(x, U1, D1, U2, D2):
    stream = x
    stream = stream + tf.nn.relu(stream @ U1) @ D1
    stream = stream + tf.nn.relu(stream @ U2) @ D2
    return tf.reduce_mean(stream**2)


# %% narrow-task [markdown]
# Lay out `x` and the four weights so that
#
# - the rows of `x` are split over `batch`,
# - each device holds at most a quarter of each weight,
# - and all collectives together carry at most 90,000 bytes, for the loss and the gradients of the four weights.
#
# If you split the hidden units, as before, they carry 114,692 bytes. `x` needs no gradient.
# Before you begin, ask of each product: which axis does it sum over, and how wide is its result?

# %% exercise-narrow
narrow_layouts = {}
# solution begin
# Split the wide axis, the stream
# Then a product with U adds up 16 × 64 numbers: 4,096 bytes
# With split hidden units, D adds up 16 × 256: 16,384 bytes
narrow_layouts["x"] = dtensor.Layout(["batch", "model"], narrow)
narrow_layouts["U1"] = dtensor.Layout(["model", WHOLE], narrow)
narrow_layouts["D1"] = dtensor.Layout([WHOLE, "model"], narrow)
narrow_layouts["U2"] = dtensor.Layout(["model", WHOLE], narrow)
narrow_layouts["D2"] = dtensor.Layout([WHOLE, "model"], narrow)
# solution end

# %%
check("splitting_the_model-narrow", narrow_layouts)

# %% links-text [markdown]
# ## Which dimension gets the fast links?
#
# So far we have counted bytes. How long they take depends on the links that carry them.
#
# Take the 17 billion weights from above, as 32 blocks of a residual network, on two nodes of eight A100s each.
# The mesh is `batch` 2 × `model` 8. Each device then holds an eighth of the model and works on 16,384 rows of the stream: eight texts of 2,048 words, say.
#
# Each block takes two all-reduces over `model`, so there are 64 in all. Each of them adds up 16,384 × 8,192 numbers.
# Over `batch`, one all-reduce can add up the gradients of a device's eighth of the weights:

# %% links tags=["modelled"]
BLOCKS, WIDTH, HIDDEN, ROWS = 32, 8192, 32768, 16384
activations = ROWS * WIDTH * 4  # bytes
gradients = 2 * BLOCKS * WIDTH * HIDDEN / 8 * 4

print(f"over model: 64 times {activations / 1e9:.2f} GB")
print(f"over batch: once {gradients / 1e9:.2f} GB")

# %% links-given [markdown]
# Only one of the two mesh dimensions can stay inside the nodes.
# The links are those of {lesson:all_reduce}: 240 GB/s inside a node, and 25 GB/s between nodes.
# A ring that leaves its node is as slow as its slowest link.
# The ring formula is from that lesson, too:

# %% ring
# Between two A100s in one node: bytes per second, seconds
INSIDE = 240e9, 3.4e-6
# From an A100 to another node
BETWEEN = 25e9, 14e-6


def ring_seconds(devices, num_bytes, bandwidth, latency):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (latency + chunk / bandwidth)


# %% predict-links [markdown]
# A mesh of `batch` 2 × `model` 8 lies on two nodes of eight devices.
# Links inside a node are about ten times as fast as links between nodes.
# In a step, 64 all-reduces over `model` carry 0.54 GB each, and one all-reduce over `batch` carries 8.59 GB.
# Which mesh dimension should stay inside the nodes?
#
# - [x] `model` `model`, with the many smaller payloads
#   64 × 0.54 GB is 34 GB, four times as much as the gradients.
#   And in a ring of eight, a device sends 1.75 times the payload, but in a ring of two only the payload itself.
# - [ ] `batch` `batch`, with the largest single payload
#   It is the largest payload, but it comes only once a step. The 64 others add up to 34 GB.
# - [ ] `either` either: the step takes about as long
#   The bytes over `model` are four times those over `batch`, and the links differ by a factor of ten.

# %% reveal-links
model_inside = 64 * ring_seconds(8, activations, *INSIDE)
batch_between = ring_seconds(2, gradients, *BETWEEN)
with_model_inside = model_inside + batch_between

batch_inside = ring_seconds(2, gradients, *INSIDE)
model_between = 64 * ring_seconds(8, activations, *BETWEEN)
with_batch_inside = batch_inside + model_between

answer = "model"
if with_batch_inside < with_model_inside:
    answer = "batch"
reveal("splitting_the_model-links", answer)

# %% seconds tags=["modelled"]
# Each # is 50 ms over batch, each o 50 ms over model
for name, over_model, over_batch in [
    ("model inside", model_inside, batch_between),
    ("batch inside", model_between, batch_inside),
]:
    print(f"{name}: {over_model:.2f} s over model,", end=" ")
    print(f"{over_batch:.2f} s over batch")
    print("#" * round(over_batch / 0.05), end="")
    print("o" * round(over_model / 0.05))

# %% seconds-read [markdown]
# With `model` inside the nodes, the exchanges take 0.6 seconds a step. With `batch` inside, they take 2.5 seconds.
# The devices, layouts and bytes are the same. The placement alone makes the exchanges four times as slow.
#
# This calculation leaves out a second reason to keep `model` inside.
# The gradients of one block can travel while the devices compute the gradients of the blocks before it.
# But an all-reduce of activations in the forward pass can't hide like that, because the next product needs its result.
#
# So, as a rule, *put `model` inside the node, and let only `batch` leave it.*
# In code, list the busier dimension last, as in {lesson:all_reduce}.
# With `[("batch", 2), ("model", 8)]`, devices 0 to 7 are one row of the grid, and share a node.
# The rule also tells you how far to go with tensor parallelism: usually to the border of the node.

# %% note-times [markdown]
# How far can you trust these times?
#
# They come from the ring formula of {lesson:all_reduce}, with its estimates for A100s. We have not measured them.
# They also assume that each GPU has a path of its own to the other node.
# NCCL has better algorithms than one ring through two nodes, but all of them pay for the slow links.
# In bfloat16 the activations have half as many bytes.
# With fewer rows, the difference fades: with 2,048 on each device instead of 16,384, both ways take about as long.
# Then only the second reason is left.
#
# {Lesson:how_long} turns this calculation into a planner, and compares it with a published run.

# %% plain-heading [markdown]
# ## The plain program
#
# [`splitting_the_model.py`](../plain/splitting_the_model.py) trains the residual network, in its cured layouts, on eight devices and on one.
# It needs only TensorFlow and NumPy, prints what each device holds, and fails if two losses differ by 1e-5 or more.

# %% takeaways [markdown]
# ## Takeaways
#
# - Split the hidden units: the columns of the first weight, the rows of the second. If the stream is wider, split the stream.
#   In a deep network, a pair of layers then takes one all-reduce in the forward pass, and one in the backward pass.
# - Layers that share an axis must split it in the same way, or change the layout in between.
#   TensorFlow catches only a few mistakes; the rest silently cost bytes, often only in the backward pass or the update.
#   So count the collectives of a whole step.
# - Give the residual stream the layout that the blocks need, before the first block, and keep it to the last.
#   Keep the mesh dimension that carries activations inside the node.
#
# Puzzles 4 to 7 on the page *Puzzles* ask you for such splits.
#
# {Lesson:any_mesh} splits the features as well, for examples that are too large for one device,
# and moves a half-finished run from one mesh to another.

# %% score
score("splitting_the_model")
