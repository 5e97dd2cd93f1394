# %% [markdown]
# # What do large training runs add?
#
# At its full batch size, GPT-3 used [3.2 million tokens](https://arxiv.org/abs/2005.14165) in each training step.
# A device can work on a few thousand at a time. So eight devices, at 4,096 tokens each, need about a hundred passes per step. If they exchange their gradients after every pass, they exchange a hundred times as much as they need to.
#
# That's why a large run accumulates gradients over many passes. It also clips them, multiplies in 16 bits, drops units at random, and changes the learning rate from step to step.
#
# *What does each of these five add to a step?* For each of them we'll ask: what must the devices exchange, and do they still get the result that one device would get?
# Accumulation is there to save exchanges, but needs a trick before it saves any. With clipping and dropout, each device has to look beyond its own part: otherwise clipping quietly goes wrong, and dropout can't be compared with one device.
#
# **After this lesson you can**
#
# - accumulate gradients over many micro-batches, and exchange them once;
# - clip gradients that are split over devices, and train in mixed precision;
# - use dropout that doesn't depend on the layout, and put all five into one step.
#
# **Time:** 60 minutes.
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
# We go on with the example of {lesson:any_mesh}: film reviews, a network of 1,200 → 48 → 2, and Adam.
# You know nearly all of its code, so the next five cells are folded.
#
# Two things are new. The training step is divided into `gradients_of` and `update`, so that clipping fits in between. And `gradients_of` takes the forward pass as an argument: bfloat16 and dropout change it.
# As in {lesson:faster}, `update` computes all the new values before it writes any of them.

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


# %% meshes-text [markdown]
# We begin with data parallelism. Eight devices form a row. Each of them holds all the weights, and gets eight reviews from a batch of 64.
# (The row has no `model` dimension, so the hidden units stay whole.)

# %% meshes
splits = {"batch": "batch", "hidden": "model"}

row_mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
row = make_layouts(axes, splits, row_mesh)

# %% baseline-text [markdown]
# The step is now two lines long. Here is what the devices exchange for one batch:

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
# The devices make five all-reduces: one for the loss, and one for each of the four gradients.
# Together they carry 230,988 bytes, nearly all of them for the gradient of `W1`.
#
# ## Many micro-batches, one step
#
# Now suppose that a device has room for only two reviews at a time. Then eight devices can't take 64 reviews at once.
# They take four **micro-batches** of 16, one after another.
#
# The step can still have the same result. The gradient of a batch is a mean over its reviews,
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
# The devices can run this code in two ways. In the drawing, `1` is the first micro-batch, and `═` is an exchange of all gradients:
#
# ```text
# 1 ═ 2 ═ 3 ═ 4 ═ update
#
# 1   2   3   4 ═ update
# ```
#
# Both give the same update, and nothing in the code says which you will get.

# %% predict-accumulated [markdown]
# On eight devices, a data-parallel step with one batch of 64 exchanges 230,988 bytes: the loss and the gradients of all weights.
# Now the batch comes in four micro-batches of 16. The weights are replicated: every device holds all of them.
# For each micro-batch, the step computes the loss and the gradients of all weights, and adds them to the sums so far.
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
# So the devices follow the first drawing. With GPT-3's hundred passes, the second would save 99 of 100 exchanges.

# %% note-forms [markdown]
# Would tf.while_loop help, or one call per micro-batch? And PyTorch?
#
# We tried a loop, and separate calls that keep the sums in variables. They can save memory: with all four micro-batches in one graph, as above, TensorFlow may keep the activations of several. Each micro-batch still takes five: 923,952 bytes a step. (The list shows a collective inside a loop only once.)
#
# PyTorch has two ways to get the second drawing. `DistributedDataParallel` has `no_sync()`,
# which leaves the gradients on their devices for a while. PyTorch's DTensor has `Partial`, a placement
# for sums that are still to be added up. TensorFlow's DTensor has neither.

# %% axis-text [markdown]
# ## Sums that stay where they are
#
# After a micro-batch, each device has the gradient of its own two reviews, a *partial sum*. Add up all eight, divide by eight: that is the micro-batch's gradient.
# We want the partial sums to stay on their devices until the last micro-batch is done.
#
# Take a small case. Two devices have computed the partial sums 3 and 5.
# No layout lets one number be 3 on device 0 and 5 on device 1. But put both into a vector, [3, 5], and split the vector:
# now device 0 holds the 3, and device 1 the 5. All it took was one more axis.
#
# The same works for `W1`. Stack the eight partial sums of its gradient, and you have one tensor of shape 8 × 1,200 × 48, whose first axis is split over `batch`.
#
# A gradient has the shape of its weight, so the weights need the new axis, too: we stack eight copies of the weights, one for each device.
# In the picture, the stack for `W1` is called `copies`. It is drawn flat: one row is one copy, with its 1,200 × 48 = 57,600 weights.

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

