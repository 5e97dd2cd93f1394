# %% [markdown]
# # Rows that depend on each other
#
# Put batch normalization into the model of {lesson:one_step}, give each of eight devices one review per step,
# and let each device normalize the review that it has.
# After a hundred steps the model has learned nothing about reviews, and you have seen no error.
#
# Until now, data parallelism rested on one fact:
# each device computes the gradient of its own reviews, and the average of the eight is the gradient of all 64.
# With batch normalization this is no longer true. Even with eight reviews per device, the average can be badly wrong.
# So this lesson asks: *when is it not enough to average the gradients?* And what must the devices tell each other then?
#
# **After this lesson you can**
#
# - tell which models couple the rows of a batch, and what that means on several devices;
# - decide whether each device normalizes by itself or all devices normalize together, and say what the choice costs;
# - pad a last, smaller batch, and get what one device gets without padding.
#
# **Time:** 50 minutes. **You need to know:** a training step on eight devices and its all-reduces ({lesson:one_step}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% toy-text [markdown]
# ## Four numbers, one device or two
#
# **Batch normalization** makes many networks train in far fewer steps. It treats each hidden unit by itself.
# It computes the mean and the variance of the unit over all rows of the batch.
# Then it subtracts the mean from each value, and divides by the square root of the variance.
#
# Take a batch of four reviews. For one hidden unit they have the values 1, 3, 5 and 7:

# %% toy
import numpy as np


def normalize_unit(unit):
    tiny = 1e-5  # so that nobody divides by zero
    return (unit - unit.mean()) / np.sqrt(unit.var() + tiny)


unit = np.array([1.0, 3.0, 5.0, 7.0])
print(normalize_unit(unit).round(2))

# %% toy-two-text [markdown]
# The mean is 4, so the first two values end up below zero, and the others above.
#
# Now let two devices share the batch. Device 0 has the first two reviews, and device 1 has the other two.
# Each device knows only the mean of its own reviews:
#
# | | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# | :--- | :---: | :---: | :---: | :---: | :---: | :---: | :---: |
# | one device | ● | | ● | *mean* | ● | | ● |
# | device 0 | ● | *mean* | ● | | | | |
# | device 1 | | | | | ● | *mean* | ● |
#
# Look at the 3. On one device it lies to the left of the mean, and on device 0 to the right.
# What does each device make of its values?

# %% toy-two
print("device 0", normalize_unit(unit[:2]).round(2))
print("device 1", normalize_unit(unit[2:]).round(2))

# %% toy-read [markdown]
# These are different numbers! The 3 was at −0.45, and now it is at 1.
# Worse, it can no longer be told from the 7, which is at 1 as well.
#
# Nobody made a mistake. Normalization makes the rows of a batch depend on each other.
# In this course we say that it **couples** them.
#
# Once the rows lie on several devices, you have a choice.
# Each device can normalize *locally*, with the mean and the variance of its own rows.
# Or all of them normalize *globally*, with the mean and the variance of all rows of the step.
# Global normalization is known as *synchronized* batch normalization, or `SyncBatchNorm`.
#
# ## Is it enough to average the gradients?
#
# What does this choice do to training? Let's put batch normalization into a real model.
# You know the next two cells from {lesson:one_step}, so they are folded: just run them.
# They hold the reviews, initial values and layouts, then the model and its training step.

# %% data tags=["known"]
from course_lib import data, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

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


# %% model tags=["known"]
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


# %% normalized-text [markdown]
# Only one thing is new: between the two layers, the hidden units are normalized.
# (`tf.nn.moments` returns the mean and the variance.)
# Most layers also train a scale *gamma* and a shift *beta* for each unit. We leave them out:


# %% normalized
def normalize(hidden, mean, variance):
    return (hidden - mean) / tf.sqrt(variance + 1e-5)


class NormalizedMLP(MLP):
    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        hidden = normalize(hidden, mean, variance)
        return hidden @ self.W2 + self.b2


