# %% [markdown]
# # DTensor and Keras
#
# To split a Keras model over eight devices, you write down a few layouts, and Keras does the rest. Or so it seems.
#
# In this lesson we give layouts to three models, and each goes wrong in its own way. The first is never split, although its numbers are right.
# The second is updated one step late, although its losses look healthy.
# The third starts at a loss of 0.77, and one step later the loss is above 100, because we forgot one argument of the optimizer.
#
# Keras mentions none of the three mistakes. So you have to ask:
# *how do you know that the layouts you asked for are used, and that the numbers are right?*
#
# **After this lesson you can**
#
# - lay out a Keras model and train it as on one device;
# - recognize three mistakes that raise no error, and cure them;
# - decide which version of Keras to use for a model that has to be split.
#
# **Time:** 30 minutes.
# **You need to know:** tensor parallelism ({lesson:splitting_the_model}), fused all-reduces ({lesson:faster}),
# and stale reads ({lesson:from_scratch}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## A Keras model on a mesh
#
# Two packages go by the name of Keras. **Keras 3** is what you get as `tf.keras` since TensorFlow 2.16,
# and **tf_keras** is Keras 2, which lives on under this name for programs that need it.
# We use tf_keras, because on TensorFlow it is the one that takes DTensor's layouts. You'll see at the end what Keras 3 does with them.
#
# The network is the usual one, 1,200 → 48 → 2, and so are the reviews, the mesh of 4 × 2
# and the initial values. You know this cell, so it is folded:

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

mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
rows_of_x = dtensor.Layout(["batch", WHOLE], mesh)
rows_of_y = dtensor.Layout(["batch"], mesh)

# %% mlp-text [markdown]
# As a Keras model, our network is two dense layers. In Keras, the weight matrix of such a layer is called its *kernel*.
# We pass the Keras package in as an argument, because later we'll build the same model with Keras 3.
# Note that the function doesn't mention devices at all:

# %% mlp
import tf_keras


def mlp(keras):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu", name="hidden")
    logits = keras.layers.Dense(2, name="logits")
    model = keras.Sequential([keras.Input((1200,)), hidden, logits])
    model.set_weights(list(values.values()))
    return model


# %% layout-map-text [markdown]
# The layouts come from outside. A **LayoutMap**, or map for short, is a dictionary from patterns to layouts,
# and each pattern is meant to match the names of some variables.
# In a `Sequential` model, the map's name for a variable is the layer's name, a dot, and the variable's name within the layer: `hidden.kernel`.
# The model is split as in {lesson:splitting_the_model}: the first kernel by columns, the second by rows.

# %% layout-map
layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
layout_map["hidden.kernel"] = dtensor.Layout([WHOLE, "model"], mesh)
layout_map["hidden.bias"] = dtensor.Layout(["model"], mesh)
layout_map["logits.kernel"] = dtensor.Layout(["model", WHOLE], mesh)


def split_mlp():
    with layout_map.scope():
        return mlp(tf_keras)


# %% kernel
from course_lib import show

model = split_mlp()
show(model.layers[0].kernel)

# %% kernel-read [markdown]
# The kernel of `hidden` is split by columns into two blocks of 24 hidden units, A on the devices with even numbers and B on those with odd ones. The model didn't have to change.
# `logits.bias` isn't in the map, so every device holds all of it.

# %% note-arguments [markdown]
# Layouts as arguments, and batch normalization
#
# Many layers of tf_keras also take their layouts directly: `Dense(48, kernel_layout=…, bias_layout=…)`.
# Then give a layer both layouts or neither: with one of the two, applying the gradients ends in an error.
# `Embedding`, layer normalization and convolutions take such arguments, too, but no depthwise or separable convolution does.
#
# Batch normalization takes four: `gamma_layout`, `beta_layout`, `moving_mean_layout` and `moving_variance_layout`.
# All four variables have one number for each channel, so they are split like the channels. In a map, one pattern does it:
# `layout_map["normal.*"] = dtensor.Layout(["model"], mesh)` for a layer named `normal`.
#
# For images, say `fused=False`. By default the layer then uses one fused operation, for which DTensor has no rule, and you get an error.
# On inputs with two dimensions, such as ours, the default works.
#
# Without `set_random_seed`, a layer with layouts raises an error that asks for it.

# %% two-layers-text [markdown]
# ## A model that wasn't split
#
# Here is the same network once more, with the same map. Only this time it is written as a class:


# %% two-layers
class TwoLayers(tf_keras.Model):
    def __init__(self):
        super().__init__()
        layers = tf_keras.layers
        self.first = layers.Dense(48, activation="relu", name="hidden")
        self.second = layers.Dense(2, name="logits")

    def call(self, x):
        return self.second(self.first(x))


with layout_map.scope():
    by_class = TwoLayers()
_ = by_class(shard(train_x[:64], rows_of_x))  # this makes its variables

# %% held-text [markdown]
# How much of each model does device 0 hold?


# %% held
def bytes_on_device_0(model):
    total = 0
    for weight in model.weights:
        parts = dtensor.unpack(weight.value())
        total += parts[0].numpy().nbytes
    return total


print("sequential", bytes_on_device_0(model))
print("class     ", bytes_on_device_0(by_class))

# %% held-read [markdown]
# Device 0 holds half of the `Sequential` model, plus all 8 bytes of `logits.bias`, which isn't split.
# The class isn't split at all: 230,984 bytes are the whole model. A model that is copied to every device computes the right numbers,
# so no loss and no accuracy will ever tell you. You find out on the day the model ought to fit and doesn't.
#
# The reason is a name. Both times the layer is called `hidden`, but a map doesn't always use the layer's name:
#
# | the model | a map looks for |
# | --- | --- |
# | `Sequential`, or functional | the layer's name: `hidden.kernel` |
# | a class of your own | the path of attributes: `first.kernel` |
#
# No pattern of our map matches `first.kernel`, and a variable without a match is copied to every device.
# A misspelt pattern has the same effect in every model.
#
# So the only way to know whether your layouts are used is to look.
# Print `weight.layout` for each weight, or better, assert how much a device holds.

# %% note-names [markdown]
# How does a map find its variables?
#
# It looks for a pattern that equals the variable's name. If there is none, it reads each pattern as a regular expression.
# A pattern fits if it matches the beginning of the name. If several fit, the map takes the one that was added first.
# A dot matches any character. The map never looks at `weight.name`, which is a different name, such as `hidden/kernel:0`.
#
# We called the class for the first time outside `scope()`. That makes no difference, because a model remembers the map under which it was made.
#
# In a class, batch normalization fails under a map, with an error that speaks of `ndim`. Give the layers their layouts as arguments there.
# Dropout and LSTM ask for `tf_keras.backend.experimental.enable_tf_random_generator`.

# %% exercise-map-text [markdown]
# **Exercise 1.** Here is a class with three layers, whose variables take 486,536 bytes:
#
# ```python
# class ThreeLayers(tf_keras.Model):
#     def __init__(self):
#         super().__init__()
#         layers = tf_keras.layers
#         self.first = layers.Dense(96, activation="relu", name="hidden")
#         self.second = layers.Dense(64, activation="relu", name="narrow")
#         self.third = layers.Dense(2, name="logits")
#
#     def call(self, x):
#         return self.third(self.second(self.first(x)))
# ```
#
# Write `small_enough(mesh)`. It returns a `LayoutMap` for this class, on a mesh of `batch` 2 × `model` 4, and keeps to two limits:
#
# - No device may hold more than 125,000 bytes of the variables. That is enough for a quarter of each large kernel, plus full copies of everything else.
# - In a forward and backward pass with 64 reviews, split over `batch`, the collectives may carry at most 132,000 bytes.
#   That is enough for the gradients, the loss and *one* more all-reduce, which adds up the second layer's output (32 × 64 numbers, 8,192 bytes). There is no room for another.
#
# The check makes the model under your map, counts what devices hold, and runs it.


# %% exercise-layout-map
def small_enough(mesh):
    # solution begin
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    layouts["first.kernel"] = dtensor.Layout([WHOLE, "model"], mesh)
    layouts["second.kernel"] = dtensor.Layout(["model", WHOLE], mesh)
    return layouts
    # solution end


# %%
check("keras_layouts-layout-map", small_enough)

# %% step-text [markdown]
# ## Updates that come one step late
#
# The layouts are used. But are the numbers right? Let's train, with a step written as you would write it for one device.
# One `tf.function` computes the gradients and lets the optimizer apply them. Each model and optimizer gets its own function: an optimizer creates its slots in its first update, and a `tf.function` may create variables only in its first call:

# %% step
from course_lib import about, collectives, to_numpy


