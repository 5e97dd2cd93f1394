# %% [markdown]
# # ZeRO and FSDP
#
# Training a model of 7 billion parameters takes 112 GB before the first activation is stored:
# with Adam, in mixed precision, 16 bytes for each parameter.
# You have eight GPUs of 80 GB. That makes 640 GB, almost six times what you need.
# And yet the model doesn't fit, because data parallelism wants all 112 GB on *every* device.
#
# The eight copies are equal to the last bit, so seven of them are waste.
# In {lesson:splitting_the_model} you got rid of copies by cutting the model.
# But then the devices had to exchange activations in the middle of every forward pass.
# Is there another way, one that leaves the step as it is?
# There is, and today it's what many teams reach for first.
# DeepSpeed calls it **ZeRO**, the zero redundancy optimizer. PyTorch calls its last stage **FSDP**, fully sharded data parallelism.
# Both come from asking one question about every number in memory: *what is each device storing that it doesn't need?*
#
# **After this lesson you can**
#
# - say what ZeRO-1, ZeRO-2 and FSDP take off a device, in bytes;
# - turn data parallelism into ZeRO-1 or FSDP by changing layouts, and predict what a step then exchanges;
# - recompute activations in the backward pass, and check that anything really was recomputed.
#
# **Time:** 30 minutes.
# **You need to know:** Adam and what it keeps ({lesson:a_run}),
# reduce-scatter and all-gather ({lesson:all_reduce}), layouts on two mesh dimensions ({lesson:splitting_the_model}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% bytes-heading [markdown]
# ## Sixteen bytes for a parameter
#
# Where do the 16 bytes come from? In mixed precision ({lesson:large_trainings}), a device keeps five numbers for each parameter:
#
# | | bytes | used |
# | --- | --- | --- |
# | the weight in bfloat16 | 2 | in every forward and backward pass |
# | its gradient in bfloat16 | 2 | once, in the update |
# | the weight in float32 | 4 | once, in the update |
# | Adam's average of the gradients | 4 | once, in the update |
# | Adam's average of their squares | 4 | once, in the update |
#
# The last three rows are the **optimizer state**. They are three quarters of the memory, and a step touches them only once.
# What's more, Adam updates each parameter from its own five numbers alone.
#
# So let the devices share the work. Device 0 updates the first eighth of the parameters, device 1 the second, and so on.
# Then each of them needs only an eighth of the optimizer state. That is **ZeRO-1**.
#
# A device that updates only an eighth needs only an eighth of the summed gradient. Drop the rest, and you have **ZeRO-2**.
#
# And the weights themselves? A device needs all of them, but not all at once.
# It can keep an eighth, gather each layer when the layer's turn comes, and drop it again. That is **ZeRO-3**, or FSDP.
#
# Here is what is left on each device:

# %% stages
from lessons.layouts.zero_and_fsdp.picture import memory_picture

PARAMETERS = 7e9
DEVICES = 8


def bytes_held(stage):
    held = {
        "weights": 2 * PARAMETERS,
        "gradients": 2 * PARAMETERS,
        "optimizer state": 12 * PARAMETERS,
    }
    if stage >= 1:
        held["optimizer state"] /= DEVICES
    if stage >= 2:
        held["gradients"] /= DEVICES
    if stage >= 3:
        held["weights"] /= DEVICES
    return held


# %% stages-picture
memory_picture(
    {
        "data parallelism": bytes_held(0),
        "ZeRO-1": bytes_held(1),
        "ZeRO-2": bytes_held(2),
        "FSDP (ZeRO-3)": bytes_held(3),
    }
)

# %% stages-read [markdown]
# ZeRO-1 alone takes off 73.5 of the 112 GB, and the model fits. ZeRO-2 leaves 26.2 GB, and FSDP 14 GB, exactly an eighth.
# While a layer is at work, its gathered weights come on top.
# And with more devices it gets better still.
#
# That sounds too good. A device that lacks something has to get it from somewhere. What does each stage cost?
#
# ## ZeRO-1 is a change of layouts
#
# We try it on the network that you know: reviews, 1,200 → 48 → 2, and Adam by hand.
# It trains in float32, so a parameter also takes 16 bytes: weight, gradient, and two averages of 4 bytes each.
# The next four cells are copied from {lesson:any_mesh}, unchanged. They are folded; just run them.

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


