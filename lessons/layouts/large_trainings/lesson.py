# %% [markdown]
# # What do large training runs add?
#
# Once its batches had grown to full size, GPT-3 learned from [3.2 million tokens](https://arxiv.org/abs/2005.14165) in every single training step.
# A device can work on a few thousand at a time. Give eight devices 4,096 tokens each, and one step takes about a hundred passes.
# If they exchange their gradients after each pass, they send a hundred times as much as they need to.
#
# Those many passes are only the first thing that a recipe for a large model adds to the step you know.
# It clips the gradient, multiplies in 16 bits, changes the learning rate from step to step,
# and may drop random units.
#
# *What does each of them add to a step?* Each time we look at what the devices exchange,
# and whether they still compute what one device computes. A table at the end adds the memory.
# One needs a trick. Two others can silently give a different result from one device.
#
# **After this lesson you can**
#
# - accumulate gradients over many micro-batches, and exchange them once;
# - clip gradients that are split over devices, and train with products in bfloat16;
# - use dropout that doesn't depend on the layout, and put all of it into one step.
#
# **Time:** 35 minutes.
# **You need to know:** tensor parallelism ({lesson:splitting_the_model}),
# and the run on any mesh ({lesson:any_mesh}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-heading [markdown]
# ## The step that you know
#
# The running example is that of {lesson:any_mesh}: film reviews, a network of 1,200 → 48 → 2, and Adam.
# The first four cells are folded, since you know what is in them.
# Two things differ. The training step comes in two halves, `gradients_of` and `update`,
# because the recipe will put things in between. And `gradients_of` takes the forward pass as an argument.

# %% data tags=["known"]
import numpy as np

from course_lib import data, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}


# %% forward tags=["known"]
def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def gradients_of(forward, weights, x, y):
    with tf.GradientTape() as tape:
        logits = forward(weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    return loss, tape.gradient(loss, weights)


# %% update tags=["known"]
def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


def update(model, gradients, step, learning_rate):
    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(
            weight, mean, square, gradient, step, learning_rate
        )

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)


# %% model tags=["known"]
def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


# %% layouts-text [markdown]
# We train on two meshes: a row of eight, which is data parallelism, and a grid of 4 × 2, which splits the hidden units as well.
# The next cell, folded too, turns names of axes into layouts and places a batch.

# %% make-layouts tags=["known"]
axes = {
    "x": ("batch", "features"),
    "y": ("batch",),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
}


def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entry = splits.get(name, WHOLE)
            if entry not in mesh.dim_names:
                entry = WHOLE
            entries.append(entry)
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


def batch_of(first, size, layouts):
    rows = slice(first, first + size)
    x = place(train_x[rows], layouts.get("x"))
    y = place(train_y[rows], layouts.get("y"))
    return x, y


# %% meshes
splits = {"batch": "batch", "hidden": "model"}

row_mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
row = make_layouts(axes, splits, row_mesh)

grid_mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
grid = make_layouts(axes, splits, grid_mesh)

# %% baseline-text [markdown]
# With the two halves, a training step takes two lines. On the row, what do the devices exchange for a batch of 64?

# %% baseline
from course_lib import collectives


@tf.function
def train_step(model, x, y, step, learning_rate):
    loss, gradients = gradients_of(logits_of, model.weights, x, y)
    update(model, gradients, step, learning_rate)
    return loss


STEP = np.float32(1)
RATE = np.float32(3e-3)
x, y = batch_of(0, 64, row)
for each in collectives(train_step, Model(row), x, y, STEP, RATE):
    print(each)

# %% baseline-read [markdown]
# The loss, and four gradients: five all-reduces of 230,988 bytes together.
# Nearly all of these bytes are the gradient of `W1`. Remember the list, because every section compares with it.
#
# ## Many micro-batches, one step
#
# Suppose now that a device of the row has room for only two reviews at a time.
# The batch of 64 then comes in four **micro-batches** of 16, two reviews for each device.
#
# The step can stay the same. The gradient of a batch is a mean over its reviews,
# and the mean of 64 numbers is the mean of four means of 16.
# So we compute a gradient for each micro-batch, divide each by four, and sum. Then we update the weights once.
# That is **gradient accumulation**:


# %% unrolled
@tf.function
def accumulating_step(model, micro_batches, step, learning_rate):
    mean_loss = 0.0
    total = dict.fromkeys(values, 0.0)
    for x, y in micro_batches:
        loss, gradients = gradients_of(logits_of, model.weights, x, y)
        mean_loss += loss / len(micro_batches)
        for name, gradient in gradients.items():
            total[name] += gradient / len(micro_batches)
    update(model, total, step, learning_rate)
    return mean_loss


