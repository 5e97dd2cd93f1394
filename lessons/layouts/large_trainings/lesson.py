# %% [markdown]
# # What do large training runs add?
#
# Once its batches had grown to full size, GPT-3 learned from [3.2 million tokens](https://arxiv.org/abs/2005.14165) in every single training step.
# A device can work on a few thousand at a time. Give eight devices 4,096 tokens each, and one step takes about a hundred passes.
# If they exchange their gradients after each pass, they exchange a hundred times as much as they need to.
#
# So a large run accumulates its gradients over many passes, and that is only the first of five additions to the step you know.
# The others are clipping, products in 16 bits, a learning rate that changes from step to step, and dropout.
#
# *What does each of the five add to a step?* We'll ask the same two things every time: what do the devices have to exchange,
# and do they still compute what a single device would?
# One of the five needs a trick before it saves anything. Two more give other results than one device if each device looks only at its own part.
#
# **After this lesson you can**
#
# - accumulate gradients over many micro-batches, and exchange them once;
# - clip gradients that are split over devices, and train with products in bfloat16;
# - use dropout that doesn't depend on the layout, and put all of it into one step.
#
# **Time:** 40 minutes.
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
# You have seen nearly all of it, so the first four cells are folded.
#
# Two things are new. The training step comes in two halves, `gradients_of` and `update`, so that clipping can stand between them.
# And `gradients_of` takes the forward pass as an argument, because bfloat16 and dropout will change that pass.
# (One thing is not new: `update` computes everything before it writes anything. You saw why in {lesson:faster}.)

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
# The step itself is now two lines. On the row, what do the devices exchange for a batch of 64?

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
# That's the loss and four gradients: five all-reduces, 230,988 bytes in all. (There is no sixth, because this step doesn't return the accuracy.)
# Nearly all of these bytes are the gradient of `W1`. Keep the list in mind. We'll come back to it.
#
# ## Many micro-batches, one step
#
# Now suppose that each of the eight devices has room for only two reviews at a time.
# The batch of 64 then comes in four **micro-batches** of 16, two reviews for each device.
#
# The step can stay the same. The gradient of a batch is a mean over its reviews,
# and the mean of 64 numbers is the mean of four means of 16.
# So we compute the gradients of each micro-batch, divide them by four, and add them up. Then we update the weights once.
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


# %% unrolled-read [markdown]
# Eight devices can do this in two ways. In a drawing, where `1` is the first micro-batch and `═` an exchange of all gradients:
#
# ```text
# 1 ═ 2 ═ 3 ═ 4 ═ update
#
# 1   2   3   4 ═ update
# ```
#
# Both give the same update. The step above doesn't say which it wants.

# %% predict-accumulated [markdown]
# On eight devices, a data-parallel step with one batch of 64 exchanges 230,988 bytes: the loss and the gradients of all weights.
# Now the batch comes in four micro-batches of 16. The weights are replicated: every device holds all of them.
# For each micro-batch, the step computes the loss and the gradients of all weights, and adds them to those of the micro-batches before.
# After the fourth, Adam updates the weights once. How many bytes do all collectives of this step carry?
#
# - [ ] `57747`
#   A micro-batch has a quarter of the reviews. But its gradient is as large as the weights, however few the reviews are.
# - [ ] `230988`
#   It would be enough to exchange once, at the end. But nothing in the program tells DTensor to wait.
# - [x] `923952`
#   DTensor adds up a gradient over the devices as soon as it has been computed, and that happens four times.
#   A layout can only say that a tensor is split or replicated. It can't say "still to be added up".


# %% reveal-accumulated
def bytes_of(function, *arguments):
    total = 0
    for each in collectives(function, *arguments):
        total += each.payload_bytes
    return total


micro_batches = []
for first in range(0, 64, 16):
    micro_batches.append(batch_of(first, 16, row))

carried = bytes_of(
    accumulating_step, Model(row), micro_batches, STEP, RATE
)
reveal("large_trainings-accumulated", carried)

# %% drawn-text [markdown]
# It is the first drawing: four times the bytes, for the same update. With GPT-3's hundred micro-batches, it would be a hundred times. How do we get the second?

