# %% [markdown]
# # DTensor and Keras
#
# A small Keras model is split over eight devices, and trained with Adam.
# Its first loss is 0.77, as on one device. Its second loss is 180, and in the next run 195.
# There is no error and no warning. One argument was missing.
#
# A loss of 180 you can at least see. In this lesson you also meet a matrix that should have been cut and never was,
# and updates that come one step too late. Both look healthy.
#
# When Keras trains your split model without complaint, one question is left:
# *how do you know that the layouts you asked for are used, and that the numbers are right?*
#
# **After this lesson you can**
#
# - choose a Keras for a model that has to be split;
# - lay out a Keras model and train it as on one device;
# - recognise three mistakes that raise no error, and cure them.
#
# **Time:** 30 minutes.
# **You need to know:** tensor parallelism ({lesson:splitting_the_model}), and stale reads ({lesson:from_scratch}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% table-text [markdown]
# ## Which Keras takes layouts?
#
# There are two packages. **Keras 3** is what you get as `tf.keras` since TensorFlow 2.16.
# It runs on TensorFlow, on JAX or on PyTorch. **tf_keras** is Keras 2, which lives on under this name for programs that need it.
#
# We gave each of them layouts for the weights of a small network, on a mesh of 4 × 2. Here is what it made of them:

# %% table
from course_lib import measured

support = measured.load("keras_layouts-support").support
rows = {}
for row in ["patterns", "unmatched_pattern"]:
    rows[row] = support[row]
measured.table(rows)

# %% table-read [markdown]
# tf_keras and Keras 3 on JAX do what you asked: the model is split, and its numbers are those of one device.
# The middle column is the trap. On TensorFlow, `keras.distribution` takes your layouts, splits nothing, and doesn't say so.
#
# Look at the second row, too. A pattern is meant to match the names of some variables. If it matches none, no Keras tells you.
#
# This is our advice:
#
# - **You are free to choose.** Take Keras 3 on JAX, with `keras.distribution`.
#   François Chollet, who wrote Keras, says the same. Asked whether to build on DTensor or on JAX,
#   [he answered](https://github.com/keras-team/keras/issues/19866) in 2024: "If you need a SDMP API, I 100% recommend JAX. It's more mature and better optimized than DTensor." (He means SPMD: one program that runs on all devices.)
# - **You need TensorFlow, and only the batch has to be split.** Take `tf.distribute` ({lesson:strategies}).
# - **You need TensorFlow, and the model has to be split.** Take tf_keras, with the training step of this lesson.
#   Or keep Keras 3 for its layers, and do the rest with DTensor: the last section shows how.

# %% note-table [markdown]
# How far does the table go?
#
# It is about two dense layers on eight virtual CPUs. Nothing ran on a GPU or TPU.
# The right column was measured with JAX 0.10, in an environment of its own; this notebook has no JAX.
# There we trained with `fit` and with a step of our own, but didn't try larger models, other layers or several machines.
#
# DTensor is experimental, and so is what tf_keras does with it.
# Keras 3.13 on TensorFlow ends in an `AttributeError` where 3.15 does nothing.
# The page "Measured results" has all 16 rows, with the messages of the errors.

# %% data-text [markdown]
# ## A Keras model on a mesh
#
# Let's do it with tf_keras. The network is the usual one, 1,200 → 48 → 2, and so are the reviews, the mesh of 4 × 2
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
# As a Keras model, it is two dense layers. In Keras, the weight of such a layer is called its *kernel*.
# The function takes the Keras that it should use, because the last section calls it with Keras 3. Nothing in it speaks of devices:

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
# The layouts come from outside. A **LayoutMap** is a dictionary from names of variables to layouts.
# A key consists of the layer's name, a dot, and the attribute of the layer.
# The cut is that of {lesson:splitting_the_model}: columns of the first weight, rows of the second.

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
# The kernel of `hidden` is cut between its columns, 24 hidden units for each device, and the model didn't have to change.
# `logits.bias` isn't in the map, so every device holds all of it.