# %% gradients-text [markdown]
# Now let's do what eight devices do when they exchange nothing but gradients.
# We cut the first 64 reviews into eight parts, compute the gradients of each part as if there were no others,
# and average the eight.
# We can do this on one device, since all eight would start from the same values anyway.


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


def average_of_parts(model):
    average = {"W1": 0, "b1": 0, "W2": 0, "b2": 0}
    for first in range(0, 64, 8):
        x = train_x[first : first + 8]
        y = train_y[first : first + 8]
        gradients = gradients_of(model, x, y)
        for name in average:
            average[name] += gradients[name] / 8
    return average


# %% differences-text [markdown]
# How far is such an average from the full gradient, which takes all 64 reviews at once?
# We measure the relative difference: ‖average − full‖ / ‖full‖.
# First the model without normalization:


# %% differences
def relative_differences(ours, full):
    differences = {}
    for name in full:
        difference = tf.norm(ours[name] - full[name])
        differences[name] = float(difference / tf.norm(full[name]))
    return differences


model = MLP(values)
full = gradients_of(model, train_x[:64], train_y[:64])
differences = relative_differences(average_of_parts(model), full)
for name, difference in differences.items():
    print(name, f"{difference:.4f}")


# %% differences-read [markdown]
# There is no difference: without normalization, the average of the eight gradients is the full gradient.
# Now the normalized model.

# %% predict-coupled [markdown]
# A model has a first layer, `W1` and `b1`, then batch normalization, then a second layer, `W2` and `b2`.
# Eight devices have 8 reviews each. Each normalizes with the mean and the variance of its own 8 reviews,
# and computes its four gradients. Then the eight gradients of each variable are averaged.
# How many of the four averages equal the gradients of all 64 reviews, normalized together?
#
# - [x] `0`
#   With a different mean and variance, each review gets different logits, and every gradient is computed from the logits.
# - [ ] `1` 1 (only `b2`)
#   The gradient of `b2` comes from the logits, and the logits have changed.
# - [ ] `2` 2 (`W2` and `b2`)
#   What goes into the second layer has changed, and so have the logits.

# %% reveal-coupled
model = NormalizedMLP(values)
full = gradients_of(model, train_x[:64], train_y[:64])
differences = relative_differences(average_of_parts(model), full)
# Equal up to rounding
equal = [name for name in differences if differences[name] < 0.001]
reveal("coupled_rows-coupled", len(equal))

# %% coupled-text [markdown]
# Not even the last bias gets the full gradient. How large are the differences?

# %% coupled
for name, difference in differences.items():
    bar = "█" * round(40 * difference)
    print(name, f"{difference:.2f}", bar)


# %% coupled-read [markdown]
# For `b1`, the difference is 86 % of the gradient's own length!
# And yet the average isn't noise. It is the exact gradient of a *different* loss: the loss with local normalization.
#
# In this picture, the loss of a review depends on all reviews in its box:
#
# ```
# local     ┌───┐┌───┐┌───┐┌───┐┌───┐┌───┐┌───┐┌───┐
#           │ 8 ││ 8 ││ 8 ││ 8 ││ 8 ││ 8 ││ 8 ││ 8 │
#           └───┘└───┘└───┘└───┘└───┘└───┘└───┘└───┘
# global    ┌──────────────────────────────────────┐
#           │ 8    8    8    8    8    8    8    8 │
#           └──────────────────────────────────────┘
# device      0    1    2    3    4    5    6    7
# ```
#
# We wanted the gradient for the large box, and we averaged the gradients of the small ones.
# That answers our question. When the loss is a mean over rows, averaging the gradients of the parts is correct under two conditions:
#
# 1. **No row's loss depends on a row in another part.**
#    The loss of all 64 reviews, normalized together, breaks this rule: every review's loss depends on all the others.
#    If you normalize locally, the rule holds again, but for a different loss.
# 2. **All parts have equally many rows.** Otherwise, weight each part by its number of rows.
#
# A contrastive loss also breaks the first rule, because it compares each row with other rows of the batch, its *in-batch negatives*.
# Layer normalization keeps the rule: it takes the mean and the variance within a row.
#
# ## What the devices must say first
#
# In our experiment, each part was normalized locally. What does DTensor do?
# There the model just says `axes=[0]`, and the layouts split the rows.
# Let eight devices compute the gradients of the 64 reviews, and compare them with the full gradients of one device:

# %% on-eight
from course_lib import to_numpy

x = shard(train_x[:64], layouts["x"])
y = shard(train_y[:64], layouts["y"])
eight = NormalizedMLP(values, layouts)

on_eight = {}
for name, gradient in gradients_of(eight, x, y).items():
    on_eight[name] = to_numpy(gradient)
for name, difference in relative_differences(on_eight, full).items():
    print(name, f"{difference:.4f}")


# %% on-eight-read [markdown]
# None of the four gradients differs. So the eight devices normalized globally, and the backward pass is right too.
#
# So the devices must have talked, and sooner than in any step so far: without the mean and variance of all 64 reviews, no device can compute even one loss.

# %% predict-collectives [markdown]
# Eight devices have 8 reviews each. Without batch normalization, a training step has six all-reduces:
# one for the loss, one for the accuracy, and four for the gradients of the variables.
# Now each hidden unit is normalized with its mean and its variance over all 64 reviews.
# How many all-reduces does a training step have?
#
# - [ ] `6`
#   Then no device could know the mean of all 64 reviews.
# - [ ] `8`
#   That is enough for the forward pass. The backward pass has new sums over all reviews as well.
# - [x] `10`
#   In the forward pass, the mean and the variance are sums over all reviews. All reviews share these two,
#   so in the backward pass their gradients are sums over all reviews as well.

# %% reveal-collectives
from course_lib import collectives

found = collectives(train_step, eight, x, y, 0.1)
reveal("coupled_rows-collectives", len(found))

# %% collectives
for each in found:
    print(each)


# %% collectives-read [markdown]
# Again, the byte counts tell you which is which:
#
# | bytes | what | |
# | --- | --- | --- |
# | 192, twice | the mean and the variance of 48 hidden units | new |
# | 4, twice | the loss and the accuracy | |
# | 192, twice | the gradients of the mean and of the variance | new |
# | 8, 192, 230,400 and 384 | the gradients of `b2`, `b1`, `W1` and `W2` | |
#
# Here is the whole step as a picture. Step through it, and watch when a band joins all eight devices:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("data", normalized=True)

# %% lanes-read [markdown]
# The first two bands, for the mean and the variance, come before any logits.
# Nobody wrote them into the model. In DTensor, a mean over an axis is over *all* of it. So with `tf.nn.moments(hidden, axes=[0])` the model normalizes globally, and DTensor adds the all-reduces.
#
# In bytes this is next to nothing: 768 for all four, where the gradient of `W1` alone has 230,400.
# The real cost is waiting. All devices wait for the mean, and then again for the variance, which needs the mean.
# In the backward pass there are two more all-reduces. They don't depend on each other, so they can share one wait.
# How long a wait takes on a network, we can't measure here: our virtual devices have no network.

# %% note-fused [markdown]
# How many all-reduces are left when the step runs?
#
# TensorFlow fuses some of them ({lesson:faster}): ten become five. Without normalization, six become two.

# %% note-third-sum [markdown]
# Why does the backward pass need only two new sums?
#
# One sum is the gradient of the mean, and the other is the gradient of the variance.
# But the variance is itself computed from the mean. So the gradient of the mean has a second path, through the variance, and that should add a third sum. This path always contributes zero, because deviations from a mean sum to zero.
# `tf.nn.moments` therefore cuts this path, with `tf.stop_gradient`.

# %% exercise-global-text [markdown]
# **Exercise 1.** The devices could get by with a single exchange in the forward pass.
# Each computes its *local* mean and variance, and an all-gather sends both to all the others.
# The global mean and variance follow from these.
#
# Write `global_moments(means, variances)`. Both arguments have the shape (devices, units), with one row per device, and all devices have equally many reviews.
# Return the global mean and the global variance, each of the shape (units,).
# Try it on our four numbers. The two devices have the means 2 and 6, and both have the variance 1.
# Together the four numbers have the mean 4 and the variance 5.