# %% place tags=["known"]
def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


# %% model-text [markdown]
# The model of {lesson:any_mesh} gave each of Adam's averages, its slots, the layout of its weight. But why should it?
# Let's give the averages layouts of their own:


# %% model
class Model(tf.Module):
    def __init__(self, layouts, slot_layouts):  # new
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            self.weights[name] = variable(value, layouts.get(name))
            slot_layout = slot_layouts.get(name)  # new
            self.means[name] = variable(zeros, slot_layout)
            self.squares[name] = variable(zeros, slot_layout)


# %% layouts-text [markdown]
# Under data parallelism everything but the reviews is **replicated**: every device holds all of it.

# %% layouts
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
replicated = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}
data_parallel = Model(replicated, replicated)

# %% sharded-text [markdown]
# For ZeRO-1, **shard** the averages over `batch`. So far they're replicated.

# %% sharded
sharded = dict(replicated)
sharded["W1"] = dtensor.Layout(["batch", WHOLE], mesh)
sharded["b1"] = dtensor.Layout(["batch"], mesh)
sharded["W2"] = dtensor.Layout(["batch", WHOLE], mesh)

# %% two-numbers-text [markdown]
# That leaves `b2`, with its two numbers. Can eight devices share them?

# %% two-numbers tags=["error"]
from course_lib import last_line

b2 = dtensor.copy_to_mesh(values["b2"], replicated["b2"])
try:
    dtensor.relayout(b2, dtensor.Layout(["batch"], mesh))
except tf.errors.OpError as error:
    print(last_line(error))

# %% two-numbers-read [markdown]
# They can't. So the averages of `b2` stay replicated. At 8 bytes each, that hardly matters.
# What does device 0 hold now?

# %% zero-1
zero_1 = Model(replicated, sharded)


def bytes_on_device_0(variables):
    held = 0
    for each in variables.values():
        held += dtensor.unpack(each.read_value())[0].numpy().nbytes
    return held


for model in [data_parallel, zero_1]:
    weights = bytes_on_device_0(model.weights)
    means = bytes_on_device_0(model.means)
    squares = bytes_on_device_0(model.squares)
    print(f"weights {weights:,}, averages {means + squares:,} bytes")

# %% zero-1-read [markdown]
# An eighth, apart from the 16 bytes for `b2`. We changed three layouts, and not a word of the step.
#
# What does the step do now? Walk through its update as device 0. You get the same summed gradients as before.
# You have an eighth of each average. What can you compute, and what will be missing when the next step begins?
# As before, we count the bytes that each device ends up with.

# %% predict-bytes [markdown]
# Eight devices train a network whose variables hold 230,984 bytes: `W1`, `b1`, `W2`, and the 8 bytes of `b2`.
# Data parallelism all-reduces four gradients, the loss and the accuracy: 230,992 bytes in all.
# Now Adam's averages of `W1`, `b1` and `W2` are sharded over the eight devices, and the weights are still replicated.
# How many bytes do the collectives of a step carry?
#
# - [ ] `230992` 230,992, as before
#   Then each device would be left with an eighth of each new weight, and the next forward pass needs all of them.
# - [ ] `259864` 259,864, an eighth more
#   A device does contribute only an eighth of each weight. But what counts is what it ends up with: all of it.
# - [x] `461968` 461,968, twice as many
#   The gradients are added up as before. Then each device computes an eighth of each new weight,
#   and the three weights are gathered: 230,976 bytes, all but `b2`.
# - [ ] `923920` 923,920, four times as many
#   That gathers both averages, too. But they are never needed whole: each device updates its own eighth.

# %% reveal-bytes
from course_lib import collectives


def payload_of(found):
    payload = 0
    for each in found:
        payload += each.payload_bytes
    return payload


RATE = np.float32(3e-3)
STEP = np.float32(1)
x = place(train_x[:64], replicated["x"])
y = place(train_y[:64], replicated["y"])
of_zero_1 = collectives(train_step, zero_1, x, y, STEP, RATE)
reveal("zero_and_fsdp-bytes", payload_of(of_zero_1))