# %% note-arguments [markdown]
# Layouts as arguments, and batch normalisation
#
# Many layers of tf_keras also take their layouts directly: `Dense(48, kernel_layout=…, bias_layout=…)`.
# `Embedding`, layer normalisation and convolutions do, but no depthwise or separable convolution.
#
# Batch normalisation takes four: `gamma_layout`, `beta_layout`, `moving_mean_layout` and `moving_variance_layout`.
# All four variables have one number for each channel, so they are cut like the channels. In a map, one pattern does it:
# `layout_map["normal.*"] = dtensor.Layout(["model"], mesh)` for a layer named `normal`.
#
# For images, say `fused=False`. By default the layer then uses one fused operation, for which DTensor has no rule, and you get an error.
# On inputs with two dimensions, such as ours, the default works.
#
# Without `set_random_seed`, a layer with layouts raises an error that asks for it. Give both layouts of a layer, or none:
# with one of two, the forward pass runs, and the training doesn't.

# %% two-layers-text [markdown]
# ## A matrix that wasn't split
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
        parts = dtensor.unpack(weight.read_value())
        total += parts[0].numpy().nbytes
    return total


print("sequential", bytes_on_device_0(model))
print("class     ", bytes_on_device_0(by_class))

# %% held-read [markdown]
# Of the first model, device 0 holds its half. The class isn't split at all: 230,984 bytes are the whole model. Everything that it computes is right,
# so no loss and no accuracy will ever tell you. You find out on the day when the model should fit, and doesn't.
#
# The reason is a name. Both times the layer is called `hidden`, but a `LayoutMap` doesn't always use the layer's name:
#
# | the model | a map looks for |
# | --- | --- |
# | `Sequential`, or functional | the layer's name: `hidden.kernel` |
# | a class of your own | the path of attributes: `first.kernel` |
#
# Nothing in the map matches `first.kernel`, and a variable without a match is copied to every device.
# A misspelt pattern has the same effect in every model.
#
# That answers half of our question. The only way to know that a layout is used is to look:
# print `weight.layout` for each weight, or let the program fail if a device holds too much.

# %% note-names [markdown]
# How does a map find its variables?
#
# It looks for a key that equals the name. If there is none, each key counts as a regular expression,
# and the first one that matches the beginning of the name wins. A dot matches any character.
# `weight.name` is another name, such as `hidden/kernel:0`. A map never looks at it.
#
# In a class, batch normalisation fails under a map, with an error that speaks of `ndim`. Give the layers their layouts as arguments there.
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
#   That is enough for the gradients of what a device holds, for the loss, and for *one* all-reduce of 32 × 64 hidden units, which takes 8,192 bytes.
#
# The check makes the model under your map, counts what devices hold, and runs it.


# %% exercise-layout-map
def small_enough(mesh):
    # solution begin
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    layouts["first.kernel"] = dtensor.Layout([WHOLE, "model"], mesh)
    layouts["first.bias"] = dtensor.Layout(["model"], mesh)
    layouts["second.kernel"] = dtensor.Layout(["model", WHOLE], mesh)
    return layouts
    # solution end


# %%
check("keras_layouts-layout-map", small_enough)

# %% step-text [markdown]
# ## Updates that come one step late
#
# Now the other half of the question: are the numbers right? Let's train, with a step written as you would write it for one device.
# It computes the gradients, lets the optimizer apply them, and all of it is one `tf.function`:

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
# The optimizer is Adam. It keeps two averages per variable, its *slots*.
# In tf_keras you give an optimizer the mesh, `Adam(3e-3, mesh=mesh)`. Then each slot gets its variable's layout.
# Does an update need any communication?

# %% predict-collectives [markdown]
# A network of two dense layers lies on a mesh of `batch` 4 × `model` 2. The reviews are split over `batch`, the hidden units over `model`.
# With plain gradient descent, a step that returns the loss takes 6 all-reduces, before TensorFlow fuses any:
# one for the logits, one for the loss, four for the gradients.
# Now Adam takes the place of gradient descent. It keeps two slots for each of the four variables, in the layouts of their variables.
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

late = split_mlp()
optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
optimizer.build(late.trainable_variables)  # makes the slots
late_step = one_function(late, optimizer)
found = collectives(late_step, x, y)
reveal("keras_layouts-collectives", len(found))