# %% predict-accumulated [markdown]
# On eight devices, a data-parallel step with one batch of 64 exchanges 230,988 bytes: the loss and the gradients of all weights.
# Now the batch comes in four micro-batches of 16. The weights are replicated: every device holds all of them.
# `total` adds up the gradients of the four, and Adam then updates the weights once.
# Each micro-batch also has its loss. How many bytes do all collectives of this step carry?
#
# - [ ] `57747`
#   A micro-batch has a quarter of the reviews. But its gradient is as large as the weights, however few the reviews are.
# - [ ] `230988`
#   It would be enough to exchange once, at the end. But nothing in the program tells DTensor to wait.
# - [x] `923952`
#   DTensor adds up a gradient over the devices as soon as it has been computed, and that happens four times.
#   A layout can only say that a tensor is split or replicated. It can't say "still to be added up".

# %% reveal-accumulated
micro_batches = []
for first in range(0, 64, 16):
    micro_batches.append(batch_of(first, 16, row))

found = collectives(
    accumulating_step, Model(row), micro_batches, STEP, RATE
)
total_bytes = 0
for each in found:
    total_bytes += each.payload_bytes
reveal("large_trainings-accumulated", total_bytes)

# %% drawn-text [markdown]
# Four times the bytes, for the same update. With GPT-3's hundred micro-batches, it would be a hundred times.
# In a drawing, where `1` is the first micro-batch and `═` an exchange of all gradients:
#
# ```text
# what we have   1 ═ 2 ═ 3 ═ 4 ═ update
# what we want   1   2   3   4 ═ update
# ```
#
# PyTorch users know two ways to get the second line. `DistributedDataParallel` has `no_sync()`,
# which leaves the gradients on their devices for a while. PyTorch's DTensor has a third kind of placement beside
# split and replicated: `Partial`, for sums that are still to be added up. TensorFlow's DTensor has neither.

# %% note-forms [markdown]
# Does a loop or a call for each micro-batch help?
#
# No. We tried a `tf.while_loop`, and one call of a `tf.function` for each micro-batch, with variables that hold the sums.
# Both exchange five times in every micro-batch, 923,952 bytes a step. (The list shows a collective inside a loop only once.)
#
# They help with memory, though. Written as above, all four micro-batches are in one graph, and none waits for the one before it.
# So TensorFlow may keep the activations of several at the same time.

# %% axis-text [markdown]
# ## Sums that stay where they are
#
# How do you tell DTensor to leave eight partial sums on eight devices? Give them an axis.
#
# Eight partial sums of `W1`'s gradient are a single tensor of shape 8 × 1,200 × 48, and its first axis can be split over `batch`.
# This layout says precisely what we mean: the eight parts are *different*, and each device holds its own.
# To get such gradients, the weights need that axis, too. So make eight copies of them, one for each device.
#
# Here is the picture. In the tensor `copies`, a row holds the 1,200 × 48 weights of one copy, laid out flat:

# %% copies-picture tags=["known"]
from course_lib import MeshSpec, Plan
from lessons.layouts.scheme import Scheme

drawn_axes = {
    "x": ("batch", "features"),
    "W1": ("features", "hidden"),
    "copies": ("copy", "weights"),
}
sizes = {"batch": 16, "features": 1200, "hidden": 48}
sizes.update({"copy": 8, "weights": 57600})
own_copies = {"batch": "batch", "copy": "batch"}
Scheme(
    Plan("copies", MeshSpec([("batch", 8)]), own_copies),
    drawn_axes,
    sizes,
)

# %% copies-read [markdown]
# All eight devices hold the same `W1`. Of `copies`, each holds one row.
# A row is as large as `W1`, but it is a slice of something larger, and may differ from the rest.
#
# So device 3 multiplies *its* two reviews by *its* copy, and gets *its* gradient. No sum runs over devices.
#
# In code, every tensor of a micro-batch gets the new axis, which we call `copy`.
# Like `batch`, it is split over the mesh dimension `batch`.
# A bias also gets a middle axis of length 1, `one`, so that it broadcasts over its copy's rows.

