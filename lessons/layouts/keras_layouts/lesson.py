# %% [markdown]
# # DTensor and Keras
#
# You write down a few layouts, and Keras splits your model over eight devices. That is how it should work. Three models show you how it goes wrong.
#
# The first model computes the right numbers, but it is never split.
# The second has losses that look healthy, but most of its updates come one step late.
# The third starts at a loss of 0.77. One step later its loss is above 100, because we forgot one argument of the optimizer.
#
# Keras reports none of these mistakes. At the end you'll meet a fourth, in Keras 3, and version 3.15 doesn't report that one either.
# So one question runs through the lesson: *how do you know that the layouts you asked for are used, and that the numbers are right?*
#
# **After this lesson you can**
#
# - lay out a Keras model and train it as on one device;
# - recognize three mistakes that raise no error, and cure them;
# - decide which version of Keras to use for a model that has to be split.
#
# **Time:** 40 minutes.
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
# There are two packages called Keras. **Keras 3** is what `tf.keras` has meant since TensorFlow 2.16.
# **tf_keras** is Keras 2, which lives on under this name for programs that need it.
# We use tf_keras, because on TensorFlow it is the one that takes DTensor's layouts.
#
# The network has 1,200 features, 48 hidden units and two classes, as before.
# The reviews, the mesh of 4 × 2 and the initial values haven't changed either. You know the next cell, so it's folded:

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
# In Keras, this network is two dense layers. Keras calls the weight matrix of a dense layer its *kernel*.
# The function below builds the model, and doesn't mention devices at all.
# It takes the Keras package as an argument, because later we'll build the same model with Keras 3:

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
# The layouts come from outside the model. A **LayoutMap**, or map for short, is a dictionary from patterns to layouts.
# A variable gets the layout whose pattern matches its name.
# In a `Sequential` model, this name is the layer's name, a dot, and the variable's name within the layer: `hidden.kernel`.
#
# We split the model as in {lesson:splitting_the_model}: the first kernel by columns, the second by rows.
# Then we build it inside the map's `scope()`:

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
# The kernel of `hidden` is split by columns into two blocks of 24 hidden units.
# The devices with even numbers hold block A, the devices with odd numbers block B.
# The map has no pattern for `logits.bias`, so every device holds all of it. So far, Keras does what it should.

# %% note-arguments [markdown]
# What about other layers, and how do you save a split model?
#
# Many layers of tf_keras also take their layouts as arguments: `Dense(48, kernel_layout=…, bias_layout=…)`.
# Give both or neither: with one of the two, applying the gradients ends in an error.
# Depthwise and separable convolutions take none. Without `set_random_seed`, a layer with layouts raises an error that asks for it.
#
# Batch normalization takes four: `gamma_layout`, `beta_layout`, `moving_mean_layout` and `moving_variance_layout`.
# Split them like the channels. In a map, `layout_map["normal.*"] = dtensor.Layout(["model"], mesh)` does that for a layer named `normal`.
# In your own class, the map leads to an error about `ndim`, so pass the layouts as arguments.
# For images, add `fused=False`, because DTensor has no rule for the fused operation that is the default.
#
# `tf.train.Checkpoint(model=model)` saves a split model, and reads it back with the same layouts,
# or into an ordinary model, made without a map ({lesson:save_and_serve}).
# Saving in Keras's own format raises an error; use the ordinary model.

# %% two-layers-text [markdown]
# ## A model that wasn't split
#
# Here is the same network as a class of our own, under the same map:


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
# The class raised no error. To see whether it is split, we add up the bytes that device 0 holds of each model:


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
# Device 0 holds 115,496 bytes of the `Sequential` model: half of each split variable, and all 8 bytes of `logits.bias`.
# Of the class it holds 230,984 bytes: the whole model.
#
# A model that is copied to every device still computes the right numbers, so no loss and no accuracy will tell you. You find out on the day when the model should fit into memory and doesn't.
#
# The cause is a name. We called the layer `hidden` both times, but in a class the map doesn't use the layer's name:
#
# | the layer | the map looks for |
# | --- | --- |
# | `Dense(48, name="hidden")` in a `Sequential` or functional model | the layer's name: `hidden.kernel` |
# | `self.first = Dense(48, name="hidden")` in a class | the path of attributes: `first.kernel` |
#
# Our map has no pattern that matches `first.kernel`, and a variable without a match is copied to every device.
# A misspelled pattern has the same effect in every model.
#
# So look at the variables of each model that you make. Print `weight.layout`,
# or better, let an assertion fail when a device holds more bytes than it should.

