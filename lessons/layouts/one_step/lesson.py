# %% [markdown]
# # One training step on eight devices
#
# In {lesson:whole_game}, you trained a network on eight devices.
# Device 3 had its own copy of the weights, and saw only 8 of the 64 reviews in each batch.
# Each of the other seven had its own copy too, and saw a different 8.
# Yet after a hundred steps, the eight copies of `W1` were equal to the last bit.
#
# How can that be? The code of the training step doesn't mention a device.
# No line sends a weight from one device to another, and no line compares two copies.
#
# So this lesson asks: *how do eight devices take one training step?*
# You follow a step from the forward pass to the update, and write one by hand.
# Then you make three mistakes that raise no error, and catch all three.
#
# **After this lesson you can**
#
# - say what each device does in a training step, and when the devices have to communicate;
# - write a data-parallel step by hand, and account for every byte its all-reduces carry;
# - say what keeps the copies of a model equal;
# - test whether a multi-device step is correct.
#
# **Time:** 45 minutes.
# **You need to know:** layouts ({lesson:mesh_and_layout}), all-reduces ({lesson:communication}),
# the cost of a ring all-reduce ({lesson:all_reduce}), and gradient descent on one device.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% [markdown]
# ## A training run
#
# Can you train on eight devices with a step that was written for one? Let's try.
#
# We use the network and the film reviews from {lesson:whole_game}.
# Each review is a vector of 1,200 features, labeled 1 if the review is positive and 0 if it is negative.
# Instead of Adam, we use plain gradient descent, because its update is a single line.

# %% load
from course_lib import data

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

print("train_x", train_x.shape, train_x.dtype)
print("train_y", train_y.shape, train_y.dtype)

# %% note-reviews [markdown]
# How to get real reviews
#
# These reviews are synthetic, so there is nothing to download, but what a network learns from them says nothing about real reviews.
# `data.load_imdb("tfds")` loads the 50,000 real reviews of IMDB instead.
# {Lesson:save_and_serve} shows how the 1,200 features are computed from a text.

# %% layouts-text [markdown]
# Which device holds what? We arrange the eight devices in a one-dimensional mesh, and call its dimension `batch`:

# %% layouts
tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}

# %% layouts-read [markdown]
# This is data parallelism. The reviews `x` and their labels `y` are split along `batch`,
# so each device gets 8 of the 64 reviews in a batch.
# The weights and biases are replicated, so each device has a copy of the whole model.
#
# We draw the initial weights once, with NumPy, so that every run in this lesson can start from the same ones:

# %% values
import numpy as np

normal = np.random.default_rng(0).normal
W1 = normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

# %% model-text [markdown]
# Next comes the model. It uses a helper from this course, `shard(array, layout)`, which slices an array according to the layout, sends each device its slice, and packs the slices into one DTensor.
# (You wrote the slicing yourself in {lesson:mesh_and_layout}.)
#
# Without layouts, the model creates ordinary variables.
# We'll use that later to train the same model on one device.

# %% model
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


# %% train-step-text [markdown]
# And here is the training step. Which line tells device 3 what to do?


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


# %% train-step-read [markdown]
# No line does. You would write the same step for one device:
# the forward pass computes the loss, the backward pass computes the gradients, and the update changes the weights.
#
# There is just one rule: once the step has updated a weight, it must not read that weight again.
# So compute all the gradients first.

# %% note-order [markdown]
# Why must the gradients come first?
#
# If a DTensor step reads a variable that it has just written, it may silently get the old value.
# Keras 3 optimizers such as Adam do exactly that, so their updates are wrong in a DTensor step: don't use them there.
# In {lesson:from_scratch} you will write an optimizer that avoids the problem.

# %% first-run-text [markdown]
# Does this step train on eight devices?
#
# The 8,100 reviews give us 126 batches of 64, and we drop the 36 left over.
# Three epochs are 378 steps:

# %% first-run
from course_lib import live


def train(model, epochs):
    step = 0
    for epoch in range(1, epochs + 1):
        for start in range(0, 8064, 64):
            rows = slice(start, start + 64)
            x = shard(train_x[rows], layouts["x"])
            y = shard(train_y[rows], layouts["y"])
            loss, accuracy = train_step(model, x, y, 0.5)
            step += 1
            yield {
                "step": step,
                "epoch": epoch,
                "loss": float(loss),
                "accuracy": float(accuracy),
            }