# %% exercise-global
def global_moments(means, variances):
    # solution begin
    # Unequal parts: np.average(..., weights=num_rows)
    mean = means.mean(axis=0)
    # Within devices: how far rows are from their device's mean
    within = variances.mean(axis=0)
    # Between devices: how far these means are from the mean of all
    between = ((means - mean) ** 2).mean(axis=0)
    return mean, within + between
    # solution end


# %%
check("coupled_rows-global", global_moments)

# %% local-text [markdown]
# ## Do the devices have to talk at all?
#
# So far, the devices have waited for each other, to normalize globally.
# If they normalize locally, nobody has to wait.
#
# In DTensor, `axes=[0]` always means *all* rows.
# To normalize locally, we reshape `hidden` so that it has an axis for the devices,
# and take the mean and the variance over the middle axis.
# In the same way, our four numbers would become [[1, 3], [5, 7]], with the means 2 and 6.
# The axis of length 8 stays split over `batch`, so each device has one slice of it, its own rows:


# %% local
DEVICES = 8


class LocalMLP(MLP):
    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        rows = hidden.shape[0] // DEVICES
        # (64, 48) becomes (8 devices, 8 rows, 48)
        by_device = tf.reshape(hidden, (DEVICES, rows, 48))
        mean, variance = tf.nn.moments(
            by_device, axes=[1], keepdims=True
        )
        by_device = normalize(by_device, mean, variance)
        # Back to (64, 48)
        hidden = tf.reshape(by_device, (DEVICES * rows, 48))
        return hidden @ self.W2 + self.b2


found = collectives(train_step, LocalMLP(values, layouts), x, y, 0.1)
print(len(found), "all-reduces")

# %% train-text [markdown]
# There are six all-reduces, as without normalization. Now we train three models for a hundred steps:
# one without normalization, one with global and one with local normalization. Each device has 8 reviews per step.
# Then we train the two normalized models with only 2 reviews per device, because a large model may leave no room for more.

# %% train
from course_lib import about


def train(model, rows_per_device, steps=100):
    batch_size = 8 * rows_per_device
    losses = []
    for step in range(steps):
        first = step * batch_size
        x = train_x[first : first + batch_size]
        y = train_y[first : first + batch_size]
        x = shard(x, layouts["x"])
        y = shard(y, layouts["y"])
        loss, _accuracy = train_step(model, x, y, 0.1)
        losses.append(float(loss))
    return np.mean(losses[-20:])


# %% train-8
plain = MLP(values, layouts)
global_8 = NormalizedMLP(values, layouts)
local_8 = LocalMLP(values, layouts)

plain_loss = train(plain, 8)
global_loss = train(global_8, 8)
local_loss = train(local_8, 8)

print("8 reviews per device: mean loss of the last 20 steps")
print("not normalized", about(plain_loss, 0.67, 0.70))
print("global        ", about(global_loss, 0.33, 0.39))
print("local         ", about(local_loss, 0.39, 0.44))

# %% train-2
global_2 = NormalizedMLP(values, layouts)
local_2 = LocalMLP(values, layouts)

global_loss = train(global_2, 2)
local_loss = train(local_2, 2)

print("2 reviews per device: mean loss of the last 20 steps")
print("global", about(global_loss, 0.46, 0.55))
print("local ", about(local_loss, 0.63, 0.75))

# %% train-read [markdown]
# At a learning rate of 0.1, the plain model is still at 0.69 after a hundred steps. That is the loss of answering fifty-fifty.
# Normalization gets it going. With 8 reviews per device, local normalization does that nearly as well as global.
# With 2 it doesn't: the training loss has hardly left 0.69, where global normalization has brought it to about 0.5.
#
# Why are two reviews so few? Think of one hidden unit.
# If its values for the two reviews differ, one lies above their mean and the other below, equally far.
# Unless they lie very close together, normalization makes them about +1 and −1, however far apart they were.
# Almost all that is left is which of the two was larger.
#
# So the second layer sees two opposite rows, and gives them opposite logits, before it adds `b2`.
# If both have the same label, one of the two answers is almost always wrong.
#
# And what if there is only one review? Let's see how far each variable moves in a hundred steps.