# %% note-names [markdown]
# How does a map find its variables?
#
# The map first looks for a pattern that equals the variable's name. If there is none, it reads the patterns as regular expressions, in which a dot matches any character, and takes the first one added that matches the beginning of the name.
# It never looks at `weight.name`, which is a different name, such as `hidden/kernel:0`.
#
# A model remembers the map under which it was made. So it doesn't matter that we first called the class outside `scope()`.

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
# Write `small_enough(mesh)`, which returns a `LayoutMap` for this class. The mesh is `batch` 2 × `model` 4, and there are two limits:
#
# - No device may hold more than 125,000 bytes of the variables. That is enough for a quarter of each large kernel and full copies of everything else.
# - In a forward and backward pass with 64 reviews, split over `batch`, the collectives may carry at most 132,000 bytes.
#   That is enough for the gradients, the loss and *one* more all-reduce, which adds up the second layer's output: 32 × 64 numbers, or 8,192 bytes.
#
# The check makes the model under your map, counts the bytes that each device holds, and runs the model.


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
# ## Is the training step right?
#
# The `Sequential` model uses our layouts. Now we train it, to see whether its numbers are right.
# We write the step as we would for one device: one `tf.function` computes the gradients and lets the optimizer apply them.
#
# There is one complication. An optimizer creates its slots when it updates for the first time, and a `tf.function` may create variables only when it is called for the first time.
# So each pair of a model and an optimizer gets its own `tf.function`:

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
# The optimizer is Adam, with two slots for each variable. In tf_keras you give an optimizer the mesh: `Adam(3e-3, mesh=mesh)`.
# Each slot of Adam then gets the layout of its variable. Before we train: what does such a step exchange?

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
# These are the six as TensorFlow wrote them down. Before TensorFlow runs them, it fuses what it can.
# `combine=True` lists what is left:

# %% merged
for each in collectives(step, x, y, combine=True):
    print(each)

# %% adam-text [markdown]
# The first all-reduce is for the logits, and the second for the loss.
# The third carries all four gradients: 115,496 bytes, and the padding of {lesson:faster}.
#
# In {lesson:from_scratch} you saw what fusing can do to an optimizer. The write to a slot has to wait for the fused all-reduce.
# The read that should follow the write doesn't wait, so it returns the old value.
# That harms any optimizer that reads back a slot it has just written. The Adam of tf_keras is one. Here is its update:
#
# 1. `m.assign_add((gradient - m) * (1 - self.beta_1))`
# 2. `v.assign_add((tf.square(gradient) - v) * (1 - self.beta_2))`
# 3. `variable.assign_sub((m * alpha) / (tf.sqrt(v) + epsilon_hat))`
#
# Lines 1 and 2 write the slots, and line 3 reads them back.
# If that happens here, the operations for one variable run in the second order below, not in the first.
# Here *sum* is the all-reduce of this variable's gradient, and *all sums* is the fused all-reduce, which carries all four gradients:
#
# ```text
# as written:  sum  write m  write v  read m  read v
#
# fused:       read m  read v  all sums  write m  write v
#              └─ too early ─┘
# ```
#
# The first step will show which of the two it is, because both slots begin at zero.

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
# So the reads do come too early for the kernel of `hidden`. Here are all four variables after this step:

# %% moved
for weight, initial in zip(late.weights, values.values()):
    distance = np.abs(to_numpy(weight) - initial).max()
    print(f"{weight.name:16}", about(distance, 0, 0.0031))