trained = MLP(values, layouts)
history = await live(train(trained, epochs=3), steps=378)

# %% first-run-read [markdown]
# It does. The loss starts at 0.69, the loss of a model that always answers fifty-fifty, and falls to about 0.6.
# The accuracy climbs to about 0.7. (Plain gradient descent is slower than Adam.)

# %% note-eager [markdown]
# Does the step have to be a `tf.function`?
#
# Without `@tf.function`, each operation runs as soon as Python reaches it.
# To try it, call `train_step.python_function`.
# On our mesh, that fails:
#
# ```
# UnimplementedError: The op/function Mul got a regular tensor for input 0
# (shape [64,1]) but was expecting a DTensor. Currently only scalars and
# small integer/string tensors are auto-broadcast to DTensors. …
# ```
#
# The backward pass begins with a regular tensor of 64 numbers: the gradient of the mean with respect to each loss.
# DTensor doesn't know which device should hold which part of it.
# Inside a `tf.function`, DTensor sees the whole computation before anything runs, so it can choose a layout for this tensor too.
#
# The step also runs under `with dtensor.default_mesh(mesh):`, or with `tf.reduce_sum(losses) / 64` in place of the mean.
# But then Python launches the operations one at a time, which is slow.
# Better to make the step a `tf.function`.

# %% note-dataset [markdown]
# Doesn't TensorFlow have a dataset class for this?
#
# It has `dtensor.DTensorDataset`. It wraps a `tf.data` dataset, and yields batches that are already split.
# But in TensorFlow 2.21 its iterator can't be saved in a checkpoint, so an interrupted run can't resume at the next batch.
# That is why this course shards its arrays itself.

# %% one-step-heading [markdown]
# ## What a device can do alone
#
# What happened in one of these 378 steps?
#
# The picture shows a step as eight lanes, one for each device.
# Most of the time, each device works alone. A band across the lanes marks an all-reduce, where the devices add something up.
# How many all-reduces does a step need, and what is each of them for?
# Read `train_step` once more and make a guess. Then press *Forward* until you reach the end:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("data")

# %% lanes-read [markdown]
# A step needs six all-reduces: one for the loss, one for the accuracy, and one for each of the four gradients. Why these six?
#
# Put yourself in the place of device 3. You have 8 of the 64 reviews, and a copy of every weight.
#
# First comes the forward pass. Each hidden unit is a sum over the 1,200 features of a review.
# You have all the features of your 8 reviews, and all of `W1`, so you can compute the hidden units of your reviews.
# From these you compute their logits, and then their losses. So far, you haven't needed any other device.
#
# The next line is `reduce_mean(losses)`. It takes the mean over all 64 *reviews*, and you have only 8.
# So the devices add up their shares in an all-reduce.
# The accuracy is a mean over the reviews as well, which makes a second all-reduce.
#
# Then comes the backward pass. The loss is a mean over 64 reviews, and so is each of its gradients.
# From your 8 reviews, you can compute only your part. So each of the four gradients needs an all-reduce.
#
# Last comes the update. You now have all four gradients for the whole batch, and you update your own copy of the weights.
# Again, you need no other device.
#
# You can now tell how each tensor that the step computes is laid out:
#
# - If it has a batch axis, it is split along that axis.
# - If it comes from a sum over the batch axis, an all-reduce has produced it, and every device has all of it.
#
# The weights are a third case: they are replicated from the start.

# %% exercise-layouts-text [markdown]
# **Exercise 1.** Now the examples are images, still with data parallelism on `mesh`.
# Take four tensors from the step:
#
# - a batch of images, of shape (64, 28, 28);
# - their labels, of shape (64,);
# - the gradient of the first weight, of shape (784, 100);
# - the mean loss, a scalar.
#
# Which layout does each of them have once the all-reduces are done?
# Write it as a `dtensor.Layout`.
# A layout has one entry per axis, and a scalar has no axes.

# %% exercise-layouts
image_layouts = {}
# solution begin
image_layouts["images"] = dtensor.Layout(
    ["batch", WHOLE, WHOLE], mesh
)
image_layouts["labels"] = dtensor.Layout(["batch"], mesh)
image_layouts["gradient"] = dtensor.Layout([WHOLE, WHOLE], mesh)
image_layouts["mean_loss"] = dtensor.Layout([], mesh)
# solution end