# %% merged-text [markdown]
# The optimizer itself exchanges nothing. What can go wrong, then? Let TensorFlow fuse what it can:

# %% merged
for each in collectives(late_step, x, y, combine=True):
    print(each)

# %% adam-text [markdown]
# The first is for the logits and the second for the loss. The third carries all four gradients.
# Fusing delays an all-reduce, and every write that waits for it. A read isn't delayed, so it sees the old value ({lesson:from_scratch}).
# Now look at the update of Adam in tf_keras. It is three lines:
#
# 1. `m.assign_add((gradient - m) * (1 - self.beta_1))`
# 2. `v.assign_add((tf.square(gradient) - v) * (1 - self.beta_2))`
# 3. `variable.assign_sub((m * alpha) / (tf.sqrt(v) + epsilon_hat))`
#
# The first two write the slots, and the third reads them, as in program C of that lesson. So we must expect stale reads.
# This is how fusing may change the order for one weight, where *sum* is the all-reduce of its gradient:
#
# ```text
# as written:  sum  write m  write v  read m  read v  …  last sum
#
# as it runs:  read m  read v  …  all sums  write m  write v
#              └─ too early ─┘
# ```

# %% predict-late [markdown]
# Adam moves a weight by `rate * m / (sqrt(v) + 1e-7)`, where `rate` comes from the learning rate of 0.003. Both slots begin at zero.
# In a faulty step, both slots of a weight, `m` and `v`, are read before they are written.
# How far does the first step move this weight?
#
# - [ ] `right` by 0.003, as it should
#   In a right first step it does: `m` and `sqrt(v)` are both proportional to the gradient. But here neither has been written.
# - [x] `still` not at all
#   Both are read as zero, and 0 / (0 + 1e-7) is 0. The gradient does reach the slots, but only after that.
# - [ ] `far` much further than 0.003, because of the division by 1e-7
#   It would if only `v` were read too early. But `m` is zero as well.

# %% reveal-late
late = split_mlp()
optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
late_step = one_function(late, optimizer)
late_step(x, y)
moved = np.abs(to_numpy(late.layers[0].kernel) - values["W1"]).max()
if moved == 0:
    answer = "still"
elif moved < 0.0031:
    answer = "right"
else:
    answer = "far"
reveal("keras_layouts-late", answer)

# %% moved-text [markdown]
# That was the kernel of `hidden`. Here are all four weights after this step:

# %% moved
for weight, initial in zip(late.weights, values.values()):
    distance = np.abs(to_numpy(weight) - initial).max()
    print(f"{weight.name:16}", about(distance, 0, 0.0031))

# %% moved-read [markdown]
# Three of four haven't moved. As in {lesson:from_scratch}, only one weight is updated correctly: the one whose all-reduce was last.
# Here that is the kernel of `logits`.
#
# The cure of that lesson was to compute first and write last, but the update of tf_keras isn't ours to change.
# Would `fit` do better? Here is how the three Keras train:

# %% fit
rows = {}
for row in [
    "training_step",
    "training_step_apart",
    "fit_arrays",
    "fit_dataset",
]:
    rows[row] = support[row]
measured.table(rows)

# %% fit-read [markdown]
# With tf_keras, `fit` fails on arrays. On a `DTensorDataset` it runs, and its values are wrong, because it compiles step and update into one function.
# Unless you turn fusing off, only the step that applies the gradients outside matches one device.
# A dash means that we didn't try that step with Keras 3.
#
# So we cut our step in two. One function computes the gradients, and another one applies them:


# %% two-functions
def two_functions(model, optimizer):
    compiled = tf.function(loss_and_gradients)

    @tf.function
    def update(gradients):
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)

    def step(x, y):
        loss, gradients = compiled(model, x, y)
        update(gradients)
        return loss

    return step


# %% losses-text [markdown]
# When the second function begins, every gradient has been added up. It has no all-reduce, so nothing can be fused in it.
# Does that help? We take ten steps, each with a new batch, on one device and in both ways on eight:


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
optimizer = tf_keras.optimizers.Adam(3e-3)
step = one_function(mlp(tf_keras), optimizer)
on_one = losses_of(step, few_x, few_y, on_mesh=False)