# %% found-text [markdown]
# Here they are, one by one:

# %% found
for each in of_zero_1:
    print(each)

# %% found-read [markdown]
# `W1`, `b1` and `W2` occur twice each: one entry sums the gradients, the other gathers the new weights.
# Both are printed as all-reduces, and we'll see in a moment why. `b2`, the loss and the accuracy occur once.
#
# Is it still the same training? Ask one device, as always:


# %% same
from course_lib import about


def losses_of_run(model, layouts):
    losses = []
    for step in range(20):
        rows = slice(step * 64, (step + 1) * 64)
        x = place(train_x[rows], layouts.get("x"))
        y = place(train_y[rows], layouts.get("y"))
        number = np.float32(step + 1)
        loss, _ = train_step(model, x, y, number, RATE)
        losses.append(float(loss))
    return np.array(losses)


one = losses_of_run(Model({}, {}), {})
trained = losses_of_run(Model(replicated, sharded), replicated)
apart = np.abs(trained - one)
print("largest difference of 20 losses", about(max(apart), 0, 1e-5))

# %% same-read [markdown]
# The same training, up to rounding, with an eighth of the averages. But look at the price: twice the bytes!
#
# ## Twice the bytes?
#
# That can't be what made ZeRO popular. Its [authors](https://arxiv.org/abs/1910.02054) say that splitting the optimizer state adds no traffic. Who is right?
#
# Think of the gradient of `W1`. The all-reduce gives every device the whole sum, and then device 0 uses the first 150 of its 1,200 rows.
# The other 1,050 rows were sent for nothing. A **reduce-scatter** would do:
# it adds up, and leaves each device with its own rows of the sum.
# And an **all-gather** hands out the new rows of the weight.
#
# You know both from {lesson:all_reduce}: a ring all-reduce *is* a reduce-scatter followed by an all-gather.
# ZeRO-1 only puts the update between the two halves:
#
# ```
#                   .------ all-reduce ------.
# data parallelism  reduce-scatter  all-gather   update 1,200 rows
# ZeRO-1            reduce-scatter  update 150 rows   all-gather
# ```
#
# What is gathered is the new weight, no longer the gradient, and both have the same size.
# With $S$ bytes and $n$ devices, each device sends $\frac{n - 1}{n} S$ in each half, $2 \frac{n - 1}{n} S$ in all.
# So ZeRO-1 sends what one all-reduce sends, to the byte.
#
# Then why does our list have twice as much? Because of what the CPU runs.
# By default, TensorFlow on a CPU replaces both halves with a full all-reduce. For the gathers that can be switched off:

# %% gathers
from lessons.layouts.zero_and_fsdp.graphs import with_true_gathers

for each in with_true_gathers(train_step, zero_1, x, y, STEP, RATE):
    print(each)

# %% gathers-read [markdown]
# There they are, three true all-gathers: one for each weight whose averages are sharded. Each sends half of what an all-reduce sends.
#
# On a CPU, reduce-scatter has no such switch: every device receives the whole sum and keeps its rows.
# So our byte counts overstate ZeRO-1's cost.

# %% note-compiler [markdown]
# Which switch is that, and does DTensor know the reduce-scatter at all?
#
# The switch is the environment variable `LOWER_DTENSOR_GATHER_TO_COLLECTIVE_GATHER_V2`.
#
# And DTensor does know the reduce-scatter. Its compiler has an operation `DTensorReduceScatter`, which takes the place of an all-reduce whose sum is cut right afterwards.
# The compiler's own dump of an FSDP step, like the one below, contains it. In a later pass, for CPUs, it becomes an all-reduce and a cut again.
#
# TensorFlow's source lets GPUs run it as it is if the environment variable `DTENSOR_GPU_USE_NCCL_COMMUNICATION` is set. This course hasn't tried that.