# %%
check("one_step-layouts", image_layouts)

# %% gradients-heading [markdown]
# ## The step by hand
#
# Each device starts from its own 8 reviews.
# What do the eight gradients look like, and how do they become one?
#
# Let's compute them ourselves. This function returns the gradient of the mean loss over whatever reviews you pass it:


# %% gradients
@tf.function
def gradients_of(model, x, y):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, model(x)
        )
        loss = tf.reduce_mean(losses)
    weights = {
        "W1": model.W1,
        "b1": model.b1,
        "W2": model.W2,
        "b2": model.b2,
    }
    return tape.gradient(loss, weights)


# %% partial-text [markdown]
# We play the devices one after another: for each, we call the function with that device's 8 reviews from the first batch.
# (Real devices would do this simultaneously.) Then we count its positive reviews and look at its gradient of `b2`.
# That gradient has two numbers, one for the class "negative" and one for "positive":

# %% partial
x = shard(train_x[:64], layouts["x"])
y = shard(train_y[:64], layouts["y"])
one = MLP(values)

partial = []
for device in range(8):
    own_x = dtensor.unpack(x)[device]
    own_y = dtensor.unpack(y)[device]
    gradients = gradients_of(one, own_x, own_y)
    partial.append(gradients)

    positive = own_y.numpy().sum()
    b2 = gradients["b2"].numpy().round(2)
    print("device", device, "positive", positive, b2)

# %% gradients-read [markdown]
# The devices don't even agree on the sign!
#
# Devices 0 and 1 happened to get six positive reviews out of eight. Their gradient for "positive" is -0.23.
# A step *subtracts* the gradient, so they would raise this bias, and the network would say "positive" more often.
# Devices 3 and 5 got only three positive reviews, and would lower it.
# The other four got four of each kind, and would hardly change it.
#
# But all eight must take the same step, and it needs the gradient of the mean loss over all 64 reviews.
# Every device has the same number of reviews, so that gradient should be the mean of these eight.
# Is that what DTensor computes?

# %% compared
from course_lib import about

model = MLP(values, layouts)
by_dtensor = gradients_of(model, x, y)

for name in ["W1", "b1", "W2", "b2"]:
    mean = np.mean([each[name] for each in partial], axis=0)
    whole = dtensor.unpack(by_dtensor[name])[0]
    difference = np.abs(mean - whole).max()
    print(name, about(difference, 0, 1e-7))

# %% compared-read [markdown]
# Yes, up to rounding. DTensor gets there by another route: each device divides by 64, the size of the whole batch, and the all-reduce adds up the eight results.
# We divided by 8 and then took the mean, which comes to the same thing.
#
# So a data-parallel step has three parts:
#
# 1. Each device computes the gradient of its own examples.
# 2. An all-reduce combines these gradients.
# 3. Each device updates its own copy of the weights with the result.
#
# Now write such a step.
#
# **Exercise 2.** Write `step_by_hand(copies, xs, ys, learning_rate)`. It takes one step on all the devices.
# The model is simpler, just `x @ w`, and the loss is the mean squared error over the examples of all devices.
#
# - `copies`, `xs` and `ys` are lists with one entry for each device:
#   `copies[i]` is the copy of `w` on device `i`, `xs[i]` are its rows of `x`, and `ys[i]` are its labels.
# - Every device has the same number of rows, but don't count on eight devices.
# - Return the list of the new copies.
#
# Each device may use only its own entries and the gradient that the all-reduce returns.
# Don't assume that the copies are equal: the check also tries unequal ones.
#
# This function returns the gradient of the mean loss over one device's examples:


# %% own-gradient
# Shapes: w (features,), x (rows, features), y (rows,)
def own_gradient(w, x, y):
    error = x @ w - y
    return 2 * error @ x / len(y)


# %% exercise-step
def step_by_hand(copies, xs, ys, learning_rate):
    # solution begin
    total = 0
    for w, x, y in zip(copies, xs, ys):
        total = total + own_gradient(w, x, y)
    gradient = total / len(copies)

    new_copies = []
    for w in copies:
        new_copies.append(w - learning_rate * gradient)
    return new_copies
    # solution end