# %% late-losses
optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
step = one_function(split_mlp(), optimizer)
late_losses = losses_of(step, few_x, few_y, on_mesh=True)

optimizer = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
step = two_functions(split_mlp(), optimizer)
on_eight = losses_of(step, few_x, few_y, on_mesh=True)

print("step   one device   one function   two functions")
for at in range(10):
    right = about(on_one[at], 0.6, 0.75, digits=3)
    wrong = about(late_losses[at], 0.6, 0.75, digits=3)
    again = about(on_eight[at], 0.6, 0.75, digits=3)
    print(f"{at + 1:4}   {right:>10}   {wrong:>12}   {again:>13}")

# %% late-read [markdown]
# The last column is the first, line by line. Two functions are right, and a Keras model, cut over eight devices, trains as on one.
#
# The middle column doesn't look wrong. Its losses go up and down with the batches, as they should, and at the end they are 0.01 too high.
# Its updates use the averages of the step before, so this is no longer Adam, only something like it.
# If you had no other run to compare with, would you notice?

# %% note-merging [markdown]
# What else helps, and which optimizers are affected?
#
# You can turn fusing off: set the environment variable `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE` to `1`
# before the step is first called, and whenever it is traced again, as for another batch size. Then the step in one function is right, with Adam and SGD.
#
# You can also leave the second function uncompiled. That is as right, and slower, since TensorFlow then launches each optimizer operation separately.
# It is what you need if the optimizer clips by itself, say with `clipnorm`: then the second function has all-reduces, too.
# Neither fusing off nor two functions cures Nadam.
#
# Of eleven optimizers of tf_keras that we tried, only Lion was right in one function. SGD has stale reads, too: it has a slot even without momentum.

# %% small-text [markdown]
# ## One missing argument
#
# Now for the loss of 180. It belongs to a smaller network, which has 20 features between 0 and 1:

# %% small
small_x = np.random.default_rng(5).random((48, 20), "float32")
small_y = (small_x.sum(axis=1) > 10).astype("int64")


def small_mlp():
    tf_keras.utils.set_random_seed(1)
    layers = tf_keras.layers
    hidden = layers.Dense(48, activation="relu", name="hidden")
    logits = layers.Dense(2, name="logits")
    return tf_keras.Sequential([tf_keras.Input((20,)), hidden, logits])


# %% no-mesh-text [markdown]
# We take three steps in one function, on one device and on eight. This time the optimizer doesn't get its mesh:

# %% no-mesh
optimizer = tf_keras.optimizers.Adam(0.01)
step = one_function(small_mlp(), optimizer)
right = losses_of(step, small_x, small_y, on_mesh=False, size=16)

with layout_map.scope():
    small = small_mlp()
optimizer = tf_keras.optimizers.Adam(0.01)  # without mesh=mesh
step = one_function(small, optimizer)
wrong = losses_of(step, small_x, small_y, on_mesh=True, size=16)

for at in range(3):
    print(f"step {at + 1}", end="   ")
    print("one device", about(right[at], 0.5, 0.9), end="   ")
    print("eight", about(wrong[at], 0.5, 1000))

# %% no-mesh-read [markdown]
# There it is. Your numbers will differ from ours, and from those of your next run.
# What has happened? Let's look at the first step alone, in a new run. How far has it moved each variable?

# %% first-step
with layout_map.scope():
    small = small_mlp()
initial = [to_numpy(weight) for weight in small.weights]
optimizer = tf_keras.optimizers.Adam(0.01)  # without mesh=mesh
step = one_function(small, optimizer)
losses_of(step, small_x[:16], small_y[:16], on_mesh=True, size=16)

for weight, before in zip(small.weights, initial):
    distance = np.abs(to_numpy(weight) - before).max()
    print(f"{weight.name:16}", about(distance, 0, 800))

# %% first-step-read [markdown]
# In its first step, Adam moves a weight by the learning rate, here 0.01. The bias of `logits` has moved by about as much.
# It stood still before, and is spared now: you can't tell from the program which one will be.
#
# The other three variables are split, but without a mesh their slots are whole on every device. So their gradients have to be gathered for the slots,
# and TensorFlow fuses these all-reduces as well. The two kernels haven't moved: both of their slots were read too early.
# And the bias of `hidden` has moved more than ten thousand times as far as it should.
#
# Remember the wrong answer about dividing by 1e-7? Here it is right. When this bias was updated, its `m` was fresh, and its `v` was zero.

