# %% [markdown]
# # One training step on eight devices
#
# In {lesson:whole_game}, eight devices trained one network.
# In each step, every device saw 8 of 64 reviews and changed its own copy of the weights.
# After a hundred steps, the eight copies of `W1` were still equal to the last bit.
# Yet no line of the training loop sends a weight anywhere, and none compares two copies.
# The training step doesn't even mention a device.
#
# So *how do eight devices take one training step?*
# In this lesson you take such a step apart, and put it together again by hand.
# You also break it in three ways that raise no error.
#
# **After this lesson you can**
#
# - write a data-parallel training step, and compare it with one device so that mistakes show;
# - say what keeps the copies of a model equal, and what doesn't;
# - compute the gradient from what each device holds, and account for every byte that the all-reduces carry.
#
# **Time:** 35 minutes.
# **You need to know:** layouts ({lesson:mesh_and_layout}), all-reduces ({lesson:communication}),
# what a ring sends ({lesson:all_reduce}), and gradient descent on one device.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% [markdown]
# ## A training run
#
# We train the network of {lesson:whole_game} again, on the same film reviews: 1,200 features each, and a label of 1 or 0.
# This time we use plain gradient descent, because its update is a single line.

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
# The course invents these reviews, so that you need no download.
# What a network learns from them says nothing about real reviews.
# `data.load_imdb("tfds")` loads the 50,000 real reviews of IMDB instead.
# {Lesson:save_and_serve} shows how the 1,200 features are computed from a text.

# %% layouts-text [markdown]
# Next, we decide which device holds what.
# The eight devices form a mesh with one dimension, which we call `batch`:

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
# so each device gets eight of the 64 reviews of a batch.
# The weights and biases are replicated, so every device holds the complete model.
#
# Its initial weights are drawn once, with NumPy, so that every run can start from the same ones:

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
# Only the model and its training step are missing.
# One function in them is ours: `shard(array, layout)` cuts an array as the layout says, sends each device its part
# and packs the parts into one DTensor. In {lesson:mesh_and_layout} you wrote the cutting yourself.
# Everything else is TensorFlow.
# Without layouts, the model has ordinary variables. We will need that to compare with one device.
#
# While you read, look for the line that tells device 3 what to do:

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
# No line mentions device 3. This is the step that you would write for one device.
#
# Just keep one rule: compute all the gradients before you update anything.

# %% note-order [markdown]
# Why must the gradients come first?
#
# If a DTensor step reads a variable that it has just written, it may get the old value, and nothing reports it.
# That is why you shouldn't use a Keras 3 optimizer such as Adam in a DTensor step.
# Such an optimizer reads what it has just written, and trains wrongly. {Lesson:from_scratch} writes one that is right.

# %% first-run-text [markdown]
# Let's see whether eight devices can train with this step.
# 8,100 reviews make 126 full batches of 64, and we go through these for three epochs: 378 steps.


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
# They can. The loss begins at 0.69, the loss of answering fifty-fifty, and falls to about 0.6,
# while the accuracy climbs to about 0.7. (Plain gradient descent is slower than Adam.)

# %% note-rest [markdown]
# What about the 36 reviews that are left over?
#
# They don't fill a batch, so we drop them. {Lesson:coupled_rows} pads such a batch instead.

# %% note-eager [markdown]
# Does the step have to be a `tf.function`?
#
# Without `@tf.function`, each operation runs as soon as Python reaches it.
# `train_step.python_function` is the step in this form. On our mesh it fails:
#
# ```
# UnimplementedError: The op/function Mul got a regular tensor for input 0
# (shape [64,1]) but was expecting a DTensor. Currently only scalars and
# small integer/string tensors are auto-broadcast to DTensors. …
# ```
#
# In the forward pass, scalars and small integer tensors were the only regular tensors, so it went well.
# The backward pass begins with a regular tensor of 64 fractions: the gradient of the mean with respect to each loss.
# DTensor doesn't know which device should hold which part of it.
# Inside a `tf.function`, DTensor sees the whole computation before it runs, and gives that tensor a layout as well.
#
# The step also runs under `with dtensor.default_mesh(mesh):`, or with `tf.reduce_sum(losses) / 64` instead of the mean.
# Still, make it a `tf.function`. Otherwise Python starts each operation by itself, and that is slow.

# %% note-dataset [markdown]
# Doesn't TensorFlow have a data set for this?
#
# It has `dtensor.DTensorDataset`, which wraps a `tf.data` dataset and yields batches that are already split.
# In TensorFlow 2.21 its iterator can't be saved in a checkpoint, so a run that stops can't go on where it was.
# That is why this course packs the arrays itself.