# %%
check("one_step-step", step_by_hand)

# %% collectives-heading [markdown]
# ## What a step sends
#
# How many bytes does such a step cost? Back to TensorFlow.
# The function `collectives` from {lesson:communication} lists the communication that DTensor has inserted into `train_step`:

# %% collectives
from course_lib import collectives

for each in collectives(train_step, model, x, y, 0.5):
    print(each)

# %% collectives-given [markdown]
# These are the six all-reduces of the picture. Together they carry 230,992 bytes.
# What will happen to this number if the batch gets larger?

# %% predict-bytes [markdown]
# Eight devices train a network with 1,200 features and 48 hidden units, under data parallelism.
# With batches of 64 reviews, the all-reduces of a step carry 230,992 bytes.
# Now the batches have 128 reviews. How many bytes do the all-reduces of a step carry?
#
# - [ ] `115496` 115,496
#   Nothing gets smaller. A gradient has the shape of its weight, and the weights haven't changed.
# - [x] `230992` 230,992
#   The devices don't send reviews. They send sums over reviews, and a sum has as many numbers as before,
#   however many terms it has.
# - [ ] `461984` 461,984
#   Each device computes twice as much. But a gradient has the shape of its weight, and the weights haven't changed.

# %% reveal-bytes
x_128 = shard(train_x[:128], layouts["x"])
y_128 = shard(train_y[:128], layouts["y"])

total = 0
for each in collectives(train_step, model, x_128, y_128, 0.5):
    total += each.payload_bytes
reveal("one_step-bytes", total)

# %% bytes-read [markdown]
# If you double the batch, each device computes twice as much but sends no more.
# That is one reason to use large batches on many devices.
#
# Now we can account for every byte. Each float32 number takes 4 bytes:
#
# | bytes | numbers | of what |
# | --- | --- | --- |
# | 4 | 1 | the loss |
# | 4 | 1 | the accuracy |
# | 8 | 2 | the gradient of `b2` |
# | 192 | 48 | the gradient of `b1` |
# | 230,400 | 1,200 × 48 | the gradient of `W1` |
# | 384 | 48 × 2 | the gradient of `W2` |
#
# The batch size appears nowhere in this table, only the size of the model.
# With twice as many hidden units, the last three rows would double.
#
# How much does each device send? In a ring of eight, a device sends 1.75 times the payload ({lesson:all_reduce}).
# That makes 404,236 bytes, the total you saw in the picture of the step.
# (When the step really runs, TensorFlow fuses the six all-reduces into two, which carry a little more: see {lesson:faster}.)

# %% note-sparse [markdown]
# An exception: embeddings
#
# The gradient of an embedding table is zero in all rows whose words don't occur in the batch.
# TensorFlow can leave these rows out (`tf.IndexedSlices`).
# `tf.distribute.MirroredStrategy` exchanges the gradient in this form, and then the bytes do grow with the batch.
#
# Our `train_step` can't use this form: `learning_rate * gradient` raises a `TypeError`.
# Convert the gradient first, with `tf.convert_to_tensor(gradient)`.
# It then has the shape of the whole table, and the all-reduce carries all of it.

# %% copies-heading [markdown]
# ## Eight equal copies
#
# The last part of the step is the update, which each device does on its own.
# The all-reduces never carry a weight. So do the eight copies stay equal?
#
# In {lesson:whole_game}, the copies of `W1` stayed equal for 100 steps.
# Let's check all the weights after 378.
# This function returns the largest difference between any two copies of a weight:


# %% copies
def spread(tensor):
    copies = [copy.numpy() for copy in dtensor.unpack(tensor)]
    # For each number, the largest copy minus the smallest
    differences = np.max(copies, axis=0) - np.min(copies, axis=0)
    return differences.max()


print("W1", spread(trained.W1.value()))
print("b1", spread(trained.b1.value()))
print("W2", spread(trained.W2.value()))
print("b2", spread(trained.b2.value()))