# %% gradients-of-copies-text [markdown]
# All eight devices hold the same `W1`. In `copies`, each device holds one row, which is as large as `W1`.
# The rows hold the same numbers, but to DTensor they are separate slices of a larger tensor, so their gradients may differ.
# Device 3 multiplies its own two reviews by its own copy, and gets its own gradient.
#
# The code calls the new axis `copy`. Reviews, labels and copies all get this axis. In the function, two lines are new. The tape has to be told to watch the copies. And instead of one mean of all losses, each copy gets a mean of its own, over its own reviews:


# %% gradients-of-copies
def gradients_of_copies(forward, copies, x, y):
    with tf.GradientTape() as tape:
        # New: copies aren't variables, so the tape must be told
        tape.watch(copies)
        logits = forward(copies, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses, axis=1)  # now one per copy
    return loss, tape.gradient(loss, copies)


# %% copy-layouts-text [markdown]
# On the row, `loss` is a vector of eight losses, and `tape.gradient` differentiates the *sum* of them. That's just what we need. Copy 3 affects only the loss of device 3. So the sum's gradient for copy 3 is that of this one loss, and device 3 can compute it on its own.
#
# Now we make the copies, beginning with their layouts. The axis `copy` is split over the mesh dimension `batch`, and the reviews of one copy stay together on an axis called `rows`.
# A bias gets one more axis, `one`, of length 1, so that it is added to every row:

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
copy_splits = {"copy": "batch", "hidden": "model"}
row_copies = make_layouts(copy_axes, copy_splits, row_mesh)

# %% copies-of-text [markdown]
# Now the copies themselves. On the row, `tf.tile` asks for eight copies of each weight. But the relayout after it leaves each device just one; the other seven are never made. Every device already holds all the weights, so this costs no communication. We make the copies anew in every micro-batch: kept, they would take up memory for the whole step.

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
# The running sums must last from one micro-batch to the next, so they are variables of the model: one for each gradient, shaped and laid out like the copies, and one for the losses.


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


# %% add-text [markdown]
# A micro-batch makes the copies, computes their gradients, and adds the gradients to the sums:


# %% add
@tf.function
def add_micro_batch(model, x, y):
    copies = copies_of(model)
    loss, gradients = gradients_of_copies(logits_of, copies, x, y)
    for name, gradient in gradients.items():
        model.sums[name].assign_add(gradient)
    model.losses.assign_add(loss)


# %% micro-batch-text [markdown]
# The folded cell places the reviews and labels of a micro-batch. Then we list what the devices exchange for it:


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
# After the last micro-batch, we take the mean of the sums over the copies, and divide it by the number of micro-batches.
# That gives the gradient of the whole batch:

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
# Once a step, we take these means, update the weights and set the sums to zero:


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
# These are the five all-reduces from before, in another order, with the same 230,988 bytes. But now they come once, at the end of the step. With a hundred micro-batches, there would still be five.
#
# Now we split the hidden units as well, on a grid of 4 × 2. The grid has four copies, one for each pair of devices.
# A device gets four reviews of a micro-batch, and half of the hidden units:

# %% grid
grid_mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
grid = make_layouts(axes, splits, grid_mesh)
grid_copies = make_layouts(copy_axes, copy_splits, grid_mesh)

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
# On the grid, a micro-batch needs one exchange. The two devices along `model` hold different hidden units, so they add up partial sums of the logits: 4 reviews × 2 logits, 32 bytes.
# Logits are activations. Every micro-batch has different ones, so this exchange can't wait.
#
# The gradients do wait. Those of `W1`, `b1` and `W2` are half as large as on the row: 115,200, 96 and 192 bytes.
# `b2` isn't split: its gradient still takes 8.
#
# Do both meshes compute what one device computes? We train one device for twenty steps, with all 64 reviews of a step at once:

# %% one-device
from course_lib import about


def largest_difference(losses, others):
    return np.abs(np.subtract(losses, others)).max()


