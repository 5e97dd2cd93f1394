# %% [markdown]
# # ZeRO and FSDP
#
# Training a model of 7 billion parameters takes 112 GB before the first activation is stored:
# with Adam, in mixed precision, 16 bytes for each parameter.
# You have eight GPUs of 80 GB. That makes 640 GB, almost six times what you need.
# And yet the model doesn't fit: data parallelism wants all 112 GB on *every* device.
#
# The eight copies are equal to the last bit, so seven of them are waste.
# In {lesson:splitting_the_model} you got rid of copies by splitting the model.
# But then the devices had to exchange activations in the middle of every forward pass.
# There is a way that avoids this.
# DeepSpeed calls it **ZeRO**, the zero redundancy optimizer. PyTorch calls its last stage **FSDP**, fully sharded data parallelism.
# Both come from asking one question about every number in memory: *does this device really need it?*
#
# **After this lesson you can**
#
# - say what ZeRO-1, ZeRO-2 and FSDP take off a device, in bytes;
# - turn data parallelism into ZeRO-1 or FSDP, and predict what a step then exchanges;
# - recompute activations in the backward pass, and check that they really are recomputed.
#
# **Time:** 55 minutes.
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
# Where do the 16 bytes come from? In {lesson:large_trainings}'s mixed precision, the sums of gradients were in float32. ZeRO's authors keep gradients in 16 bits as well, and count five numbers for each parameter.
# (They used float16. We use bfloat16, which is just as large.)
#
# | | bytes | used |
# | --- | --- | --- |
# | the weight in bfloat16 | 2 | in every forward and backward pass |
# | its gradient in bfloat16 | 2 | once, in the update |
# | the weight in float32 | 4 | once, in the update |
# | Adam's average of the gradients | 4 | once, in the update |
# | Adam's average of their squares | 4 | once, in the update |
#
# The last three rows are the **optimizer state**. They are three quarters of the memory, and a step uses them only once.
# What's more, Adam updates each parameter without looking at any other.
#
# So let the devices share the work. Device 0 updates the first eighth of the parameters, device 1 the second, and so on.
# Then each of them needs only an eighth of the optimizer state. That is **ZeRO-1**.
#
# A device that updates only an eighth needs only an eighth of the summed gradient. Drop the rest, and you have **ZeRO-2**.
#
# And the weights themselves? A device needs all of them, but not all at once.
# It can keep an eighth, gather each layer when its turn comes, and drop it again. That is **ZeRO-3**, or FSDP.
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
# ZeRO-1 alone brings 112 GB down to 38.5, and the model fits. ZeRO-2 needs about 26 GB; FSDP 14, exactly an eighth.
# While FSDP computes a layer, the layer's gathered weights come on top.
# With more devices it gets better still.
#
# That sounds too good. What a device doesn't hold, it has to fetch. What does each stage cost?
#
# ## ZeRO-1 is a change of layouts
#
# We try it on the network that you know: reviews, 1,200 → 48 → 2, and Adam by hand.
# It trains in float32, and a parameter takes 16 bytes here, too: weight, gradient, and two slots of 4 bytes each.
# There is no second copy of the weights in float32, so the two slots are all that ZeRO-1 can split here.
#
# The next four cells are those of {lesson:any_mesh}. One thing is new: the step takes its forward pass as an argument,
# as in {lesson:large_trainings}. They are folded; just run them.

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
def train_step(forward, model, x, y, step, learning_rate):  # new
    with tf.GradientTape() as tape:
        logits = forward(model.weights, x)  # new
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
# In {lesson:any_mesh}, each of Adam's slots had the same layout as its weight. Nothing says that it must. Let's give the slots separate layouts:


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
# Under data parallelism everything but the reviews is replicated:

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
# ZeRO-1 changes only the slots. They were replicated; now we shard them over `batch`.
# That leaves `b2`, whose two numbers eight devices can't share, because DTensor splits an axis only into equal parts.
# So its slots stay replicated, and at 8 bytes each that hardly matters.