# %% note-forms [markdown]
# Would tf.while_loop help, or a separate call for each micro-batch? And PyTorch?
#
# They don't reduce the exchange. We tried both; for the separate calls, we kept the sums in variables. Either way there are five exchanges in every micro-batch, 923,952 bytes a step. (The list shows a collective inside a loop only once.)
#
# They help with memory, though. Written as above, all four micro-batches are in one graph, and none waits for the one before it.
# So TensorFlow may keep the activations of several at the same time.
#
# PyTorch has two ways to get the second drawing. `DistributedDataParallel` has `no_sync()`,
# which leaves the gradients on their devices for a while. PyTorch's DTensor has a third kind of placement beside
# split and replicated: `Partial`, for sums that are still to be added up. TensorFlow's DTensor has neither.

# %% axis-text [markdown]
# ## Sums that stay where they are
#
# Each device has the gradient of its own reviews only. Add up all eight, and you have the gradient of the batch: each is a *partial sum*.
# How do you tell DTensor to leave eight partial sums on eight devices? Give them an axis.
#
# Stack the eight partial sums of `W1`'s gradient, and you have one tensor of shape 8 × 1,200 × 48, whose first axis can be split over `batch`.
# This layout says precisely what we mean: the eight parts are *different*, and each device holds its own.
#
# A gradient has the shape of its weight. If the gradients are to have this axis, the weights must have it too.
# So we give every device its own copy of the weights, and stack the eight copies along the new axis.
#
# Here is the stack for `W1`, called `copies`. It is drawn flat: one row stands for one copy, with its 1,200 × 48 = 57,600 weights.

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
# All eight devices hold the same `W1`. Each device also holds one row of `copies`, and that row is no smaller than `W1`.
# The eight rows contain the same numbers, but to DTensor they are eight different slices of a larger tensor.
# So the gradients of these rows may differ.
#
# Device 3 multiplies *its* two reviews by *its* copy, and gets *its* gradient. No sum runs over devices.
#
# In the code the new axis is called `copy`, and everything that a micro-batch touches gets one.
# It is split over the mesh dimension `batch`, and the next cell enters that into `splits`.
# The reviews of one copy stay together, so we call their axis `rows`. (If we called it `batch`, `splits` would split it.)
# A bias needs a second new axis, of length 1, so that it can be added to every row; we call it `one`.

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
# Every micro-batch starts by copying the current weights. Those don't change within a step, so we could copy them once and use the copies four times,
# but then the copies would take up memory for the whole step. Copying needs no exchange, so we make them when we need them, and let them go.

# %% copies-of
one_copy = {
    "W1": (1, 1200, 48),
    "b1": (1, 1, 48),
    "W2": (1, 48, 2),
    "b2": (1, 1, 2),
}


def copies_of(model):
    copies = {}
    for name, weight in model.weights.items():
        copy = tf.reshape(weight, one_copy[name])
        stacked = tf.tile(copy, [model.copy_count, 1, 1])
        if model.copy_layouts:  # on a mesh
            layout = model.copy_layouts[name]
            stacked = dtensor.relayout(stacked, layout)
        copies[name] = stacked
    return copies


# %% sums-text [markdown]
# On the row, `copy_count` is 8, so `tf.tile` asks for eight copies. But the relayout says that each device keeps only one, so no device ever makes the other seven.
#
# The running sums have to survive from one micro-batch to the next, so the model keeps them as variables.
# There is one for each gradient, shaped and laid out like the copies, and one for the losses.


# %% accumulating
class Accumulating(Model):
    def __init__(self, layouts, copy_count, copy_layouts):
        super().__init__(layouts)
        self.copy_count = copy_count
        self.copy_layouts = copy_layouts
        self.sums = {}
        for name, shape in one_copy.items():
            zeros = np.zeros((copy_count, *shape[1:]), "float32")
            layout = copy_layouts.get(name)
            self.sums[name] = variable(zeros, layout)
        zeros = np.zeros(copy_count, "float32")
        self.losses = variable(zeros, copy_layouts.get("losses"))


# %% gradients-of-copies-text [markdown]
# Now everything depends on the line with `loss`. In `gradients_of`, the loss is one number, the mean over all reviews.
# Here every copy gets a mean of its own, over its own reviews:


# %% gradients-of-copies
def gradients_of_copies(forward, copies, x, y):
    with tf.GradientTape() as tape:
        tape.watch(copies)  # new: they are not variables
        logits = forward(copies, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses, axis=1)  # now one per copy
    return loss, tape.gradient(loss, copies)