# %% largest-change
def largest_change(model, name):
    variable = getattr(model, name)
    after = dtensor.unpack(variable.value())[0].numpy()
    return np.abs(after - values[name]).max()


# %% predict-one-row [markdown]
# Eight devices train a model with batch normalization, and each device has a single review in every step.
# It normalizes with the mean and the variance of this one review. After the normalization comes the second layer, `W2` and `b2`.
# How many of the four variables `W1`, `b1`, `W2` and `b2` can still learn anything?
#
# - [x] `1` 1 (only `b2`)
#   A single row is its own mean, so every hidden unit becomes zero, whatever `W1` and `b1` are.
#   So the gradients of `W1` and `b1` are zero. `W2` is multiplied by zeros, so the gradient of `W2` is zero as well.
#   The logits are `b2` alone.
# - [ ] `2` 2 (`W2` and `b2`)
#   `W2` is multiplied by zeros, so the gradient of `W2` is zero.
# - [ ] `4` 4, though slowly
#   Every hidden unit becomes zero, whatever `W1` and `b1` are.

# %% reveal-one-row
local_1 = LocalMLP(values, layouts)
local_1_loss = train(local_1, 1)

changes = {}
for name in values:
    changes[name] = largest_change(local_1, name)
moved = [name for name in values if changes[name] > 0.001]
reveal("coupled_rows-one-row", len(moved))

# %% one-row-changes
for name, change in changes.items():
    print(f"{name} {change:.3f}")

# %% one-row-text [markdown]
# This is the run from the beginning of the lesson.
# Three variables have not moved at all. Only `b2` has, and all it can learn is how often a label is positive.
# What would global normalization have done?

# %% one-row
global_1 = NormalizedMLP(values, layouts)

global_1_loss = train(global_1, 1)

print("1 review per device: mean loss of the last 20 steps")
print("global", about(global_1_loss, 0.50, 0.68))
print("local ", about(local_1_loss, 0.68, 0.71))

# %% one-row-read [markdown]
# With local normalization, the model has learned nothing about reviews.
# With global normalization it has learned something even from one review per device, because all eight are normalized together.
#
# ## A review that comes alone
#
# Global normalization saves the training run, but the same trap waits at inference, where reviews often come one by one.
# Take the model that was normalized globally, with 8 reviews per device, and ask it about three reviews, one at a time.
# (A single row can't be split over eight devices, so each of them gets a copy.)

# %% alone
replicated = dtensor.Layout([WHOLE, WHOLE], mesh)

for row in range(3):
    review = shard(train_x[row : row + 1], replicated)
    no, yes = to_numpy(global_8(review))[0]
    print(about(no, -0.5, 0.5), about(yes, -0.5, 0.5))

no, yes = to_numpy(global_8.b2)
print(about(no, -0.5, 0.5), about(yes, -0.5, 0.5), "is b2")

# %% alone-read [markdown]
# Three reviews, and three times the same answer: `b2` again, because each review was a batch of one, and its own mean.
# If you measure accuracy on batches of 64, you never notice.
#
# So at inference, a model needs a mean and a variance that don't depend on the batch.
# Usually these are **moving averages**, which the layer keeps during training.
# Here we take the simplest choice, the mean and the variance of the first 6,400 training reviews, computed once after training.
# Then a review gets the same answer, whatever else is in its batch:


# %% accuracy-of
def hidden_of(model, x):
    return tf.nn.relu(x @ model.W1 + model.b1)