# %% one-step-heading [markdown]
# ## What a device can do alone
#
# What happened in one of these 378 steps?
# Below, a step is drawn as eight lanes, one for each device.
# Most of the time, each lane works alone. Where the devices have to add something up, a band joins the lanes.
#
# Before you look, read `train_step` once more. How often will a band be needed, and for what?
# Then press *Forward*, and walk through the step.

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("data")

# %% lanes-read [markdown]
# A band is needed six times: for the loss, for the accuracy, and for each of the four gradients.
# Before each band, the devices hold different parts of a sum. After it, all of them hold the same sum.
#
# To see why, put yourself in the place of device 3. You hold 8 of the 64 reviews, and a copy of every weight.
# A hidden unit sums over the 1,200 numbers of a review.
# You have all of them, for each of your 8 reviews, and you have all of `W1`.
# So you can compute the hidden units of your reviews, and then their logits, and their 8 losses,
# since the loss of a review depends only on this review.
# The forward pass is nearly over, and you haven't asked anybody for anything.
#
# But now comes `reduce_mean(losses)`. It sums over the *reviews*, and you have only 8 of the 64.
# Here the devices must add up what they have, in an all-reduce.
# The accuracy takes a second one, because it is also a mean over the reviews.
#
# In the backward pass you need the others again. The loss is a mean over 64 reviews, and so is its gradient. You can compute only what your 8 reviews contribute.
# Once the parts are added up, you update your own copy alone.
#
# So here is the rule. Take any tensor that the step computes. If it has a batch axis, it is split along it.
# If the batch was summed away, it went through an all-reduce, and every device has it.

# %% note-bias [markdown]
# How the layout of a bias follows from its weight's
#
# A bias is added along the last axis of its weight, so it has the layout of that axis.
# `layouts["W1"].delete([0])` drops the first axis, and equals `layouts["b1"]`.

# %% exercise-layouts-text [markdown]
# **Exercise 1.** Now the examples are images, again under data parallelism on `mesh`.
# A batch has the shape (64, 28, 28), and its labels have the shape (64,).
# The gradient of the first weight has the shape (784, 100), and the mean loss is a single number.
# Write down the `dtensor.Layout` that each of the four has at the end of the step.
# A layout has an entry for each axis, and a single number has no axis.

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

# %% one-heading [markdown]
# ## Compare with one device
#
# The curve fell, but that doesn't prove that the step is right.
# In {lesson:whole_game} the curve fell as well when a quarter of the examples had another example's label.
# For proof, take the same steps on one device, and compare.
#
# This function takes twenty steps and returns their losses. With layouts it takes them on eight devices, without on one:


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
# Now run it twice, and look at the largest difference:

# %% rounding
from course_lib import about

on_one = losses_of(train_step, values, train_x, train_y)
on_eight = losses_of(train_step, values, train_x, train_y, layouts)

in_float32 = np.abs(on_eight - on_one)
print("largest difference", about(in_float32.max(), 0, 1e-5))

# %% rounding-read [markdown]
# It is about a ten-millionth. Is that a mistake, or is it rounding?
# Eight devices add the same numbers in a different order, so they round differently.
# There is a simple way to find out. Switch to float64: rounding shrinks by a factor of hundreds of millions, and a mistake stays as it is:

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
# The difference has shrunk to about 2e-16, a factor of hundreds of millions. So it was rounding.

# %% note-dtypes [markdown]
# How do you bring a model of your own to float64?
#
# Convert the arrays before you shard them. In a `tf.function`, mixing two dtypes is a `TypeError`.
# Outside of one, an operation on two DTensors of different dtypes can end the process, and in a notebook the kernel.

# %% mistakes-text [markdown]
# But what would a mistake have looked like? Let's make two.
#
# The first one happens when the data are handed out: every device gets its own reviews, but the labels of its neighbor.

# %% mistakes
rolled_y = train_y.copy()
for start in range(0, 20 * 64, 64):
    rows = slice(start, start + 64)
    # A device has 8 rows, so this moves labels by one device
    rolled_y[rows] = np.roll(train_y[rows], 8)

rolled = losses_of(train_step, values, train_x, rolled_y, layouts)
wrong_labels = np.abs(rolled - on_one)