# %% add-text [markdown]
# So `loss` is a vector of eight losses. What is the gradient of a vector?
# `tape.gradient` differentiates the *sum* of its entries, and here that is just what we need.
# On the row, copy 3 enters the loss of device 3 and no other loss. So the gradient of the sum with respect to copy 3
# is the gradient of that one loss, and device 3 can compute it without hearing from anyone.
#
# What remains is to add the gradients to the running sums:


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
    x = train_x[first : first + 16]
    x = x.reshape(model.copy_count, -1, 1200)  # row: (8, 2, 1200)
    y = train_y[first : first + 16]
    y = y.reshape(model.copy_count, -1)  # row: (8, 2)
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
# The mean is taken once a step. Then the weights are updated, and the sums go back to zero:


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
# These are the five all-reduces that we started with, in a different order: 230,988 bytes.
# All five come at the end of the step, and with a hundred micro-batches there would be no more of them.
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
# Do both meshes still compute what one device computes? One device gets all 64 reviews at once; the meshes get them in four micro-batches:


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


def largest_difference(losses, others):
    return np.abs(np.subtract(losses, others)).max()


one_device = Model({})
float32_on_one = []
for step in range(20):
    x, y = batch_of(64 * step, 64, {})
    number = np.float32(step + 1)
    loss = train_step(one_device, x, y, number, RATE)
    float32_on_one.append(float(loss))

row_losses = accumulated_run(Accumulating(row, 8, row_copies), 20)
difference = largest_difference(row_losses, float32_on_one)
print("row: ", about(difference, 0, 1e-5))

grid_model = Accumulating(grid, 4, grid_copies)
grid_losses = accumulated_run(grid_model, 20)
difference = largest_difference(grid_losses, float32_on_one)
print("grid:", about(difference, 0, 1e-5))

# %% same-read [markdown]
# These are the largest differences between two losses in twenty steps with Adam. Both are rounding, and nothing else.
#
# What does it cost in memory? Each device keeps its running sums, as large as its gradients, for the whole step.
# While it works on a micro-batch, it also holds a copy of the weights.
# In return, a device of the row stores activations for two reviews at a time instead of eight.
#
# In a real recipe, micro-batches need not be equally large: texts have different lengths.
# Is the mean of the means still right? No: a review in a small micro-batch would count for more than one in a large micro-batch.
#
# **Exercise 1.** Write `batch_gradient(parts, gradient_of, add_up)`, the accumulation as *each device* runs it.
# `parts` is the list of this device's micro-batches, each a pair `(x, y)`, and **they may have different numbers of rows**.
# `gradient_of(x, y)` returns the *mean* gradient over the rows of `x`, an array. Never give it more than four rows; no micro-batch has more.
# `add_up(array)` is the all-reduce: it adds up the arrays (or numbers) that all devices bring.
# Return the mean gradient over all rows of all devices.
# In the whole function, send at most one gradient and one number through `add_up`.


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
# One bad batch can throw a long run off its course. Let's make one. In step 11 of 120, somebody forgot to scale the features,
# and they are a hundred times too large. One device is enough to see what comes of that:


# %% bad-batch
def last_loss(step_function, bad_step=None):
    model = Model({})
    losses = []
    for step in range(120):
        x, y = batch_of(64 * step, 64, {})
        if step == bad_step:
            x = 100 * x
        number = np.float32(step + 1)
        loss = step_function(model, x, y, number, RATE)
        losses.append(float(loss))
    return np.mean(losses[-5:])


good = last_loss(train_step)
print("no bad batch ", about(good, 0.28, 0.41))
unclipped = last_loss(train_step, bad_step=10)
print("one bad batch", about(unclipped, 0.42, 0.58))

# %% bad-batch-read [markdown]
# That is the mean loss of the last five steps. One batch in 120 was bad, and a hundred steps later the run is still far behind: 0.47 instead of 0.35.
# Adam doesn't forget it. It divides each step by the root of `square`, the average of the squared gradients. That average forgets only a thousandth of its past in each step, so after one huge gradient, Adam's steps stay too small for a long time.
#
# How huge? Take all gradients together as one vector. Its length is called the **global norm**:


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
# The usual norm is about 0.09, and that of the bad batch about 34: the features are a hundred times too large, but the gradient is more than three hundred times too long.
#
# The cure is called **gradient clipping**. If the global norm exceeds a limit, all gradients are multiplied by the same factor,
# so that the norm is just the limit. The direction stays. GPT-3's limit was 1.
#
# TensorFlow does it in one call, `tf.clip_by_global_norm`. Our usual norm is about 0.1, so 0.2 will do as the limit.

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