# %% copy-layouts
copy_axes = {
    "x": ("copy", "rows", "features"),
    "y": ("copy", "rows"),
    "W1": ("copy", "features", "hidden"),
    "b1": ("copy", "one", "hidden"),
    "W2": ("copy", "hidden", "classes"),
    "b2": ("copy", "one", "classes"),
    "losses": ("copy",),
}
splits["copy"] = "batch"
row_copies = make_layouts(copy_axes, splits, row_mesh)
grid_copies = make_layouts(copy_axes, splits, grid_mesh)

# %% copies-of-text [markdown]
# Each micro-batch makes the copies from the weights. Here `model.copies` is 8:


# %% copies-of
def copies_of(model):
    copies = {}
    for name, weight in model.weights.items():
        # W1: (1, 1200, 48), b1: (1, 1, 48)
        one = tf.reshape(weight, [1, -1, weight.shape[-1]])
        # W1: (8, 1200, 48), b1: (8, 1, 48)
        copy = tf.tile(one, [model.copies, 1, 1])
        layout = model.copy_layouts.get(name)
        if layout is not None:  # it is None on one device
            copy = dtensor.relayout(copy, layout)
        copies[name] = copy
    return copies


# %% sums-text [markdown]
# `tf.tile` asks for eight copies, but the relayout keeps only one on each device, and TensorFlow doesn't even make the rest.
#
# The sums are variables of the model: one for each gradient, with the shape and layout of the copies, and one for the losses.


# %% accumulating
class Accumulating(Model):
    def __init__(self, layouts, copies, copy_layouts):
        super().__init__(layouts)
        self.copies = copies
        self.copy_layouts = copy_layouts
        self.sums = {}
        for name, copy in copies_of(self).items():
            zeros = np.zeros(copy.shape, "float32")
            layout = copy_layouts.get(name)
            self.sums[name] = variable(zeros, layout)
        zeros = np.zeros(copies, "float32")
        self.losses = variable(zeros, copy_layouts.get("losses"))


# %% gradients-of-copies-text [markdown]
# Now comes the line on which everything depends. In `gradients_of`, the loss is one number, the mean over all reviews.
# Here we take the mean over each copy's own reviews:


# %% gradients-of-copies
def gradients_of_copies(forward, copies, x, y):
    with tf.GradientTape() as tape:
        tape.watch(copies)  # new: they are not variables
        logits = forward(copies, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses, axis=1)  # new: one per copy
    return loss, tape.gradient(loss, copies)


# %% add-text [markdown]
# So `loss` is a vector of eight losses. What is the gradient of a vector?
# `tape.gradient` differentiates the *sum* of its entries, and here that is just what we need.
# Copy 3 enters the loss of device 3 and no other loss. So the gradient of the sum with respect to copy 3
# is the gradient of that one loss, and device 3 can compute it without hearing from anyone.
#
# What remains is to add the gradients to their sums:


# %% add
@tf.function
def add_micro_batch(model, x, y):
    copies = copies_of(model)
    loss, gradients = gradients_of_copies(logits_of, copies, x, y)
    for name, gradient in gradients.items():
        model.sums[name].assign_add(gradient)
    model.losses.assign_add(loss)


# %% micro-batch-text [markdown]
# The folded cell places a micro-batch with its new axis. Then we can ask what the devices exchange for it:


# %% micro-batch tags=["known"]
def micro_batch(first, model):
    x = train_x[first : first + 16].reshape(model.copies, -1, 1200)
    y = train_y[first : first + 16].reshape(model.copies, -1)
    x = place(x, model.copy_layouts.get("x"))
    y = place(y, model.copy_layouts.get("y"))
    return x, y


# %% micro-batch-list
on_row = Accumulating(row, 8, row_copies)
x, y = micro_batch(0, on_row)
print(collectives(add_micro_batch, on_row, x, y))

# %% mean-gradients-text [markdown]
# The list is empty. The devices exchange nothing at all!
#
# After the last micro-batch, we take the mean of the sums over the copies and divide it by the number of micro-batches.
# That is the gradient of the whole batch:

# %% mean-gradients
MICRO_BATCHES = 4


def mean_gradients(model):
    gradients = {}
    for name, weight in model.weights.items():
        mean = tf.reduce_mean(model.sums[name], axis=0)
        mean = tf.reshape(mean, weight.shape)
        gradients[name] = mean / MICRO_BATCHES
    return gradients


# %% finish-text [markdown]
# That happens once a step. Then the weights are updated, and the sums go back to zero:


# %% finish
def reset(model):
    for total in [*model.sums.values(), model.losses]:
        total.assign(tf.zeros_like(total))