@tf.function
def accuracy_of(model, seen_x, x, y):
    mean, variance = tf.nn.moments(hidden_of(model, seen_x), axes=[0])
    hidden = normalize(hidden_of(model, x), mean, variance)
    logits = hidden @ model.W2 + model.b2
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return tf.reduce_mean(hits)


# %% accuracy-text [markdown]
# All six models now normalize in the same way, so we can compare them fairly, on 2,000 reviews that none of them has seen:

# %% accuracy
seen_x = shard(train_x[:6400], layouts["x"])
test_x = shard(reviews.test.features, layouts["x"])
test_y = shard(reviews.test.labels, layouts["y"])


def tested(model):
    accuracy = accuracy_of(model, seen_x, test_x, test_y)
    return about(accuracy, 0.48, 0.88)


print("test accuracy        global local")
print("8 reviews per device", tested(global_8), tested(local_8))
print("2 reviews per device", tested(global_2), tested(local_2))
print("1 review per device ", tested(global_1), tested(local_1))

# %% accuracy-read [markdown]
# With 8 reviews per device, the two models are about equally good.
# The gradients differed by up to 86 %, but local normalization gave us a *different* model, not a worse one.
# With 2 reviews per device, it ends 15 to 20 points lower than global, and with 1 it is no better than a coin.
# (The global models get worse, too, partly because they saw fewer reviews: 6,400 with 8 a device, 1,600 with 2, and 800 with 1.)
#
# One number doesn't seem to fit. With 2 reviews per device, the local model's training loss is hardly better than a coin's, and yet it gets over 60 % of the test reviews right. How?
# In training, it gives opposite answers to the two reviews of a device. If their labels differ, most of the answers are right.
# But about half of the pairs have the same label, and there one of the two answers is almost always wrong.
# These wrong answers keep the training loss up. At the test each review stands alone, and shows what was learned.
#
# Does this model catch up if it trains longer?

# %% longer
global_400 = NormalizedMLP(values, layouts)
local_400 = LocalMLP(values, layouts)
train(global_400, 2, steps=400)
train(local_400, 2, steps=400)

print("after 400 steps      global local")
print("2 reviews per device", tested(global_400), tested(local_400))

# %% longer-read [markdown]
# The local model has come much closer, but it is still behind.
# So if your own model has batch normalization, count the rows that each device gets.
# If there are only a few, normalize globally, or switch to a layer that normalizes within each row.
#
# ## What Keras does
#
# `tf.distribute`, the strategies of {lesson:whole_game}, takes the opposite view. You don't write a program for the whole batch.
# Every device runs your function, and there "the batch" means that device's share.
# So does Keras's layer normalize locally or globally?
#
# Take a model that consists of this one layer, and train it for one step on our four numbers, with two devices.
# With `momentum=0`, its moving averages are simply the mean and the variance of this step.

# %% keras
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
four = tf.constant([[1.0], [3.0], [5.0], [7.0]])


def fitted(synchronized):
    with strategy.scope():
        layer = tf.keras.layers.BatchNormalization(
            momentum=0, synchronized=synchronized
        )
        model = tf.keras.Sequential([layer])
        # A learning rate of 0: only the moving averages change
        model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    # Any target will do, so we take the input
    model.fit(four, four, batch_size=4, shuffle=False, verbose=0)
    return model


# %% predict-twins [markdown]
# Two devices fit a Keras model for one step, device 0 on the values 1 and 3 (mean 2, variance 1),
# device 1 on 5 and 7 (mean 6, variance 1). All four together have mean 4 and variance 5.
# The only layer is `BatchNormalization(momentum=0)`, so its moving averages are a mean and a variance of this step.
# Then `predict`, which normalizes with the moving averages, gets the value 3 on each of the two devices. What are the answers?
#
# - [ ] `(-0.45, -0.45)` −0.45 for both
#   This comes from the mean and the variance of all four values. Keras takes these only if you ask for it.
# - [ ] `(1, 1)` 1 for both
#   Device 1 would need the mean and the variance of device 0 for that.
# - [x] `(1, -3)` 1 and −3
#   Each device has kept the mean and the variance of its own rows. Device 0 computes (3 − 2) / 1, and device 1 computes (3 − 6) / 1.

