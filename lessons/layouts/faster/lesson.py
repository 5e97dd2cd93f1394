# %% [markdown]
# # When are eight devices faster than one?
#
# One device trains on 64 reviews in 1.7 milliseconds.
# Then we ran the same program on eight devices, so that each had only 8 reviews to look at.
# A step took them 8 milliseconds, nearly five times as long.
#
# Your first distributed program will probably do the same.
# Nothing will be wrong with it, and its losses will be those of one device. It will just be slow.
# *When are eight devices faster than one?*
# In this lesson you find out where the time of a step goes, and then win it back bit by bit:
# with larger batches, with fewer all-reduces, with many steps in one call,
# and with data that is ready before the devices ask for it.
#
# **After this lesson you can**
#
# - measure a step, and find the batch size from which extra devices pay off;
# - take many steps in one call, and get the same weights as one step at a time;
# - train on files that are larger than your memory.
#
# **Time:** 30 minutes.
# **You need to know:** Adam and the training loop ({lesson:a_run}), and what an all-reduce costs ({lesson:all_reduce}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% same-heading [markdown]
# ## The same step, on one device and on eight
#
# The model and the training step are those of {lesson:a_run}.
# The reviews are the same, too, but now we train on all 8,100, and test on others.
# You know the next four cells from there, so they are folded. Just run them.

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
# We stay with data parallelism: the batch is split over eight devices, and the weights are replicated.

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

# %% steps-of-text [markdown]
# For a fair comparison, both must do the same work: the same step on the same batch, which is already on the devices.
# For a given batch size, this function returns two functions, a step on one device and the same step on eight:

# %% steps-of
LEARNING_RATE = np.float32(3e-3)
FIRST_STEP = np.float32(1)
on_one = Model(no_layouts)
on_eight = Model(layouts)


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


# %% clock-text [markdown]
# Measuring times takes some care.
# The first call of a `tf.function` traces and compiles it, so we don't count it.
# And TensorFlow hands control back before the devices are done, so we read a loss before we stop the clock:

# %% clock
import time


def milliseconds(step, count=50):
    step()  # traced and compiled
    start = time.perf_counter()
    for _ in range(count):
        loss, _ = step()
    float(loss)  # wait for the devices
    return 1000 * (time.perf_counter() - start) / count


# %% growth-given [markdown]
# What happens to the time of the eight devices if they get more reviews?

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
_, step_of_64 = steps_of(64)
_, step_of_512 = steps_of(512)
growth = milliseconds(step_of_512) / milliseconds(step_of_64)
if growth < 3:
    answer = "little"
elif growth < 6:
    answer = "some"
else:
    answer = "all"
reveal("faster-growth", answer)

# %% crossing-text [markdown]
# So you can think of the time of a step as two parts: a **fixed cost**, and a cost for each review.
# One device pays little of the first and all of the second.
# Eight devices pay a lot of the first, and share the second.
#
# Here are the times that we recorded on a machine with two cores. We recorded them with the improved step that this lesson ends with, so they are shorter than those in the opening. Both axes are logarithmic:

# %% crossing
from lessons.layouts.faster.picture import times_picture

times_picture()

# %% crossing-read [markdown]
# On this machine, one device keeps one core busy, and eight devices share two cores,
# so eight devices can be at most twice as fast as one.
#
# Start at the left. From 64 to 512 reviews, the line of the eight devices is almost flat.
# They get eight times as many reviews, and a step goes from 4.8 to 5.5 ms: it is nearly all fixed cost.
# The line for one device starts much lower, at 1.3 ms, and is also nearly flat at first.
# But it soon climbs, and near the right end twice the reviews take twice the time.
# So it has to meet the other line somewhere.
#
# Here the two lines meet between 4,096 and 8,192 reviews.
# At the right end, with 16,384 reviews, one device takes 49 ms and eight take 32.
# Eight devices are 1.5 times as fast as one, and 2 was the most that we could hope for.
#
# Where do the lines cross on your machine? Choose a batch size and press the button. Each measurement takes a few seconds: `measuring` times one device and eight devices in alternation, several times over, and takes the median.
# Your eight devices will be a little slower than ours, because our finished step makes fewer all-reduces:

# %% widget
from lessons.layouts.faster import step_times
from lessons.layouts.faster.explorer import BatchSizeExplorer

measure = step_times.measuring(steps_of)
BatchSizeExplorer(measure)

# %% note-cores [markdown]
# Eight virtual devices are not eight processors
#
# They share the cores of your processor. In this course, an operation on a device uses one thread,
# so one device keeps one core busy, and eight devices keep several busy.
# With TensorFlow's default settings, one device uses all cores, so eight virtual devices have little to gain.
#
# No GPU was measured for this lesson. There, a review costs far less, and an all-reduce goes over links between the devices.
# So expect different numbers, and a different crossing.

# %% note-allocator [markdown]
# Is it the memory that we are measuring?
#
# It can be. If a program gives memory back to the operating system and asks for it again in every step,
# the system has to provide each page anew (a *page fault*), and that takes time.
# This happened to us with a step that had batch normalization. With 8,192 reviews,
# page faults took between a quarter and two thirds of the time that we measured on one device.
#
# So we recorded the page faults together with the times in the picture. The median step has none, at any batch size.
# If your program has many, raise the thresholds above which memory is given back to the system: on Linux, set the environment variables
# `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` to some large number of bytes before the program starts.

# %% exercise-break-even-text [markdown]
# **Exercise 1.** You can estimate the crossing from four measurements, without trying all batch sizes.
# Write `break_even(one, eight)`. Both arguments map the same two batch sizes to the milliseconds of a step,
# as in `{64: 3.0, 1024: 6.0}`.
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
# Once the check accepts your function, use it on your own machine. Run this in a new cell:
#
# ```python
# def crossing_of(*times):
#     one, eight = {}, {}
#     for each in times:
#         one[each.batch_size] = 1000 * each.one_device_seconds
#         eight[each.batch_size] = 1000 * each.eight_devices_seconds
#     return break_even(one, eight)
#
#
# print(crossing_of(measure(64), measure(512)))
# print(crossing_of(measure(2048), measure(4096)))
# ```
#
# On our machine, the times for 64 and 512 reviews put the crossing at 3,800, and those for 2,048 and 4,096 put it at 4,700.
# On another day, the second pair said 4,400, and the first said 30,000!
# With few reviews, a step is nearly all fixed cost, and the small part that depends on the reviews can't be measured well.
# An error of a tenth of a millisecond moves the crossing far away, and you may even get `None`.
# So measure near the place where you expect the crossing.

# %% where-heading [markdown]
# ## Where does the fixed cost come from?
#
# In the picture, a step of 64 reviews takes one device 1.3 ms, and eight devices 4.8. What do they do all this time?
# There are four candidates:
#
# - *Starting*, or **dispatch**. TensorFlow starts every operation of the step on every device.
# - *The reviews.* Each device takes its 8 reviews through the forward and the backward pass.
# - *The update.* Adam computes new weights from the gradients.
# - *The all-reduces.* The devices add up their gradients.
#
# We measured the first three separately. The rest of a step goes to the all-reduces,
# including the time in which devices wait for one another.

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
# Here are the four parts of a step with 64 reviews, as we recorded them for the finished step of this lesson:

# %% parts
from lessons.layouts.faster.picture import parts_picture

parts_picture()

# %% parts-read [markdown]
# The step takes 3.90 ms, and the all-reduces take 2.72 of them: seven tenths.
# So it isn't the computing that makes eight devices slow. They spend their time exchanging gradients and waiting for one another.
#
# Look also at the reviews. Only this part shrinks as you add devices, and with 64 reviews it is already the smallest.
# There is next to nothing to share.
#
# The update can't get shorter, because weights and slots are replicated:
# each device updates all 57,746 weights, and the work is done eight times.
# You can split Adam's slots into eight shards, and share this work, too. This is ZeRO, the subject of {lesson:zero_and_fsdp}.