@tf.function
def finish(model, step, learning_rate):
    gradients = mean_gradients(model)
    loss = tf.reduce_mean(model.losses) / MICRO_BATCHES
    update(model, gradients, step, learning_rate)
    reset(model)
    return loss


# %% finish-list
for each in collectives(finish, on_row, STEP, RATE):
    print(each)

# %% finish-list-read [markdown]
# These are the five all-reduces that we started with, in another order: 230,988 bytes. They come once a step, and a hundred micro-batches would carry no more.
#
# Now split the hidden units, too. On the grid, a device gets four reviews of a micro-batch, but only half of the hidden units:

# %% grid-lists
on_grid = Accumulating(grid, 4, grid_copies)
x, y = micro_batch(0, on_grid)
print("in a micro-batch:")
for each in collectives(add_micro_batch, on_grid, x, y):
    print(" ", each)
print("at the end:")
for each in collectives(finish, on_grid, STEP, RATE):
    print(" ", each)

# %% grid-lists-read [markdown]
# Here a micro-batch can't do without an exchange.
# The two devices along `model` hold different hidden units, and add up what these contribute to the logits: 4 reviews × 2 logits, 32 bytes.
# These are activations. Every micro-batch has different ones, so this exchange can't wait.
# The gradients do wait until the end. Those of `W1`, `b1` and `W2` are half as large as before: 115,200, 96 and 192 bytes.
# That of `b2` isn't split, and still takes 8.
#
# Is it still the step of one device? One device gets all 64 reviews at once; the row gets them in four micro-batches:


# %% same-run
def accumulated_run(model, steps):
    losses = []
    for step in range(steps):
        for part in range(MICRO_BATCHES):
            x, y = micro_batch(64 * step + 16 * part, model)
            add_micro_batch(model, x, y)
        number = np.float32(step + 1)
        losses.append(float(finish(model, number, RATE)))
    return losses


# %% same
from course_lib import about

one = Model({})
on_one = []
for step in range(20):
    x, y = batch_of(64 * step, 64, {})
    number = np.float32(step + 1)
    on_one.append(float(train_step(one, x, y, number, RATE)))

in_parts = accumulated_run(Accumulating(row, 8, row_copies), 20)
apart = np.abs(np.subtract(in_parts, on_one)).max()
print("largest difference", about(apart, 0, 1e-5))

# %% same-read [markdown]
# Twenty steps with Adam, and the losses differ by rounding alone.
#
# What does it cost in memory? Every device holds its sums, which are as large as its gradients and stay from one micro-batch to the next.
# While a micro-batch is computed, count its copy of the weights on top.
# In return, it stores activations for two reviews at a time instead of eight.
#
# In a real recipe, micro-batches need not be equally large: texts have different lengths.
# Is the mean of the means still right? No: a review in a small micro-batch would count for more than one in a large micro-batch.
#
# **Exercise 1.** Write `batch_gradient(parts, gradient_of, add_up)`, the accumulation as *one device* runs it.
# `parts` is the list of this device's micro-batches, each a pair `(x, y)`, and **they may have different numbers of rows**.
# `gradient_of(x, y)` returns the *mean* gradient over the rows of `x`, an array.
# `add_up(array)` is the all-reduce: it adds up the arrays (or numbers) that all devices bring.
# Return the mean gradient over all rows of all devices.
# There are two limits. A device can't hold more than one micro-batch at a time,
# and all calls of `add_up` together may carry no more than the gradient and one number.


# %% exercise-batch
def batch_gradient(parts, gradient_of, add_up):
    # solution begin
    total = 0
    rows = 0
    for x, y in parts:
        total = total + len(x) * gradient_of(x, y)
        rows += len(x)
    return add_up(total) / add_up(rows)
    # solution end


# %%
check("large_trainings-batch", batch_gradient)

# %% clipping-heading [markdown]
# ## Clip what is split
#
# One bad batch can throw a long run off its course. Let's make one: somebody forgot to scale the features,
# and they are a hundred times too large. How long is the gradient, all weights taken together as one vector?
# This length is called the **global norm**:


# %% norms
@tf.function
def norm_of(model, x, y):
    _, gradients = gradients_of(logits_of, model.weights, x, y)
    return tf.linalg.global_norm(list(gradients.values()))


x, y = batch_of(0, 64, row)
bad_x = place(100 * train_x[:64], row["x"])
print("usual", about(float(norm_of(Model(row), x, y)), 0.08, 0.11))
print("bad", about(float(norm_of(Model(row), bad_x, y)), 25, 45))