def loss_and_gradients(model, x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    return loss, tape.gradient(loss, model.trainable_variables)


# %% one-function
def one_function(model, optimizer):
    @tf.function
    def step(x, y):
        loss, gradients = loss_and_gradients(model, x, y)
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)
        return loss

    return step


# %% collectives-given [markdown]
# The optimizer is Adam, with two slots per variable.
# In tf_keras you give an optimizer the mesh, `Adam(3e-3, mesh=mesh)`. Then each slot of Adam gets its variable's layout.
# Does an update need any communication?

# %% predict-collectives [markdown]
# A network of two dense layers lies on a mesh of `batch` 4 × `model` 2. The reviews are split over `batch`, the hidden units over `model`.
# With plain gradient descent, a step that returns the loss takes 6 all-reduces, before TensorFlow fuses any:
# one for the logits, one for the loss, four for the gradients.
# Now Adam replaces gradient descent. It keeps two slots for each of the four variables, in the layouts of their variables.
# How many all-reduces does a step take?
#
# - [x] `6`
#   A gradient arrives in the layout of its variable, and the slots have this layout, too.
#   Adam works element by element, so each device has all that it needs.
# - [ ] `10`
#   One more for each variable, to update it? The device that holds an element of the variable also holds its gradient and its slots.
# - [ ] `14`
#   One more for each slot? A slot is computed from the gradient, which has already been added up.

# %% reveal-collectives
x = shard(train_x[:64], rows_of_x)
y = shard(train_y[:64], rows_of_y)

model = split_mlp()
optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
optimizer.build(model.trainable_variables)  # makes the slots
step = one_function(model, optimizer)
found = collectives(step, x, y)
reveal("keras_layouts-collectives", len(found))

# %% merged-text [markdown]
# The optimizer itself exchanges nothing, so what could go wrong? These are the six as TensorFlow wrote them down. Before it runs them, it fuses what it can:

# %% merged
for each in collectives(step, x, y, combine=True):
    print(each)

# %% adam-text [markdown]
# The first all-reduce is for the logits and the second for the loss. The third carries all four gradients, 115,496 bytes and the padding of {lesson:faster}.
#
# In {lesson:from_scratch} you saw what fusing can do: the write has to wait for the fused sum, and the read that should follow it doesn't wait.
# Does Adam read what it has just written? In tf_keras, its update is three lines:
#
# 1. `m.assign_add((gradient - m) * (1 - self.beta_1))`
# 2. `v.assign_add((tf.square(gradient) - v) * (1 - self.beta_2))`
# 3. `variable.assign_sub((m * alpha) / (tf.sqrt(v) + epsilon_hat))`
#
# It does: lines 1 and 2 write the slots, and line 3 reads them back. In {lesson:from_scratch} that failed.
# If it fails here as well, a variable is updated in the second of the two orders below, not in the first. The *sum* is the all-reduce of its gradient, and *all sums* is the fused one:
#
# ```text
# as written:  sum  write m  write v  read m  read v
#
# fused:       read m  read v  all sums  write m  write v
#              └─ too early ─┘
# ```
#
# Let's see whether it does.

# %% predict-late [markdown]
# Adam moves a weight by `rate * m / (sqrt(v) + 1e-7)`, where `rate` comes from the learning rate of 0.003. Both slots begin at zero.
# In a faulty step, both slots of a weight, `m` and `v`, are read before they are written.
# How far does the first step move this weight?
#
# - [ ] `0.003` by 0.003, as it should
#   In a right first step it does: `m` and `sqrt(v)` are both proportional to the gradient. But here neither has been written.
# - [x] `0.0` not at all (0.0)
#   Both are read as zero, and 0 / (0 + 1e-7) is 0. The gradient does reach the slots, but only after that.
# - [ ] `far` much further than 0.003, because of the division by 1e-7
#   It would if only `v` were read too early. But `m` is zero as well.

# %% reveal-late
late = split_mlp()  # a new model, which starts from `values`
optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
late_step = one_function(late, optimizer)
late_step(x, y)
moved = np.abs(to_numpy(late.layers[0].kernel) - values["W1"]).max()
reveal("keras_layouts-late", float(moved))

# %% moved-text [markdown]
# That was the kernel of `hidden`. Here are all four variables after this step:

# %% moved
for weight, initial in zip(late.weights, values.values()):
    distance = np.abs(to_numpy(weight) - initial).max()
    print(f"{weight.name:16}", about(distance, 0, 0.0031))