# %% clipped
clipped = last_loss(clipping_step, bad_step=10)
print("one bad batch, clipped", about(clipped, 0.28, 0.41))

# %% clipped-read [markdown]
# Now the bad batch has left no trace. And what does clipping cost on eight devices?

# %% clip-given [markdown]
# On the row it is free. Once the gradients have been added up, every device holds all of them and can compute their norm by itself.
# But on the grid the gradients of `W1`, `b1` and `W2` are split over `model`, and only that of `b2` is replicated.

# %% predict-clip [markdown]
# On a mesh of `batch` 4 × `model` 2, the gradients of `W1`, `b1` and `W2` are split in two over `model`.
# The gradient of `b2`, two numbers, is replicated.
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
    return bytes_of(function, Model(layouts), x, y, STEP, RATE)


more = step_bytes(clipping_step, grid) - step_bytes(train_step, grid)
reveal("large_trainings-clip", more)

# %% clip-why [markdown]
# So clipping costs hardly any bytes, for a model of any size. It takes one all-reduce for every gradient that is still split,
# and TensorFlow fuses them into one ({lesson:faster}).
#
# DTensor computes with global tensors, so a norm is the norm of the whole, wherever the parts are.
# If you write one program per device, computing the global norm is your job. What if each device clips its part by that part's own norm?
#
# Put 3 and 4 on two devices, and let the limit be 1. The norm is 5, so the clipped gradient is (0.6, 0.8).
# If each device clips its own number, you get (1, 1): a different direction, and no error.
#
# In our network it's the same. Here are the gradients of the bad batch, on devices 0 and 1, which hold the two halves:


# %% own-norms
@tf.function
def gradients_on(model, x, y):
    _, gradients = gradients_of(logits_of, model.weights, x, y)
    return gradients


def local_norm(gradients, device):
    parts = []
    for gradient in gradients.values():
        parts.append(dtensor.unpack(gradient)[device])
    return float(tf.linalg.global_norm(parts))


bad_x = place(100 * train_x[:64], grid["x"])
y = place(train_y[:64], grid["y"])
gradients = gradients_on(Model(grid), bad_x, y)

# %% own-factors
factor_0 = LIMIT / local_norm(gradients, 0)
factor_1 = LIMIT / local_norm(gradients, 1)
right_factor = LIMIT / float(norm_of(Model(grid), bad_x, y))

print("factor of device 0:", about(factor_0, 0.01, 0.02))
print("factor of device 1:", about(factor_1, 0.004, 0.009))
print("right factor:      ", about(right_factor, 0.004, 0.008))

# %% own-norms-read [markdown]
# The right factor is about 0.0059. Device 0 would multiply its half by 0.015 instead, more than twice as much, and device 1 its half by 0.0065.
# Now the two halves no longer fit together.
#
# And `b2`, of which both devices hold a copy, would get two different values: the copies would drift apart.
# The losses may not tell you, because Adam hides a constant factor ({lesson:one_step}). When you test clipping, compare the norms.
#
# With accumulation, there is one more thing to get wrong. If you clip before you take the mean over the copies, you clip each device's gradient separately, and the mean of clipped gradients is not the clipped mean.
# So *add up first, over all micro-batches and all devices, and clip after that*.
#
# **Exercise 2.** Clip as *each device* does. Write `clip_own(gradients, is_split, limit, add_up)`.
# `gradients` is a list of arrays: the parts that this device holds.
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
# A large training run spends most of its time multiplying matrices.
# Recent GPUs and TPUs have units that do this in **bfloat16**, much faster than in float32: an A100 reaches 312 teraflops instead of 19.5.
# A bfloat16 has 16 bits: about the range of float32, but only two to three decimal digits.
# The weights and Adam's slots stay in float32, because a small update would vanish in so few digits. That is called **mixed precision**.
#
# The forward pass casts the weights and `x`, and returns its logits in float32 again:


# %% half
def cast_all(weights, dtype):
    cast = {}
    for name, weight in weights.items():
        cast[name] = tf.cast(weight, dtype)
    return cast


def bfloat16_logits(weights, x):
    weights = cast_all(weights, tf.bfloat16)
    logits = logits_of(weights, tf.cast(x, tf.bfloat16))
    return tf.cast(logits, tf.float32)