# %% moved-read [markdown]
# Three of the four haven't moved. Only the kernel of `logits` has, by 0.003, as it should.
# As in {lesson:from_scratch}, the one variable that is updated correctly is the one whose all-reduce came last.
#
# In {lesson:from_scratch} we changed the optimizer: it wrote each variable once, and never read it back.
# This optimizer belongs to tf_keras, so we can't change it.
# `fit` doesn't help, because it computes and applies the gradients in one function, too.
#
# But we can choose where the update runs. We give it a separate function:


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
# The sums are now in one function, and the slots in the other:
#
# ```text
# compute:  all sums
#
# update:   write m  write v  read m  read v
# ```
#
# `update` has no all-reduce, so TensorFlow finds nothing in it to fuse.
# To see whether that helps, we take the same ten steps three times: on one device, on eight devices with one function, and on eight with two.
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


# %% late-losses
Adam = tf_keras.optimizers.Adam
few_x, few_y = train_x[:640], train_y[:640]

step = one_function(mlp(tf_keras), Adam(3e-3))
on_one = losses_of(step, few_x, few_y, on_mesh=False)

step = one_function(split_mlp(), Adam(3e-3, mesh=mesh))
in_one = losses_of(step, few_x, few_y, on_mesh=True)

step = two_functions(split_mlp(), Adam(3e-3, mesh=mesh))
in_two = losses_of(step, few_x, few_y, on_mesh=True)

# %% losses-table
print("step     one device   one function  two functions")
for at in range(10):
    row = f"{at + 1:4}"
    for losses in [on_one, in_one, in_two]:
        row += about(losses[at], 0.6, 0.75, digits=3).rjust(15)
    print(row)

# %% late-read [markdown]
# The columns `one device` and `two functions` agree in every row.
# So with two functions, a Keras model that is split over eight devices trains as on one.
#
# The column `one function` looks healthy, too. Its losses go up and down with the batches, as they should,
# and they stay near the right ones: 0.688 instead of 0.687 in step 2, and 0.694 instead of 0.683 in step 10.
# But three of the four variables are updated with the slots of the step before, and that is no longer Adam.
# Without a run on one device beside it, you wouldn't notice.

# %% note-merging [markdown]
# What else helps, and which optimizers are affected?
#
# You can turn fusing off, with the environment variable of {lesson:faster}.
# Set it before you first call the step, and leave it set, because a batch of another size makes TensorFlow trace the step again.
# Then one function is right with Adam and SGD, but not with Nadam.
#
# You can also leave `update` uncompiled. That's just as correct, only slower, because TensorFlow then launches each operation of the optimizer separately.
# Adagrad and Nadam need this, and so does an optimizer with `clipnorm`, which clips each gradient by its own norm.
#
# We tried eleven optimizers of tf_keras. In one function, only Lion was right. Even SGD was wrong: plain gradient descent needs no slots, but the SGD of tf_keras keeps one for each variable even without momentum.
# In two functions, SGD, Adam, AdamW, Adamax, RMSprop, Adadelta and Ftrl were right, too. With Adafactor, the losses became NaN.

# %% small-text [markdown]
# ## One missing argument
#
# The third model is the one whose loss goes from 0.77 to more than 100. It is smaller: it has 20 features, each between 0 and 1.
# Its layers have the same names as before, so the same map splits it:

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
# On eight, the optimizer should be `Adam(0.01, mesh=mesh)`, but we forget the mesh:

# %% no-mesh
step = two_functions(small_mlp(), Adam(0.01))
right = losses_of(step, small_x, small_y, on_mesh=False, size=16)

step = two_functions(split_small_mlp(), Adam(0.01))  # no mesh
wrong = losses_of(step, small_x, small_y, on_mesh=True, size=16)

for at in range(3):
    print(f"step {at + 1}", end="   ")
    print("one device", about(right[at], 0.5, 0.9), end="   ")
    print("eight", about(wrong[at], 0.5, 1000))