# %% sharded
sharded = dict(replicated)
sharded["W1"] = dtensor.Layout(["batch", WHOLE], mesh)
sharded["b1"] = dtensor.Layout(["batch"], mesh)
sharded["W2"] = dtensor.Layout(["batch", WHOLE], mesh)

# %% zero-1-text [markdown]
# How many bytes of the weights, and of each slot (printed as "average"), does device 0 hold now?

# %% zero-1
zero_1 = Model(replicated, sharded)


def bytes_on_device_0(variables):
    held = 0
    for each in variables.values():
        held += dtensor.unpack(each.read_value())[0].numpy().nbytes
    return held


for model in [data_parallel, zero_1]:
    weights = bytes_on_device_0(model.weights)
    average = bytes_on_device_0(model.means)
    print(f"weights {weights:,}, each average {average:,} bytes")

# %% zero-1-read [markdown]
# Each slot is down to an eighth, apart from the 8 bytes for `b2`. Data parallelism became ZeRO-1 by a change of three layouts, with the same step.
#
# What does the step do now? Walk through its update as device 0. You get the same summed gradients as before.
# You have an eighth of each slot. What can you compute, and what will be missing when the next step begins?
# As always, the payload of a collective is the size of the array that each device ends up with.

# %% predict-bytes [markdown]
# Eight devices train a network whose variables hold 230,984 bytes: `W1`, `b1`, `W2`, and the 8 bytes of `b2`.
# Data parallelism all-reduces four gradients, the loss and the accuracy: 230,992 bytes in all.
# Now Adam's averages of `W1`, `b1` and `W2` are sharded over the eight devices, and the weights are still replicated.
# On this CPU, the gradients are still all-reduced.
# A collective counts with the size of the array that each device ends up with.
# How many bytes do the collectives of a step carry?
#
# - [ ] `230992` 230,992, as before
#   Then each device would be left with an eighth of each new weight, and the next forward pass needs all of them.
# - [ ] `259864` 259,864, about an eighth more
#   It would be so if each device received only its eighth of the summed gradients, 28,872 bytes. But an all-reduce brings it the whole sum.
# - [x] `461968` 461,968, almost twice as many
#   The gradients are added up as before. But now each device can update only its eighth of `W1`, `b1` and `W2`,
#   so the new values have to be gathered: 230,976 bytes, all but `b2`.
# - [ ] `923920` 923,920, almost four times as many
#   That gathers both averages, too. But they are never needed whole: each device updates its own eighth.

# %% reveal-bytes
from course_lib import collectives


def payload_of(exchanges):
    payload = 0
    for each in exchanges:
        payload += each.payload_bytes
    return payload


RATE = np.float32(3e-3)
STEP = np.float32(1)
x = place(train_x[:64], replicated["x"])
y = place(train_y[:64], replicated["y"])
zero_1_list = collectives(
    train_step, logits_of, zero_1, x, y, STEP, RATE
)
reveal("zero_and_fsdp-bytes", payload_of(zero_1_list))

# %% found-text [markdown]
# Here are the collectives, one by one:

# %% found
for each in zero_1_list:
    print(each)

# %% found-read [markdown]
# `W1`, `b1` and `W2` occur twice each: one entry sums the gradients, the other gathers the new weights.
# Both are printed as all-reduces, and we'll see in a moment why. `b2`, the loss and the accuracy occur once.
#
# Is it still the same training? Ask one device, as always:


# %% same
from course_lib import about


def losses_of_run(forward, model, layouts):
    losses = []
    for step in range(20):
        rows = slice(step * 64, (step + 1) * 64)
        x = place(train_x[rows], layouts.get("x"))
        y = place(train_y[rows], layouts.get("y"))
        number = np.float32(step + 1)
        loss, _ = train_step(forward, model, x, y, number, RATE)
        losses.append(float(loss))
    return np.array(losses)