# %% half-list-text [markdown]
# Does a step now exchange only half as much?


# %% half-list
@tf.function
def bfloat16_step(model, x, y, step, learning_rate):
    loss, gradients = gradients_of(bfloat16_logits, model.weights, x, y)
    update(model, gradients, step, learning_rate)
    return loss


x, y = batch_of(0, 64, row)
for each in collectives(bfloat16_step, Model(row), x, y, STEP, RATE):
    print(each)

# %% half-list-read [markdown]
# The list has not changed! The gradients are computed in bfloat16, but all-reduces on CPUs don't add up bfloat16:
# DTensor converts to float32, adds, and converts back.
# So on CPUs bfloat16 saves no traffic.
#
# What shrinks are the activations: each number of `hidden` takes 2 bytes instead of 4.
# On the other hand, each device also holds a bfloat16 copy of the weights while the step runs. The variables haven't shrunk at all.
#
# And does the row still compute what one device computes, if both work in bfloat16?


# %% half-same
def bfloat16_run(layouts):
    model = Model(layouts)
    losses = []
    for step in range(20):
        x, y = batch_of(64 * step, 64, layouts)
        number = np.float32(step + 1)
        loss = bfloat16_step(model, x, y, number, RATE)
        losses.append(float(loss))
    return losses


difference = largest_difference(bfloat16_run(row), bfloat16_run({}))
print("row, bfloat16:", about(difference, 0, 2e-3))

# %% half-same-read [markdown]
# For the first time we are more than 1e-5 away from one device: about 1e-4.
# That can be rounding. Each of the eight devices rounds its part of a gradient to bfloat16 before the parts are added up, and one device rounds only once.
# But it could also be a mistake. A difference of this size proves little, and behind it a mistake can hide.
#
# So start in float32, and make sure that the losses match those of one device to 1e-5. Only then switch to bfloat16.
# And there is a way to be strict in bfloat16, too. At the end of the lesson, we'll make one device round in the same places as the eight.

# %% note-sparse [markdown]
# What if a cast is forgotten?
#
# The message says nothing about types:
#
# ```text
# 'tf.SparseMatMul' op does not implement layout propagation.
# ```
#
# For a product of bfloat16 and float32, TensorFlow takes an operation for sparse matrices, and DTensor doesn't know that operation.
# So if you read *SparseMatMul*, look for a forgotten cast.

# %% note-float16 [markdown]
# And float16?
#
# float16 has more digits but a small range. So it needs loss scaling, which {lesson:own_steps} explains: the loss is multiplied by a large number,
# and a step whose gradients aren't all finite is skipped.
#
# In DTensor, you skip a step with a flag that the same `tf.function` computes: 1.0 if all gradients are finite, and otherwise 0.0.
# Before you clip, replace every gradient by `tf.math.multiply_no_nan(gradient, flag)`. That gives 0 even where the gradient is infinite.
# (One infinite number would make the norm infinite, and then every clipped number NaN.)
# But Adam's slots move the weights even when the gradient is 0.
# So if `old` is a weight or a slot, and `new` is what Adam makes of it, write `old + flag * (new - old)`.
#
# Don't use `tf.where` with a scalar condition. It can end the process without a message when the branches are DTensors that aren't scalars.

# %% dropout-heading [markdown]
# ## Dropout that no layout changes
#
# **Dropout** sets each number of the hidden layer to zero with a probability that you choose. The rest is scaled up to make up for it.
# We take one half, so what stays is doubled. Which numbers stay is called the *mask*.
# The random numbers come from a *seed*. With the same seed, do eight devices get the same mask as one?


# %% dropped
def dropped(hidden, seed):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


# %% draw-masks-text [markdown]
# In a tensor of ones, dropout shows its mask: 2 for each number that stays, 0 for the others. We draw it once on one device and once on the row:

# %% draw-masks
seed = np.array([0, 1], "int32")
ones = np.ones((64, 48), "float32")
draw = tf.function(dropped)
one_mask = draw(tf.constant(ones), seed).numpy()

replicated = dtensor.Layout([WHOLE], row_mesh)
split_rows = dtensor.Layout(["batch", WHOLE], row_mesh)
seed_on_row = shard(seed, replicated)
ones_on_row = shard(ones, split_rows)
parts = dtensor.unpack(draw(ones_on_row, seed_on_row))
row_mask = np.concatenate(parts)