# %% copies-read [markdown]
# Every difference is zero: not a ten-millionth, but *zero*, in all 57,746 parameters.
# And in these 378 steps, no two devices saw the same review.
#
# Why is that?
# At the start, the copies were equal, because `shard` sent every device the same array.
# In each step, the devices compute different gradients, but the all-reduce leaves every device with the same sum, to the last bit.
# (In a ring, for example, each chunk of the sum is completed on one device, and the others get a copy.)
# So all devices subtract the same numbers from the same numbers.
#
# That works only if the copies are equal at the start. What if they aren't?
# Suppose that every device draws its own `W1`, with its own seed.
# This happens easily when each device has its own process.
# DTensor assumes that the eight arrays are copies of one weight, and doesn't check:

# %% apart
own_W1 = []
for device in range(8):
    rng = np.random.default_rng(device)
    array = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
    own_W1.append(tf.constant(array.astype("float32")))

packed = dtensor.pack(own_W1, layouts["W1"])
print(f"largest difference {spread(packed):.3f}")

# %% predict-apart [markdown]
# Each of eight devices drew its own initial values of a weight.
# The largest difference between two of these copies is 0.302.
# Now they train for 378 steps, under data parallelism and with plain gradient descent.
# In each step, an all-reduce adds up the gradients of all devices, and each device updates its own copy with the sum.
# How large is the largest difference between two copies after that?
#
# - [ ] `0` 0: the all-reduces have made them equal
#   An all-reduce of the gradients makes the *updates* equal. It never sees the weights.
# - [x] `0.302` 0.302: just as large as before
#   All devices subtract the same numbers. The copies move, but the differences between them stay, up to rounding.
# - [ ] `1` Larger: the copies drift further apart
#   They would if each device followed its own gradient. But all of them get the same sum.

# %% reveal-apart
model_apart = MLP(values, layouts)
# Put the eight different copies in the place of W1
model_apart.W1 = dtensor.DVariable(packed)
records_apart = list(train(model_apart, epochs=3))

largest = spread(model_apart.W1.value())
reveal("one_step-apart", round(float(largest), 3))

# %% note-traced [markdown]
# Replace a variable before the first step, or not at all
#
# The first time you call `train_step` with a model, TensorFlow traces the step, using the variables that the model has at that moment.
# We replaced `W1` before that, so the step used the new variable.
# When we replaced it after the first step, the step went on using the old one. The new variable never changed, and there was no error.
# If a model has already taken a step, use the variable's `assign`.

# %% apart-text [markdown]
# So for three epochs we have trained eight different networks as if they were one.
# Surely the loss shows that something is wrong?


# %% apart-loss
def last_20(records):
    losses = [record["loss"] for record in records]
    return about(np.mean(losses[-20:]), 0.5, 0.64)


print("mean loss of the last 20 steps")
print("eight equal copies     ", last_20(history.steps))
print("eight different copies ", last_20(records_apart))

# %% apart-read [markdown]
# It doesn't: the loss is just as low. But none of the eight networks was trained on its own gradient.
# Each device computed the gradient of *its* network, and then all eight followed the sum.
# And if you save a checkpoint, it will contain only one of the eight.
#
# So the copies are equal for two reasons: they start equal, and get equal updates.
# Nothing compares them, and plain gradient descent doesn't bring them back together.

# %% note-value [markdown]
# Why unequal copies are easy to miss
#
# - `read_value()` would have shown no difference. Outside of a `tf.function`, DTensor runs an operation on device 0's copy only,
#   and hands the result to all devices. `read_value()` contains such an operation, and `value()`, which we used, doesn't.
# - In TensorFlow 2.21, if a replicated float32 tensor has fewer than 20 elements, its copies don't stay different.
#   If you make a `DVariable` from unequal copies, or give them to a `tf.function`, device 0's copy is used everywhere.
#   So `b2`, with its two elements, would have become equal at once.
# - With weight decay, each device also shrinks its own copy at every step, and that shrinks the differences too.
#   After a long run, the copies can look equal although they began as eight networks. So compare them at the start.
#
# The page *Silent mistakes* has more on unequal copies.

# %% one-heading [markdown]
# ## Compare with one device
#
# You have just seen a loss that falls although something is wrong.
# In {lesson:whole_game}, the loss also fell when a quarter of the reviews carried some other review's label.
# So how can you tell whether a step is correct?
#
# Take the same steps on one device, from the same weights and with the same batches, and compare the losses.
# This function takes twenty steps and returns their losses. Given layouts, it runs on eight devices; without them, on one:


# %% losses-of
def losses_of(step, values, features, labels, layouts=None):
    model = MLP(values, layouts)
    losses = []
    for start in range(0, 20 * 64, 64):
        x = features[start : start + 64]
        y = labels[start : start + 64]
        if layouts is None:
            x, y = tf.constant(x), tf.constant(y)
        else:
            x, y = shard(x, layouts["x"]), shard(y, layouts["y"])
        loss, _ = step(model, x, y, 0.5)
        losses.append(float(loss))
    return np.array(losses)


# %% rounding-text [markdown]
# How far apart are the losses of one device and of eight?

# %% rounding
on_one = losses_of(train_step, values, train_x, train_y)
on_eight = losses_of(train_step, values, train_x, train_y, layouts)

in_float32 = np.abs(on_eight - on_one)
print("largest difference", about(in_float32.max(), 0, 1e-5))

# %% rounding-read [markdown]
# About a ten-millionth. Is that a mistake, or is it rounding?
# It could be rounding: eight devices add the numbers in a different order, so their sums are rounded differently.
#
# You can find out by switching to float64. Its rounding errors are hundreds of millions of times smaller than those of float32.
# If the difference comes from rounding, it will shrink by about that factor.
# If it comes from a mistake, it will stay:

# %% rounding-64
values_64 = {}
for name, value in values.items():
    values_64[name] = value.astype("float64")
x_64 = train_x.astype("float64")

one_64 = losses_of(train_step, values_64, x_64, train_y)
eight_64 = losses_of(train_step, values_64, x_64, train_y, layouts)

in_float64 = np.abs(eight_64 - one_64)
print("largest difference", about(in_float64.max(), 0, 1e-12))

# %% rounding-64-read [markdown]
# The difference has shrunk from 1e-7 to about 2e-16. It was rounding, and our step is correct.

# %% note-dtypes [markdown]
# How do you switch your own model to float64?
#
# Convert the arrays before you shard them. If you mix two dtypes, a `tf.function` raises a `TypeError`.
# Outside of one, an operation on two DTensors of different dtypes can crash the process (in a notebook, the kernel).

# %% mistakes-text [markdown]
# And what does a mistake look like? Let's make three.
#
# The first happens when a batch is split among the devices.
# Each device gets its own reviews, but its neighbor's labels:

# %% mistakes
rolled_y = train_y.copy()
for start in range(0, 20 * 64, 64):
    rows = slice(start, start + 64)
    # A device has 8 rows, so this moves labels by one device
    rolled_y[rows] = np.roll(train_y[rows], 8)

rolled = losses_of(train_step, values, train_x, rolled_y, layouts)
wrong_labels = np.abs(rolled - on_one)

# %% apart-first-text [markdown]
# You have already seen the second: unequal copies of `W1`. We still have the losses of that run, and compare them with the single device's. The batches are the same, and so is the first copy: device 0 drew it with seed 0, as we drew the `W1` in `values`:

# %% apart-first
losses = [record["loss"] for record in records_apart[:20]]
unequal_copies = np.abs(np.array(losses) - on_one)

print("difference at step 1", about(unequal_copies[0], 2e-5, 5e-4))

# %% summed-text [markdown]
# The third happens when the gradients are combined.
# In *The step by hand*, each device computed the gradient of the mean over its own 8 reviews, and we took the *mean* of the eight.
# Suppose someone takes their *sum* instead.
# The gradient is then eight times too large.
# DTensor combines the gradients for us, so to imitate the mistake we multiply its gradient by eight:


# %% summed
@tf.function
def summed_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, model(x)
        )
        loss = tf.reduce_mean(losses)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        sum_of_eight = 8 * gradient
        weight.assign_sub(learning_rate * sum_of_eight)
    return loss, None


summed = losses_of(summed_step, values, train_x, train_y, layouts)

# %% predict-gradient [markdown]
# A network is trained twice, on eight devices and on one, from the same weights and with the same batches.
# The eight make a mistake: they update the weights with a gradient that is eight times too large.
# Each step returns the loss of its forward pass.
# At which step do the losses of the two runs first differ by more than rounding?
#
# - [ ] `1` At step 1
#   The loss of step 1 is computed from the initial weights. The wrong gradient changes them only after that.
# - [x] `2` At step 2
#   Step 1 computes its loss, and then updates the weights. Step 2 is the first to compute its loss from wrong weights.
# - [ ] `20` Only after many steps, once the errors have built up
#   A single wrong update is enough. The very next forward pass uses the weights that it made.