one_device = Model({})
one_device_losses = []
for step in range(20):
    x, y = batch_of(64 * step, 64, {})
    number = np.float32(step + 1)
    loss = train_step(one_device, x, y, number, RATE)
    one_device_losses.append(float(loss))

# %% same-run-text [markdown]
# The meshes train on the same reviews, in four micro-batches a step:


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
row_losses = accumulated_run(Accumulating(row, 8, row_copies), 20)
difference = largest_difference(row_losses, one_device_losses)
print("row: ", about(difference, 0, 1e-5))

grid_model = Accumulating(grid, 4, grid_copies)
grid_losses = accumulated_run(grid_model, 20)
difference = largest_difference(grid_losses, one_device_losses)
print("grid:", about(difference, 0, 1e-5))

# %% same-read [markdown]
# In all twenty steps, the losses match those of one device, up to rounding.
#
# What accumulation costs is memory. For the whole step, each device keeps running sums as large as its gradients; during a micro-batch, it also holds a copy of the weights.
# In return, a device of the row stores the activations of two reviews at a time instead of eight.
#
# In a real run, micro-batches may have different sizes, because texts have different lengths.
# Then the mean of the means is wrong: a review counts for more in a small micro-batch than in a large one.
#
# **Exercise 1.** Write `batch_gradient(parts, gradient_of, add_up)`, the accumulation as *each device* runs it.
#
# - `parts` is the list of this device's micro-batches, each a pair `(x, y)`, and **they may have different numbers of rows**.
# - `gradient_of(x, y)` returns the *mean* gradient over the rows of `x`, an array. It runs out of memory above four rows. No micro-batch has more, so call it once for each.
# - `add_up(array)` is the all-reduce: it adds up the arrays (or numbers) that all devices bring.
#
# Return the mean gradient over all rows of all devices.
# In all, send at most one gradient and one number through `add_up`.


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
# One bad batch can throw a long run off its course. Let's make one. In step 11 of 120, somebody forgets to scale the features,
# and they are a hundred times too large. To see what happens, one device is enough:


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
# These are mean losses of the last five steps. A hundred steps after its bad batch, the second run is still far behind: 0.47 instead of 0.35.
#
# Adam is slow to forget. It divides each update by the root of `square`, the average of the squared gradients.
# One huge gradient makes this average huge, and each step forgets only a thousandth of it.
# So Adam's updates stay too small for a long time.
#
# How large was the gradient? Take all gradients together as one vector. Its length is called the **global norm**:


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
# The usual norm is about 0.09, and that of the bad batch about 34, more than three hundred times as much.
#
# **Gradient clipping** shortens such a gradient. If the global norm exceeds a limit, all gradients are multiplied by one factor that brings their norm down to the limit. Their direction stays. GPT-3's limit was 1. We set ours to 0.2, about twice the usual norm. `tf.clip_by_global_norm` does the rest:

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

# %% clip-given [markdown]
# The loss is 0.34 instead of 0.47. With clipping, the bad batch has left no trace.
#
# Now for eight devices. On the row, clipping takes no exchange: once the gradients are added up, every device has them all and can compute the norm itself.
# On the grid, the gradients of `W1`, `b1` and `W2` are split over `model`, and only that of `b2` is replicated.

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
# So clipping costs hardly any bytes, in a model of any size. Each split gradient needs an all-reduce, and TensorFlow fuses these into one ({lesson:faster}).
#
# DTensor takes the norm of the whole gradient, wherever its parts are.
# If you write each device's program yourself, that is your job. Suppose each device clips its part by the part's own norm. Put 3 and 4 on two devices, and let the limit be 1. The norm of (3, 4) is 5, so the clipped gradient is (0.6, 0.8).
# If each device clips its own number, you get (1, 1): a different direction, and no error.
#
# On the grid, the two devices along `model` would also multiply their gradient of `b2` by different factors,
# and their copies of `b2` would drift apart.
# The losses may not show it, because Adam hides a wrong factor that stays the same ({lesson:one_step}). When you test clipping, compare the norms.
#
# With accumulation, the order matters, too. If you clip before taking the mean over the copies, you get the mean of clipped gradients, not the clipped mean.
# So *add up first, over all micro-batches and all devices, and clip after that*.
#
# **Exercise 2.** Clip as *each device* does. Write `clip_own(gradients, is_split, limit, add_up)`.
#
# - `gradients` is a list of arrays: the parts that this device holds.
# - `is_split[i]` says whether gradient `i` is split over `model`. If not, it is replicated.
# - `add_up(array)` is the all-reduce over `model`.
#
# Return the list of this device's clipped gradients. In all, `add_up` may carry 8 bytes, two numbers.


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
# ## Mixed precision
#
# A large training run spends most of its time multiplying matrices.
# Recent GPUs and TPUs have units that do this in **bfloat16**, much faster than in float32: an A100 reaches 312 teraflops instead of 19.5.
#
# A bfloat16 has 16 bits. Its range is about that of float32, but it has only two to three decimal digits, too few for small updates.
# So the products are in bfloat16, and the weights and Adam's slots stay in float32. That is **mixed precision**.
#
# The forward pass casts the weights and `x` to bfloat16, and the logits back to float32:


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
# You might expect that a step now exchanges half as much. Here is the list:


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
# The list has not changed! The gradients are computed in bfloat16, but all-reduces on CPUs can't add up bfloat16.
# So DTensor converts the gradients to float32, adds them up, and converts the sums back. On CPUs, bfloat16 saves no traffic.
#
# Only the activations shrink: each number of `hidden` takes 2 bytes instead of 4.
# But while the step runs, each device also holds the weights cast to bfloat16, and the variables haven't shrunk at all.