# %% masks-compared
print("kept:            ", np.mean(row_mask > 0).round(2))
print("as on one device:", np.mean(row_mask == one_mask).round(2))

# %% masks-compared-read [markdown]
# Half of the numbers are kept, as they should be. But one device keeps different ones.
# The two masks agree in half of the places, no better than two independent series of coin tosses would.
# The reason is that the tensor is split. Each device drew only the random numbers for its own part, from a seed of its own,
# which DTensor had made from ours.
#
# Is that wrong? As dropout it is fine. But you can no longer check against one device.
# Different masks give different losses, and behind that difference any mistake can hide.
# And a run that moves to a different mesh, as in {lesson:any_mesh}, would continue with different masks.
#
# The cure is to ask for the random numbers as a *replicated* tensor:


# %% drop
def drop(hidden, seed, mesh):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    if mesh is not None:
        whole = dtensor.Layout.replicated(mesh, len(hidden.shape))
        random = dtensor.relayout(random, whole)
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


# %% predict-mask [markdown]
# Eight devices hold the rows of a hidden layer of 64 × 48 numbers, and are to use the dropout mask that one device would draw.
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


carried = bytes_of(masked, ones_on_row, seed_on_row)
reveal("large_trainings-mask", carried)

# %% masks-text [markdown]
# The mask costs no exchange. For a replicated tensor, DTensor leaves our seed as it is, so every device draws the same random numbers.
# But each draws those of all 64 rows, and keeps those of its own eight. The larger the mesh, the more are thrown away.
#
# Is it the same mask now?

# %% masks
parts = dtensor.unpack(tf.function(masked)(ones_on_row, seed_on_row))
row_mask = np.concatenate(parts)
print("equal:", np.array_equal(row_mask, one_mask))

# %% masks-read [markdown]
# All 3,072 numbers of the two masks agree. So the row drops just what one device drops.

# %% note-order [markdown]
# Do accumulated micro-batches meet the same masks on every mesh?
#
# Yes. The hidden layer has a different shape on each (copies × rows × units: 4 × 4 × 48 on the grid, and 1 × 16 × 48 on one device),
# but it lists the same 16 reviews in the same order. The 768 random numbers are drawn in that order, too, so each review meets the same mask.

# %% note-generator [markdown]
# What about tf.random.Generator and the Dropout layer of Keras?
#
# Both keep a state, which changes with each draw. A run that is killed has to restore that state.
# With a stateless function, the mask follows from the seed, and the seed from the step number and the number of the micro-batch.
# So a resumed run draws the masks that it would have drawn.
#
# With dropout in several layers, each layer needs a seed of its own, such as `[4 * step + part, layer]`. Otherwise two layers of the same shape get the same mask.

# %% together-heading [markdown]
# ## All at once
#
# Now put everything together. The model remembers its mesh, for the masks, and the type of its products:


# %% recipe-model
class Recipe(Accumulating):
    def __init__(self, layouts, copy_count, copy_layouts, mesh, dtype):
        super().__init__(layouts, copy_count, copy_layouts)
        self.mesh = mesh
        self.dtype = dtype


# %% recipe-micro-batch-text [markdown]
# Lines marked "new" are what the recipe adds to the forward pass. The seed is an argument, since each micro-batch needs a different one:


# %% recipe-logits
def recipe_logits(model, weights, x, seed):
    weights = cast_all(weights, model.dtype)  # new
    x = tf.cast(x, model.dtype)  # new
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    hidden = drop(hidden, seed, model.mesh)  # new
    logits = hidden @ weights["W2"] + weights["b2"]
    return tf.cast(logits, tf.float32)  # new


# %% recipe-micro-batch
@tf.function
def recipe_micro_batch(model, x, y, seed):
    def forward(weights, x):
        return recipe_logits(model, weights, x, seed)

    copies = copies_of(model)
    loss, gradients = gradients_of_copies(forward, copies, x, y)
    for name, gradient in gradients.items():
        model.sums[name].assign_add(gradient)
    model.losses.assign_add(loss)


# %% recipe-finish-text [markdown]
# At the end of a step the gradients are clipped, after they have been added up:


# %% recipe-finish
@tf.function
def recipe_finish(model, step, learning_rate):
    gradients = mean_gradients(model)
    gradients = clip(gradients, LIMIT)  # new
    loss = tf.reduce_mean(model.losses) / MICRO_BATCHES
    update(model, gradients, step, learning_rate)
    reset(model)
    return loss


# %% schedule-text [markdown]
# The fifth addition is the schedule of the learning rate ({lesson:a_run}): a warm-up of ten steps, on top of a linear decay over the whole run.
# The devices exchange nothing for it. The rate is one number, computed outside the step, and every device gets the same:


# %% schedule
def rate_of(step, steps):
    warm_up = min(1, (step + 1) / 10)
    return np.float32(3e-3 * warm_up * (1 - step / steps))


for step in [0, 9, 19]:
    print(f"step {step + 1:2}: {rate_of(step, 20):.5f}")

# %% schedule-read [markdown]
# In a run of twenty steps, the rate rises until step 10 and falls after it. Now we can train:


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
# Does this train on the grid as on one device, if both get the same micro-batches?
# We take twenty steps: first in float32, where we can be strict, and then in bfloat16.


# %% recipe-same
def grid_difference(dtype):
    model = Recipe({}, 1, {}, mesh=None, dtype=dtype)
    one_losses = train(model, 20)
    model = Recipe(grid, 4, grid_copies, mesh=grid_mesh, dtype=dtype)
    grid_losses = train(model, 20)
    return largest_difference(grid_losses, one_losses)


print("grid, float32: ", about(grid_difference(tf.float32), 0, 1e-5))
print("grid, bfloat16:", about(grid_difference(tf.bfloat16), 0, 2e-3))

# %% recipe-same-row-text [markdown]
# In bfloat16 we are back at nearly 1e-4. Here is the strict test that we promised, on the row.
# One device that holds all eight copies rounds just as the eight devices do, and needs no new code:

# %% recipe-same-row
model = Recipe({}, 8, {}, mesh=None, dtype=tf.bfloat16)
eight_copies = train(model, 20)
model = Recipe(row, 8, row_copies, mesh=row_mesh, dtype=tf.bfloat16)
difference = largest_difference(train(model, 20), eight_copies)
print("row, bfloat16: ", about(difference, 0, 1e-5))

# %% recipe-same-read [markdown]
# Without bfloat16, the other four together give the losses of one device. On the row even bfloat16 does, once the single device rounds where the eight do: the 1e-4 is gone, so it was rounding and nothing else.
# On the grid, the devices also add up logits, in the middle of the forward pass, and round there as well.
# To round there, the single device would need a different forward pass, so on the grid we are content with a tolerance.
#
# Which of the five needed a trick? Accumulation: without an axis for the copies it would have exchanged every gradient four times.
# And which two give other results if each device looks only at its own part? Clipping, where each part is clipped by its own norm, and dropout, where each part draws its own mask.
#
# Here is what each of the five adds to a step on the grid:
#
# | | exchange | as on one device? | memory of a device |
# | --- | --- | --- | --- |
# | accumulation | activations in each micro-batch, gradients once | yes | running sums and a copy of the weights; activations of one micro-batch only |
# | clipping | 4 bytes for each split gradient | yes, by the global norm | – |
# | bfloat16 | gradients: the same bytes, as their sums are in float32 | up to its rounding | activations halved, cast weights on top |
# | schedule | – | yes | – |
# | dropout | – | yes, with replicated random numbers | random numbers of the whole layer |
#
# So a step can grow to millions of tokens, and the gradients still cross the network once.
# But every device of the row still holds all of Adam's slots, which for GPT-3's 175 billion parameters would be 1,400 GB. Does it need them all?
#
# ## The plain program
#
# [`large_trainings.py`](../plain/large_trainings.py) trains with all five on eight devices, with TensorFlow and NumPy alone.
# It does so on both meshes, in float32 and in bfloat16, and ends with an error if the losses are too far from those of one device.

# %% takeaways [markdown]
# ## Takeaways
#
# - DTensor adds up a gradient as soon as it is computed. To accumulate first and exchange once, give the sums an axis that is split over the devices.
# - Add up first, then clip, by the norm of all gradients. If each part is clipped by its own norm, the gradient changes its direction.
# - Compare with one device in float32 and with the same dropout masks. Then switch to bfloat16.
#
# {Lesson:zero_and_fsdp} takes away from each device what it doesn't need, beginning with Adam's slots.

# %% score
score("large_trainings")