# %% moved-read [markdown]
# Three of the four haven't moved. As in {lesson:from_scratch}, only one is updated correctly, the one whose all-reduce was last.
# Here that is the kernel of `logits`.
#
# In {lesson:from_scratch} we could write each variable once and never read it back. But this update belongs to tf_keras, and we can't rewrite it.
# Nor is `fit` a way out, because it computes and applies the gradients in one function, too.
#
# What we can choose is *where* the update is applied. Let's give it a function of its own:


# %% two-functions
def two_functions(model, optimizer):
    @tf.function
    def compute(x, y):
        return loss_and_gradients(model, x, y)

    @tf.function
    def update(gradients):
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)

    def step(x, y):
        loss, gradients = compute(x, y)
        update(gradients)
        return loss

    return step


# %% losses-text [markdown]
# When `update` begins, every gradient has been added up. It has no all-reduce, so there is nothing in it to fuse.
# Does that help? We take the same ten steps three times: on one device, on eight with one function, and on eight with two.
# Each step has a new batch:


# %% losses
def losses_of(step, features, labels, on_mesh, size=64):
    losses = []
    for start in range(0, len(labels), size):
        x = features[start : start + size]
        y = labels[start : start + size]
        if on_mesh:
            x, y = shard(x, rows_of_x), shard(y, rows_of_y)
        losses.append(float(step(x, y)))
    return np.array(losses)


# %% one-device
few_x, few_y = train_x[:640], train_y[:640]
Adam = tf_keras.optimizers.Adam

step = one_function(mlp(tf_keras), Adam(3e-3))
on_one = losses_of(step, few_x, few_y, on_mesh=False)

# %% late-losses
late_step = one_function(split_mlp(), Adam(3e-3, mesh=mesh))
late_losses = losses_of(late_step, few_x, few_y, on_mesh=True)

right_step = two_functions(split_mlp(), Adam(3e-3, mesh=mesh))
right_losses = losses_of(right_step, few_x, few_y, on_mesh=True)

# %% losses-table
print("step     one device   one function  two functions")
for at in range(10):
    row = f"{at + 1:4}"
    for losses in [on_one, late_losses, right_losses]:
        row += about(losses[at], 0.6, 0.75, digits=3).rjust(15)
    print(row)

# %% late-read [markdown]
# The columns `one device` and `two functions` agree in every row. So two functions are right, and a Keras model, split over eight devices, trains as on one.
#
# The column `one function` doesn't look wrong. Its losses go up and down with the batches, as they should, and it falls behind slowly: by 0.001 in step 2, and by 0.01 in step 10.
# But three of the four variables are updated with the slots of the step before. That is no longer Adam, only something like it.
# If you had no other run to compare with, would you notice?

# %% note-merging [markdown]
# What else helps, and which optimizers are affected?
#
# You can turn fusing off, with the environment variable of {lesson:faster}.
# Set it before the step is first called, and leave it set, because a batch of a different size makes TensorFlow trace the step again.
# Then the step in one function is right with Adam and SGD, but not with Nadam.
#
# You can also leave `update` uncompiled. That's just as correct, only slower, since TensorFlow then launches each optimizer operation separately.
# You need it for Adagrad and Nadam, and for an optimizer that clips each gradient by its own norm (`clipnorm`).
#
# Of eleven optimizers of tf_keras that we tried, only Lion was right in one function.
# Even SGD has stale reads: the one of tf_keras keeps a slot, even without momentum.
# Two functions cured SGD, Adam, AdamW, Adamax, RMSprop and Adadelta. With Adafactor, the losses on the mesh became NaN.
#
# With `use_ema=True`, the averages of the weights stay at their initial values on a mesh, and no error tells you.

# %% small-text [markdown]
# ## One missing argument
#
# Now for the loss above 100. It belongs to a smaller network, which has 20 features between 0 and 1:

# %% small
small_x = np.random.default_rng(5).random((48, 20), "float32")
small_y = (small_x.sum(axis=1) > 10).astype("int64")


def small_mlp():
    tf_keras.utils.set_random_seed(1)
    layers = tf_keras.layers
    hidden = layers.Dense(48, activation="relu", name="hidden")
    logits = layers.Dense(2, name="logits")
    return tf_keras.Sequential([tf_keras.Input((20,)), hidden, logits])


def split_small_mlp():
    with layout_map.scope():
        return small_mlp()