# %% summed-text [markdown]
# The second mistake happens where the gradients are added up.
# In our step each device divides by 64 right away, so all that is left to do is add: one all-reduce.
# Suppose instead that each device computes the gradient of the mean loss over its own 8 reviews.
# Then the gradient of the batch is the *mean* of these eight.
# But somebody forgets to divide by eight, and applies their sum.
# To get the same effect, we multiply our gradient by eight:


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
# Eight devices train a network, and one device takes the same steps, from the same weights, for comparison.
# The eight make a mistake: they apply a gradient that is eight times too large.
# Each step returns the loss of its forward pass.
# At which step do the two losses first differ by more than rounding?
#
# - [ ] `1` At step 1
#   The loss of step 1 is computed with the initial weights, before the wrong gradient changes anything.
# - [x] `2` At step 2
#   Step 1 computes its loss before it updates the weights. Step 2 is the first whose loss depends on a gradient.
# - [ ] `20` Only after many steps, once the errors have built up
#   One wrong update is enough, since the next forward pass uses the weights that it made.

# %% reveal-gradient
wrong_gradient = np.abs(summed - on_one)
step = 1
while wrong_gradient[step - 1] < 1e-5:
    step += 1
reveal("one_step-gradient", step)

# %% mistakes-given [markdown]
# So *the first loss says nothing about the gradient*, and you need to compare several steps.
# Here are all four comparisons in one picture.
# Each line shows the largest difference up to that step. It starts at the first step at which the two losses differ:

# %% differences-picture
from lessons.layouts.one_step.picture import differences_picture

differences_picture(
    {
        "gradient × 8": wrong_gradient,
        "wrong labels": wrong_labels,
        "float32": in_float32,
        "float64": in_float64,
    }
)

# %% differences-read [markdown]
# Look at the scale: both mistakes are at least ten thousand times larger than the rounding.
# The wrong labels show at step 1, since they are part of the forward pass.
# The wrong gradient can't show there, and jumps out at step 2.
#
# For your own model, run a few steps on one device and on eight, from the same weights.
# If the model doesn't fit on one device, take a smaller version of it.
# If you can't tell whether a difference is rounding, go to float64.
# And if you train with Adam, compare the *gradients*, too. Adam divides each gradient by its usual size,
# so a factor of eight almost vanishes from the losses.

# %% note-rate [markdown]
# When rounding grows
#
# The difference stayed near 1e-7. It can also grow in a run that is right,
# because each step starts from the rounded weights of the step before.
# The network of {lesson:coupled_rows} has batch normalization. At a learning rate of 0.1 it trains well.
# Yet the losses of one device and of eight were 4e-7 apart after 10 steps, 4e-5 after 20, and 0.02 after 50.
# In float64 they were never more than 1e-13 apart. So if a comparison drifts apart slowly, repeat it in float64.

# %% note-left-out [markdown]
# What this step leaves out
#
# Its optimizer has no state. Adam has: in {lesson:whole_game} it kept two averages for each weight.
#
# It doesn't clip its gradients. If you add `tf.clip_by_global_norm`, nothing else has to change.
#
# It has no dropout. If you draw a dropout mask on a split tensor, you don't get the mask that one device draws.
# The losses then differ, though nothing is wrong. So leave dropout out while you compare.

# %% copies-heading [markdown]
# ## Eight equal copies
#
# So eight devices get the losses that one device gets. But they have eight copies of each weight.
# In {lesson:whole_game} the copies of `W1` were equal after 100 steps.
# Are all weights equal on all devices, after our 378 steps? And if so, why?
# This function computes how far apart the copies of a weight are:


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
# The differences are zero. Not a ten-millionth: *zero*, in all 57,746 numbers, after 378 steps in which no two devices saw the same review.
#
# The step shows why. The copies began equal, because `shard` sent every device the same array.
# In each step, the devices compute different parts of the gradient, but the all-reduce gives all of them the same sum,
# down to the last bit: in a ring, for example, each chunk of the sum is finished on one device, and the others get copies of it.
# Then each device subtracts the same numbers from the same numbers.
#
# This argument rests on one word: *began*.
# Imagine a program in which every device draws its own initial `W1`, with its own seed,
# as happens easily if each device has a process of its own.
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
# Eight devices each drew their own initial values of a weight. The largest difference between two of them is 0.302.
# Now the eight train for 378 steps, under data parallelism:
# in each step an all-reduce adds up their parts of the gradient, and each device updates its own copy by plain gradient descent.
# How large is the largest difference between two copies then?
#
# - [ ] `0` 0: the all-reduces have made them equal
#   An all-reduce of the gradients makes the *updates* equal. It never sees the weights.
# - [x] `0.302` 0.302: just as large as before
#   All devices subtract the same updates. The copies move, but the differences between them stay, up to rounding.
# - [ ] `1` Larger: the copies drift further apart
#   They would drift apart if each device followed its own gradient. But all of them get the same sum.

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
# At a model's first step, TensorFlow traces `train_step` for this model, with the variables that it has then.
# Our model got its new `W1` before, so the step uses the new one. Later, it would have been too late.
# When we tried it, `train_step` went on with the old variable, the new one never moved, and no error said so.
# For a model that is already training, use the variable's `assign`.