# %% clip-text [markdown]
# The cure is called **gradient clipping**. If the global norm exceeds a limit, all gradients are multiplied by the same factor,
# so that the norm is just the limit. The direction stays. GPT-3's limit was 1.
#
# TensorFlow does it in one call, `tf.clip_by_global_norm`. Our usual gradient is short, so 0.2 will do as the limit.

# %% clip
LIMIT = 0.2


def clip(gradients, limit):
    clipped, _ = tf.clip_by_global_norm(list(gradients.values()), limit)
    return dict(zip(gradients, clipped))


@tf.function
def clipping_step(model, x, y, step, learning_rate):
    loss, gradients = gradients_of(logits_of, model.weights, x, y)
    gradients = clip(gradients, LIMIT)
    update(model, gradients, step, learning_rate)
    return loss


# %% clip-given [markdown]
# On the row, the gradients are replicated, once they are added up. Every device can compute their norm by itself, so clipping costs nothing there.
# And on 4 × 2? There the gradients of `W1`, `b1` and `W2` are split over `model`, and only that of `b2` is replicated.

# %% predict-clip [markdown]
# On a mesh of `batch` 4 × `model` 2, the gradients of `W1`, `b1` and `W2` are cut into two halves over `model`;
# that of `b2`, two numbers, is replicated.
# Now the step clips them by their global norm.
# How many more bytes do the collectives of a step carry?
#
# - [ ] `0`
#   The norm is one number for all gradients. No device can know it without having heard of the other halves.
# - [x] `12`
#   A device squares and adds up the numbers of its own half. What it exchanges is one sum for each gradient that is split: 3 × 4 bytes.
# - [ ] `115488`
#   That is a half of each of the three gradients. To learn the norm, a device needn't see them: a sum of squares is enough.


# %% reveal-clip
def step_bytes(function, layouts):
    x, y = batch_of(0, 64, layouts)
    total = 0
    model = Model(layouts)
    for each in collectives(function, model, x, y, STEP, RATE):
        total += each.payload_bytes
    return total


more = step_bytes(clipping_step, grid) - step_bytes(train_step, grid)
reveal("large_trainings-clip", more)

# %% clip-why [markdown]
# So clipping costs hardly any bytes, for a model of any size. In your own model, expect one 4-byte all-reduce for every gradient
# that is still split when you compute the norm. With hundreds, you'll notice the latency, not the bytes.
#
# DTensor computes with global tensors, so a norm is the norm of the whole, wherever the parts are.
# If you write one program per device, computing the global norm is your job. What if each device clips its part by the norm of this part?
# Let's look at the gradients of the bad batch, on devices 0 and 1, which hold the two halves:


# %% own-norms
@tf.function
def gradients_on(model, x, y):
    _, gradients = gradients_of(logits_of, model.weights, x, y)
    return gradients


bad_x = place(100 * train_x[:64], grid["x"])
y = place(train_y[:64], grid["y"])
gradients = gradients_on(Model(grid), bad_x, y)


def local_norm(gradients, device):
    squares = 0
    for gradient in gradients.values():
        part = dtensor.unpack(gradient)[device].numpy()
        squares += np.sum(part**2)
    return np.sqrt(squares)


# %% own-factors
right_norm = float(norm_of(Model(grid), bad_x, y))
print("device 0", about(LIMIT / local_norm(gradients, 0), 0.01, 0.02))
print("device 1", about(LIMIT / local_norm(gradients, 1), 0.004, 0.009))
print("right   ", about(LIMIT / right_norm, 0.004, 0.008))

# %% own-norms-read [markdown]
# Each half would be shortened by a factor of its own, and neither is the right one.
# Take a gradient of two numbers, (3, 4), and the limit 1. Its norm is 5, so the clipped gradient is (0.6, 0.8).
# Clipped by halves it would be (1, 1), which points in another direction. No error tells you.
# And `b2`, of which both devices hold a copy, would get two different values: the copies would drift apart.
#
# The losses may not tell you, either. Adam divides by the size of the gradients, so a wrong factor that stays the same in every step hardly changes anything.
# When you test clipping, compare the norms.
#
# Accumulation sets a second trap. If you clip before the mean over the copies, each device shortens its own gradient,
# and the mean of clipped gradients is not the clipped mean.
# So *add up first, over all micro-batches and all devices, and clip after that*.
#
# **Exercise 2.** Clip as *one device* does. Write `clip_own(gradients, is_split, limit, add_up)`.
# `gradients` is a list of arrays, what this device holds.
# `is_split[i]` says whether gradient `i` is sharded over `model`. If not, it is replicated.
# `add_up(array)` is the all-reduce over `model`.
# Return the list of this device's clipped gradients. `add_up` may carry 8 bytes in all, two numbers.