# %% note-gathered [markdown]
# Why by 350? And why was one slot up to date, and the other not?
#
# In the first step, `m` is 0.1 times the gradient $g$. With a `v` of zero, the bias moves by $0.01 \cdot 0.316 \cdot 0.1\,g\,/\,10^{-7}$,
# which is 3,160 times its gradient. The 0.316 is Adam's correction in step 1: √0.001 / 0.1.
# The largest gradient of this bias is 0.11, and that gives 350.
#
# Each split variable needs its gradient gathered twice: once for `m`, once for `v`. That makes six more all-reduces,
# and TensorFlow fuses them at the place of the last one. One slot is spared, then, and five are read too early.
# The last all-reduce carries the 48 numbers of `hidden.bias`, so one slot of this bias is spared, and it is its `m`.
# No rule says that it must be this one. In our runs it always was.

# %% counted-text [markdown]
# And there is a second mistake. How many steps has the optimizer counted?

# %% counted
counted = int(optimizer.iterations)
print("steps counted", about(counted, 1, 8, digits=1))

# %% counted-read [markdown]
# It took one. Without a mesh, the counter is an ordinary variable that all eight devices share, and each of them adds 1:
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
# They don't wait for one another, so some additions get lost, and the count differs from run to run.
# Adam takes its correction from this counter, so your losses differ from ours, and perhaps your bias has moved by less than 350.
#
# The cure is one argument: `mesh=mesh`, for every optimizer. Metrics have variables as well, and take the same argument.
# Without it, after 256 reviews, one metric reported anything from 896 to 2,048.

# %% note-no-mesh [markdown]
# Do two functions help here, too?
#
# Not these two. The second one now has to gather, so it has all-reduces that TensorFlow fuses, and the losses jump as before.
#
# Turning fusing off is not enough. The jump is gone then, but the counter is still wrong, and so are the losses.
#
# The optimizers of Keras 3 know no mesh at all. In one function they go wrong in the same two ways.

# %% note-saving [markdown]
# How do you save a model that is split?
#
# `tf.train.Checkpoint(model=model)` writes it, and reads it back into a model with the same layouts.
# `get_weights` raises an error, and so does what calls it, such as saving in the format of Keras.
#
# To get an ordinary model, bring the weights together yourself: make the model without a map,
# and give its `set_weights` the list of `to_numpy(weight)` for each weight of the split one.

# %% exercise-step-text [markdown]
# **Exercise 2.** Now write a step that you could use, with gradient clipping by the global norm ({lesson:large_trainings}).
# `tf.clip_by_global_norm(gradients, limit)` returns the clipped gradients and the norm.
#
# Write `make_step(model, optimizer)`. It returns a function `step(x, y)`, which takes one step with a global norm of at most 1 and returns the mean loss.
# The check's model lies on eight devices, and has a batch normalisation, so call it with `training=True`.
# It takes three steps and compares losses and variables with one device.


# %% exercise-step
def make_step(model, optimizer):
    # solution begin
    @tf.function
    def clipped(x, y):
        loss, gradients = loss_and_gradients(model, x, y)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        return loss, gradients

    @tf.function
    def update(gradients):
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)

    def step(x, y):
        loss, gradients = clipped(x, y)
        update(gradients)
        return loss

    return step
    # solution end


# %%
check("keras_layouts-step", make_step)

# %% keras-3-text [markdown]
# ## And Keras 3?
#
# Perhaps your model is written in Keras 3, and has to stay there. Let's first see what the table meant.
# We ask Keras 3 to cut the columns of a kernel over `model`:

# %% keras-3 tags=["versions"]
import keras

mesh_3 = keras.distribution.DeviceMesh(
    (4, 2),
    ["batch", "model"],
    keras.distribution.list_devices("cpu"),
)
layout_map_3 = keras.distribution.LayoutMap(mesh_3)
layout_map_3[".*hidden/kernel"] = (None, "model")
distribution = keras.distribution.ModelParallel(
    layout_map=layout_map_3, batch_dim_name="batch"
)
with distribution.scope():
    model_3 = mlp(keras)