# %% no-mesh-read [markdown]
# On one device, the loss falls from 0.77 to 0.75. On eight, it jumps above 100.
# How high it jumps differs from run to run, and so does the loss of step 3.
#
# The first step has done the damage. Let's take it again with a new model, and see how far it moves each variable:

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
# In its first step, Adam should move a variable by the learning rate, here 0.01.
# The bias of `logits`, the only variable that isn't split, comes close: in each run it moves by something between 0.005 and 0.01.
#
# The other three variables are split, but without a mesh, their slots aren't: every device holds all of each slot.
# To update a slot, a device now needs the whole gradient, so the gradient is gathered, once for each of the six slots.
# On a CPU, a gather runs as an all-reduce. So now even `update` contains six all-reduces. TensorFlow fuses them into one, which runs where the last of the six used to be. By then, five of the six slots have already been read. Only the last slot is up to date when it is read. The distances tell you which one:
#
# | variable | its `m` | its `v` | it moves |
# | --- | --- | --- | --- |
# | kernel of `hidden` | read too early | read too early | not at all |
# | bias of `hidden` | up to date | read too early | by hundreds |
# | kernel of `logits` | read too early | read too early | not at all |
#
# For the two kernels, `m` was still zero, so they didn't move.
# For the bias of `hidden`, `m` was new and `v` was still zero. So Adam divided by 1e-7 alone,
# and the bias moved more than ten thousand times as far as it should.
# In the last prediction, the division by 1e-7 was a wrong answer. Here it is what happened.

# %% counted-text [markdown]
# The missing mesh has a second effect. It shows in the number of steps that the optimizer has counted:

# %% counted
counted = int(optimizer.iterations)
print("steps counted", about(counted, 1, 8, digits=1))

# %% counted-read [markdown]
# We took one step, and the optimizer counted several. You may see any number up to 8. With a mesh, an optimizer has a counter on each device. Without the mesh, all eight devices share one counter, and each of them adds 1:
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
# From this count Adam computes its bias correction, the factor $c_t$ of {lesson:from_scratch}.
# A device that reads 8 gets a $c_t$ half as large as a device that reads 1, and moves everything half as far:
# the bias of `logits` by 0.005, and the bias of `hidden` by about 175 instead of 350.
# That is why your losses and distances differ from ours.
#
# So one missing argument has two effects: the slots aren't split, and the counter is shared.
# Let's put the argument in, and take the three steps again:

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
# These are the losses of one device, and the optimizer has counted three steps as three.
#
# You won't always have a run on one device to compare with. Then look at the layouts, as you did for the model.
# An optimizer has a list of its variables, too:

# %% slots
for slot in optimizer.variables():
    print(f"{slot.name:24}", slot.layout.sharding_specs)

# %% slots-read [markdown]
# Every slot has the layout of its variable. `iteration` is the counter, a single number, so there is nothing to split.
# If you forget the mesh, these variables have no `layout`, and the loop ends in an `AttributeError`.
#
# So give every optimizer its `mesh=mesh`. Metrics have variables as well, and take the same argument.
# Without it, a `SparseCategoricalAccuracy` that is updated in a compiled function counts too many. In our runs, it was shown 256 reviews, and counted anything from 640 to 2,048.

# %% note-no-mesh [markdown]
# Where do the hundreds come from, and what changes with another step or optimizer?
#
# In the first step, `m` is 0.1 times the gradient $g$. With a `v` of zero, the bias moves by $0.01 \cdot c_t \cdot 0.1\,g\,/\,10^{-7}$, which is $10{,}000\, c_t\, g$.
# The largest gradient of this bias is 0.11, and $c_t$ is 0.316 in step 1, so the bias moves by about 350.
#
# In one function, the losses jump in the same way.
# With fusing off, the jump is gone, but the counter is still wrong, and so are the losses.
#
# Look at the slots of other optimizers, too. Slots that don't start at zero, such as Adagrad's, aren't split even if you pass the mesh.
# With `use_ema=True`, the averages of the weights keep their initial values on a mesh, and no error tells you.