# %% exercise-clip
def clip_own(gradients, is_split, limit, add_up):
    # solution begin
    of_parts = 0.0
    of_whole = 0.0
    for gradient, split in zip(gradients, is_split):
        if split:
            of_parts += np.sum(gradient**2)
        else:
            of_whole += np.sum(gradient**2)
    norm = np.sqrt(add_up(of_parts) + of_whole)
    factor = min(1, limit / norm)
    return [factor * gradient for gradient in gradients]
    # solution end


# %%
check("large_trainings-clip", clip_own)

# %% half-heading [markdown]
# ## Products in 16 bits
#
# Most of the time of a large training run goes into products of matrices.
# Recent GPUs and TPUs have units that multiply matrices in **bfloat16**. It has 16 bits: the range of float32, but only two to three decimal digits.
# The weights and Adam's averages stay in float32, because a small update would vanish in so few digits. That is called **mixed precision**.
#
# The forward pass casts the weights and `x`, and returns its logits in float32 again:


# %% half
def cast_all(weights, dtype):
    cast = {}
    for name, weight in weights.items():
        cast[name] = tf.cast(weight, dtype)
    return cast


def half_logits(weights, x):
    half = cast_all(weights, tf.bfloat16)
    logits = logits_of(half, tf.cast(x, tf.bfloat16))
    return tf.cast(logits, tf.float32)


# %% half-list-text [markdown]
# Does a step now exchange half as many bytes?


# %% half-list
@tf.function
def half_step(model, x, y, step, learning_rate):
    loss, gradients = gradients_of(half_logits, model.weights, x, y)
    update(model, gradients, step, learning_rate)
    return loss


x, y = batch_of(0, 64, row)
for each in collectives(half_step, Model(row), x, y, STEP, RATE):
    print(each)

# %% half-list-read [markdown]
# No, the list has not changed! The gradients are computed in bfloat16, but all-reduces on CPUs don't add up bfloat16:
# DTensor converts to float32, adds, and converts back.
# So on CPUs bfloat16 saves no traffic.
#
# What shrinks are the activations: each number of `hidden` takes 2 bytes instead of 4.
# Against that, each device also holds a bfloat16 copy of the weights while the step runs. The variables haven't shrunk at all.
#
# And is it the same as on one device? We compare with one device in bfloat16, and in float32:


# %% half-same
def run(function, layouts, steps=20):
    model = Model(layouts)
    losses = []
    for step in range(steps):
        x, y = batch_of(64 * step, 64, layouts)
        number = np.float32(step + 1)
        losses.append(float(function(model, x, y, number, RATE)))
    return losses


half_on_row = run(half_step, row)
half_on_one = run(half_step, {})
for name, losses in [("bfloat16", half_on_one), ("float32", on_one)]:
    apart = np.abs(np.subtract(half_on_row, losses)).max()
    print("from one device in", name, about(apart, 0, 2e-3))

# %% half-same-read [markdown]
# For the first time we can't match to 1e-5, and that is unavoidable.
# Each device rounds its part of a gradient to bfloat16 before the parts are added up, while one device rounds the whole sum.
# So make sure first that the float32 step is equal to one device, to 1e-5.
# Then switch to bfloat16, and expect differences in the fourth decimal.

# %% note-sparse [markdown]
# What if a cast is forgotten?
#
# The message says nothing about types:
#
# ```text
# 'tf.SparseMatMul' op does not implement layout propagation.
# ```
#
# For a product of bfloat16 and float32, TensorFlow takes an operation for sparse matrices, and DTensor doesn't know that one.
# So if you read *SparseMatMul*, look for a forgotten cast.

# %% note-float16 [markdown]
# And float16?
#
# It has more digits but a small range, so small gradients become zero, and large ones infinite.
# Therefore the loss is multiplied by a large number, the **loss scale**, and the gradients are divided by it.
# A step whose gradients aren't finite is skipped, and the scale is halved.
#
# To skip, multiply: `tf.math.multiply_no_nan(gradient, flag)`, where the flag is 0.0 or 1.0, gives 0 even for an infinite gradient.
# Compute the flag in the same `tf.function`, and do it before you clip:
# one infinite number makes the norm infinite, and then every clipped number is NaN.
# Don't use `tf.where` with a scalar condition: on larger DTensors, it ends the process without a message.