# %% note-timed [markdown]
# Why 3.9 ms here, and 4.8 ms above?
#
# In the picture of the two lines, every step was a separate call. Here 32 steps share a call.
# Neither number includes the 0.15 ms that it takes to cut the batch and hand each device its shard.
# The page *What a step takes* has more.

# %% larger-heading [markdown]
# We try four cures. The first two save all-reduces.
# The last two keep the devices from waiting for Python.
#
# ## Cure 1: larger batches
#
# The picture of the two lines shows the obvious cure: give the devices more to do between two all-reduces.
# With ten times the batch, you need a tenth of the all-reduces for the same reviews.
# What does that do to the training? Let's train for one epoch, over 8,000 reviews, with batches of different sizes.
# One device is enough to see it, because what the network learns doesn't depend on the number of devices:


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
# All three networks have seen the same 8,000 reviews, and the one with the largest batches has learned the least.
# Its accuracy is 0.72 after 4 updates. The first network reaches 0.86 after 100.
# Each of those 4 updates had a more accurate gradient, computed from 2,000 reviews rather than 80.
# But at the same learning rate, Adam's updates are about equally large, however accurate the gradient is.
# So 4 better updates don't get as far as 100.
#
# Larger batches make an epoch faster, but you may need more epochs. What counts is the time until the network is good enough.

# %% note-rate [markdown]
# Can a higher learning rate make up for it?
#
# Up to a point. A gradient from more examples is less noisy, so you can take larger steps.
# For plain gradient descent, people multiply the learning rate by the same factor as the batch size (the *linear scaling rule*),
# and for Adam often by its square root. Both are rules of thumb: try them.
# We tried some rates. With 0.015, batches of 400 reach 0.86, as those of 80 do. Batches of 2,000 reach 0.79 at best.
#
# At some batch size the gradient is practically exact, and more examples don't improve it.
# Beyond this **critical batch size**, larger batches only cost more.

# %% fewer-heading [markdown]
# ## Cure 2: fewer all-reduces
#
# If an all-reduce is slow because of the waiting, then one large all-reduce is better than two.
# How many does our step have? As in {lesson:one_step}, DTensor inserts six: for four gradients, the loss and the accuracy.
# But when the step runs, TensorFlow fuses what it can.
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
# Two are left. The large one carries the four gradients.
# The small one carries two numbers, the loss and the accuracy, which TensorFlow has padded to 1,024.
# It carries almost nothing, yet it costs a full round of waiting.
#
# Why does TensorFlow not fuse the two? Because they are not the same operation.
# A gradient is a *sum* over the reviews: the backward pass has already divided by 64, so the devices only have to add.
# The loss and the accuracy are *means*, because the step calls `tf.reduce_mean`.
# TensorFlow fuses sums with sums, and means with means.
#
# But a mean is a sum divided by a number, and we know the number.
# So the step can ask for sums instead. That changes three lines.
# To make them easy to see, we first move the update into a function of its own, without changing it:


# %% update
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


# %% summed-text [markdown]
# And now the step. `x.shape` is the shape of the whole batch, here 64 rows, and not of a device's shard:


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
# TensorFlow fuses all-reduces that reduce in the same way, if none of them waits for another.
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
# A step now has one all-reduce instead of two. This costs nothing, so the rest of this lesson keeps it.
#
# With other layouts, more than one may be left. On the grid of {lesson:whole_game}, the forward pass needs an all-reduce over `model`,
# and the gradients wait for its result. Two all-reduces can't be fused if one needs the other's result, so there two are left.

# %% note-fusing-slower [markdown]
# Is fusing always faster?
#
# No. To fuse all-reduces, TensorFlow copies their tensors into one, and back again afterwards.
# That pays for a small model like ours. For a larger one, with 784, 700, 500 and 10 units,
# it was faster on our machine not to fuse: 23 ms a step instead of 30.
# To turn fusing off, set the environment variable `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1` before the function is traced.