# %% reveal-twins
twins = tf.constant([[3.0], [3.0]])
answers = fitted(synchronized=False).predict(
    twins, batch_size=2, verbose=0
)
first, second = answers.ravel().round(1).tolist()
reveal("coupled_rows-twins", (first, second))

# %% synchronized-text [markdown]
# The same row twice, and two answers! Which one you get depends on which device the row lands on.
# By default, Keras normalizes locally in training, and each device keeps moving averages of its own, without a warning.
# For global normalization you have to ask:

# %% synchronized
answers = fitted(synchronized=True).predict(
    twins, batch_size=2, verbose=0
)
print(answers.ravel().round(2))

# %% synchronized-read [markdown]
# Both rows get −0.45, as on a single device.
#
# Answers as far apart as 1 and −3 are an extreme case. If rows are shuffled and the momentum is high,
# the moving averages of the devices come close to each other. But they don't become equal.
# {Lesson:strategies} counts how often such twins get two answers from a model that has really been trained.
#
# ## The last, smaller batch
#
# Our 8,100 reviews make 126 batches of 64, and then 36 reviews are left.
# Eight devices can't share 36 reviews evenly, with or without normalization.
#
# You could drop them. In training that is harmless, as long as you reshuffle every epoch and drop different ones each time.
# In evaluation it isn't: every review must count exactly once.
#
# The other way is **padding**: add 28 rows of zeros, and you have 64 rows again.
# That sounds easy, and without coupled rows it is.

# %% padding
last_x = train_x[8064:]
last_y = train_y[8064:]

padding = 64 - len(last_x)
padded_x = np.pad(last_x, [(0, padding), (0, 0)])
padded_y = np.pad(last_y, [(0, padding)])
padded_x = shard(padded_x, layouts["x"])
padded_y = shard(padded_y, layouts["y"])

# %% three-means-text [markdown]
# Padding must not count. So what is the mean loss of this batch?
# Eight devices compute the 64 losses of an untrained model, and we try three ways to take the mean.
# One device, given the 36 reviews without padding, has the right answer:


# %% three-means
@tf.function
def losses_of(model, x, y):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        y, model(x)
    )


eight = NormalizedMLP(values, layouts)
all_64 = to_numpy(losses_of(eight, padded_x, padded_y))
first_36 = all_64[:36]

one = NormalizedMLP(values)
right = np.mean(losses_of(one, last_x, last_y))

print(f"all 64 losses / 64     {all_64.sum() / 64:.2f}")
print(f"first 36 losses / 64   {first_36.sum() / 64:.2f}")
print(f"first 36 losses / 36   {first_36.sum() / 36:.2f}")
print(f"36 reviews, one device {right:.2f}")

# %% three-means-read [markdown]
# The first way counts the losses of the padding. The second leaves them out, but it still divides by 64.
# The third seems to do everything right. And yet it gives 1.26, where 1.02 is correct!
#
# The padding took part in the mean and the variance.
# Its 28 rows of zeros pulled the mean of each hidden unit down, which changed the losses of the 36 *reviews*.
# Where rows are coupled, it isn't enough to leave the padding out of the loss. You have to leave it out of the coupling as well.
#
# So each row gets a **row weight**: 1 for a review, 0 for padding. (Search for *sample weights*, or a *mask*.)
#
# **Exercise 2.** Write `moments_of_reviews(hidden, row_weights)`:
# the mean and the variance of each hidden unit over the rows with row weight 1, each of the shape (units,).
# `hidden` is a DTensor of the shape (rows, units), and `row_weights` is one of the shape (rows, 1).
# The rows of both are split over eight devices, and the padding can stand anywhere.
# The check runs your function in a `tf.function`.


# %% exercise-moments
def moments_of_reviews(hidden, row_weights):
    # solution begin
    count = tf.reduce_sum(row_weights)
    mean = tf.reduce_sum(row_weights * hidden, axis=0) / count
    squares = row_weights * (hidden - mean) ** 2
    variance = tf.reduce_sum(squares, axis=0) / count
    return mean, variance
    # solution end