# %% exercise-update-text [markdown]
# What does the update look like with the two right collectives? Write it as one device runs it, with these three functions:
#
# - `reduce_scatter(array)` adds up the arrays that the devices bring, and returns your rows of the sum.
# - `all_gather(rows)` puts the rows of all devices together, and returns the whole.
# - `momentum(weight, velocity, gradient)` takes some rows, the same rows of all three, and returns their new weight and new velocity.
#   With one slot instead of Adam's two, the code is shorter, and the question is the same.
#
# **Exercise 1.** Write `own_update(weight, velocity, gradient, device)`, the update of one matrix under ZeRO-1.
# You hold the whole `weight`, *your rows* of the `velocity`, and the `gradient` of your own examples, which has all rows.
# It's already divided by the size of the whole batch, so the gradients of the devices only have to be added up.
# `device` is your number. The devices have equally many rows, in the order of their numbers.
# Return the whole new weight, and your rows of the new velocity.

# %% exercise-update
from lessons.layouts.zero_and_fsdp.one_device import all_gather
from lessons.layouts.zero_and_fsdp.one_device import momentum
from lessons.layouts.zero_and_fsdp.one_device import reduce_scatter


def own_update(weight, velocity, gradient, device):
    # solution begin
    first = device * len(velocity)
    own_weight = weight[first : first + len(velocity)]
    own_gradient = reduce_scatter(gradient)
    own_weight, velocity = momentum(own_weight, velocity, own_gradient)
    return all_gather(own_weight), velocity
    # solution end


# %%
check("zero_and_fsdp-update", own_update)

# %% exercise-read [markdown]
# That is all of ZeRO-1. Where is the whole sum of the gradients after the reduce-scatter? Nowhere: each device has its rows of it.
# Free your local gradient as well, and you have ZeRO-2.
#
# One warning, if you accumulate gradients over micro-batches ({lesson:large_trainings}).
# ZeRO-2 keeps the running sum sharded, so it needs a reduce-scatter after *every* micro-batch.
# That brings back the traffic that accumulation had saved; ZeRO-1 needs one reduce-scatter a step.

# %% axis-heading [markdown]
# ## Which axis can take `batch`?
#
# We chose the rows of `W1` by hand. On 4 × 2, where `model` splits the hidden units, there is less choice.
# `W1` is `[unsharded, model]` there: its rows are free, and 1,200 divides by 4. But `b1` is `[model]`, and its only axis is taken.
#
# **Exercise 2.** Write `split_over_batch(entries, shape, devices)`.
# `entries` has one entry per axis: the mesh dimension that splits it, or `WHOLE`. None of them is `"batch"` yet.
# `shape` is the tensor's global shape, and `devices` the size of the mesh dimension `batch`.
# Return the entries with `"batch"` on the first axis that can take it. If there is none, return them unchanged.


# %% exercise-axis
def split_over_batch(entries, shape, devices):
    # solution begin
    entries = list(entries)
    for axis, entry in enumerate(entries):
        if entry == WHOLE and shape[axis] % devices == 0:
            entries[axis] = "batch"
            return entries
    return entries
    # solution end


# %%
check("zero_and_fsdp-axis", split_over_batch)

# %% grid-text [markdown]
# With your function (or ours), we can run ZeRO-1 on the grid of {lesson:splitting_the_model}:

# %% grid
from course_lib import yours_or_ours

split = yours_or_ours("zero_and_fsdp-axis", split_over_batch)
grid_mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
grid = {
    "x": dtensor.Layout(["batch", WHOLE], grid_mesh),
    "y": dtensor.Layout(["batch"], grid_mesh),
    "W1": dtensor.Layout([WHOLE, "model"], grid_mesh),
    "b1": dtensor.Layout(["model"], grid_mesh),
    "W2": dtensor.Layout(["model", WHOLE], grid_mesh),
    "b2": dtensor.Layout([WHOLE], grid_mesh),
}
grid_sharded = dict(grid)
for name, value in values.items():
    entries = split(grid[name].sharding_specs, value.shape, 4)
    grid_sharded[name] = dtensor.Layout(entries, grid_mesh)
    print(name, grid_sharded[name].sharding_specs)

# %% grid-read [markdown]
# Only the averages of `W1` are split further. Is that enough? And what does a step exchange now?