# %% no-mesh-text [markdown]
# We take three steps with `two_functions`, first on one device, then on eight.
# On eight, we forget to give the optimizer its mesh. `Adam(0.01)` should have been `Adam(0.01, mesh=mesh)`:

# %% no-mesh
step = two_functions(small_mlp(), Adam(0.01))
right = losses_of(step, small_x, small_y, on_mesh=False, size=16)

step = two_functions(split_small_mlp(), Adam(0.01))
wrong = losses_of(step, small_x, small_y, on_mesh=True, size=16)

for at in range(3):
    print(f"step {at + 1}", end="   ")
    print("one device", about(right[at], 0.5, 0.9), end="   ")
    print("eight", about(wrong[at], 0.5, 1000))

# %% no-mesh-read [markdown]
# After a single step, the loss has jumped above 100. How high it jumps differs from run to run, and so does the loss of step 3.
#
# What has happened? Let's look at the first step alone, in a new run. How far has it moved each variable?

# %% first-step
small = split_small_mlp()
initial = [to_numpy(weight) for weight in small.weights]
optimizer = Adam(0.01)
step = two_functions(small, optimizer)
losses_of(step, small_x[:16], small_y[:16], on_mesh=True, size=16)

for weight, before in zip(small.weights, initial):
    distance = np.abs(to_numpy(weight) - before).max()
    print(f"{weight.name:16}", about(distance, 0, 800))

# %% first-step-read [markdown]
# In its first step, Adam moves a variable by the learning rate, here 0.01. The bias of `logits`, which isn't split,
# has moved by something between 0.005 and 0.01. (It differs from run to run, and we'll see why in a moment.) So this one is about right.
#
# The other three variables are split, but their slots aren't: without a mesh, every device holds all of each slot.
# So before a slot can be updated, the whole gradient has to be gathered, and on a CPU a gather runs as an all-reduce.
# Now even `update` has all-reduces, and TensorFlow fuses those too.
#
# The two kernels haven't moved, because both of their slots were read too early.
# And the bias of `hidden` has moved by hundreds, more than ten thousand times as far as it should.
# In the last prediction, "much further than 0.003, because of the division by 1e-7" was a wrong answer. Here it is what happened.
# This bias was updated with a new `m`, and with a `v` that was still zero.

# %% note-gathered [markdown]
# Where do the hundreds come from?
#
# In the first step, `m` is 0.1 times the gradient $g$. With a `v` of zero, the bias moves by $0.01 \cdot c_t \cdot 0.1\,g\,/\,10^{-7}$, which is $10{,}000\, c_t\, g$.
# The largest gradient of this bias is 0.11, and Adam's bias correction $c_t$ ({lesson:from_scratch}) is 0.316 in step 1.
# With this $c_t$, the bias moves by about 350.
#
# Three split variables have six slots, and the gradient is gathered once for each. TensorFlow fuses these six all-reduces at the place of the last one.
# So one of the six slots is up to date when it is read, and the other five aren't.
# You can tell which one from the result. A variable moves this far only if its `m` is new and its `v` still zero, and only the bias of `hidden` did.

# %% counted-text [markdown]
# The missing mesh does something else, too. How many steps has the optimizer counted?

# %% counted
counted = int(optimizer.iterations)
print("steps counted", about(counted, 1, 8, digits=1))

# %% counted-read [markdown]
# We took one step, and several are counted. (You may see any number up to 8.) With its mesh, each device has a counter of its own. Without it, all eight share one, and each adds 1:
#
# ```text
# with mesh=mesh                   without
#
# device 0 ── its own counter      device 0 ──┐
# device 1 ── its own counter      device 1 ──┼── one counter
#    ⋮                                ⋮       │
# device 7 ── its own counter      device 7 ──┘
# ```
#
# The devices don't wait for one another, so some additions get lost, and the count differs from run to run.
# Adam computes its bias correction from this count, the factor $c_t$ of {lesson:from_scratch}.
# A device that reads 8 gets a $c_t$ half as large as at 1, so everything moves half as far: the bias of `logits` by 0.005, and that of `hidden` by about 175.
# That is why your losses differ from ours.
#
# So one missing argument has two effects: the slots are whole, and the counter is shared.
# Let's put it in, and take the three steps again:

# %% cured
optimizer = Adam(0.01, mesh=mesh)
step = two_functions(split_small_mlp(), optimizer)
cured = losses_of(step, small_x, small_y, on_mesh=True, size=16)

