# %% [markdown]
# # When are eight devices faster than one?
#
# A training step on 64 reviews takes one device 1.7 milliseconds.
# We ran the same program on eight devices. Each of them had only 8 reviews to look at,
# and the step took 8 milliseconds, nearly five times as long.
#
# Your first distributed program will probably do the same.
# Nothing will be wrong with it, and its losses will be those of one device. It will just be slow.
#
# So *when are eight devices faster than one?*
# In this lesson you measure it, and find out where those 8 milliseconds go.
# Then you try four cures: larger batches, fewer all-reduces, many steps in one call,
# and data that is ready before the devices need it.
# By the end, the eight devices take a step in about half the time.
#
# **After this lesson you can**
#
# - measure a step, and find the batch size from which extra devices pay off;
# - take many steps in one call, and get the same weights as one step at a time;
# - train on files that are larger than your memory.
#
# **Time:** 55 minutes.
# **You need to know:** Adam and the training loop ({lesson:a_run}), and what an all-reduce costs ({lesson:all_reduce}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% same-heading [markdown]
# ## The same step, on one device and on eight
#
# The model and the training step are those of {lesson:a_run}, and we train on all 8,100 reviews.
# The next five cells are folded, because you know their code from there. Just run them.

# %% data tags=["known"]
import numpy as np

from course_lib import data

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels
test_x = reviews.test.features
test_y = reviews.test.labels

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


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% update tags=["known"]
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


# %% step tags=["known"]
@tf.function
def train_step(model, x, y, step, learning_rate):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)
    update(model, gradients, step, learning_rate)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% model tags=["known"]
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
            layout = layouts[name]
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


# %% layouts-text [markdown]
# We use data parallelism again: eight devices share the batch, and each of them holds all weights.