one = losses_of_run(logits_of, Model({}, {}), {})
eight = losses_of_run(logits_of, Model(replicated, sharded), replicated)
largest = max(np.abs(eight - one))
print("largest difference of 20 losses", about(largest, 0, 1e-5))

# %% same-read [markdown]
# It is the same training, up to rounding, with an eighth of the slots. But look at the price: almost twice the bytes!
#
# ## Twice the bytes?
#
# That can't be what made ZeRO popular. Its [authors](https://arxiv.org/abs/1910.02054) say that splitting the optimizer state adds no traffic. Who is right?
#
# Think of the gradient of `W1`. The all-reduce gives every device the whole sum, and then device 0 uses the first 150 of its 1,200 rows.
# The other 1,050 rows were sent for nothing. A reduce-scatter would do:
# it adds up, and leaves each device with its own rows of the sum.
# And an all-gather hands out the new rows of the weight.
#
# You know both from {lesson:all_reduce}: a ring all-reduce *is* a reduce-scatter followed by an all-gather.
# ZeRO-1 only puts the update between the two halves:
#
# | | first | then | last |
# | --- | --- | --- | --- |
# | data parallelism | reduce-scatter | all-gather | update 1,200 rows |
# | ZeRO-1 | reduce-scatter | update 150 rows | all-gather |
#
# What is gathered is the new weight, no longer the gradient, and both have the same size.
# With $S$ bytes and $n$ devices, each device sends $\frac{n - 1}{n} S$ in each half, $2 \frac{n - 1}{n} S$ in all.
# So ZeRO-1 sends what one all-reduce sends, to the byte.
#
# Then why does our list have almost twice as much? On a CPU, TensorFlow by default runs a full all-reduce instead of either half.
# So our list counts the whole sum of the gradients, 230,976 bytes, where a reduce-scatter would leave each device an eighth of it.
# For the gathers, an environment variable switches the all-reduce off. The function `with_all_gathers` sets it:

# %% gathers
from lessons.layouts.zero_and_fsdp.graphs import with_all_gathers

for each in with_all_gathers(
    train_step, logits_of, zero_1, x, y, STEP, RATE
):
    print(each)

# %% gathers-read [markdown]
# Now there are three all-gathers: one for each weight whose slots are sharded. And yet every number of bytes is the same as before!
#
# It has to be, because our list counts what a device ends up with: the whole weight, whichever collective brings it.
# What has changed is what a device *sends*. The two formulas above tell us how much:

# %% sent
SHARE = 7 / 8  # (n - 1) / n, for eight devices
sharded_bytes = 230976  # W1, b1 and W2
other_bytes = 16  # b2, the loss and the accuracy

reduce_scatter = SHARE * sharded_bytes
all_gather = SHARE * sharded_bytes
all_reduce = 2 * SHARE * sharded_bytes
others = 2 * SHARE * other_bytes

sent = {
    "data parallelism": all_reduce + others,
    "ZeRO-1, first list": all_reduce + all_reduce + others,
    "ZeRO-1, second list": all_reduce + all_gather + others,
    "ZeRO-1 as designed": reduce_scatter + all_gather + others,
}
for scheme, size in sent.items():
    print(f"{scheme:20} sent by each device: {size:7,.0f} bytes")

# %% sent-read [markdown]
# Our first list sends almost twice as much as data parallelism, the second half as much again.
# The last line is the ZeRO-1 of its authors. They are right: not one byte more.
#
# We can't run that line here, because the reduce-scatters have no such switch.
# On a CPU, every device gets the whole sum, and throws seven eighths of it away.

# %% note-compiler [markdown]
# Which switch is that, and does DTensor know the reduce-scatter at all?
#
# The switch is the environment variable `LOWER_DTENSOR_GATHER_TO_COLLECTIVE_GATHER_V2`.
#
# And DTensor does know the reduce-scatter. Its compiler has an operation `DTensorReduceScatter`, which replaces an all-reduce whose sum is split right afterwards.
# The compiler's own dump of an FSDP step, like the one below, contains it. In a later pass, for CPUs, it becomes an all-reduce and a split again.
#
# TensorFlow's source lets GPUs run it as it is if the environment variable `DTENSOR_GPU_USE_NCCL_COMMUNICATION` is set. This course hasn't tried that.