kernel = model_3.layers[0].kernel
print(kernel.path, kernel.shape)
print("a DTensor?", dtensor.is_dtensor(kernel.value))

# %% keras-3-read [markdown]
# The pattern matches the path of the kernel, and yet there is no DTensor, no layout, and no complaint.
# On TensorFlow, `ModelParallel` is only a name.
#
# But Keras 3 offers something that tf_keras does not.
# `model.stateless_call(weights, state, x)` runs the model with *values that you bring along*, and leaves its own variables alone.
# If you bring DVariables, the model computes with them, on the mesh and in their layouts.
# For the update there is `optimizer.stateless_apply`, but Keras refuses it on TensorFlow.
#
# The update has to be yours, then. You already have one: the Adam of {lesson:from_scratch}, safe inside a single function.
# The next two cells repeat it, with the training step and the variables of {lesson:any_mesh}. They are folded.


# %% adam-by-hand tags=["known"]
def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


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


# %% variables tags=["known"]
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


# %% logits-of-text [markdown]
# The step calls `logits_of`, which used to multiply the matrices itself. Now it asks the Keras model.
# `stateless_call` takes the values in the order of `model_3.trainable_variables`, which is that of our dictionary.
# The empty list is for variables that aren't trained, such as moving moments.


# %% logits-of
def logits_of(weights, x):
    own_values = list(weights.values())
    logits, _ = model_3.stateless_call(own_values, [], x)
    return logits


# %% keras-3-run
layouts = {
    "W1": dtensor.Layout([WHOLE, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}
model_on_mesh = Model(layouts)
rate = np.float32(3e-3)
losses = []
for step_number in range(1, 11):
    rows = slice(64 * (step_number - 1), 64 * step_number)
    x = shard(train_x[rows], rows_of_x)
    y = shard(train_y[rows], rows_of_y)
    loss, _ = train_step(
        model_on_mesh, x, y, np.float32(step_number), rate
    )
    losses.append(float(loss))

difference = np.abs(np.array(losses) - on_one).max()
print("largest difference", about(difference, 0, 1e-5))

# %% keras-3-run-read [markdown]
# The layers of Keras 3, cut over eight devices, give the same ten losses as tf_keras on one device.
#
# At the end you put the trained values back, and have an ordinary Keras model, which can be called, saved and exported:

# %% back
trained = []
for weight in model_on_mesh.weights.values():
    trained.append(to_numpy(weight))
model_3.set_weights(trained)

predicted = model_3.predict(train_x[:640], verbose=0).argmax(axis=1)
accuracy = np.mean(predicted == train_y[:640])
print("accuracy on these reviews", about(accuracy, 0.6, 1))

# %% back-read [markdown]
# You needn't leave Keras 3 for DTensor, then. What you give up is `fit` and the optimizers.

# %% note-stateless [markdown]
# How far does this road go?
#
# We tried dense layers only. A layer with state of its own, such as batch normalisation, needs its moving moments in the second argument,
# and `stateless_call` returns their new values as its second result. Assign them last, with the others.
# A layer whose operations DTensor doesn't know will be refused, as in a model written by hand.
#
# Keras doesn't promise that this works. Compare the first steps of your model with one device.

# %% plain-heading [markdown]
# ## The plain program
#
# [`keras_layouts.py`](../plain/keras_layouts.py) trains the tf_keras model on eight devices and on one, with TensorFlow, tf_keras and NumPy alone.
# It ends with an error if a loss differs by 1e-5, if device 0 holds more of the model than it should, if a slot isn't split, or if a metric miscounts.

# %% takeaways [markdown]
# ## Takeaways
#
# - Keras 3 splits a model on JAX, and does nothing on TensorFlow. tf_keras takes DTensor's layouts.
# - A pattern that matches nothing raises no error. Look at the layouts, not at the losses.
# - With tf_keras, give the optimizer its mesh, and apply the gradients outside the function that computes them. Then compare with one device.
#
# {Lesson:strategies} turns to `tf.distribute`.

# %% score
score("keras_layouts")