# %% grid-run
grid_zero_1 = Model(grid, grid_sharded)
means = bytes_on_device_0(grid_zero_1.means)
squares = bytes_on_device_0(grid_zero_1.squares)
print(f"averages {means + squares:,} bytes")

grid_x = place(train_x[:64], grid["x"])
grid_y = place(train_y[:64], grid["y"])
for each in collectives(
    train_step, grid_zero_1, grid_x, grid_y, STEP, RATE
):
    print(each)

# %% grid-run-read [markdown]
# It is enough. Tensor parallelism alone leaves a device about half of all averages: 230,992 of 461,968 bytes.
# Now it holds about a quarter of that, 58,192, because nearly all of them belong to `W1`.
# (That data parallelism's traffic was 230,992 bytes, too, is a coincidence.)
#
# Seven of the eight lines are plain tensor parallelism. The second 115,200 is new: it gathers `W1`.
# ZeRO-1 and tensor parallelism don't get in each other's way.

# %% fsdp-heading [markdown]
# ## FSDP: the weights, too
#
# What is left is the weights. Shard them like the averages, and a device holds an eighth of everything:

# %% fsdp-held
all_sharded = Model(sharded, sharded)
weights = bytes_on_device_0(all_sharded.weights)
means = bytes_on_device_0(all_sharded.means)
squares = bytes_on_device_0(all_sharded.squares)
print(f"weights {weights:,}, averages {means + squares:,} bytes")

# %% no-gather-text [markdown]
# Is that FSDP already? Let's run the same step, with true gathers, and count.

# %% no-gather
found = with_true_gathers(train_step, all_sharded, x, y, STEP, RATE)
for each in found:
    print(each)
print(f"{payload_of(found):,} bytes")

# %% no-gather-read [markdown]
# Fifteen collectives, and almost three times the bytes of data parallelism. That is not FSDP.
#
# DTensor was told that the weights are sharded, and nothing else. So it worked out for itself how to multiply by sharded weights.
# Look at the first line: 307,200 bytes are all 64 reviews. It has gathered the *batch* on every device!
# And each of the five all-to-alls moves a cut to another axis.
# The losses would be right. It is simply another scheme, and not the one that you wanted.
#
# What FSDP wants is simple: gather the weights, and then compute as if they had always been replicated.
# You have to say so. One function changes, the forward pass:


# %% gather
def logits_of(weights, x):
    whole = {}
    for name, weight in weights.items():
        whole[name] = dtensor.relayout(weight, replicated[name])  # new
    hidden = tf.nn.relu(x @ whole["W1"] + whole["b1"])
    return hidden @ whole["W2"] + whole["b2"]


# %% gather-text [markdown]
# `train_step` calls `logits_of` by its name, so it will use this one for every model that we build from here on.
# (To run an earlier cell again, run the first `logits_of` again before it.)
#
# And the backward pass? Nothing to write.
# Differentiating a gather gives a reduce-scatter: each device gets its part of the sum.

# %% predict-fsdp [markdown]
# Under ZeRO-1, a step carries 461,968 bytes: 230,992 in all-reduces, and 230,976 to gather the new weights at the end.
# Under FSDP the weights stay sharded. The step gathers them once, at its beginning, and the backward pass uses what was gathered then.
# How many bytes do the collectives of a step carry?
#
# - [ ] `230992` 230,992
#   That would be a step without a gather. But every device multiplies its own reviews by all of the weights.
# - [x] `461968` 461,968
#   The gather has moved from the end of a step to the beginning of the next one.
#   The new weights needn't be gathered any more, because they stay sharded.
# - [ ] `692944` 692,944
#   That gathers the weights twice. A step that frees them after the forward pass does so; this one keeps them.

# %% reveal-fsdp
fsdp = Model(sharded, sharded)
of_fsdp = collectives(train_step, fsdp, x, y, STEP, RATE)
reveal("zero_and_fsdp-fsdp", payload_of(of_fsdp))