# %% reveal-gradient
wrong_gradient = np.abs(summed - on_one)
step = 1
while wrong_gradient[step - 1] < 1e-5:
    step += 1
reveal("one_step-gradient", step)

# %% mistakes-given [markdown]
# So *the first loss says nothing about the gradient*. To test the gradient, compare several steps.
#
# Here are all five comparisons. Each curve shows the largest difference so far, and begins where the losses first differ:

# %% differences-picture
from lessons.layouts.one_step.picture import differences_picture

differences_picture(
    {
        "gradient × 8": wrong_gradient,
        "wrong labels": wrong_labels,
        "unequal copies": unequal_copies,
        "float32": in_float32,
        "float64": in_float64,
    }
)

# %% differences-read [markdown]
# After twenty steps, the difference caused by any of the three mistakes is at least ten thousand times as large as the float32 rounding.
# There is no confusing the two.
#
# The wrong labels and the unequal copies show up at step 1, since both change the forward pass.
# With the wrong gradient, step 1 shows nothing but rounding; the mistake jumps out at step 2.
#
# Do the same for your own model:
#
# - Take a few steps on one device and on eight, from the same weights. If the model doesn't fit on one device, make it smaller.
# - If you can't tell whether a difference is rounding, switch to float64.
# - If you train with Adam, also compare the *gradients*. Adam divides each gradient by its usual size,
#   so a gradient that is always eight times too large hardly changes the losses.

# %% note-rate [markdown]
# When a difference is not a mistake
#
# Rounding can grow. Each step starts from the rounded weights of the one before, so rounding errors can accumulate even when the step is correct.
# The network of {lesson:coupled_rows}, with batch normalization, trains well at a learning rate of 0.1. But between one device and eight, its losses were 4e-7 apart after 10 steps, 4e-5 after 20, 0.02 after 50.
# In float64 they were never more than 1e-13 apart. So if two runs drift apart slowly, repeat the comparison in float64.
#
# Dropout also makes the runs differ: the mask drawn for a split tensor isn't the one that a single device would draw.
# Turn dropout off while you compare.

# %% plain-heading [markdown]
# ## The plain program
#
# [`one_step.py`](../plain/one_step.py) is a data-parallel step in one file that needs only TensorFlow and NumPy.
# It sets up eight devices, makes up its data, and takes five steps on all eight and on one.
# It fails if the losses differ by 1e-5 or more, or if the copies differ at all.

# %% note-gpus [markdown]
# How would this run on eight GPUs?
#
# We have not tried this. According to TensorFlow's documentation and source code, the model and the step stay as they are, and only the start of the program changes:
#
# - First call `dtensor.initialize_accelerator_system("GPU")`. DTensor keeps a mesh of CPUs beside each mesh of GPUs,
#   so this call also makes as many virtual CPUs as there are GPUs.
# - Make the mesh with `device_type="GPU"`. This uses every GPU in the machine.
#   To use only some of them, add `devices=["GPU:0", "GPU:1"]`.
# - For all-reduces with NVIDIA's library NCCL, set the environment variable `DTENSOR_GPU_USE_NCCL_COMMUNICATION` to 1
#   before the program starts. NCCL needs a real GPU for each device of the mesh.
# - With a single GPU, you can make a mesh of logical GPUs, but without NCCL.
#   `tf.config.set_logical_device_configuration` splits the GPU into logical ones, each with its own `memory_limit`.
#
# GPUs round differently, so repeat the comparison with one device there.

# %% takeaways [markdown]
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the model.
#   The step mentions no device. TensorFlow inserts an all-reduce wherever the step sums over the batch.
# - The copies of a weight stay equal because they start equal and get equal updates. Nothing compares them.
# - To test a step, compare its losses over several steps, and its gradients, with those of one device.
#   The first loss tests only the forward pass.
#
# One thing made all of this simple: the loss of a review depends on that review alone.
# In {lesson:coupled_rows} you meet a network for which that isn't true, and averaging the gradients is no longer enough.

# %% score
score("one_step")