# %% note-half [markdown]
# What if a cast is forgotten? And float16?
#
# TensorFlow turns a product of bfloat16 and float32 into an operation for sparse matrices, which DTensor doesn't know. So if a message mentions *SparseMatMul*, look for a forgotten cast:
#
# ```text
# 'tf.SparseMatMul' op does not implement layout propagation.
# ```
#
# float16 has more digits than bfloat16 but a small range. So it needs loss scaling ({lesson:own_steps}), which skips a step whose gradients aren't all finite.
# To skip a step in DTensor, compute a flag in the same `tf.function`: 1.0 if all gradients are finite, and otherwise 0.0. Then:
#
# - Before you clip, replace every gradient by `tf.math.multiply_no_nan(gradient, flag)`, which is 0 even where the gradient is infinite.
#   One infinite number would make the norm infinite, and then every clipped number NaN.
# - Adam's slots move the weights even when the gradient is 0. So if `old` is a weight or a slot, and `new` is what Adam makes of it, write `old + flag * (new - old)`.
# - Don't use `tf.where` with a scalar condition. It can end the process without a message when the branches are DTensors that aren't scalars.

# %% dropout-heading [markdown]
# ## Dropout that no layout changes
#
# **Dropout** sets each number of the hidden layer to zero with a certain probability. We choose one half, and double the numbers that stay, to make up for the others.
# Which numbers stay is called the *mask*. It comes from random numbers, and these come from a *seed*:


# %% dropped
def dropped(hidden, seed):
    random = tf.random.stateless_uniform(hidden.shape, seed)
    kept = tf.cast(random >= 0.5, hidden.dtype)
    return 2 * kept * hidden


# %% draw-masks-text [markdown]
# In a tensor of ones, dropout shows its mask: 2 for each number that stays, 0 for the others. We draw the mask on one device and on the row, from the same seed:

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

print("kept:            ", np.mean(row_mask > 0).round(2))
print("as on one device:", np.mean(row_mask == one_mask).round(2))

# %% draw-masks-read [markdown]
# The row keeps half of the numbers, as it should, but not the same half as one device. The two masks agree in half of the places, no better than two series of coin tosses.
# That's because the tensor is split. Each device drew only the random numbers for its own part, from its own seed, which DTensor had made from ours.
#
# As dropout, this is fine. But different masks give different losses, so you can no longer check against one device. And a run that moves to another mesh, as in {lesson:any_mesh}, would go on with other masks.
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
# Random numbers follow from a seed, which every device has.
# We request the random numbers as a replicated tensor, and apply the mask to the split layer.
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
# For a replicated tensor, DTensor leaves our seed as it is, so every device draws the same random numbers.
# But each device draws numbers for all 64 rows, and keeps its own eight rows. On a larger mesh, each throws more away.
#
# Now we compare the masks again:

# %% masks
parts = dtensor.unpack(tf.function(masked)(ones_on_row, seed_on_row))
row_mask = np.concatenate(parts)
print("equal:", np.array_equal(row_mask, one_mask))

# %% masks-read [markdown]
# All 3,072 numbers of the two masks agree. The row drops exactly what one device drops.