# %% fsdp-list-text [markdown]
# Side by side, the three schemes differ only in where they exchange something:
#
# ```
# data parallelism          forward  backward  all-reduce      update all
# ZeRO-1                    forward  backward  reduce-scatter  update 1/8  all-gather
# FSDP          all-gather  forward  backward  reduce-scatter  update 1/8
# ```
#
# You can see it in FSDP's list, too, with true gathers:

# %% fsdp-list
for each in with_true_gathers(train_step, fsdp, x, y, STEP, RATE):
    print(each)

trained = losses_of_run(Model(sharded, sharded), sharded)
apart = np.abs(trained - one)
print("largest difference of 20 losses", about(max(apart), 0, 1e-5))

# %% fsdp-read [markdown]
# The gathers of `b1`, `W2` and `W1` come first, then the loss, the accuracy, and the sums of the four gradients.
# Nothing follows: each device updates its own eighth and keeps it. And it's the same training once more.
#
# But think of a model with many layers. The backward pass needs the weights once more, for the gradient of each layer's input.
# So by the end of the forward pass *all* of them would be there, gathered, and waiting.
# A large FSDP run doesn't do that. It frees each layer after its forward pass, and gathers it once more for the backward pass:
#
# ```
# forward   gather layer 1, use, free   gather layer 2, use, free
# backward  gather layer 2, use, free   gather layer 1, use, free
# ```
#
# Two all-gathers and a reduce-scatter: a device sends $3 \frac{n - 1}{n} S$, half as much again as under data parallelism.
# How do you get the second gather? The answer comes from something else that a device stores and doesn't need.

# %% activations-heading [markdown]
# ## The last thing to drop
#
# Weights, gradients and averages are now an eighth of what they were. What else is a device storing?
# *Activations*: the results of the forward pass that the backward pass is going to use.
#
# How much is it? A transformer layer keeps about 34 bytes for each token and each hidden dimension
# ([Korthikanti and others](https://arxiv.org/abs/2205.05198), without the attention matrix, which good kernels never store).
# A model of 7 billion parameters has 32 layers and 4,096 hidden dimensions. Give each device four texts of 2,048 tokens:

# %% activations
LAYERS, WIDTH, TOKENS = 32, 4096, 4 * 2048

kept = bytes_held(3)
kept["activations"] = 34 * TOKENS * WIDTH * LAYERS
recomputed = bytes_held(3)
recomputed["activations"] = 2 * TOKENS * WIDTH * LAYERS

memory_picture(
    {"FSDP": kept, "FSDP, activations recomputed": recomputed}
)

# %% activations-read [markdown]
# After FSDP, the activations are the largest part by far: 36.5 GB. They belong to a device's own examples, so there is no second copy to drop.
# But does a device need them *now*, as long as the backward pass is still far away?
#
# No. It can keep only the input of each layer, 2 bytes a number in bfloat16, and compute the rest once more when the backward pass comes to that layer.
# While it's at that layer, the layer's own 1.1 GB come on top.
# This is **activation recomputation**, also called *activation checkpointing*.
# It trades arithmetic for memory: one more forward pass adds about a third to the arithmetic.
#
# Our network has one hidden layer, so we drop its units. As FSDP does, the layer gathers its weights first:


# %% gathered-hidden
def gathered_hidden(x, W1, b1):
    W1 = dtensor.relayout(W1, replicated["W1"])
    b1 = dtensor.relayout(b1, replicated["b1"])
    return tf.nn.relu(x @ W1 + b1)


# %% gradients-with-text [markdown]
# The rest of the network gets this layer as an argument, so that we can hand in one that recomputes.
# We need no more than the gradients, because the update stays as it was:


# %% gradients-with
def gradients_with(hidden_layer, model, x, y):
    weights = {}
    for name, weight in model.weights.items():
        weights[name] = weight.read_value()
    with tf.GradientTape() as tape:
        tape.watch(weights)
        hidden = hidden_layer(x, weights["W1"], weights["b1"])
        W2 = dtensor.relayout(weights["W2"], replicated["W2"])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, hidden @ W2 + weights["b2"]
        )
        loss = tf.reduce_mean(losses)
    return tape.gradient(loss, weights)