# %% dropout-heading [markdown]
# ## Dropout that everyone agrees on
#
# **Dropout** sets a random half of the hidden units to zero in each step, and doubles the rest.
# The random numbers come from a *seed*. With the same seed, do eight devices drop the same units as one?


# %% dropped
def dropped(hidden, seed):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


# %% draw-masks-text [markdown]
# We drop from a tensor of ones, once on one device and once on the row:

# %% draw-masks
seed = np.array([0, 1], "int32")
seed_on_row = shard(seed, dtensor.Layout([WHOLE], row_mesh))
ones = np.ones((64, 48), "float32")
hidden = shard(ones, row["x"])

one_mask = tf.function(dropped)(tf.constant(ones), seed).numpy()
parts = dtensor.unpack(tf.function(dropped)(hidden, seed_on_row))
row_mask = np.concatenate(parts)

# %% masks-compared
print("kept", np.mean(row_mask > 0).round(2))
print("as on one device", np.mean(row_mask == one_mask).round(2))

# %% masks-compared-read [markdown]
# Half of the units are kept, as they should be. But they are other units than on one device:
# the two masks agree in half of the places, as two tosses of a coin do.
# The tensor is split, and each device has drawn numbers for its own part only.
#
# Is that wrong? As dropout it is fine. But you can no longer check against one device.
# Other masks give other losses, and behind that difference any mistake can hide.
# And a run that moves to another mesh, as in {lesson:any_mesh}, would continue with other masks.
#
# The cure is one line. We ask for the random numbers as a *replicated* tensor:


# %% drop
def drop(hidden, seed, mesh):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    if mesh is not None:
        whole = dtensor.Layout.replicated(mesh, len(hidden.shape))
        random = dtensor.relayout(random, whole)  # new
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


# %% predict-mask [markdown]
# Eight devices hold the rows of a hidden layer of 64 × 48 numbers, and want the dropout mask that one device would draw.
# Random numbers follow from a seed, which every device has. We request them replicated, then apply them to the split layer.
# How many bytes do the devices exchange for that?
#
# - [x] `0`
#   Every device can compute all 64 × 48 numbers from the seed. Then it takes the rows that it needs.
# - [ ] `1536`
#   That is one device's part of the random numbers. Somebody would have to send it if only one device could draw it.
# - [ ] `12288`
#   That is what it takes to gather 64 × 48 numbers of 4 bytes. But the numbers were not drawn in parts.


# %% reveal-mask
def masked(hidden, seed):
    return drop(hidden, seed, row_mesh)


found = collectives(masked, hidden, seed_on_row)
mask_bytes = 0
for each in found:
    mask_bytes += each.payload_bytes
reveal("large_trainings-mask", mask_bytes)

# %% masks-text [markdown]
# It costs no exchange, only random numbers that are thrown away. Is it the same mask now?

# %% masks
parts = dtensor.unpack(tf.function(masked)(hidden, seed_on_row))
row_mask = np.concatenate(parts)
print("as on one device", np.mean(row_mask == one_mask).round(2))

# %% note-generator [markdown]
# What about tf.random.Generator and the Dropout layer of Keras?
#
# Both keep a state, which changes with each draw. A run that is killed has to restore that state.
# With a stateless function, the mask follows from the seed, and the seed from the numbers of the step and of the micro-batch.
# So a resumed run draws the masks that it would have drawn.

# %% together-heading [markdown]
# ## All at once
#
# Now put the five together. The model remembers its mesh, for the masks, and the type of its products:


# %% recipe-model
class Recipe(Accumulating):
    def __init__(self, layouts, copies, copy_layouts, mesh, dtype):
        super().__init__(layouts, copies, copy_layouts)
        self.mesh = mesh
        self.dtype = dtype


# %% recipe-micro-batch-text [markdown]
# Lines marked "new" are what the recipe adds. The seed is an argument, since each micro-batch needs another one.


# %% recipe-micro-batch
@tf.function
def recipe_micro_batch(model, x, y, seed):
    def forward(weights, x):
        weights = cast_all(weights, model.dtype)  # new
        x = tf.cast(x, model.dtype)  # new
        hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
        hidden = drop(hidden, seed, model.mesh)  # new
        logits = hidden @ weights["W2"] + weights["b2"]
        return tf.cast(logits, tf.float32)  # new

    copies = copies_of(model)
    loss, gradients = gradients_of_copies(forward, copies, x, y)
    for name, gradient in gradients.items():
        model.sums[name].assign_add(gradient)
    model.losses.assign_add(loss)