# %% calls-heading [markdown]
# ## Cure 3: many steps in one call
#
# The process that runs your Python is called the **host**. It prepares the batches, and it calls each step.
# After each step, our loops read the loss, so the host waits until the devices have finished.
# Then the devices wait, while the host prepares the next batch and calls the next step. They take turns:
#
# ```
# host      prepare  call        read  prepare  call        read
# devices                  step                       step
# ```
#
# So let the host call less often, and read less often:
#
# ```
# host      prepare  call                          read
# devices                  step  step  step  step
# ```
#
# We give the devices a *stack* of batches, and in a single call they take one step after the other.
# In the stack, axis 0 is the step, and axis 1 holds the reviews of a step. Only axis 1 is split:


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
# (Cutting the 2,048 reviews into eight would not do: device 0 would get all of batches 0 to 3, and nothing else.)
#
# For comparison, we take the 32 steps one by one, on one device and on eight, and print the first four losses:


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
# Now we need a loop. Let's try the obvious one, with four steps:


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
# But the last loss is lower than the first, so without the comparison we would have taken this for training.
#
# Remember the comment in our update: first compute everything, then write it. Each single step keeps this order.
# But Python runs the loop while the function is traced, so the loop is *unrolled*: the graph has four steps in a row,
# and the second step reads weights that the first has written.
# To fuse all-reduces, TensorFlow has to move operations. Does it keep reads and writes of a variable in the right order?
#
# Two runs give the answer. The first is on one device, which has no all-reduces:

# %% no-all-reduces
one_xs, one_ys = tf.constant(stack_x), tf.constant(stack_y)
on_one_device = train_steps_in_python(
    Model(no_layouts), one_xs, one_ys, LEARNING_RATE
)
print("one device, Python loop", on_one_device.numpy().round(4))

# %% unfused-text [markdown]
# For the second, on eight devices, an environment variable turns fusing off. (A new model makes TensorFlow trace the function again.)

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
# Both runs are right, so fusing is the culprit. To bring two all-reduces together,
# TensorFlow lets step 2 read a weight before step 1 has written it, and step 2 works with old weights:
#
# ```
# as written   read 1   write 1   read 2    write 2
# as run       read 1   read 2    write 1   write 2
# ```
#
# This is what a note in {lesson:one_step} warned you about, and in {lesson:from_scratch} you will see it inside an optimizer.
#
# You could leave fusing off. But then each step takes six all-reduces again, and we have only just got rid of five.

# %% note-gather [markdown]
# Why gather a batch from the stack, instead of indexing it?
#
# In a `tf.function`, `xs[i]` works, and its values are right.
# But it has a layout that you wouldn't choose: every device has all 64 reviews of the batch, and the *features* are split.
# Then the step has to exchange more than gradients. `tf.gather(xs, i)` leaves the reviews where they are.

# %% range-text [markdown]
# A better cure is to let TensorFlow see the loop. Iterate over `tf.range`, and the graph has one loop instead of four copies of a step.
# The body of the loop is compiled once, as a function of its own, and it contains a single step.
# So inside the body every read comes before every write, and fusing can't do any harm.
#
# The results come back in two vectors, with one element for each step.
# DTensor refuses a `tf.TensorArray` here, so we begin with zeros, and add each result in its place:


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
# Up to rounding, 32 steps in one call give the losses and the weights of 32 single steps on one device.
#
# Keras has this cure, too: the argument `steps_per_execution` of `compile`.
# You give up a little control for it: you can stop, save or draw a curve only between two calls.
# And here all steps of a call have the same learning rate. If it is to fall, compute it from `step` inside the loop.

# %% feed-heading [markdown]
# ## Cure 4: data that is ready
#
# The devices now run 32 steps without the host. Then they need another 2,048 reviews, all at once.
# So far, all reviews were in an array in memory. Real data sets often don't fit there, and are read from many files on a disk.
# That takes time, and we don't want the devices to wait for it.
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
# TensorFlow's tool for this is `tf.data`. You describe a pipeline of transformations, each of which takes its input from the one before:

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
# - `prefetch(2)` works ahead: threads of its own prepare the next two stacks while the devices compute.
#
# 8,100 reviews give three stacks of 2,048. The remaining 1,956 don't fill a stack, and `drop_remainder` drops them,
# because every stack must have the same shape. A new shape would cost a new trace,
# and a batch that eight doesn't divide can't be split at all.
#
# How large may the files be? Add up what the pipeline holds at any time: 1,024 records for shuffling, two stacks that are ready, and one that is being made.
# With 4,804 bytes a record, that is about 34 MB, *and the size of the files doesn't occur in it*.
# So we can read even from a file of 96 GB. (This file costs nothing: it has only zeros, and they aren't stored.)