# %% exercise-update-text [markdown]
# What does the update look like with the two right collectives? Write it as one device runs it, with these three functions:
#
# - `reduce_scatter(array)` adds up the arrays that the devices bring, and returns your rows of the sum.
# - `all_gather(rows)` puts the rows of all devices together, and returns the whole.
# - `momentum(weight, velocity, gradient)` takes some rows, the same rows of all three, and returns their new weight and new velocity.
#   It has one slot instead of Adam's two. The code is shorter, and the idea is the same.
#
# **Exercise 1.** Write `own_update(weight, velocity, gradient, device)`, the update of one matrix under ZeRO-1.
# You are the device with the number `device`, and you hold:
#
# - `weight`: all rows.
# - `velocity`: your rows only.
# - `gradient`: all rows, but from your own examples only.
#
# The devices have equally many rows, in the order of their numbers.
# The gradient is already divided by the size of the whole batch, so the devices' gradients only have to be added up.
# Return two things: the whole new weight, and your own rows of the new velocity.

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
# That is all of ZeRO-1. After the reduce-scatter, no device holds the whole sum any more, only its own rows of it.
# But while the backward pass ran, each device held its own gradient whole.
# ZeRO-2 reduce-scatters each piece of the gradient during the backward pass, and frees it at once.

# %% note-accumulation [markdown]
# What if you accumulate gradients over micro-batches?
#
# ZeRO-2 keeps the running sum sharded, so it needs a reduce-scatter after *every* micro-batch.
# So ZeRO-2 gives back the traffic that accumulation saved ({lesson:large_trainings}). FSDP pays even more: two gathers and a reduce-scatter for each micro-batch.
# ZeRO-1 needs one reduce-scatter a step, however many micro-batches there are.

# %% axis-heading [markdown]
# ## Which axis is free for `batch`?
#
# Large training runs often use ZeRO together with tensor parallelism, and there our layouts need one more thought.
# On our row of eight, we could shard the first axis of everything but `b2`. A grid leaves less choice. On the 4 × 2 grid of {lesson:splitting_the_model}, `model` already splits the columns of `W1`. Its rows are free, and 4 devices can share 1,200 rows evenly. But `b1` has only one axis, and `model` has taken it.
#
# So an axis is free for `batch` if no mesh dimension splits it yet, and if the number of devices divides its size.
#
# **Exercise 2.** Write `split_over_batch(entries, shape, devices)`.
# `entries` is a list with one entry per axis: the mesh dimension that splits it, or `WHOLE`. None of them is `"batch"` yet.
# `shape` is the tensor's global shape, and `devices` the size of the mesh dimension `batch`.
# Find the first axis that is free for `batch`, and return the list with that axis's entry replaced by `"batch"`.
# If there is none, return the list unchanged.


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
# With your function (or ours), we can run ZeRO-1 on that grid:

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
# Only the slots of `W1` are split further. `W2` has a free axis as well, but its 2 columns are too few for 4 devices.
# Is `W1` alone worth it? And what does a step exchange now?

# %% grid-run
grid_zero_1 = Model(grid, grid_sharded)
average = bytes_on_device_0(grid_zero_1.means)
print(f"each average {average:,} bytes")

grid_x = place(train_x[:64], grid["x"])
grid_y = place(train_y[:64], grid["y"])
for each in with_all_gathers(
    train_step, logits_of, grid_zero_1, grid_x, grid_y, STEP, RATE
):
    print(each)

# %% grid-run-read [markdown]
# It is. With tensor parallelism alone, a device would hold about half of each slot, 115,496 bytes.
# ZeRO-1 brings that down to 29,096, about a quarter, because almost all of these bytes belong to `W1`.
#
# Seven of the eight lines are plain tensor parallelism. The all-gather is new: it brings together the new `W1`.
# ZeRO-1 and tensor parallelism don't get in each other's way.