# %% recipe-finish-text [markdown]
# Is the mask the same on the grid and on one device? The hidden layer is 4 × 4 × 48 on the grid, and 1 × 16 × 48 on one device.
# But both hold the same 16 reviews in the same order, and the 768 random numbers are drawn in that order.
# So each review meets the same mask on every mesh.
#
# At the end of a step the gradients are clipped, after they have been added up.
# The learning rate rises over the first ten steps and then falls, as in {lesson:a_run}.
# It is one number, which every device gets, so a schedule exchanges nothing:


# %% recipe-finish
@tf.function
def recipe_finish(model, step, learning_rate):
    gradients = mean_gradients(model)
    gradients = clip(gradients, LIMIT)  # new
    loss = tf.reduce_mean(model.losses) / MICRO_BATCHES
    update(model, gradients, step, learning_rate)
    reset(model)
    return loss


def rate_of(step, steps):
    warm_up = min(1, (step + 1) / 10)
    return np.float32(3e-3 * warm_up * (1 - step / steps))


# %% note-rates [markdown]
# Why is the learning rate a number of NumPy?
#
# Because a Python number would be a constant of the graph, and every new one makes TensorFlow trace the step anew. That is called **retracing**.
# Three learning rates make three graphs, and ten thousand would make ten thousand.
# The losses are right, and the run only gets slow. After a few graphs TensorFlow warns of *retracing*, but only in its log,
# and this course shows nothing below errors there. A NumPy scalar or a `tf.constant` is an input of the one graph.


# %% recipe-train
def train(model, steps):
    losses = []
    seed_layout = None
    if model.mesh is not None:
        seed_layout = dtensor.Layout.replicated(model.mesh, 1)
    for step in range(steps):
        for part in range(MICRO_BATCHES):
            x, y = micro_batch(64 * step + 16 * part, model)
            seed = np.array([step, part], "int32")
            recipe_micro_batch(model, x, y, place(seed, seed_layout))
        number = np.float32(step + 1)
        rate = rate_of(step, steps)
        losses.append(float(recipe_finish(model, number, rate)))
    return losses


# %% recipe-same-text [markdown]
# Does this train on the grid as on one device, with the same four micro-batches?
# We take twenty steps: first in float32, where we can be strict, and then in bfloat16.


# %% recipe-same
def compare(dtype):
    model = Recipe({}, 1, {}, mesh=None, dtype=dtype)
    one_losses = train(model, 20)
    model = Recipe(grid, 4, grid_copies, mesh=grid_mesh, dtype=dtype)
    grid_losses = train(model, 20)
    return np.abs(np.subtract(grid_losses, one_losses)).max()


print("float32 ", about(compare(tf.float32), 0, 1e-5))
print("bfloat16", about(compare(tf.bfloat16), 0, 2e-3))

# %% recipe-same-read [markdown]
# In float32, all five together reproduce the step of one device. In bfloat16 they do so up to its rounding.
#
# And which two can silently give a different result? Clipping, when each part is clipped by its own norm, and dropout, when each part draws its own mask.
#
# Here is what each of the five adds to a step on 4 × 2:
#
# | | memory of a device | exchange |
# | --- | --- | --- |
# | accumulation | sums and a copy of the weights; activations of one micro-batch only | activations in each micro-batch, gradients once |
# | clipping | – | 4 bytes for each split gradient |
# | bfloat16 | activations halved, cast weights on top | the same bytes (on CPUs) |
# | schedule | – | – |
# | dropout | random numbers of the whole layer | – |
#
# So a step can grow to millions of tokens, and the gradients still cross the network once.
# But every device of the row still holds all of Adam's averages, which for GPT-3's 175 billion weights would be 1,400 GB. Does it need them all?
#
# ## The plain program
#
# [`large_trainings.py`](../plain/large_trainings.py) trains with all five on eight devices, with TensorFlow and NumPy alone.
# It does so on both meshes, in float32 and in bfloat16, and ends with an error if the losses are too far from those of one device.

# %% takeaways [markdown]
# ## Takeaways
#
# - DTensor adds up a gradient as soon as it is computed. To accumulate first and exchange once, give the sums an axis that is split over the devices.
# - Add up first, then clip, by the norm of all gradients. Clip each part by its own norm, and training goes wrong, silently.
# - Compare with one device in float32 and with the same dropout masks. Then switch to bfloat16.

# %% score
score("large_trainings")