# %%
check("coupled_rows-moments", moments_of_reviews)

# %% weighted-text [markdown]
# TensorFlow also has such a function: `tf.nn.weighted_moments`.
# With it, we write a model and a step in which padding counts nowhere:


# %% weighted-model
class WeightedMLP(MLP):
    def __call__(self, x, row_weights):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.weighted_moments(
            hidden, axes=[0], frequency_weights=row_weights
        )
        hidden = normalize(hidden, mean, variance)
        return hidden @ self.W2 + self.b2


@tf.function
def weighted_step(model, x, y, row_weights, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x, row_weights)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        # (64, 1) becomes (64,), like the losses
        row_losses = tf.squeeze(row_weights, axis=1) * losses
        loss = tf.reduce_sum(row_losses) / tf.reduce_sum(row_weights)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(learning_rate * gradient)
    return loss


# %% weighted-run-text [markdown]
# Four devices have 8 reviews of this batch, one has 4, and three have none. The parts are unequal, so they have to be weighted.
# The step gets that for free: it adds up all 36 losses, wherever they are, and divides by 36.
#
# Eight devices now take one step with the padded batch.
# Beside them, one device takes one step of the ordinary model, with only the 36 reviews.
# First we compare the two losses, then how far each variable has moved:

# %% weighted-run
row_weights = np.array([[1.0]] * 36 + [[0.0]] * 28, "float32")
row_weights = shard(row_weights, layouts["x"])
one = NormalizedMLP(values)
eight = WeightedMLP(values, layouts)

loss_one, _accuracy = train_step(one, last_x, last_y, 0.1)
loss_eight = weighted_step(
    eight, padded_x, padded_y, row_weights, 0.1
)
print("one device   ", f"{float(loss_one):.4f}")
print("eight devices", f"{float(loss_eight):.4f}")

# %% weighted-changes
on_one = {}
on_eight = {}
for name, initial in values.items():
    on_one[name] = getattr(one, name).numpy() - initial
    on_eight[name] = to_numpy(getattr(eight, name)) - initial
for name, difference in relative_differences(on_eight, on_one).items():
    print(name, f"{difference:.4f}")

# %% weighted-read [markdown]
# The padding has left no trace, in the loss or in the changes.

# %% note-names [markdown]
# What to search for, and what else couples rows
#
# - **Global normalization:** synchronized or *cross-replica* batch normalization, `SyncBatchNorm`.
#   PyTorch's layer gathers local means and variances as in Exercise 1. Keras's layer adds up the values and the squares of each unit.
# - **Local normalization:** the default of PyTorch as well. With small groups on purpose: *ghost batch normalization*.
#   In Keras 3.15, `get_weights` then returns the moving averages of the first device only.
# - **Nothing coupled:** LayerNorm, RMSNorm and GroupNorm stay within a row.
# - **Coupled in another way:** a loss divided by the number of tokens. The devices must first sum this number.
#   The same holds for the micro-batches of gradient accumulation, if their numbers of tokens differ.

# %% [markdown]
# ## The plain program
#
# [`coupled_rows.py`](../plain/coupled_rows.py) trains the normalized model on three meshes: 8, 4 × 2 and 2 × 2 × 2 devices.
# Its last batch is padded and weighted, and every loss is compared with that of one device.
# It needs only TensorFlow and NumPy.
#
# ## Takeaways
#
# - Gradients of equal parts average to the gradient of the batch if no row's loss depends on a row in another part.
# - Batch normalization couples rows: by default globally in DTensor, locally in Keras under a strategy.
#   Count the rows that each device gets, and fix the mean and the variance for inference.
# - Padding must have weight 0 in the loss, in its divisor, and in everything that couples rows.
#
# A real training run takes longer than a hundred steps, and sooner or later something interrupts it.
# {Lesson:a_run} makes one that survives.

# %% score
score("coupled_rows")