# %% fsdp-heading [markdown]
# ## FSDP: the weights, too
#
# What is left is the weights. Let's shard them like the slots:

# %% fsdp-held
all_sharded = Model(sharded, sharded)
weights = bytes_on_device_0(all_sharded.weights)
average = bytes_on_device_0(all_sharded.means)
print(f"weights {weights:,}, each average {average:,} bytes")

# %% no-gather-text [markdown]
# The weights are down to an eighth as well, and again only `b2` is left whole.
# Is that FSDP already? Let's run the same step and count, with the switch for the gathers set:

# %% no-gather
no_gather_list = with_all_gathers(
    train_step, logits_of, all_sharded, x, y, STEP, RATE
)
for each in no_gather_list:
    print(each)
print(f"{payload_of(no_gather_list):,} bytes")

# %% no-gather-read [markdown]
# Fifteen collectives, and almost three times the bytes of data parallelism. That is not FSDP.
#
# DTensor was told that the weights are sharded, and nothing else. So it worked out for itself how to multiply by sharded weights.
# Look at the first line: 307,200 bytes are all 64 reviews. It has gathered the *batch* on every device, and in the second line `W1` as well!
# And each of the five all-to-alls takes a tensor that is split along one axis and splits it along another.
# The losses would be right. It is simply a different scheme from the one that you wanted.
#
# What FSDP wants is simple: gather the weights, and then compute as if they had always been replicated.
# You have to say so, in a separate forward pass, as in a note of {lesson:communication}:


# %% gather
def fsdp_logits(weights, x):
    whole = {}
    for name, weight in weights.items():
        whole[name] = dtensor.relayout(weight, replicated[name])
    return logits_of(whole, x)


# %% gather-text [markdown]
# The backward pass needs no extra code. Differentiating a gather gives a reduce-scatter: each device gets its part of the sum.
# On this CPU, it runs as an all-reduce once more.

# %% predict-fsdp [markdown]
# On this CPU, a step of ZeRO-1 carries 461,968 bytes: 230,992 in all-reduces that add up the gradients, the loss and the accuracy,
# and 230,976 to gather the new weights at the end.
# Under FSDP the weights stay sharded. The step gathers them once, at its beginning, and the backward pass uses what was gathered then.
# A collective counts with the size of the array that each device ends up with.
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
fsdp_list = collectives(train_step, fsdp_logits, fsdp, x, y, STEP, RATE)
reveal("zero_and_fsdp-fsdp", payload_of(fsdp_list))

# %% fsdp-list-text [markdown]
# Here are the three side by side. They differ in what is exchanged, when it is exchanged, and how much each device updates:
#
# | | before the forward pass | after the backward pass | the update | after the update |
# | --- | --- | --- | --- | --- |
# | data parallelism | | all-reduce | of everything | |
# | ZeRO-1 | | reduce-scatter | of an eighth | all-gather |
# | FSDP | all-gather | reduce-scatter | of an eighth | |
#
# FSDP's list shows the same order. On this CPU, its reduce-scatters show up as all-reduces:

# %% fsdp-list
for each in with_all_gathers(
    train_step, fsdp_logits, fsdp, x, y, STEP, RATE
):
    print(each)

eight = losses_of_run(fsdp_logits, Model(sharded, sharded), sharded)
largest = max(np.abs(eight - one))
print("largest difference of 20 losses", about(largest, 0, 1e-5))

# %% fsdp-read [markdown]
# The gathers of `b1`, `W2` and `W1` come first, then the loss, the accuracy, and the sums of the four gradients.
# Nothing follows: each device updates its own eighth and keeps it. And it's the same training once more.
#
# But think of a model with many layers. FSDP wants to gather *one layer at a time*. Does ours?
# By default, TensorFlow fuses collectives where it can ({lesson:faster}).
# Here is the forward pass as it really runs, without our switch and with `combine=True`:


# %% fused
@tf.function
def forward_pass(forward, model, x):
    return forward(model.weights, x)


for each in collectives(
    forward_pass, fsdp_logits, fsdp, x, combine=True
):
    print(each)

# %% fused-read [markdown]
# One collective carries all three weights, 230,976 bytes, and a little padding!
# The whole model lies on every device before the first multiplication, and no loss tells you.
# With 7 billion parameters, that is 14 GB of gathered weights, on top of the 14 GB that FSDP left.
# Freeing each layer after its use doesn't help: by then, all of them have been there at once.
#
# Why do they all come at once? A gather needs only its variable, so no gather has to wait for an earlier layer.
#
# Let's make it wait. Multiply the sum of the hidden units by zero, and add that to `W2` before it is gathered.
# This gives the gather a **data dependency** on the hidden units: it can't begin until they are computed.
# We know that we add zero. The compiler doesn't: zero times infinity is NaN.


# %% gathered-hidden
def gathered_hidden(x, W1, b1):
    W1 = dtensor.relayout(W1, replicated["W1"])
    b1 = dtensor.relayout(b1, replicated["b1"])
    return tf.nn.relu(x @ W1 + b1)


# %% in-turn
def logits_in_turn(weights, x):
    hidden = gathered_hidden(x, weights["W1"], weights["b1"])
    zero = 0 * tf.reduce_sum(hidden)  # new
    W2 = weights["W2"] + zero  # new: it has to wait
    W2 = dtensor.relayout(W2, replicated["W2"])
    return hidden @ W2 + weights["b2"]


for each in collectives(
    forward_pass, logits_in_turn, fsdp, x, combine=True
):
    print(each)

# %% in-turn-read [markdown]
# Now the first collective carries only `W1` and `b1`. (It is no smaller than before: the 384 bytes of `W2` had fitted into the padding, which you know from {lesson:faster}.)
# `W2` comes last, after the hidden units.
# The sum of the hidden units costs 4 bytes.
#
# In a deep model, a device could now free each layer's weights before it gathers the next.
# There is one obstacle left: the backward pass needs them once more, for the gradient of the layer's input.
# So a large FSDP run gathers each layer twice:
#
# | | first | then |
# | --- | --- | --- |
# | forward pass | gather layer 1, use it, free it | gather layer 2, use it, free it |
# | backward pass | gather layer 2, use it, free it | gather layer 1, use it, free it |
#
# Two all-gathers and a reduce-scatter: a device sends $3 \frac{n - 1}{n} S$, half as much again as under data parallelism.
# In PyTorch, the second gather is a setting, `reshard_after_forward`. Ours will come for free, when we drop one more thing that is stored long before it is needed.

# %% activations-heading [markdown]
# ## The last thing to drop
#
# Weights, gradients and slots are now an eighth of what they were. What else is a device storing?
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
# After FSDP, the activations are the largest part by far: 36.5 GB. With the other 14 that makes 50.5, and with twice as many texts, 80 GB would not be enough.
# They belong to a device's own examples, so there is no second copy to drop.
# But does a device need them *now*, with the backward pass still far off?
#
# It can just as well keep only the input of each layer, 2 bytes a number in bfloat16, and compute the rest once more when the backward pass comes to that layer.
# This is **activation recomputation**, also called *activation checkpointing*. In the picture it leaves 2.1 of the 36.5 GB.
# While a device is at a layer, that layer's 1.1 GB come on top.
#
# So we save memory, and pay in arithmetic. A backward pass takes about twice the arithmetic of a forward pass, so a second forward pass adds about a third.
#
# Our network has just one hidden layer, `gathered_hidden`, so its output is what we'll recompute.
# The next function takes the layer as an argument, so that we can swap in a version that recomputes.
# It stops at the gradients, because the update doesn't change:


# %% gradients-with
def gradients_with(hidden_layer, model, x, y):
    # The layer gets tensors; a tape must be told to watch those
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
# TensorFlow's `tf.recompute_grad` makes a layer recompute. To see whether it really does, count the matrix multiplications.
# The forward pass takes two, and the backward pass three: for the gradients of `W2`, of the hidden units and of `W1`.
# It doesn't take a fourth, because `x` is data and needs no gradient.

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
from lessons.layouts.zero_and_fsdp.graphs import count_matmuls

by_library = tf.recompute_grad(gathered_hidden)


def step_by_library(model, x, y):
    return gradients_with(by_library, model, x, y)


matmuls = count_matmuls(step_by_library, fsdp, x, y)
reveal("zero_and_fsdp-matmuls", matmuls)

# %% report-text [markdown]
# And what does such a step exchange? Let's compare the layer as it was with the recomputed layer. The size in bytes tells us which weight a collective is for. A `?` is none of the weights:


# %% report
NAMES = {230400: "W1", 192: "b1", 384: "W2", 8: "b2"}


def report(title, hidden_layer):
    def step(model, x, y):
        return gradients_with(hidden_layer, model, x, y)

    gathered = []
    summed = []
    for each in with_all_gathers(step, fsdp, x, y):
        size = each.payload_bytes
        named = f"{NAMES.get(size, '?')} {size}"
        if each.kind == "all-gather":
            gathered.append(named)
        else:
            summed.append(named)
    print(title)
    print("  matmuls: ", count_matmuls(step, fsdp, x, y))
    print("  gathered:", ", ".join(gathered))
    print("  summed:  ", ", ".join(summed))


report("not recomputed", gathered_hidden)
report("tf.recompute_grad", by_library)

# %% report-read [markdown]
# The weights are gathered, and their gradients summed. With recomputation, `W1` and `b1` are gathered *twice*.
# The gather stands inside the layer, so it is recomputed along with it.
#
# In any later layer this is FSDP's second gather. The backward pass needs the weights there, for the gradient of the layer's input, and gathers them again instead of keeping them.
# (Our layer is the first one. Its input is data, so here the second gather is only the price of recomputing.)
#
# But what are the 12,288 bytes? That is 64 × 48 numbers: the gradient of the hidden units, all 64 rows of it, gathered on every device.
# `tf.recompute_grad` flattens this gradient on the way, and to flatten it, DTensor gathers it.
# In a large model that is the activations of the whole batch, in every layer.
#
# So let's write it by hand. A function with a **custom gradient** returns two things: its result, and a function that does its backward pass.
# That function is given the gradient of the result, and returns the gradients of the inputs. For a square it is one line:
#
# ```python
# @tf.custom_gradient
# def square(x):
#     def backward(gradient):  # of the result
#         return gradient * 2 * x  # of x
#
#     return x**2, backward
# ```
#
# Ours computes the layer again in its backward pass, and lets a tape differentiate it, beginning with the gradient that arrives:


# %% naive
def backward_of_hidden(x, W1, b1, gradient):
    with tf.GradientTape() as tape:
        tape.watch([x, W1, b1])
        hidden = gathered_hidden(x, W1, b1)
    return tape.gradient(hidden, [x, W1, b1], output_gradients=gradient)


@tf.custom_gradient
def naive(x, W1, b1):
    def backward(gradient):
        return backward_of_hidden(x, W1, b1, gradient)

    return gathered_hidden(x, W1, b1), backward


report("by hand", naive)

# %% naive-read [markdown]
# The 12,288 bytes are gone. But five matrix multiplications! *Nothing was recomputed*, and nothing was gathered again.
# When TensorFlow compiles a step, it merges equal computations (**common subexpression elimination**), and here it found the same layer twice.
# The code says "recompute", and no memory is saved.
#
# Our zero helps once more. Make the second computation wait for something that exists only in the backward pass: the gradient.