# %% exercise-step-text [markdown]
# **Exercise 2.** Now write a step that you could use, with gradient clipping by the global norm ({lesson:large_trainings}).
# `tf.clip_by_global_norm(gradients, limit)` returns the clipped gradients and the norm.
# Clip in the function that computes the gradients: the global norm needs all-reduces, and `update` is safe only as long as it has none.
#
# Write `make_step(model, optimizer)`, which returns a function `step(x, y)`.
# `step` takes one step, with gradients whose global norm is at most 1, and returns the mean loss.
# The check's model lies on eight devices, and its optimizer already has the mesh.
# The model has a layer of batch normalization, so call it with `training=True`.
# The check takes three steps, and compares losses and variables with one device.


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
# Perhaps your model is written in Keras 3, which has its own `LayoutMap`.
# Its patterns have a slash where those of tf_keras have a dot. Let's ask it to split the same columns over `model`:

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
# The pattern matches the path of the kernel, but the kernel is no DTensor, and there was no error.
# This is the fourth mistake. On TensorFlow, `ModelParallel` takes your layouts and does nothing with them. Keras 3.13 raises an `AttributeError` here; Keras 3.15 says nothing.
#
# Keras 3 also runs on JAX. This notebook has no JAX, so we measured in advance, on eight virtual CPUs.
# Two dense layers got layouts on a mesh of 4 × 2, and were trained: with tf_keras, with Keras 3 on TensorFlow, and with Keras 3 on JAX.

# %% table
support = measured.load("keras_layouts-support").support
names = [
    "patterns",
    "unmatched_pattern",
    "training_step",
    "training_step_apart",
    "fit_arrays",
    "fit_dataset",
]
measured.table({name: support[name] for name in names})

# %% table-read [markdown]
# The left column is this lesson in six lines. tf_keras splits the model. A step in one function is wrong; one that applies the gradients outside is right.
# `fit` ends in an error if you give it arrays, because its batches then have no layouts.
# With a `DTensorDataset` they have layouts, but `fit` gives wrong values, because it computes and applies the gradients in one function.
#
# In the middle column, nothing is split, and no error says so. In the right column, all training runs are split, and equal one device.
# In the second row all three agree: none tells you that a pattern matches no variable. A dash means that we didn't try.
# The page "Measured results" has all 16 rows, with the messages of the errors.
#
# This is our advice:
#
# - **You are free to choose.** Take Keras 3 on JAX. We tried only this small model there, so compare yours with one device.
# - **You need TensorFlow.** Take tf_keras, with a training step in two functions. DTensor is experimental, and so is what tf_keras does with it.
# - **Only the batch has to be split.** Take `tf.distribute` ({lesson:strategies}), which is simpler.
#
# Nothing in the table ran on a GPU or TPU. François Chollet, who wrote Keras, recommends JAX as well. Asked in 2024 whether to build on DTensor or on JAX,
# he [answered](https://github.com/keras-team/keras/issues/19866) that JAX is "more mature and better optimized than DTensor."

# %% note-stateless [markdown]
# What if you need TensorFlow and a model in Keras 3?
#
# Its layers can compute on a mesh if you write the update yourself, because `model.stateless_call` runs a model with values that you supply.
# If you supply DVariables, the model computes with them, in their layouts.
# So take the `Model` and the `train_step` of {lesson:any_mesh}, and replace one function. `model_3` is your model in Keras 3:
#
# ```python
# def logits_of(weights, x):
#     own_values = list(weights.values())
#     logits, _ = model_3.stateless_call(own_values, [], x)
#     return logits
# ```
#
# The values come in the order of `model_3.trainable_variables`. When training is over, `model_3.set_weights` takes them back.
# You give up `fit` and the optimizers, whose `stateless_apply` Keras refuses on TensorFlow.
#
# We tried dense layers only, and their first ten losses were those of one device.
# Keras doesn't promise that this works, so compare your first steps with one device.

# %% plain-heading [markdown]
# ## The plain program
#
# [`keras_layouts.py`](../plain/keras_layouts.py) trains the tf_keras model on eight devices and on one. It needs only TensorFlow, tf_keras and NumPy.
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
