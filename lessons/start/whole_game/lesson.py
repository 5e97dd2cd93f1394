# %% [markdown]
# # Eight devices, one model
#
# Below are four training runs of the same network.
# One was made on a single device, and three were made on eight.
# In one of these three, a quarter of the examples were given another example's label.
# TensorFlow reported no error. Which run is it?
#
# **Time:** 35 minutes.
# **You need to know:** how to train a small network in TensorFlow on one device.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% runs
from lessons.start.whole_game.explorer import RunsExplorer

RunsExplorer()

# %% predict-run [markdown]
# Four training runs of the same network, on the same data: A, B, C and D.
# In which of them did a quarter of the examples have another example's label?
#
# - [ ] `A` run A
#   Its loss ends at 0.37, as those of B and D do.
# - [ ] `B` run B
#   Its loss ends at 0.37, as those of A and D do.
# - [x] `C` run C
#   Its loss falls less than the other three and ends at 0.54.
# - [ ] `D` run D
#   Its loss ends at 0.37, as those of A and B do.

# %% reveal-run
from lessons.start.whole_game.explorer import WRONG_LABELS

reveal("whole_game-run", WRONG_LABELS)

# %% one-text [markdown]
# That was easy, because you could compare.
# Now imagine that C were the only run you had made. Its loss falls, and its accuracy rises.
# Would you have suspected anything?
#
# In this notebook you make all four runs yourself.
# You train on eight devices and look inside them, break a run so that nobody notices,
# split the model, and move a half-finished run to another arrangement of the devices.
# All of it happens on the machine in front of you.
# We won't explain everything here, but you will always be told which lesson does.
#
# ## One device
#
# We start with something small: a network that reads film reviews and says whether the reviewer liked the film.
# Each review is a row of 1,200 numbers, one for each word of a vocabulary:
# how typical that word is of this review (its *tf-idf*).

# %% data
from course_lib import data

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

print(train_x.shape)
print(train_y[:12])

# %% network-text [markdown]
# There are 8,100 reviews, made up for this course. The label is 1 if the review is positive, and 0 if it is negative.
#
# The network has one hidden layer of 48 units. These are its initial weights (He initialization):

# %% values
import numpy as np

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

# %% forward-text [markdown]
# We write everything by hand, because we want to see what eight devices change about it.
# First the forward pass, and the optimizer Adam, which keeps two running averages for each weight:

# %% forward
tf = course_lib.start_tensorflow()

LEARNING_RATE = 3e-3


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = LEARNING_RATE * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% step-text [markdown]
# Now a training step: forward pass, backward pass, update.


# %% step
@tf.function
def train_step(model, x, y, step):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(weight, mean, square, gradient, step)

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% model-text [markdown]
# What is left is the model, which holds the weights and Adam's averages, and the loop that trains it.
# Soon the same code will run on eight devices. That is why both take a dictionary called `layouts`.
# Without a layout, an array becomes an ordinary tensor or variable, and that is all we need on one device.
# Given a layout, the course's function `shard` hands each device its part of the array.

# %% note-shard [markdown]
# What does `shard` do?
#
# It cuts an array into parts, one for each device, and hands the list to TensorFlow: `dtensor.pack(parts, layout)`.
# Along an axis that isn't split, every device gets all of it. In {lesson:mesh_and_layout} you write the cutting yourself.

# %% model
from tensorflow.experimental import dtensor

from course_lib import shard


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


# %% loop
def train(model, layouts, steps, labels=train_y):
    for step in steps:
        rows = slice(64 * step, 64 * step + 64)
        x = place(train_x[rows], layouts.get("x"))
        y = place(labels[rows], layouts.get("y"))
        # A single number needs no layout: every device gets it
        step_number = np.float32(step + 1)
        loss, accuracy = train_step(model, x, y, step_number)
        yield {
            "step": step + 1,
            "epoch": 1,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }


# %% one-run-text [markdown]
# `train` yields one record per step, and `live` plots them as they arrive.
# (`await` keeps the notebook responsive, so you can press Stop.)
# A hundred steps, with 64 reviews each:

# %% one-run
from course_lib import live

one_model = Model({})
one = await live(train(one_model, {}, range(100)), steps=100)

# %% one-read [markdown]
# The loss begins at 0.69, which is what you get for answering fifty-fifty every time.
# Over the last twenty steps it averages 0.37.
# How good is the network on reviews that it has not seen?

# %% one-test
from course_lib import about

test_x = reviews.test.features
test_y = reviews.test.labels


def test_accuracy(model, layouts):
    x = place(test_x, layouts.get("x"))
    y = place(test_y, layouts.get("y"))
    logits = logits_of(model.weights, x)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(hits))


accuracy = test_accuracy(one_model, {})
print("test accuracy", about(accuracy, 0.85, 0.87))

# %% eight-text [markdown]
# It gets 86 of 100 right. (`about` prints ≈ before a number whose last digits depend on your processor. A ✗ means that it lies outside the two limits.)

# %% eight-heading [markdown]
# ## Eight devices
#
# Now for eight. They are virtual: all eight use your processor, so they are no faster than one.
# But your program sees eight devices, just as it would see eight GPUs, and we can see whether the results are right.
#
# We arrange the devices in a mesh. Ours has a single dimension, eight devices long, and we call it `batch`.
# Every tensor gets a layout, which says how it is spread over the mesh.
# For each axis, the layout names the mesh dimension that splits it, or says that nothing does.
# If none of its axes is split, the tensor is *replicated*: every device holds all of it.

# %% layouts
WHOLE = dtensor.UNSHARDED