# %% late
@tf.custom_gradient
def recomputed_hidden(x, W1, b1):
    def backward(gradient):
        zero = 0 * tf.reduce_sum(gradient)  # new
        W1_late, b1_late = W1 + zero, b1 + zero  # new
        return backward_of_hidden(x, W1_late, b1_late, gradient)

    return gathered_hidden(x, W1, b1), backward


report("by hand, with a zero", recomputed_hidden)

# %% late-read [markdown]
# Six matrix multiplications, `W1` gathered twice, and no 12,288. The sum of the gradient costs 4 bytes.
#
# Add the zero to the weights, *before* their gather. If you add it to `x` instead, only the product is recomputed. The second gather then has exactly the same input as the first, so the compiler runs it once and keeps the result.
#
# Has the zero changed the gradient?


# %% late-same
def gradient_of_W1(hidden_layer):
    @tf.function
    def step(model, x, y):
        return gradients_with(hidden_layer, model, x, y)

    gradients = step(fsdp, x, y)
    return dtensor.unpack(gradients["W1"])[0].numpy()


kept = gradient_of_W1(gathered_hidden)
again = gradient_of_W1(recomputed_hidden)
largest = np.max(np.abs(again - kept))
print("largest difference of gradients", about(largest, 0, 1e-7))

# %% late-same-read [markdown]
# It hasn't. In a deep model, give every layer both zeros: one in the forward pass, so that its gather waits, one in the backward pass, so that it gathers again.
# As soon as a layer has handed its output on, a device can then drop the layer's gathered weights and its activations, all but its input.

# %% note-zero [markdown]
# Can the zero do harm?
#
# - **float16.** There a sum can overflow to infinity where no gradient does, and then the zero is NaN. Sum in float32.
# - **Around the loss.** `tf.recompute_grad` makes such a zero, too, and that is why it flattens the gradient. Wrapped around the loss it recomputes nothing,
#   because the gradient of the loss is the constant 1, and the compiler knows that.

# %% note-cpu [markdown]
# What has the CPU hidden here?
#
# - **Time.** Our eight devices share the cores and the memory of one machine. Whether the gathers hide behind the arithmetic, only real devices can tell.
# - **Memory.** We counted what variables hold, and matrix multiplications. The peak of a step depends on when TensorFlow frees a tensor.

# %% note-hides [markdown]
# A mistake that ZeRO hides
#
# Our step computes all new values first, and writes them afterwards.
# An Adam that writes its slots and then reads them back trains wrongly in DTensor, silently ({lesson:from_scratch}).
# Here is how far its twenty losses stray from those of one device:
#
# | | largest difference of a loss | last loss (right: 0.6440) |
# | --- | --- | --- |
# | data parallelism | 1.4e-2 | 0.6519 |
# | ZeRO-1 | 9.1e-4 | 0.6441 |
#
# Under ZeRO-1 the same mistake changes no loss by even 0.001, and no curve would show it.
# A right step stays within 1e-6. So when you compare with one device, don't accept 0.001.

# %% plain-heading [markdown]
# ## The plain program
#
# [`zero_and_fsdp.py`](../plain/zero_and_fsdp.py) puts it all together, with TensorFlow and NumPy alone:
# gradients accumulated over four micro-batches, clipping by the global norm, bfloat16, and `--shard none`, `optimizer` or `variables`.
# It compares every loss and every norm with those of one device.
# With `variables`, it shards weights and slots, but not the gradients: each device keeps the sum of its own gradients whole.

# %% takeaways [markdown]
# ## Takeaways
#
# - Ask of every number in memory whether this device needs it now. Data parallelism never asks, and keeps 16 bytes for each parameter on every device.
# - ZeRO-1 shards what only the update needs. FSDP shards the weights, too, and gathers them to compute. Both train as one device does, up to rounding.
# - Code that gathers layer by layer may gather all layers at once, and code that says "recompute" may recompute nothing. List what really runs.
#
# {Lesson:save_and_serve} takes the trained weights off the mesh altogether.

# %% score
score("zero_and_fsdp")