# %% huge
huge = f"{folder}/huge.bin"
open(huge, "w").close()
os.truncate(huge, 20_000_000 * RECORD_BYTES)
print(f"{os.path.getsize(huge):,} bytes")

for huge_x, huge_y in stacks_of([huge], 1024):
    print(huge_x.shape)
    break

os.remove(huge)

# %% huge-read [markdown]
# We got 2,048 reviews of twenty million, each drawn at random from the 1,024 in the buffer, without waiting for the rest.
# When we measured, reading 1 GB through this pipeline raised the memory of the process by 50 to 60 MB:
# beside the 34 MB there are the stack that our loop holds, and the batches from which the next stack is being made.

# %% note-repeat [markdown]
# What about several epochs?
#
# Put `repeat(epochs)` after `shuffle`. Then a stack runs on into the next epoch, and only what is left at the very end is dropped.
# A new pipeline in each epoch, with the same seed, would drop the same 1,956 reviews every time.

# %% note-shuffle [markdown]
# What does a small shuffle buffer do to the order?
#
# `shuffle(1024)` mixes only what is in its buffer.
# If your files are sorted, say all negative reviews first, a batch sees only negative ones for a long time.
# So shuffle once before you write the files, and take the files in a different order in each epoch, several at a time:
#
# ```python
# dataset = tf.data.Dataset.from_tensor_slices(files)
# dataset = dataset.shuffle(len(files))
# dataset = dataset.interleave(
#     lambda file: tf.data.FixedLengthRecordDataset(file, RECORD_BYTES)
# )
# ```

# %% note-tfrecord [markdown]
# What if records differ in length?
#
# Texts and compressed images do. TensorFlow's format for them is TFRecord:
# `tf.io.TFRecordWriter` writes records of bytes, and `tf.data.TFRecordDataset(files)` takes the place of our first line.
# `decode` then takes a single record, so it comes before the first `batch`, and it has to pad or crop each record to the same length.
# If decoding takes time, let several threads do it: `map(decode, num_parallel_calls=tf.data.AUTOTUNE)`.

# %% train-text [markdown]
# Now we write the loop that puts everything together. In its simplest form it would be this:
#
# ```python
# for features, labels in stacks.as_numpy_iterator():
#     xs = place_stacked(features, layouts["x"])
#     ys = place_stacked(labels, layouts["y"])
#     results = train_steps(model, xs, ys, step, LEARNING_RATE)
#     yield read(results)
#     step += STEPS_IN_A_CALL
# ```
#
# Here host and devices still take turns, though only once in 32 steps: the devices are idle while the host hands out the next stack.
# But a call returns before the devices have finished, so the host doesn't have to wait for the losses at once.
# It can prepare the next stack first, and read the losses after that:
#
# ```
# host      call 1  prepare 2   read 1  call 2  prepare 3   read 2
# devices           steps of call 1             steps of call 2
# ```
#
# Why not make call 2 before reading the losses of call 1? Because by the time you read those losses,
# the weights would have moved on, and the model that they describe would be gone.


# %% train
def read(results):
    losses, accuracies = results
    return losses.numpy(), accuracies.numpy()


def train(model, layouts, stacks):
    first_step = 1
    pending = None
    for features, labels in stacks.as_numpy_iterator():
        # The devices may still be busy with the pending call
        xs = place_stacked(features, layouts["x"])
        ys = place_stacked(labels, layouts["y"])
        if pending is not None:
            yield read(pending)
        step = np.float32(first_step)
        pending = train_steps(model, xs, ys, step, LEARNING_RATE)
        first_step += STEPS_IN_A_CALL
    if pending is not None:
        yield read(pending)


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
# Three calls have taken 96 steps, on reviews that came from four files, in shuffled order.
# With the same seed, one device gets the same batches, and its losses are the same up to rounding.
# The network learns, too: in the last call, the loss is about 0.40 on average.