specs = {
    "x": ["batch", WHOLE],
    "y": ["batch"],
    "W1": [WHOLE, WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
}


def layouts_on(mesh, specs):
    names = ["x", "y", *values]
    return {name: dtensor.Layout(specs[name], mesh) for name in names}


mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
eight_layouts = layouts_on(mesh, specs)

# %% layouts-x [markdown]
# The rows of `x` are split along `batch`. In a picture:

# %% show-x
from course_lib import show

show(eight_layouts["x"], (64, 1200))

# %% eight-run-text [markdown]
# Each device gets 8 of the 64 reviews, and no other device has them.
# (The parts must be equal, so a batch of 60 would be refused.)
# The weights are replicated, so there are eight copies of them.
# Splitting the batch and replicating the model like this is called **data parallelism**.
#
# What has to change in the step? Nothing.
# We just hand the layouts to the model and to the loop:

# %% eight-run
eight_model = Model(eight_layouts)
eight = await live(
    train(eight_model, eight_layouts, range(100)), steps=100
)

# %% eight-read [markdown]
# The curve looks the same. Is it?
# Let's compare the two runs step by step. How far apart do their losses ever get?


# %% eight-same
def losses_of(history):
    return np.array([record["loss"] for record in history.steps])


difference = np.abs(losses_of(eight) - losses_of(one)).max()
print("difference", about(difference, 0, 1e-5))

accuracy = test_accuracy(eight_model, eight_layouts)
print("test accuracy", about(accuracy, 0.85, 0.87))

# %% inside-text [markdown]
# The difference is about a ten-millionth, and that is rounding.
# Eight devices together did what one device does alone.
#
# *More about this:* {lesson:mesh_and_layout}, on devices, meshes and layouts, and {lesson:one_step}, on the training step.

# %% note-devices [markdown]
# What if I want another number of devices?
#
# Write `devices=4` or `devices=16` in the first cell, restart the kernel, and change the three meshes of this notebook.
# The product of a mesh's sizes must be the number of devices. For four: `("batch", 4)` here,
# and later `("batch", 2), ("model", 2)` and `("batch", 1), ("feature", 2), ("model", 2)`.
# If it isn't, TensorFlow says so: `length of devices (4) must be equal to total size of the mesh of shape [8]`.
# Under *Break it*, `reshape(100, 8, 8)` has two more: the devices, and the reviews on each. For four: `reshape(100, 4, 16)`.
#
# The parts of a split axis must be equal. So six or twelve devices along `batch` can't share a batch of 64,
# and `shard` names the axis that doesn't divide. Twelve devices work as a grid of 4 × 3:
# with `("batch", 4), ("model", 3)` and the layouts of *Split the model*, the 64 reviews fall into four equal parts,
# and the 48 hidden units into three.

# %% inside-heading [markdown]
# ## Look inside
#
# Isn't there something odd about this?
# Device 3 never sees more than 8 reviews of a batch.
# *Its* gradient comes from these 8, and the gradient of device 4 from 8 others:
# eight devices, eight different ideas of where the weights should go.
# And each has its own copy of `W1`.

# %% predict-apart [markdown]
# Eight devices have trained a network for 100 steps, under data parallelism.
# Each has its own copy of `W1`, and each has seen different reviews.
# How far apart are the copies now?
#
# - [x] `equal` Not at all: they are equal to the last bit.
#   In every step the devices add up their gradients, and each device updates its copy with this sum.
# - [ ] `rounding` As far as rounding puts them, about one part in ten million.
#   Rounding differs where a sum is taken in a different order. But all devices get the result of one and the same sum.
# - [ ] `far` Far: by now they are eight different models.
#   They would be, if each device followed its own gradient.

# %% reveal-apart
# A list with a tensor for each device
copies = dtensor.unpack(eight_model.weights["W1"].value())
first = copies[0].numpy()
largest = 0.0
for copy in copies:
    difference = np.abs(copy.numpy() - first).max()
    largest = max(largest, difference)

if largest == 0:
    answer = "equal"
elif largest < 1e-5:
    answer = "rounding"
else:
    answer = "far"
reveal("whole_game-apart", answer)

# %% apart
print("largest difference", largest)

# %% all-reduce-text [markdown]
# The devices add up their gradients in an *all-reduce*, after which each device has the sum.
# Who put it into the step? You didn't. But the gradient is a mean over the 64 reviews, and these are spread over eight devices, so somebody has to add up the parts. TensorFlow saw that, and inserted the all-reduce.
# `collectives`, another of the course's helpers, lists everything that TensorFlow inserted:

# %% all-reduces
from course_lib import collectives

x = place(train_x[:64], eight_layouts["x"])
y = place(train_y[:64], eight_layouts["y"])
step_1 = np.float32(1)
for each in collectives(train_step, eight_model, x, y, step_1):
    print(each)

# %% all-reduces-read [markdown]
# A step has six all-reduces: one for each of the four gradients, one for the loss, and one for the accuracy.
# The largest, of 230,400 bytes, is for the gradient of `W1`: 1,200 × 48 numbers of 4 bytes each.
#
# And how do devices add something up? One way is to form a ring and pass pieces around.
# Here are four devices. Press *Forward*, and follow the first column:

# %% ring
from lessons.layouts.all_reduce.ring_explorer import RingExplorer

RingExplorer()

# %% break-text [markdown]
# To build the sums, each device sends three quarters of its array. To pass them round, it sends another three quarters: 1.5 times the array in all.
#
# *More about this:* {lesson:communication}, on what devices tell each other, and {lesson:all_reduce}, on how they add up.

# %% break-heading [markdown]
# ## Break it
#
# So far everything went well. Let's do some damage.
# Suppose there is a mistake in the code that feeds the devices:
# in every batch, devices 0 and 1 get each other's labels. Their reviews are in the right place.
#
# A hundred batches of 64 labels make 100 × 8 × 8: batch, device, review. So the mistake is quickly made:

# %% swapped
labels = train_y[:6400].reshape(100, 8, 8)
swapped = labels.copy()
swapped[:, 0] = labels[:, 1]
swapped[:, 1] = labels[:, 0]
wrong_y = swapped.reshape(6400)

# %% broken-run-text [markdown]
# Now train with these labels, and with the same reviews as before:

# %% broken-run
broken_model = Model(eight_layouts)
broken = await live(
    train(broken_model, eight_layouts, range(100), wrong_y),
    steps=100,
)
accuracy = test_accuracy(broken_model, eight_layouts)
print("test accuracy", about(accuracy, 0.80, 0.845))

# %% broken-read [markdown]
# No error, no warning. The loss falls, and the network gets 82 of 100 right instead of 86.
# A quarter of the reviews got another review's label. But there are only two labels, so about half of these are right by luck.
# If this had been your only run, your only clue would have been an accuracy a little below what you hoped for.
# Would you have looked for a mistake? Or tried a different learning rate?
#
# There is a quick way to catch it. Our run on one device used the same batches,
# and its labels never went near the faulty code. So compare the losses, from the first step on:

# %% broken-compare
print("one device         ", losses_of(one)[:3].round(4))
print("eight, right labels", losses_of(eight)[:3].round(4))
print("eight, wrong labels", losses_of(broken)[:3].round(4))

# %% split-text [markdown]
# The last line is off by 0.001 at the very first number, before the network has learned anything.
# That doesn't look like much. But rounding, in float32, was ten thousand times smaller.
#
# This was run C at the top. And it is why, in this course, **every training run is compared with one device**.
# If the model doesn't fit on one device, compare a smaller version of it.
#
# *More about this:* {lesson:one_step}, on how to compare; {lesson:from_scratch}, on optimizers with bugs that nobody notices.

# %% split-heading [markdown]
# ## Split the model
#
# Each of our eight devices holds the whole model. With a model of this size nobody cares.
# But if a model is too large for one device, seven more copies won't help.
#
# So arrange the eight devices as a grid of 4 × 2.
# The four rows of the grid share out the reviews, and the two devices of a row share out the *hidden units*.
# A hidden unit has a column of `W1`, an entry of `b1` and a row of `W2`, so each of the two devices takes half of these.
# This is called **tensor parallelism**. Three layouts change:

# %% split-layouts
split_specs = dict(specs)
split_specs["W1"] = [WHOLE, "model"]
split_specs["b1"] = ["model"]
split_specs["W2"] = ["model", WHOLE]

grid = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
split_layouts = layouts_on(grid, split_specs)
show(split_layouts["W1"], (1200, 48))

# %% split-run-text [markdown]
# Four devices have the left half of `W1`, and four have the right half.
# Model, step and loop stay as they are, because a layout says where the work is done, not what is computed.
# We train for 50 steps only, since we are going to move this run:

# %% split-run
split_model = Model(split_layouts)
half = await live(
    train(split_model, split_layouts, range(50)), steps=100
)

# %% split-catch-text [markdown]
# It runs, although each device has only half of the hidden units. What does that cost?

# %% predict-catch [markdown]
# A network has one hidden layer.
# On a grid of 4 × 2, `batch` splits the reviews, and `model` splits the hidden units:
# the columns of `W1` and the rows of `W2`.
# A training step now has one all-reduce more than with `batch` alone. Where is it?
#
# - [x] `forward` In the forward pass
#   A logit is a sum over all 48 hidden units, and no device has more than 24 of them.
#   So the two devices of a row have to add up their halves.
# - [ ] `backward` In the backward pass
#   The gradients are sums over the reviews, as before. Each device needs them for its own hidden units only.
# - [ ] `update` When the weights are updated
#   Each device updates the part that it holds. It needs nobody for that.

# %% reveal-catch
x = place(train_x[:64], split_layouts["x"])
y = place(train_y[:64], split_layouts["y"])
in_forward_pass = collectives(logits_of, split_model.weights, x)
if len(in_forward_pass) == 1:
    answer = "forward"
else:
    answer = "backward"
reveal("whole_game-catch", answer)

# %% catch-list
for each in collectives(train_step, split_model, x, y, step_1):
    print(each)

# %% catch-read [markdown]
# There it is, at the top of the list: an all-reduce over `model`, of 128 bytes.
# A device has 16 reviews, with two logits each. The other six are familiar, but the gradients of `W1`, `b1` and `W2` have halved, to 115,200, 96 and 192 bytes,
# because each device needs only those of its own hidden units.
#
# Don't let the 128 bytes deceive you. Our model has only two logits, and only one hidden layer.
# Each block of a transformer has two of these all-reduces in the forward pass and two in the backward pass,
# and they add up tensors as wide as the network.
#
# *More about this:* {lesson:splitting_the_model}, on tensor parallelism and what it costs.

# %% move-heading [markdown]
# ## Stop it, and move it
#
# The run stands at step 50 of 100.
# Say you need these devices for something else, and are given others, arranged differently.
# Save the model, with its weights and Adam's averages:

# %% save
import tempfile

path = tempfile.mkdtemp() + "/half-way"
_ = tf.train.Checkpoint(model=split_model).write(path)

# %% move-text [markdown]
# The new arrangement is a cube of 2 × 2 × 2.
# Its new dimension, `feature`, splits the 1,200 numbers of each review, so that no device even sees a whole review any more.

# %% move
cube_specs = dict(split_specs)
cube_specs["x"] = ["batch", "feature"]
cube_specs["W1"] = ["feature", "model"]

cube = dtensor.create_mesh(
    [("batch", 2), ("feature", 2), ("model", 2)],
    device_type="CPU",
)
cube_layouts = layouts_on(cube, cube_specs)

# %% move-run-text [markdown]
# Now a new model takes over what was saved, and goes on.
# The file doesn't know which step comes next, so we say it ourselves.
# `live` gets the records of the first half too, and continues their curve:

# %% move-run
moved_model = Model(cube_layouts)
restored = tf.train.Checkpoint(model=moved_model).read(path)
restored.assert_consumed()  # an error, if anything is missing

rest = train(
    moved_model, cube_layouts, range(len(half.steps), 100)
)
moved = await live(rest, half, steps=100)

# %% moved-read [markdown]
# Can you spot the move in the curve? Let's ask the numbers:

# %% moved-same
difference = np.abs(losses_of(moved) - losses_of(one)).max()
print("difference", about(difference, 0, 1e-5))

accuracy = test_accuracy(moved_model, cube_layouts)
print("test accuracy", about(accuracy, 0.85, 0.87))

# %% strategy-text [markdown]
# Fifty steps on a grid, fifty on a cube, and every loss agrees with that of one device.
# The move was easy because a checkpoint doesn't store the mesh.
# It stores each part of a tensor together with its position in the whole tensor.
#
# You have now made all four runs: A on eight devices, B, which moved half-way, C with the wrong labels, and D on one device.
# Go back to the top and choose *all four*. The curves of A, B and D lie on top of each other, and C's does not.
#
# *More about this:* {lesson:a_run}, on runs that stop and go on, and {lesson:any_mesh}, on what a checkpoint stores and on other meshes.

# %% strategy-heading [markdown]
# ## The same without layouts
#
# If you have a Keras model and want data parallelism, there is a shorter way: a **strategy**.
# Here is one for two devices:

# %% strategy
devices = ["CPU:0", "CPU:1"]
strategy = tf.distribute.MirroredStrategy(devices)

with strategy.scope():
    keras_model = tf.keras.Sequential(
        [
            tf.keras.Input((1200,)),
            tf.keras.layers.Dense(48, activation="relu"),
            tf.keras.layers.Dense(2),
        ]
    )

# %% strategy-run-text [markdown]
# The same optimizer, the same initial weights, the same 100 batches in the same order:

# %% strategy-run
with strategy.scope():
    keras_model.compile(
        optimizer=tf.keras.optimizers.Adam(3e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True
        ),
    )

keras_model.set_weights(
    [values["W1"], values["b1"], values["W2"], values["b2"]]
)
fitted = keras_model.fit(
    train_x[:6400],
    train_y[:6400],
    batch_size=64,
    shuffle=False,
    verbose=0,
)

print(f"fit        {fitted.history['loss'][0]:.4f}")
print(f"one device {losses_of(one).mean():.4f}")

# %% strategy-read [markdown]
# These are mean losses over the 100 steps. They agree to four digits, because each batch splits into equal parts. {Lesson:strategies} shows what happens if it doesn't.
#
# *More about this:* {lesson:strategies}, on strategies, {lesson:custom_training}, on loops of your own,
# and {lesson:workers}, on several machines.

# %% which-heading [markdown]
# ## Which should you take?
#
# Take a strategy if the model fits on one device.
# Take layouts if it has to be split, or if you want to decide who holds what.
#
# Layouts in TensorFlow are called **DTensor**. They work, but they are experimental, and names may still change.
# For a new large model you'd be better off with JAX or PyTorch, which have meshes and layouts too.
# If your model is in TensorFlow and has to be split, DTensor is the tool for it.
# And it is a fine place to learn what all three do, since a laptop is enough for nearly all of this course.
#
# ## 4,096 devices
#
# A laptop won't train a transformer with 146 billion parameters.
# But you can estimate what each of 4,096 H100s would have to hold and to send, and how long that would take.
# The planner below does so for 2,100 *plans*, or ways to arrange the devices, and shows you the fastest:

# %% planner tags=["modelled"]
from lessons.scale.explorer import ScaleOutExplorer

ScaleOutExplorer(
    "146", "H100", devices=4096, examples=512, everything=True
)

# %% planner-read [markdown]
# Read the first card with me.
# The network's eighty blocks are dealt out to eight *stages*, ten to each, which is called pipeline parallelism.
# Each stage is split eight ways along `model`, so one copy of the network takes 64 devices.
# There are 64 such copies along `batch`, each with its own examples. A training step would take 0.78 s.
#
# Now look at one more number: the plan uses only 30 % of the devices' peak.
# In those 0.78 s the devices could have done more than three times as much arithmetic.
#
# Choose a batch of 4,096 examples. A different plan wins, and it uses 45 % of the peak:
# a step takes 4.1 s, about five times as long for eight times as many examples.
# Why does the larger batch use the devices so much better?
# Keep it in mind: {lesson:which_plan} answers it.
# The page *How good is the model?* says how far you can trust such estimates.

# %% doors [markdown]
# ## Four doors
#
# - **I want to understand.** Lessons
#   [{number:mesh_and_layout}]({notebook:mesh_and_layout}),
#   [{number:communication}]({notebook:communication}), [{number:all_reduce}]({notebook:all_reduce}),
#   [{number:one_step}]({notebook:one_step}), [{number:a_run}]({notebook:a_run}),
#   [{number:splitting_the_model}]({notebook:splitting_the_model}),
#   [{number:large_trainings}]({notebook:large_trainings}),
#   [{number:zero_and_fsdp}]({notebook:zero_and_fsdp}),
#   [{number:transformer_block}]({notebook:transformer_block}), [{number:how_long}]({notebook:how_long}),
#   [{number:stages}]({notebook:stages}),
#   [{number:memory_and_time}]({notebook:memory_and_time}), [{number:which_plan}]({notebook:which_plan}), in this order.
# - **I have a Keras model.** Lessons
#   [{number:strategies}]({notebook:strategies}), [{number:custom_training}]({notebook:custom_training}),
#   [{number:own_steps}]({notebook:own_steps}), [{number:workers}]({notebook:workers})
#   and [{number:failures}]({notebook:failures}); and [{lesson:estimators}]({notebook:estimators}),
#   if your program still has Estimators.
# - **I want a mesh of my own, now.** Copy [`your_mesh.py`](../plain/your_mesh.py), which needs only TensorFlow and NumPy.
#   Change its mesh, and which dimension splits which axis. It compares the losses with those of one device, and prints how much device 0 holds of each tensor.
#   The rules of layouts are in [{lesson:mesh_and_layout}]({notebook:mesh_and_layout}).
#   In the program, layouts follow from the names of axes, as in
#   [{lesson:splitting_the_model}]({notebook:splitting_the_model}), under *Names instead of layouts*.
# - **Something goes wrong.** [{Lesson:from_scratch}]({notebook:from_scratch}); on the site, *Silent mistakes*, *What DTensor gets right*
#   and *Troubleshooting*.
#
# Each lesson begins with what you need to know for it, and which lesson explains that.
#
# [`whole_game.py`](../plain/whole_game.py) makes the runs of this notebook in one file.
# It needs only TensorFlow and NumPy, and makes its own data.
# There you also see how eight virtual devices are made, and what `shard` does.

# %% score
score("whole_game")