# %% matmuls-given [markdown]
# TensorFlow's `tf.recompute_grad` turns such a layer into one that is recomputed.
# Whether it really was shows in the number of matrix multiplications.
# The forward pass takes two, and the backward pass three: for the gradients of `W2`, of the hidden units and of `W1`.

# %% predict-matmuls [markdown]
# The network is `hidden = relu(x @ W1 + b1)`, then `logits = hidden @ W2 + b2`, and `x` is the data.
# A step takes two matrix multiplications in the forward pass and three in the backward pass.
# Now `hidden` is dropped after the forward pass, and recomputed in the backward pass.
# How many matrix multiplications does a step take?
#
# - [ ] `5` five, as before
#   The gradient of `W2` needs `hidden`, and it isn't there any more. It has to be multiplied out again.
# - [x] `6` six
#   `x @ W1` is computed twice. The backward pass needs `hidden` for the gradient of `W2`, and to know where the relu let something through.
# - [ ] `7` seven
#   That computes the logits twice as well. But only `hidden` was dropped.
# - [ ] `8` eight
#   The backward pass is not run twice. What is repeated belongs to the forward pass.

# %% reveal-matmuls
from functools import partial

from lessons.layouts.zero_and_fsdp.graphs import count_matmuls

library = tf.recompute_grad(gathered_hidden)
step = partial(gradients_with, library)
matmuls = count_matmuls(step, fsdp, x, y)
reveal("zero_and_fsdp-matmuls", matmuls)

# %% report-text [markdown]
# And what does it exchange? Let's print the bytes, for the layer as it was and for the one that is recomputed:


# %% report
def report(title, hidden_layer):
    step = partial(gradients_with, hidden_layer)
    gathered = []
    summed = []
    for each in with_true_gathers(step, fsdp, x, y):
        if each.kind == "all-gather":
            gathered.append(each.payload_bytes)
        else:
            summed.append(each.payload_bytes)
    print(title)
    print("  matmuls: ", count_matmuls(step, fsdp, x, y))
    print("  gathered:", *gathered)
    print("  summed:  ", *summed)


report("kept", gathered_hidden)
report("tf.recompute_grad", library)

# %% report-read [markdown]
# The 230,400 bytes are `W1`, gathered, and its gradient, summed. With recomputation `W1` is gathered *twice*.
# That is FSDP's second gather! The gather stands inside the layer, so it is recomputed along with it.
# A device no longer keeps gathered weights until the backward pass, only its own shard.
#
# But what are the 12,288 bytes? That is 64 × 48 numbers: the gradient of the hidden units, all 64 rows of it, gathered on every device.
# `tf.recompute_grad` flattens this gradient on the way, and to flatten it, DTensor gathers it.
# In a large model that is the activations of the whole batch, in every layer.
#
# So let's write it by hand. A **custom gradient** is a function that returns a result and the function of its backward pass.
# Ours computes the layer again in the backward pass, and differentiates it:


# %% naive
@tf.custom_gradient
def naive(x, W1, b1):
    def backward(gradient):
        with tf.GradientTape() as tape:
            tape.watch([W1, b1])
            hidden = gathered_hidden(x, W1, b1)
        grad_W1, grad_b1 = tape.gradient(hidden, [W1, b1], gradient)
        return None, grad_W1, grad_b1  # x is data

    return gathered_hidden(x, W1, b1), backward


report("by hand", naive)

# %% naive-read [markdown]
# The 12,288 bytes are gone. But five matrix multiplications! *Nothing was recomputed*, and nothing was gathered again.
# When TensorFlow compiles a step, it merges equal computations (**common subexpression elimination**), and here it found the same layer twice.
# The result is right, the code says "recompute", and no memory is saved.
#
# To prevent that, give the second computation a **data dependency** on something that exists only in the backward pass: the gradient.
# Zero times its sum will do. We know it's zero. The compiler can't: zero times infinity is NaN.


# %% late
@tf.custom_gradient
def recomputed_hidden(x, W1, b1):
    def backward(gradient):
        zero = 0 * tf.reduce_sum(gradient)  # known only now
        with tf.GradientTape() as tape:
            tape.watch([W1, b1])
            hidden = gathered_hidden(x, W1 + zero, b1 + zero)  # new
        grad_W1, grad_b1 = tape.gradient(hidden, [W1, b1], gradient)
        return None, grad_W1, grad_b1

    return gathered_hidden(x, W1, b1), backward