# %% note-resume [markdown]
# How do you resume this loop after a kill?
#
# Save between two calls, as in {lesson:a_run}, and save the number of calls with the model.
# To resume, restore the model, and give `train` the pipeline `stacks.skip(calls)`.
# Its `first_step` has to begin at `32 * calls + 1`: make it an argument of `train`.
# With its seed, a new pipeline gives the same stacks again. But `skip` has to read the records that it leaves out.

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

# %% limits-heading [markdown]
# ## How much faster is it now?
#
# We trained from files, and added the second and the third cure one after the other. Here are the times that we recorded.
# Every step has 64 reviews, so the first cure, larger batches, isn't among them. The fourth is in every bar.
# One bar is half-way to the third cure: still one call for each step, but we read the losses only after every 32.

# %% gains
from lessons.layouts.faster.picture import gains_picture

gains_picture()

# %% gains-read [markdown]
# The first bar is the program of the opening, with 8 ms a step. A single all-reduce instead of two takes 0.7 ms off.
#
# In the next bar only the reading has changed, and that saves 1.7 ms,
# because while the host waited for a loss, it couldn't prepare the next batch.
# So try this first in a loop of your own. Keep what the steps return, and read 32 results together:
#
# ```python
# kept = []
# for number, (features, labels) in enumerate(batches, start=1):
#     x = place(features, layouts["x"])
#     y = place(labels, layouts["y"])
#     step = np.float32(number)
#     kept.append(train_step(model, x, y, step, LEARNING_RATE))
#     if len(kept) == 32:
#         for loss, accuracy in kept:
#             print(float(loss), float(accuracy))
#         kept = []
# ```
#
# Putting 32 steps in a call saves another 1.4 ms: Python no longer fetches a batch, hands it out and calls a function for every step.
# 4.2 ms are left, and we know what they are: 3.9 ms are the step itself, as the devices compute it.
# Files, handing out batches, calls and reading together add only 0.3 ms.
#
# And the one device? It has no all-reduces, but the other cures bring it from 1.66 ms down to 0.75.
# That helped it even more: at 64 reviews, eight devices now take 5.6 times as long as one, and not 4.8 times as in the opening.
# So did we win nothing? We did. What decides the crossing is the gap in milliseconds,
# and that has narrowed from more than 6 to 3.4. We have nearly halved the fixed cost that eight devices add,
# so by `break_even` of exercise 1 they now win from about half as many reviews on.
#
# Three things limit what more devices can gain you, here and elsewhere:
#
# - **The all-reduce.** It carries as many numbers as the model has, however few reviews a device gets.
#   If you share a batch among more devices, each has less to do between one all-reduce and the next.
# - **The host.** If one process prepares the batches of all devices, it has as much to do for eight as for one.
# - **The slowest device.** The all-reduce needs the gradients of all devices. If one device is late, a **straggler**, all others wait for it, in every step.
#
# With the virtual devices of this course there is a fourth: they share the cores of one processor.
#
# ## The plain program
#
# [`faster.py`](../plain/faster.py) has the last three cures in one file that needs only TensorFlow and NumPy.
# It writes its own files, reads them with `tf.data`, takes 32 steps a call on one device and on eight,
# prints how many steps each takes in a second, and fails if the losses differ by 1e-4 or more.

# %% takeaways [markdown]
# ## Takeaways
#
# - More devices pay when the work that they share is larger than the fixed cost that they add. Measure where the two cross.
# - An all-reduce costs time even if it carries one number. Make them few, and give the devices more to do between them.
# - Keep host and devices busy at the same time: read the losses rarely, take many steps in a call (in a `tf.range` loop), and prefetch data from files.
#
# In this lesson every device held the whole model.
# {Lesson:splitting_the_model} splits it.

# %% score
score("faster")