# %% note-masks [markdown]
# What about micro-batches, several layers, and the Dropout layer of Keras?
#
# Accumulated micro-batches get the same masks on every mesh. The hidden layer is 4 × 4 × 48 on the grid (copies × rows × units) and 1 × 16 × 48 on one device. But both list the same 16 reviews in the same order, and the 768 numbers are drawn in that order.
#
# With dropout in several layers, each layer needs a seed of its own, such as `[4 * step + part, layer]`. Otherwise two layers of the same shape get the same mask.
#
# `tf.random.Generator` and the Dropout layer of Keras keep a state, which a resumed run has to restore.
# With a stateless function, the mask follows from the seed, and the seed from the numbers of the step and the micro-batch.
# So a resumed run draws the same masks without any state.

# %% together-heading [markdown]
# ## All at once
#
# Now we put everything into one step. The model also stores its mesh, for the masks, and the products' dtype:


# %% recipe-model
class Recipe(Accumulating):
    def __init__(self, layouts, copy_count, copy_layouts, mesh, dtype):
        super().__init__(layouts, copy_count, copy_layouts)
        self.mesh = mesh
        self.dtype = dtype


# %% recipe-micro-batch-text [markdown]
# The forward pass casts and drops, in the lines marked "new". Its seed is an argument, because each micro-batch needs a different one:


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
# At the end of a step, the gradients are added up first and clipped after that:


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
# The fifth addition is a learning-rate schedule ({lesson:a_run}): a warm-up of ten steps, times a linear decay. The decay covers the whole run; in {lesson:a_run} it began after the warm-up. A schedule needs no exchange: the rate is one number, computed outside the step:


# %% schedule
def rate_of(step, steps):
    warm_up = min(1, (step + 1) / 10)
    return np.float32(3e-3 * warm_up * (1 - step / steps))


for step in [0, 9, 19]:
    print(f"step {step + 1:2}: {rate_of(step, 20):.5f}")

# %% schedule-read [markdown]
# In a run of twenty steps, the rate rises until step 10. By then the decay has already taken away almost half, so the peak is 0.00165 and not 0.003.
#
# The training loop makes a seed for each micro-batch and a rate for each step:


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
# We give the grid and one device the same micro-batches and compare their losses, first in float32 and then in bfloat16:


# %% recipe-same
def grid_difference(dtype):
    on_one = Recipe({}, 1, {}, mesh=None, dtype=dtype)
    on_grid = Recipe(grid, 4, grid_copies, mesh=grid_mesh, dtype=dtype)
    return largest_difference(train(on_grid, 20), train(on_one, 20))


print("grid, float32: ", about(grid_difference(tf.float32), 0, 1e-5))
print("grid, bfloat16:", about(grid_difference(tf.bfloat16), 0, 2e-3))

# %% recipe-same-read [markdown]
# In float32 the grid trains as one device does, up to rounding. In bfloat16 the difference is about 7e-5, a thousand times as large.
# That can be rounding, too: eight devices round their parts of a gradient to bfloat16 before adding them up, and one device rounds only once.
# But a difference this large could also hide a mistake.
# So start in float32, and make sure that the losses match those of one device to 1e-5. Only then switch to bfloat16.
#
# ## What each of the five adds
#
# This is what the five add to a step on the grid:
#
# | | exchange | as on one device? | memory of a device |
# | --- | --- | --- | --- |
# | accumulation | activations over `model` in each micro-batch, gradients over `batch` once | yes | running sums and a copy of the weights; activations of one micro-batch only |
# | clipping | 4 bytes for each split gradient | yes, by the global norm | – |
# | bfloat16 | gradients: on CPUs the same bytes | up to its rounding | activations halved, cast weights on top |
# | schedule | – | yes | – |
# | dropout | – | yes, with replicated random numbers | random numbers of the whole layer |
#
# The one that needed a trick is accumulation: without an axis for the copies, the devices would exchange every gradient four times.
# Clipping is the one that quietly goes wrong if each device looks only at its own part: each part would be shortened by its own norm. Dropout would still be dropout, but each part would get its own mask, and you couldn't compare the losses with one device's.
#
# So a step can grow to millions of tokens, and the gradients still cross the network once.
# But under data parallelism, as on our row, every device still holds all of Adam's slots, which for GPT-3's 175 billion parameters would be 1,400 GB. Does it need them all?
#
# ## The plain program
#
# [`large_trainings.py`](../plain/large_trainings.py) trains with all five on both meshes, in float32 and in bfloat16, with TensorFlow and NumPy alone.
# It ends with an error if the losses are too far from those of one device.

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