report("by hand, with a zero", recomputed_hidden)

# %% late-read [markdown]
# Six matrix multiplications, `W1` gathered twice, and no 12,288. The sum of the gradient costs 4 bytes.
#
# The layer has three inputs. We added the zero to the weights. Wouldn't it do to add it to `x`?
# The folded cell does that, and is otherwise the same:


# %% late-x tags=["known"]
@tf.custom_gradient
def zero_on_x(x, W1, b1):
    def backward(gradient):
        zero = 0 * tf.reduce_sum(gradient)
        with tf.GradientTape() as tape:
            tape.watch([W1, b1])
            hidden = gathered_hidden(x + zero, W1, b1)  # new
        grad_W1, grad_b1 = tape.gradient(hidden, [W1, b1], gradient)
        return None, grad_W1, grad_b1

    return gathered_hidden(x, W1, b1), backward


report("by hand, with the zero on x", zero_on_x)

# %% late-x-read [markdown]
# Six matrix multiplications again, but `W1` is gathered only once! The product is recomputed, and the gather isn't:
# both gathers now have the same input, so the compiler has merged them. The gathered `W1` is kept from the forward pass to the backward pass,
# and that's what FSDP wants to avoid. So the zero belongs on the weights, *before* their gather.
#
# Do this to every layer, and a device can drop each one, weights and activations, as soon as the next one has its input.

# %% note-zero [markdown]
# Can the zero do harm?
#
# - **float16.** There a sum can overflow to infinity where no gradient does, and then the zero is NaN. Sum in float32.
# - **Around the loss.** `tf.recompute_grad` makes such a zero as well; that is what it flattens the gradient for. Wrapped around the loss it recomputes nothing,
#   because the gradient of the loss is the constant 1, and the compiler knows that one.

# %% note-cpu [markdown]
# What has the CPU hidden here?
#
# - **Time.** Our eight devices share the cores and the memory of one machine. Whether the gathers hide behind the arithmetic, only real devices can tell.
# - **Memory.** We counted what variables hold, and matrix multiplications. The peak of a step depends on when TensorFlow frees a tensor.

# %% note-hides [markdown]
# A mistake that ZeRO hides
#
# Our step computes all new values first, and writes them afterwards.
# An Adam that writes its averages and then reads them back trains wrongly in DTensor, silently ({lesson:from_scratch}).
# How much do its twenty losses differ from those of one device? We measured that in two set-ups:
#
# | | largest difference of a loss | last loss (right: 0.6440) |
# | --- | --- | --- |
# | data parallelism | 1.4e-2 | 0.6519 |
# | ZeRO-1 | 9.1e-4 | 0.6441 |
#
# Under ZeRO-1 the same mistake changes no loss by even 0.001, and no curve would show it.
# A right step stays within 1e-6. So compare with one device, and don't be content with "about the same".

# %% plain-heading [markdown]
# ## The plain program
#
# [`zero_and_fsdp.py`](../plain/zero_and_fsdp.py) puts it all together, with TensorFlow and NumPy alone:
# gradients accumulated over four micro-batches, clipping by the global norm, bfloat16, and `--shard none`, `optimizer` or `variables`.
# It compares every loss and every norm with those of one device.
#
# How can a device clip if it has only its rows of a gradient? DTensor adds up the norm.
# Each sharded gradient costs one more all-reduce, of 4 bytes, under ZeRO-1 as under FSDP.

# %% takeaways [markdown]
# ## Takeaways
#
# - Ask of every number in memory whether this device needs it now. Data parallelism never asks, and keeps 16 bytes for each parameter on every device.
# - ZeRO-1 shards what only the update needs. FSDP shards the weights, too, and gathers them to compute. Both train as one device does, up to rounding.
# - Code that says "recompute" may recompute nothing. Count the matrix multiplications, and compare the losses with one device.
#
# {Lesson:save_and_serve} takes the trained weights off the mesh altogether.

# %% score
score("zero_and_fsdp")