# %% apart-text [markdown]
# For three epochs, eight different networks have moved in lockstep.
# Surely the loss shows that something is wrong?


# %% apart-loss
def last_20(records):
    losses = [record["loss"] for record in records]
    return about(np.mean(losses[-20:]), 0.5, 0.64)


print("mean loss of the last 20 steps")
print("eight equal copies     ", last_20(history.steps))
print("eight different copies ", last_20(records_apart))

# %% apart-read [markdown]
# The loss shows nothing: in the second run it is just as low.
# Yet no network in this run was trained with its own gradient. Each device contributed the gradient of *its* network, and all of them followed the sum.
# And a checkpoint saves only one of the eight.
#
# Only two things keep the copies equal: they start equal, and they get equal updates.
# Nothing compares them, and plain gradient descent doesn't repair them.
# But a comparison with one device finds this mistake at once.
# Start the single device from `values`: its `W1` is the very copy that device 0 has.

# %% apart-first
first_apart = records_apart[0]["loss"]

print("first loss")
print(f"one device              {on_one[0]:.4f}")
print(f"eight different copies  {first_apart:.4f}")

# %% apart-first-read [markdown]
# The first losses differ by 0.0001. That looks small, but rounding is a thousand times smaller.

# %% note-small [markdown]
# Small tensors don't stay apart
#
# `W1` has 57,600 elements. With fewer than 20 elements, replicated float32 tensors behave differently in TensorFlow 2.21.
# If you make a `DVariable` from eight unequal copies, every device gets device 0's.
# A `tf.function` that is given such a tensor also computes with the copy of device 0 alone.
# `b2` has only two elements: if each device had drawn its own, the copies would have been equal at once.
# The page *Silent mistakes* has more on unequal copies.

# %% note-decay [markdown]
# Weight decay hides the mistake
#
# With weight decay, each device also shrinks its own copy a little in every step. That shrinks the differences as well.
# So after a long run the copies can look equal, although they began as eight networks. Compare them at the start.

# %% note-value [markdown]
# How to look at the copies of a variable
#
# Use `value()`, as we did. `read_value()` would have shown no difference at all.
# Outside a `tf.function`, DTensor doesn't run an operation on every replica:
# it runs it once, on device 0's copies, and hands the result to everyone.
# `read_value()` contains such an operation, so you would compare device 0 with itself.

# %% gradients-heading [markdown]
# ## The step by hand
#
# Let's do by hand what DTensor does.
# This function computes the gradient of the mean loss over the reviews that it gets:


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
# We take a batch apart, and compute the gradient for each device's 8 reviews.
# Eight devices would do this at the same time. We do it one after another:

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
# Each line shows how many of the device's reviews are positive, and then its gradient of `b2`: two numbers,
# for "negative" and for "positive". A step *subtracts* the gradient, so a negative number raises its bias.
# The devices don't even agree on the sign!
# Devices 0 and 1 happened to get six positive reviews out of eight, so they want the network to say "positive" more often.
# Devices 3 and 5 got only three and want the opposite. The other four have four of each, and hardly care.
#
# All eight have the same number of reviews. So the gradient over all 64 is the mean of these eight.
# Does DTensor get the same for the whole batch?

# %% compared
model = MLP(values, layouts)
by_dtensor = gradients_of(model, x, y)

for name in ["W1", "b1", "W2", "b2"]:
    mean = np.mean([each[name] for each in partial], axis=0)
    whole = dtensor.unpack(by_dtensor[name])[0]
    difference = np.abs(mean - whole).max()
    print(name, about(difference, 0, 1e-7))

# %% compared-read [markdown]
# The two agree up to rounding.
# Now you know everything that a data-parallel step does:
# each device computes the gradient of its own examples, an all-reduce combines the gradients, and each device updates its own copy.
# So write one.
#
# **Exercise 2.** Write `step_by_hand(copies, xs, ys, learning_rate)`, a data-parallel step for another loss.
# The model is `x @ w`, and the loss is the mean of the squared errors over the examples of all devices.
# `copies`, `xs` and `ys` are lists with an entry for each device.
# `copies[i]` is the copy of `w` on device `i`, `xs[i]` are its rows of `x`, and `ys[i]` are its labels.
# All devices have the same number of rows, but there need not be eight devices.
# Return the list of the new copies.
#
# A device may look only at its own entries and at the all-reduced gradient.
# Don't assume that the copies are equal: the check will try copies that aren't.
# The gradient of a device's own mean loss is given:


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
# Back to TensorFlow. The lanes showed six all-reduces. Does DTensor insert these six into the step, and no more?
# `collectives`, which you used in {lesson:communication}, tells you:

# %% collectives
from course_lib import collectives

for each in collectives(train_step, model, x, y, 0.5):
    print(each)

# %% collectives-given [markdown]
# There are six, as in the lanes. Together they carry 230,992 bytes. What does that number depend on?

# %% predict-bytes [markdown]
# Eight devices train a network with 1,200 features and 48 hidden units, under data parallelism.
# With batches of 64 reviews, the all-reduces of a step carry 230,992 bytes.
# How many bytes do they carry with batches of 128 reviews?
#
# - [ ] `115496` 115,496
#   Each device still has gradients of the same shapes to add up.
# - [x] `230992` 230,992
#   No review is sent. Only sums over reviews are, and a sum has as many numbers as before, however many terms it has.
# - [ ] `461984` 461,984
#   A device computes twice as much. But its gradients have the shapes of the weights, and these are as before.

# %% reveal-bytes
x_128 = shard(train_x[:128], layouts["x"])
y_128 = shard(train_y[:128], layouts["y"])

total = 0
for each in collectives(train_step, model, x_128, y_128, 0.5):
    total += each.payload_bytes
reveal("one_step-bytes", total)

# %% bytes-read [markdown]
# That's one reason for large batches on many devices: double the batch, and a step computes twice as much but sends no more.
#
# We can account for each of the six by its bytes. A float32 number takes 4.
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
# The batch size occurs nowhere. With twice the hidden units, everything but the first three rows would double.
#
# The picture of the step also counted what each device sends: 404,236 bytes.
# In a ring of eight, that is 1.75 times what the all-reduces carry ({lesson:all_reduce}).
# When the step really runs, TensorFlow fuses the six all-reduces into two, which carry a little more ({lesson:faster}).

# %% note-sparse [markdown]
# An exception: embeddings
#
# The gradient of an embedding table is zero in all rows whose words don't occur in the batch.
# TensorFlow can leave these rows out (`tf.IndexedSlices`).
# Under `tf.distribute.MirroredStrategy` it is exchanged in this form, and then it does grow with the batch.
# Our `train_step` can't take it: `learning_rate * gradient` raises a `TypeError`.
# Convert it first, with `tf.convert_to_tensor(gradient)`. Then it has the shape of the whole table, and so has its all-reduce.

# %% plain-heading [markdown]
# ## The plain program
#
# [`one_step.py`](../plain/one_step.py) is a data-parallel step in one file that needs only TensorFlow and NumPy.
# It makes its own eight devices and its own data, and takes five steps on eight devices and on one.
# It fails if the losses differ by 1e-5 or more, or if the copies differ at all.

# %% note-gpus [markdown]
# How would this run on eight GPUs?
#
# We have not tried this. By TensorFlow's documentation and source code, model and step stay as they are,
# and the beginning of the program changes:
#
# - Call `dtensor.initialize_accelerator_system("GPU")` first. It also makes as many virtual CPUs as there are GPUs,
#   because DTensor keeps a mesh of CPUs beside each mesh of GPUs.
# - Make the mesh with `device_type="GPU"`. It takes all GPUs of the machine; `devices=["GPU:0", "GPU:1"]` takes some of them.
# - All-reduces use NVIDIA's library NCCL if the environment variable `DTENSOR_GPU_USE_NCCL_COMMUNICATION` is 1
#   before the program starts. NCCL needs a real GPU for each device of the mesh.
# - With one GPU you can still make a mesh, of logical GPUs, but without NCCL:
#   `tf.config.set_logical_device_configuration` cuts the GPU into them, with a `memory_limit` for each.
#
# GPUs round differently, so compare with one device again.

# %% takeaways [markdown]
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the model.
#   The step mentions no device. TensorFlow adds an all-reduce wherever something is summed over the batch.
# - The copies stay equal because they start equal and get equal updates. Nothing compares them.
# - Compare with one device: the losses of several steps, and the gradients of one. The first loss tests only the forward pass.
#
# All of this rests on one assumption: the loss of a review depends only on this review.
# {Lesson:coupled_rows} breaks it, and then the gradients no longer simply add up.

# %% score
score("one_step")