for at in range(3):
    print(f"step {at + 1}", end="   ")
    print("one device", about(right[at], 0.5, 0.9), end="   ")
    print("eight", about(cured[at], 0.5, 0.9))
print("steps counted", int(optimizer.iterations.numpy()))

# %% cured-read [markdown]
# These are the losses of one device, and three steps are counted as three.
# And if you have no run on one device to compare with? Then look at the layouts, as you did with the model. An optimizer has a list of its variables, too:

# %% slots
for slot in optimizer.variables():
    print(f"{slot.name:24}", slot.layout.sharding_specs)

# %% slots-read [markdown]
# Every slot has the layout of its variable. (`iteration` is the counter, a single number, so there is nothing to split.)
# If you forget the mesh, these variables have no `layout`, and the loop ends in an `AttributeError`.
#
# So give every optimizer its `mesh=mesh`. Metrics have variables as well, and take the same argument.
# Without it, a `SparseCategoricalAccuracy` that is updated in a compiled function counts too many: in our runs, between 640 and 2,048 of 256 reviews.

# %% note-no-mesh [markdown]
# What if the step is one function, fusing is off, or the optimizer isn't Adam?
#
# In one function, the same two things go wrong, and the losses jump in the same way.
#
# Turning fusing off is not enough. The jump is gone then, but the counter is still wrong, and so are the losses.
#
# Check other optimizers with the same loop. Slots that don't start at zero, such as Adagrad's, aren't split even if you pass the mesh.
#
# The optimizers of Keras 3 take no mesh at all. If you give one of them DVariables to update, in the function that computes the gradients,
# it also reads its slots too early, and all devices share its counter.

# %% note-saving [markdown]
# How do you save a model that is split?
#
# `tf.train.Checkpoint(model=model)` writes it, and reads it back into a model with the same layouts
# or into an ordinary one, made without a map ({lesson:save_and_serve}). `tf.saved_model.save` works, too.
#
# `get_weights` raises an error, and so does what calls it, such as saving in the format of Keras. For that, take the ordinary model.

# %% exercise-step-text [markdown]
# **Exercise 2.** Now write a step that you could use, with gradient clipping by the global norm ({lesson:large_trainings}).
# `tf.clip_by_global_norm(gradients, limit)` returns the clipped gradients and the norm.
# Clip in the function that computes the gradients: the global norm needs all-reduces, and `update` is safe only as long as it has none.
#
# Write `make_step(model, optimizer)`. It returns a function `step(x, y)`, which takes one step with a global norm of at most 1 and returns the mean loss.
# The check's model lies on eight devices, and its optimizer already has the mesh. The model has a layer of batch normalization, so call it with `training=True`.
# The check takes three steps and compares losses and variables with one device.


# %% exercise-step
def make_step(model, optimizer):
    # solution begin
    @tf.function
    def compute(x, y):
        loss, gradients = loss_and_gradients(model, x, y)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        return loss, gradients

    @tf.function
    def update(gradients):
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)

    def step(x, y):
        loss, gradients = compute(x, y)
        update(gradients)
        return loss

    return step
    # solution end


# %%
check("keras_layouts-step", make_step)

# %% keras-3-text [markdown]
# ## Which Keras takes layouts?
#
# Perhaps your model is written in Keras 3, and has to stay there. Keras 3 has a `LayoutMap` of its own.
# Let's ask it for the same columns, split over `model`. (In its names, a slash stands where tf_keras has a dot.)

# %% keras-3 tags=["versions"]
import keras

from course_lib import measured

mesh_3 = keras.distribution.DeviceMesh(
    (4, 2),
    ["batch", "model"],
    keras.distribution.list_devices("cpu"),
)
layout_map_3 = keras.distribution.LayoutMap(mesh_3)
layout_map_3[".*hidden/kernel"] = (None, "model")
try:
    distribution = keras.distribution.ModelParallel(
        layout_map=layout_map_3, batch_dim_name="batch"
    )
    with distribution.scope():
        kernel = mlp(keras).layers[0].kernel
    print(kernel.path, kernel.shape)
    print("a DTensor?", dtensor.is_dtensor(kernel.value))
except AttributeError as error:  # raised by Keras 3.13
    print(error)