# %% layouts
WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
specs = {
    "x": ["batch", WHOLE],
    "y": ["batch"],
    "W1": [WHOLE, WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
}


def layouts_on(mesh, specs):
    layouts = {}
    for name, spec in specs.items():
        layouts[name] = dtensor.Layout(spec, mesh)
    return layouts


layouts = layouts_on(mesh, specs)
no_layouts = dict.fromkeys(specs)  # one device: ordinary tensors

# %% clock-text [markdown]
# Now we need a clock, and some care in using it.
#
# The first call of a `tf.function` is slow, because TensorFlow *traces* the function: it runs the Python code once, records the operations, and compiles them.
# So we call the step once before we start the clock.
#
# And every call returns before the devices are done. So before we stop the clock, we read the last loss, which waits until the devices have computed it.

# %% clock
import time

LEARNING_RATE = np.float32(3e-3)
FIRST_STEP = np.float32(1)
on_eight = Model(layouts)


def milliseconds(model, x, y):
    # Traced and compiled here, before the clock starts
    train_step(model, x, y, FIRST_STEP, LEARNING_RATE)
    start = time.perf_counter()
    for _ in range(50):
        loss, _ = train_step(model, x, y, FIRST_STEP, LEARNING_RATE)
    float(loss)  # wait for the devices
    return 1000 * (time.perf_counter() - start) / 50


# %% predict-growth [markdown]
# Eight virtual devices take a training step with 64 reviews, 8 each. It takes several times as long as on one device.
# Now they get 512 reviews, 64 each. How much longer does a step on the eight devices take?
#
# - [x] `little` Less than three times as long
#   Most of the time doesn't depend on the number of reviews: eight devices have to be started, and to add up gradients.
#   A gradient has as many numbers as the weight, however many reviews it comes from.
# - [ ] `some` Between three and six times as long
#   It would be, if about half of the time were spent on the reviews. With 8 reviews on each device, it is far less.
# - [ ] `all` More than six times as long
#   It would be, if nearly all of the time were spent on the reviews. But one device computes all 64 of them in much less time.

# %% reveal-growth
x_64 = shard(train_x[:64], layouts["x"])
y_64 = shard(train_y[:64], layouts["y"])
x_512 = shard(train_x[:512], layouts["x"])
y_512 = shard(train_y[:512], layouts["y"])

time_of_64 = milliseconds(on_eight, x_64, y_64)
time_of_512 = milliseconds(on_eight, x_512, y_512)
growth = time_of_512 / time_of_64
if growth < 3:
    answer = "little"
elif growth < 6:
    answer = "some"
else:
    answer = "all"
reveal("faster-growth", answer)

# %% crossing-text [markdown]
# So the time of a step has two parts: a **fixed cost**, and a cost for each review.
# One device has a small fixed cost, but has to work through all the reviews by itself.
# Eight devices have a large fixed cost, but share the reviews.
#
# The more reviews there are, the more it should help to share them.
# Here are our recorded times, from 64 to 16,384 reviews per step. Both axes are logarithmic:

# %% crossing
from lessons.layouts.faster.picture import times_picture

times_picture()

# %% crossing-read [markdown]
# Start at the left. From 64 to 512 reviews, the line of the eight devices is almost flat:
# a step goes from 4.8 to 5.5 ms, so nearly all of it is fixed cost.
# (In the opening it took 8 ms. The picture shows the improved step from the end of this lesson, with the reviews already on the devices.)
#
# The line of one device starts much lower, at 1.3 ms, and is nearly flat at first, too.
# But then it climbs. Near the right end, twice the reviews take about twice the time.
# Between 4,096 and 8,192 reviews, it crosses the line of the eight devices.
#
# At the right end, with 16,384 reviews, one device takes 49 ms and eight take 32.
# Eight devices are 1.5 times as fast. On this machine they could be at most twice as fast:
# it has two cores. A single device uses one core; eight devices share the two.
#
# Where do the lines cross on your machine? Run the next two cells, choose a batch size, and press the button.
# (The folded cell only makes the two steps that are compared.)
# After a few seconds you see a median: one device and eight are timed in turn, several times over.
# Your step isn't improved yet, so your eight devices will take a little longer than ours.

# %% steps-of tags=["known"]
on_one = Model(no_layouts)


def steps_of(batch_size):
    rows = np.arange(batch_size) % len(train_y)
    x, y = train_x[rows], train_y[rows]
    one_x, one_y = tf.constant(x), tf.constant(y)
    eight_x = shard(x, layouts["x"])
    eight_y = shard(y, layouts["y"])

    def step_on_one():
        return train_step(
            on_one, one_x, one_y, FIRST_STEP, LEARNING_RATE
        )

    def step_on_eight():
        return train_step(
            on_eight, eight_x, eight_y, FIRST_STEP, LEARNING_RATE
        )

    return step_on_one, step_on_eight


# %% widget
from lessons.layouts.faster import step_times
from lessons.layouts.faster.explorer import BatchSizeExplorer

measure = step_times.measuring(steps_of)
BatchSizeExplorer(measure)

# %% exercise-break-even-text [markdown]
# **Exercise 1.** You don't have to try all batch sizes. You can estimate the crossing from two of them.
# Write `break_even(one, eight)`. Each argument maps two batch sizes to the milliseconds that a step takes, as in `{64: 3.0, 1024: 6.0}`. The batch sizes are the same in both dictionaries.
# Assume that the time is a fixed cost plus a cost for each review, both on one device and on eight.
# Return the number of reviews for which one device and eight take the same time.
# It need not be a whole number. If eight devices never catch up, however many reviews there are, return `None`.


# %% exercise-break-even
def break_even(one, eight):
    # solution begin
    def line(times):
        few, many = sorted(times)
        per_review = (times[many] - times[few]) / (many - few)
        fixed = times[few] - per_review * few
        return fixed, per_review

    fixed_one, per_review_one = line(one)
    fixed_eight, per_review_eight = line(eight)
    if per_review_eight >= per_review_one:
        return None
    more = fixed_eight - fixed_one
    return more / (per_review_one - per_review_eight)
    # solution end


# %%
check("faster-break-even", break_even)

# %% break-even-use [markdown]
# Once the check accepts your function, use it on your own machine.
# `measure` does what the button does, and returns seconds. Run this in a new cell:
#
# ```python
# few, many = measure(2048), measure(4096)
# one = {
#     2048: 1000 * few.one_device_seconds,
#     4096: 1000 * many.one_device_seconds,
# }
# eight = {
#     2048: 1000 * few.eight_devices_seconds,
#     4096: 1000 * many.eight_devices_seconds,
# }
# print(break_even(one, eight))
# ```
#
# From our times for 2,048 and 4,096 reviews, the crossing comes out at 4,700, as in the picture. From those for 64 and 512, it comes out at 3,800. On another day, these two batch sizes even gave 30,000!
# With so few reviews, a step is nearly all fixed cost, and an error of a tenth of a millisecond moves the crossing far away.
# So measure close to where you expect the crossing.

# %% note-cores [markdown]
# Eight virtual devices are not eight processors
#
# They share the cores of your processor. In this course, an operation on a device uses one thread, so one device keeps one core busy, and eight keep several.
# With TensorFlow's default settings, one device uses all cores, so eight virtual devices have little to gain.
#
# No GPU was measured for this lesson. There, a review costs far less, and an all-reduce goes over links between the devices.
# So expect different numbers, and a different crossing.

# %% where-heading [markdown]
# ## Where does the fixed cost come from?
#
# With 64 reviews, the picture shows 1.3 ms for one device and 4.8 ms for eight.
# What do eight devices do all this time? There are four candidates:
#
# - *Starting*, or **dispatch**: TensorFlow starts every operation of the step on every device.
# - *The reviews*: each device takes its 8 reviews through the forward and the backward pass.
# - *The update*: Adam computes new weights from the gradients.
# - *The all-reduces*: the devices add up their gradients.
#
# We measured the first three separately. Whatever time is left over, we count as all-reduces.
# It includes the time in which devices wait for one another.

# %% predict-part [markdown]
# A data-parallel training step with 64 reviews takes eight virtual devices several milliseconds.
# They add up gradients of 57,746 numbers, 231 kB. What takes the largest part of the time?
#
# - [ ] `dispatch` Starting the operations of the step on every device
#   Eight devices start eight times as many operations as one. But that is fast:
#   with tensors of a single number, and nothing to add up, it takes less than a tenth of the step.
# - [ ] `reviews` The reviews: the forward and the backward pass of 8 reviews on each device
#   One device computes all 64 of them, and updates the weights, in 1.3 ms.
# - [ ] `adam` The update: eight devices compute new weights
#   Each device does this once, so it is done eight times. But one device does it in a fraction of a millisecond.
# - [x] `collectives` The all-reduces: adding up the gradients
#   Eight devices pass chunks of the gradients around, and for every chunk each of them waits for its neighbor.
#   One device does nothing of the kind.

# %% reveal-part
from course_lib import measured

recorded = measured.load("faster-step_parts").step_parts.data
# "dispatch" is starting, "adam" is the update
largest = "dispatch"
for part in ["reviews", "adam", "collectives"]:
    if recorded[part] > recorded[largest]:
        largest = part
reveal("faster-part", largest)

# %% parts-text [markdown]
# Here are the four parts, recorded with the finished program of this lesson.
# It takes 32 steps in one call, so a step takes less time than in the picture above, where each step was one call:

# %% parts
from lessons.layouts.faster.picture import parts_picture

parts_picture()

# %% parts-read [markdown]
# A step takes 3.90 ms, of which 2.72, seven tenths, go to the all-reduces.
# So it isn't the computing that makes eight devices slow.
# They spend most of their time exchanging gradients and waiting for one another.
#
# The reviews are the smallest part, and the only one that shrinks as you add devices.
# At 64 reviews there is almost nothing to divide up.
#
# The devices don't share the update at all. Weights and slots are replicated, so each device updates all 57,746 weights.
# {Lesson:zero_and_fsdp} shares this work, too, with ZeRO: it splits Adam's slots into eight shards.

# %% larger-heading [markdown]
# We try four cures. Two of them save all-reduces, and two keep the devices from waiting for Python.
#
# ## Cure 1: larger batches
#
# Make the batch ten times as large, and the devices have more to do between all-reduces; an epoch needs only a tenth as many.
# But it also has only a tenth of the updates. Does the network still learn as much?
#
# Let's train for one epoch, on 8,000 reviews, with three batch sizes.
# One device is enough for this, because the number of devices doesn't change what the network learns:


# %% larger
from course_lib import about


def one_epoch(batch_size):
    model = Model(no_layouts)
    for step in range(8000 // batch_size):
        rows = slice(batch_size * step, batch_size * (step + 1))
        x, y = place(train_x[rows], None), place(train_y[rows], None)
        number = np.float32(step + 1)
        train_step(model, x, y, number, LEARNING_RATE)
    answers = tf.argmax(logits_of(model.weights, test_x), axis=1)
    return np.mean(answers == test_y)


small = one_epoch(80)
medium = one_epoch(400)
large = one_epoch(2000)

print("batch  steps  test accuracy")
print("   80    100", about(small, 0.83, 0.88))
print("  400     20", about(medium, 0.79, 0.86))
print(" 2000      4", about(large, 0.5, 0.8))

# %% larger-read [markdown]
# All three networks have seen the same 8,000 reviews, but they haven't learned the same.
# With batches of 80, the accuracy is 0.86 after 100 updates. With batches of 2,000, it is 0.72 after 4.
#
# Each of the 4 updates had a more accurate gradient, computed from 2,000 reviews instead of 80.
# But at the same learning rate, Adam's updates are about equally large, however accurate the gradient is.
# So 4 updates don't get as far as 100.
#
# Larger batches make an epoch faster, but you may need more epochs.
# What counts is the time until the network is good enough.

# %% note-rate [markdown]
# Can a higher learning rate make up for it?
#
# Up to a point. A gradient from more examples is less noisy, so you can take larger steps.
# For plain gradient descent, people multiply the learning rate by the same factor as the batch size (the *linear scaling rule*),
# and for Adam often by its square root. Both are rules of thumb: try them.
# We tried some rates. With 0.015, batches of 400 reach 0.86, as those of 80 do. Batches of 2,000 reach 0.79 at best.
#
# The larger the batch, the more exact its gradient is already, and the fewer steps further examples save.
# Beyond the **critical batch size**, many more examples save only a few steps.

# %% fewer-heading [markdown]
# ## Cure 2: fewer all-reduces
#
# If an all-reduce is slow because the devices wait, then one large all-reduce should be faster than two.
# How many does our step have? As in {lesson:one_step}, DTensor inserts six: four for the gradients,
# one for the loss, and one for the accuracy. But when the step runs, TensorFlow fuses what it can.
# With `combine=True`, `collectives` lists what is left:

# %% combined
from course_lib import collectives

x = shard(train_x[:64], layouts["x"])
y = shard(train_y[:64], layouts["y"])
found = collectives(
    train_step, on_eight, x, y, FIRST_STEP, LEARNING_RATE, combine=True
)
for each in found:
    print(each)

# %% combined-read [markdown]
# Two are left. The large one carries the four gradients, and the small one carries the loss and the accuracy.
# (TensorFlow pads both to a multiple of 1,024 numbers, so even two numbers take 4,096 bytes.)
# The small one carries almost nothing, but the devices have to wait again.
#
# Why didn't TensorFlow fuse these two? It fuses sums with sums, and means with means.
# A gradient arrives as a *sum*: the backward pass has already divided each review's share by 64, so all that is left is to add.
# The loss and the accuracy are *means*, because the step calls `tf.reduce_mean`.
#
# But a mean is a sum divided by the number of reviews, and the step knows this number.
# So let it compute sums, and divide them. Three lines change.
# In the first, `x.shape[0]` is the size of the whole batch, 64, and not the 8 of one device:


# %% summed
@tf.function
def train_step(model, x, y, step, learning_rate):
    batch_size = x.shape[0]  # changed
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_sum(losses) / batch_size  # changed
    gradients = tape.gradient(loss, model.weights)
    update(model, gradients, step, learning_rate)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_sum(hits) / batch_size  # changed


# %% predict-fewer [markdown]
# A data-parallel step adds up four gradients, a loss and an accuracy over the devices.
# TensorFlow can fuse all-reduces of the same kind (sums with sums), as long as none needs the result of another.
# The loss and the accuracy were means, and there were two all-reduces. Now they are computed as sums.
# How many all-reduces are left when the step runs?
#
# - [x] `1`
#   All six are sums now. The gradients don't wait for the all-reduced loss:
#   a device starts its backward pass from its own reviews.
# - [ ] `2` 2, as before
#   There were two because there were two kinds, sums and means. Now there is one kind.
# - [ ] `6`
#   DTensor inserts six, but TensorFlow fuses those of one kind.

# %% reveal-fewer
found = collectives(
    train_step, on_eight, x, y, FIRST_STEP, LEARNING_RATE, combine=True
)
reveal("faster-fewer", len(found))

# %% fewer-read [markdown]
# Now the devices wait for one another only once in a step. We keep this step for the rest of the lesson.

# %% note-fusing-slower [markdown]
# Is one all-reduce always possible, and always faster?
#
# No. On the grid of {lesson:whole_game}, the forward pass needs an all-reduce over `model`, and the gradients wait for its result.
# TensorFlow can't fuse two all-reduces if one needs the other's result, so two are left.
#
# And fusing has a price: TensorFlow copies the tensors into one, and back again afterwards.
# That pays for a small model like ours. For a larger one, with 784, 700, 500 and 10 units,
# it was faster on our machine not to fuse: 23 ms a step instead of 30.
# To turn fusing off, set the environment variable `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1` before the function is traced.

# %% calls-heading [markdown]
# ## Cure 3: many steps in one call
#
# The process that runs your Python is called the **host**. It prepares a batch, calls the step, and reads the loss.
# To read the loss, it waits until the devices are done.
# Then the devices wait until it has prepared the next batch and called the next step. They take turns:
#
# ```
# host      prepare  call        read  prepare  call        read
# devices                  step                       step
# ```
#
# So let the host call, and read, less often:
#
# ```
# host      prepare  call                          read
# devices                  step  step  step  step
# ```
#
# The host hands out a whole *stack* of batches, and in a single call the devices take one step with each of them.
# Axis 0 runs over the steps, axis 1 over the reviews of one step. Only axis 1 is split:


# %% stacked
def place_stacked(arrays, layout):
    if layout is None:
        return tf.constant(arrays)
    stacked = [WHOLE, *layout.sharding_specs]
    return shard(arrays, dtensor.Layout(stacked, layout.mesh))


stack_x = train_x[:2048].reshape(32, 64, 1200)
stack_y = train_y[:2048].reshape(32, 64)
xs = place_stacked(stack_x, layouts["x"])
ys = place_stacked(stack_y, layouts["y"])
print("on a device:", dtensor.unpack(xs)[0].shape)

# %% stacked-read [markdown]
# Each device has its 8 reviews of each of the 32 batches.
# If we had simply cut the 2,048 reviews into eight, device 0 would have all of batches 0 to 3, and nothing else.
#
# Before we write the loop, let's find out which losses it should give.
# We take the 32 steps one by one, on one device and on eight, and print the first four losses:


# %% one-by-one
def one_by_one(layouts):
    model = Model(layouts)
    losses = []
    for i in range(32):
        x = place(stack_x[i], layouts["x"])
        y = place(stack_y[i], layouts["y"])
        step = np.float32(i + 1)
        loss, _ = train_step(model, x, y, step, LEARNING_RATE)
        losses.append(float(loss))
    return model, np.array(losses)


single_model, single_losses = one_by_one(no_layouts)
eight_model, eight_losses = one_by_one(layouts)

print("one device  ", single_losses[:4].round(4))
print("eight       ", eight_losses[:4].round(4))

# %% unrolled-text [markdown]
# One device and eight agree. Now the loop. Let's try the obvious one, with four steps:


# %% unrolled
@tf.function
def train_steps_in_python(model, xs, ys, learning_rate):
    losses = []
    for i in range(4):
        x = tf.gather(xs, i)
        y = tf.gather(ys, i)
        loss, _ = train_step(model, x, y, i + 1.0, learning_rate)
        losses.append(loss)
    return tf.stack(losses)


unrolled = train_steps_in_python(
    Model(layouts), xs, ys, LEARNING_RATE
)
print("eight, Python loop ", unrolled.numpy().round(4))

# %% unrolled-read [markdown]
# The first loss is right. The second is not: it is 0.6884 instead of 0.687.
# But the loss goes down, so without the comparison we would never have noticed.
#
# What happened? Python runs the loop while TensorFlow traces the function. So the loop is *unrolled*:
# the graph has four steps in a row, and step 2 reads weights that step 1 has written.
#
# Within a step, there is no such read: first compute everything, then write it, says the comment in `update`.
# Between steps, there is. And TensorFlow moves operations when it fuses all-reduces.
# Did it move a read ahead of a write?
#
# Two runs give the answer. The first is on one device, which has no all-reduces:

# %% no-all-reduces
one_xs, one_ys = tf.constant(stack_x), tf.constant(stack_y)
on_one_device = train_steps_in_python(
    Model(no_layouts), one_xs, one_ys, LEARNING_RATE
)
print("one device, Python loop", on_one_device.numpy().round(4))

# %% unfused-text [markdown]
# These losses are right. The second run is on eight devices, with fusing turned off by an environment variable.
# (We give the function a new model, so TensorFlow traces it again.)

# %% unfused
import os

fusing = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
os.environ[fusing] = "1"
unfused = train_steps_in_python(
    Model(layouts), xs, ys, LEARNING_RATE
)
del os.environ[fusing]
print("eight, without fusing  ", unfused.numpy().round(4))

# %% unfused-read [markdown]
# These are right, too, so fusing is the culprit. To bring two all-reduces together, TensorFlow moved step 2's read ahead of step 1's write. Step 2 then worked with stale weights:
#
# ```
# as written   read 1   write 1   read 2    write 2
# as run       read 1   read 2    write 1   write 2
# ```
#
# A note in {lesson:one_step} warned you about this, and in {lesson:from_scratch} you will see it inside an optimizer.
#
# You could leave fusing off. But then each step takes six all-reduces again, and we have only just got rid of five.
# It is better to let TensorFlow see the loop. If you iterate over `tf.range`, the graph has one loop instead of four copies of a step.
# The body of the loop is compiled once, as a separate function, and contains a single step. So inside it every read comes before every write, and fusing can't do any harm.
#
# The loop returns two vectors, the losses and the accuracies, with one element for each step.
# DTensor refuses a `tf.TensorArray` here. So the vectors start as zeros, and each step adds its loss and accuracy at its own position:


# %% train-steps
@tf.function
def train_steps(model, xs, ys, first_step, learning_rate):
    count = xs.shape[0]
    losses = tf.zeros(count)
    accuracies = tf.zeros(count)
    for i in tf.range(count):
        x = tf.gather(xs, i)
        y = tf.gather(ys, i)
        step = first_step + tf.cast(i, tf.float32)
        loss, accuracy = train_step(model, x, y, step, learning_rate)
        # Zeros, with a one at place i
        here = tf.one_hot(i, count)
        losses += loss * here
        accuracies += accuracy * here
    return losses, accuracies


together = Model(layouts)
losses, _ = train_steps(together, xs, ys, FIRST_STEP, LEARNING_RATE)
apart = np.abs(losses.numpy() - single_losses).max()
print("losses ", about(apart, 0, 1e-5))

for name in ["W1", "b1", "W2", "b2"]:
    ours = together.weights[name].numpy()
    theirs = single_model.weights[name].numpy()
    print(name, about(np.abs(ours - theirs).max(), 0, 1e-4))

# %% range-read [markdown]
# The losses and the weights are those of 32 single steps on one device, up to rounding.
#
# Keras has this cure, too: the argument `steps_per_execution` of `compile`.
# You give up a little control for it: you can stop, save or draw a curve only between two calls.
# And here all steps of a call have the same learning rate. To let it fall, compute it from `step` inside the loop.

# %% note-gather [markdown]
# Why gather a batch from the stack, instead of indexing it?
#
# In a `tf.function`, `xs[i]` works, and its values are right.
# But it has a layout that you wouldn't choose: every device has all 64 reviews of the batch, and the *features* are split.
# Then the step has to exchange more than gradients. `tf.gather(xs, i)` leaves the reviews where they are.

# %% feed-heading [markdown]
# ## Cure 4: data that is ready
#
# The devices now run 32 steps without the host. Then they need another 2,048 reviews, all at once.
# So far, the reviews came from an array in memory. Real data sets often don't fit there, and are read from files.
# Reading takes time, and the devices shouldn't wait for it.
#
# Let's write our reviews to files, and read them back as if they didn't fit into memory.
# A record is a label and 1,200 features, 1,201 numbers of 4 bytes each:

# %% files
import os
import tempfile

RECORD_BYTES = 4 * 1201


def write_files(features, labels, folder, rows_in_a_file):
    files = []
    for start in range(0, len(labels), rows_in_a_file):
        rows = slice(start, start + rows_in_a_file)
        # A record: the label, then the features of a review
        records = np.column_stack([labels[rows], features[rows]])
        file = f"{folder}/reviews-{len(files)}.bin"
        records.astype("float32").tofile(file)
        files.append(file)
    return files


folder = tempfile.mkdtemp()
files = write_files(train_x, train_y, folder, 2048)
for file in files:
    print(os.path.basename(file), f"{os.path.getsize(file):,} bytes")

# %% pipeline-text [markdown]
# TensorFlow reads them with `tf.data`. You describe a pipeline, in which each stage works on what the one before hands it:

# %% pipeline
BATCH_SIZE = 64
STEPS_IN_A_CALL = 32


def decode(records):
    numbers = tf.io.decode_raw(records, tf.float32)
    return numbers[:, 1:], tf.cast(numbers[:, 0], tf.int64)


def stacks_of(files, buffer_size):
    dataset = tf.data.FixedLengthRecordDataset(files, RECORD_BYTES)
    dataset = dataset.shuffle(buffer_size, seed=0)
    dataset = dataset.batch(BATCH_SIZE, drop_remainder=True)
    dataset = dataset.map(decode)
    dataset = dataset.batch(STEPS_IN_A_CALL, drop_remainder=True)
    return dataset.prefetch(2)


for file_x, file_y in stacks_of(files, 1024):
    print(file_x.shape, file_y.shape)

# %% pipeline-read [markdown]
# Let's follow a review through the pipeline.
#
# - `FixedLengthRecordDataset` reads the files one after the other, and passes on one record at a time.
# - `shuffle` keeps 1,024 records, and passes on one of them at random.
# - The first `batch` collects 64 records, and `decode` turns their bytes into numbers.
# - The second `batch` stacks 32 such batches.
# - `prefetch(2)` works ahead: its threads prepare the next two stacks while the devices compute.
#
# 8,100 reviews give three stacks of 2,048, and `drop_remainder` drops the other 1,956.
# They would make a smaller stack, and a new shape would cost a new trace. Their last batch couldn't be split over eight devices at all.
#
# However large the files are, the pipeline holds only 1,024 records and a few stacks.
# When we read 1 GB through it, the memory of the process grew by 50 to 60 MB.
# So let's try a file of 96 GB. (It costs nothing: it has only zeros, and they aren't stored.)

# %% huge
huge = f"{folder}/huge.bin"
open(huge, "w").close()
os.truncate(huge, 20_000_000 * RECORD_BYTES)
print(f"{os.path.getsize(huge):,} bytes")

for huge_x, huge_y in stacks_of([huge], 1024):
    print(huge_x.shape)
    break

os.remove(huge)

# %% train-text [markdown]
# We got 2,048 of twenty million reviews, without waiting for the rest.
#
# Now let's put everything into a training loop. With each stack, the host does three things:
# it prepares the stack, makes a call, and reads the losses. In that order, host and devices would still take turns, if only once every 32 steps.
# But a call returns before the devices are done. So the host can prepare the next stack in the meantime, and read the losses after that:
#
# ```
# host      call 1  prepare 2   read 1  call 2  prepare 3   read 2
# devices           steps of call 1             steps of call 2
# ```
#
# The host still reads the losses of call 1 before it makes call 2. So when you get them, the model still has the weights that belong to them, and you can save or evaluate it.


# %% train
def read(results):
    losses, accuracies = results
    return losses.numpy(), accuracies.numpy()


def train(model, layouts, stacks):
    first_step = 1
    pending = None
    for features, labels in stacks.as_numpy_iterator():
        # Prepare: the devices may be busy with the pending call
        xs = place_stacked(features, layouts["x"])
        ys = place_stacked(labels, layouts["y"])
        # Read the pending call
        if pending is not None:
            yield read(pending)
        # Make the next call
        step = np.float32(first_step)
        pending = train_steps(model, xs, ys, step, LEARNING_RATE)
        first_step += STEPS_IN_A_CALL
    if pending is not None:
        yield read(pending)


# %% trained-text [markdown]
# We run it twice, on eight devices and on one. The shuffle has a seed, so both get the same batches:


# %% trained
def losses_from_files(layouts):
    losses = []
    stacks = stacks_of(files, 1024)
    for call_losses, _ in train(Model(layouts), layouts, stacks):
        losses.extend(call_losses)
    return np.array(losses)


from_files = losses_from_files(layouts)
from_files_on_one = losses_from_files(no_layouts)
apart = np.abs(from_files - from_files_on_one).max()
print("steps", len(from_files))
print("apart", about(apart, 0, 1e-5))
print("loss of the last call", about(from_files[-32:].mean(), 0.2, 0.5))

# %% trained-read [markdown]
# Three calls have taken 96 steps, on reviews that came from four files.
# One device and eight have the same losses, up to rounding.
# The network learns, too: in the last call, the loss is about 0.40 on average.

# %% exercise-pipeline-text [markdown]
# **Exercise 2.** Write a pipeline of your own, for handwritten digits.
# A record has 785 bytes: first the 784 pixels of an image, then its label, each a single byte from 0 to 255.
# Write `digit_stacks(files, batch_size, steps)`. It returns a `tf.data` dataset of pairs `(images, labels)`.
# `images` has the shape (steps, batch_size, 784), its type is float32, and its numbers are the bytes divided by 255.
# `labels` has the shape (steps, batch_size) and the type int64.
# The files may be larger than your memory.
# Keep the order of the files and of the records in them, so that the check can compare. Drop what doesn't fill a stack.


# %% exercise-pipeline
def digit_stacks(files, batch_size, steps):
    # solution begin
    def decode_digits(records):
        numbers = tf.io.decode_raw(records, tf.uint8)
        images = tf.cast(numbers[:, :784], tf.float32) / 255
        return images, tf.cast(numbers[:, 784], tf.int64)

    dataset = tf.data.FixedLengthRecordDataset(files, 785)
    dataset = dataset.batch(batch_size, drop_remainder=True)
    dataset = dataset.map(decode_digits)
    dataset = dataset.batch(steps, drop_remainder=True)
    return dataset.prefetch(2)
    # solution end


# %%
check("faster-pipeline", digit_stacks)

# %% note-pipelines [markdown]
# What else does an input pipeline need?
#
# - *Several epochs.* Put `repeat(epochs)` after `shuffle`. Then a stack runs on into the next epoch, and only what is left at the very end is dropped.
# - *Sorted files.* `shuffle(1024)` mixes only what is in its buffer. If all negative reviews come first, a batch sees only negative ones for a long time.
#   So shuffle once before you write the files. In each epoch, take the files in a different order, and read several at a time, with `interleave`.
# - *Records that differ in length*, such as texts or compressed images. Write them with `tf.io.TFRecordWriter`, and read them with `tf.data.TFRecordDataset(files)`.
#   Put `decode` before the first `batch`, since it now takes a single record, and let it pad or crop each record to the same length.
# - *A run that resumes.* Save between two calls, as in {lesson:a_run}, and save the number of calls with the model.
#   To resume, restore the model, and give `train` the pipeline `stacks.skip(calls)`: with its seed, a new pipeline gives the same stacks again.
#   The steps have to begin at `32 * calls + 1`, so make `first_step` an argument of `train`.

# %% limits-heading [markdown]
# ## How much faster is it now?
#
# We recorded the time of a step in the whole loop, from reading the files to reading the losses.
# Every batch has 64 reviews. The first bar is the program of the opening; each bar below it adds one change:

# %% gains
from lessons.layouts.faster.picture import gains_picture

gains_picture()

# %% gains-read [markdown]
# On eight devices, a step went from 8.0 to 4.2 ms.
#
# - *One all-reduce* instead of two saves 0.7 ms.
# - *Reading the losses only after every 32 steps* saves another 1.7 ms, because the host couldn't prepare the next batch while it waited for a loss.
#   Try this first in a loop of your own: keep what the steps return in a list, and read 32 results together.
# - *32 steps in a call* save another 1.4 ms, because Python no longer fetches a batch, hands it out and calls a function for every step.
#
# Cure 1 isn't in these bars, and cure 4 is in all of them.
# Of the remaining 4.2 ms, 3.9 are the devices' own work.
# So reading files, handing out batches, making calls and reading losses add only 0.3 ms.
#
# One device gained, too: it went from 1.66 to 0.75 ms.
# So at 64 reviews, eight devices now take 5.6 times as long as one, and not 4.8 times as in the opening.
# What moves the crossing is the gap in milliseconds, not the ratio. It has nearly halved, from more than 6 ms to 3.4.
# So, by the formula of exercise 1, eight devices now overtake one at about half the batch size that they needed at the opening.
#
# Three things limit what more devices can gain you, here and elsewhere:
#
# - **The all-reduce.** It carries as many numbers as the model has, however few reviews a device gets.
#   If you share a batch among more devices, each has less to do between one all-reduce and the next.
# - **The host.** If one process prepares the batches of all devices, it has as much to do for eight as for one.
# - **The slowest device.** If one device is late, a **straggler**, all others wait for its gradients, in every step.
#
# ## The plain program
#
# [`faster.py`](../plain/faster.py) has the last three cures in one file that needs only TensorFlow and NumPy.
# It writes its own files, reads them with `tf.data`, and takes 32 steps a call on one device and on eight.
# It prints how many steps each takes in a second, and fails if the losses differ by 1e-4 or more.

# %% takeaways [markdown]
# ## Takeaways
#
# - More devices pay when the work that they share is larger than the fixed cost that they add. Measure where the lines cross.
# - An all-reduce costs time even if it carries one number. Make them few, and give the devices more to do between them.
# - Keep host and devices busy at the same time: read the losses rarely, take many steps in a call (in a `tf.range` loop), and prefetch data from files.
#
# In this lesson every device held the whole model.
# {Lesson:splitting_the_model} splits it.

# %% score
score("faster")