# %% keras-3-read [markdown]
# The pattern matches the path of the kernel, and yet there is no DTensor, and no complaint.
# That is a fourth mistake that raises no error. On TensorFlow, `ModelParallel` takes your layouts and does nothing with them.
#
# Keras 3 also runs on JAX. Is it better there? This notebook has no JAX, so we measured in advance:
# tf_keras, Keras 3 on TensorFlow and Keras 3 on JAX each got layouts for a small network on a 4 × 2 mesh, and trained it.

# %% table
support = measured.load("keras_layouts-support").support
rows = {}
for row in [
    "patterns",
    "unmatched_pattern",
    "training_step",
    "training_step_apart",
    "fit_arrays",
    "fit_dataset",
]:
    rows[row] = support[row]
measured.table(rows)

# %% table-read [markdown]
# The left column is this lesson in six lines. tf_keras splits the model, and a step in one function is wrong, but one that applies the gradients outside of it is right.
# `fit` ends in an error if you give it arrays, because its batches then have no layouts.
# With a data set whose batches do have layouts (`DTensorDataset`), it runs, but gives wrong values, because it computes and applies the gradients in one function.
#
# In the middle nothing is ever split, and nothing is ever reported. On the right everything is split, and equals one device.
# The second row holds for all three: none of them tells you that a pattern matches no variable. (A dash means that we didn't try that.)
#
# This is our advice:
#
# - **You are free to choose.** Take Keras 3 on JAX.
# - **You need TensorFlow.** Take tf_keras, with a training step in two functions.

# %% note-stateless [markdown]
# What if you need TensorFlow and a model in Keras 3?
#
# Its layers can compute on a mesh, if you write the update yourself. `model.stateless_call(weights, state, x)` runs a model with *values that you supply*,
# and leaves its own variables alone. If you supply DVariables, the model computes with them, in their layouts.
# So take the `Model` and the `train_step` of {lesson:any_mesh}, and replace a single function. `model_3` is your model in Keras 3:
#
# ```python
# def logits_of(weights, x):
#     own_values = list(weights.values())
#     logits, _ = model_3.stateless_call(own_values, [], x)
#     return logits
# ```
#
# The values come in the order of `model_3.trainable_variables`. When training is over, `model_3.set_weights` takes them back, and you have an ordinary Keras model again.
# You give up `fit` and the optimizers, whose `stateless_apply` Keras refuses on TensorFlow.
#
# We tried dense layers only, and their first ten losses were those of one device.
# A layer with state of its own, such as batch normalization, needs its moving mean and variance in the second argument (here an empty list),
# and `stateless_call` returns their new values as its second result. Assign them last, with the others.
# Keras doesn't promise that any of this works, so compare the first steps of your model with one device.

# %% note-table [markdown]
# How far does the table go, and who else gives this advice?
#
# The table is about two dense layers on eight virtual CPUs. Nothing ran on a GPU or TPU.
# The right column was measured with JAX 0.10, in an environment of its own; this notebook has no JAX.
# There we trained with `fit` and with a step of our own, but didn't try larger models, other layers or several machines.
#
# DTensor is experimental, and so is what tf_keras does with it.
# Keras 3.13 on TensorFlow ends in an `AttributeError` where 3.15 does nothing.
# The page "Measured results" has all 16 rows, with the messages of the errors.
#
# François Chollet, who wrote Keras, recommends JAX as well. Asked in 2024 whether to build on DTensor or on JAX,
# [he answered](https://github.com/keras-team/keras/issues/19866): "If you need a SDMP API, I 100% recommend JAX. It's more mature and better optimized than DTensor."
# (He means SPMD: one program that runs on all devices.)
#
# If only the batch has to be split, TensorFlow has something simpler, `tf.distribute` ({lesson:strategies}).

# %% plain-heading [markdown]
# ## The plain program
#
# [`keras_layouts.py`](../plain/keras_layouts.py) trains the tf_keras model on eight devices and on one, with TensorFlow, tf_keras and NumPy alone.
# It ends with an error if a loss differs by 1e-5 or more, if device 0 holds more of the model than it should, if a slot isn't split, or if a metric miscounts.

# %% takeaways [markdown]
# ## Takeaways
#
# - A pattern that matches no variable raises no error. Look at the layouts, not at the losses.
# - With tf_keras, give the optimizer its mesh, and apply the gradients outside the function that computes them. Then compare with one device.
# - On TensorFlow, Keras 3 takes layouts and does nothing with them. If you are free to choose, split its models on JAX.
#
# {Lesson:strategies} turns to `tf.distribute`.

# %% score
score("keras_layouts")
