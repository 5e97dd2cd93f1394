# %% [markdown]
# # DTensor and Keras
#
# So far you wrote layers, optimizers and training steps by hand.
# Keras has them ready.
# Which Keras takes layouts, and does a model that is split train as it does on one device?
# What goes wrong does not always raise an error.
#
# After this lesson you can
#
# - lay out a Keras model, by arguments of its layers or by patterns of names;
# - write a training step for it that equals one device;
# - tell three problems apart: an error, a variable left unsplit in silence, a value that is wrong in silence;
# - choose a Keras for a model that has to be split.
#
# **Time:** 40 minutes.
# **You need to know:** {lesson:splitting_the_model}
# (layouts of consecutive layers) and {lesson:from_scratch} (slots of an optimizer).
#
# > **Where this was run.** TensorFlow 2.21, tf_keras 2.21 and Keras 3.15 on eight virtual CPUs,
# > not on GPUs or TPUs; one column of the table at the end with JAX 0.10.
# > DTensor is experimental, and so is what tf_keras does with it: names may change.
#
# ## Layers that take layouts
#
# `tf.keras` has been Keras 3 since TensorFlow 2.16.
# Keras 2 lives on as a package of its own, `tf_keras`, and one program can import both.
# In `tf_keras` some layers take DTensor's layouts as arguments: `Dense`, `Embedding`,
# convolutions (but no depthwise or separable one), batch and layer normalisation.
# The weight of a dense layer is called its *kernel* in Keras.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% dense
tf = course_lib.start_tensorflow()
import numpy as np
import tf_keras
from tensorflow.experimental import dtensor

from course_lib import collectives, data, measured, show, to_numpy

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
COLUMNS = dtensor.Layout([WHOLE, "model"], mesh)
UNITS = dtensor.Layout(["model"], mesh)
split = {"kernel_layout": COLUMNS, "bias_layout": UNITS}

tf_keras.utils.set_random_seed(1)
layer = tf_keras.layers.Dense(48, activation="relu", **split)
layer.build((None, 1200))
show(layer.kernel)

# %% distribute-text [markdown]
# The kernel has the shape and the layout of that of {lesson:splitting_the_model}'s hidden layer:
# half of its units on each device.
# tf_keras draws the whole kernel on every device and then cuts it,
# so the initial values follow from the seed alone, whatever the layout.
# Without `set_random_seed` the layer raises an error that asks for it.
#
# Inputs have to be split as well.
# `distribute` cuts an array by a layout, and packs the parts into one DTensor.
# `gap` is the largest difference of an element.


# %% distribute
def distribute(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


def gap(ours, theirs):
    return np.abs(np.subtract(ours, theirs)).max()


# %% normalisation-text [markdown]
# `BatchNormalization` has four variables, all vectors with one element for each channel:
# `gamma` and `beta` are trained, and two hold the moving moments.
# Each takes a layout.
# Below, images are split over `batch`, and their channels over `model`.
# For images the layer picks a *fused* operation, one for all of its arithmetic.

# %% normalisation tags=["error"]
four = ("gamma", "beta", "moving_mean", "moving_variance")
four = {f"{name}_layout": UNITS for name in four}
images = np.random.default_rng(0).random((8, 4, 4, 6), "float32")
image_layout = dtensor.Layout(["batch", WHOLE, WHOLE, "model"], mesh)
on_mesh = distribute(images, image_layout)
Normalisation = tf_keras.layers.BatchNormalization

try:
    tf.function(Normalisation(**four))(on_mesh, training=True)
except tf.errors.OpError as error:
    print(str(error).partition("error: ")[2].partition(" (")[0])
eight = tf.function(Normalisation(fused=False, **four))(on_mesh, training=True)
one = Normalisation(fused=False)(images, training=True)
print(f"{gap(to_numpy(eight), one)=:.5f}")

# %% refused-text [markdown]
# That is the first of the three problems: an *error*.
# DTensor has no rule that gives the results of the fused operation their layouts.
# With `fused=False` the layer uses ordinary operations, and the result is that of one device.
#
# ## A model by patterns of names
#
# A `LayoutMap` gives layouts to a model whose code names none.
# `mlp` is the network of {lesson:splitting_the_model}, and has `gamma`,
# `beta` and the moving moments besides.


# %% mlp
def mlp():
    tf_keras.utils.set_random_seed(1)
    layers = tf_keras.layers
    hidden = layers.Dense(48, activation="relu", name="hidden")
    normal = layers.BatchNormalization(name="normal")
    logits = layers.Dense(2, name="logits")
    inputs = tf_keras.Input((1200,))
    return tf_keras.Sequential([inputs, hidden, normal, logits])


# %% map-text [markdown]
# For a sequential model a map has these rules:
#
# - It looks a variable up by the name of the layer, a dot, and the attribute, such as `hidden.kernel`.
#   It does not use `weight.name`, such as `hidden/kernel:0`.
# - Each pattern is a regular expression, in which a dot fits any character.
#   A variable gets the layout of the first one that fits the beginning of its name;
#   a pattern that is the whole name goes before all others.
# - What no pattern fits, such as `logits.bias`, is whole on every device of the map's mesh.

# %% layout-map
ROWS = dtensor.Layout(["model", WHOLE], mesh)
layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
layout_map["hidden.kernel"] = COLUMNS
layout_map["hidden.bias"] = UNITS
layout_map["normal.*"] = UNITS
layout_map["logits.kernel"] = ROWS


def split_mlp():
    with layout_map.scope():
        return mlp()


for weight in split_mlp().weights:
    print(f"{weight.name:25}", weight.layout.sharding_specs)

# %% same
# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
reviews = data.tf_idf(data.load_imdb(SOURCE)).train
train_x, train_y = reviews.features, reviews.labels


def batch(number, mesh=None):
    rows = slice(64 * number, 64 * number + 64)
    x, y = train_x[rows], train_y[rows]
    if mesh is None:
        return tf.constant(x), tf.constant(y)
    layouts = [dtensor.Layout.batch_sharded(mesh, "batch", rank) for rank in (2, 1)]
    return distribute(x, layouts[0]), distribute(y, layouts[1])


x, y = batch(0, mesh)
eight = to_numpy(tf.function(split_mlp())(x))
one = mlp()(train_x[:64])
print(f"{gap(eight, one)=:.5f}")

# %% classes-text [markdown]
# For 64 reviews of {lesson:one_step}'s data the logits are those of one device:
# the initial values are equal, and the split model computes rightly.
# Unlike with images, the normalisation needs no `fused=False`:
# with inputs of two axes it uses no fused operation.
#
# The variables of a functional model are looked up by the same names.
# Here are two dense layers as a functional model, and as a class that inherits from `Model`.


# %% classes
def functional():
    inputs = tf_keras.Input((1200,))
    hidden = tf_keras.layers.Dense(48, activation="relu", name="hidden")
    logits = tf_keras.layers.Dense(2, name="logits")
    return tf_keras.Model(inputs, logits(hidden(inputs)))


class TwoLayers(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.first = tf_keras.layers.Dense(48, "relu", name="hidden")
        self.second = tf_keras.layers.Dense(2, name="logits")

    def call(self, x):
        return self.second(self.first(x))


# %% predict-pattern [markdown]
# In a `LayoutMap` the pattern `hidden.kernel` splits columns over `model`.
# A class that inherits from `Model` makes its first layer by `self.first = Dense(48, "relu", name="hidden")`.
# How is the kernel of this layer laid out under the map?
#
# - [ ] `split` split over `model`
#   In a sequential or functional model it would be.
#   In a class the names are paths of attributes, so this kernel is called `first.kernel`.
# - [x] `whole` whole on every device
#   In a class the `name` does not count: this kernel is called `first.kernel`.
#   No pattern fits that, and what no pattern fits is whole.
# - [ ] `error` not at all: an error says that the pattern fits no name
#   Such an error would help, but there is none.

# %% reveal-pattern
with layout_map.scope():
    by_class = TwoLayers()
by_class(x)
specs = by_class.first.kernel.layout.sharding_specs
reveal("keras_layouts-pattern", "split" if "model" in specs else "whole")

# %% silent-text [markdown]
# In a class that inherits from `Model` a map looks a variable up by another name:
# the path of attributes that leads to it from the model.
# This kernel is `first.kernel` there, which the pattern does not fit.
# That is the second problem: a variable *left unsplit in silence*.
#
# A misspelt pattern does the same: no error says so, and each device holds the whole variable.
# The logits are right all the same and show nothing, so look at `weight.layout`.
# With some patterns a compiler error follows in training, but it does not name the pattern.
#
# These patterns fit the names in both models.
# `weight.name` has the layer's name in both, in the class after that of the model, `two_layers_1`.

# %% class-patterns
both = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
both["(hidden|first).kernel"] = COLUMNS
both["(hidden|first).bias"] = UNITS
both["(logits|second).kernel"] = ROWS
for make in (functional, TwoLayers):
    with both.scope():
        made = make()
    made(x)
    print(make.__name__)
    for weight in made.weights:
        print(f"  {weight.name:32}", weight.layout.sharding_specs)

# %% bytes-text [markdown]
# In such a class, batch normalisation fails under a map, with an error that speaks of `ndim`.
# There, give the layers their layouts as arguments.
#
# **Exercise 1.** A sequential model has three dense layers, on 1,200 features:
# `first` with 96 units, `second` with 64, `logits` with 2.
# Its variables take 486,536 bytes.
# The mesh has `batch` 2 × `model` 4, and no device may hold more than 125,000 bytes of them.
# Write `small_enough(mesh)`, which returns a `LayoutMap` for this model, on the mesh that it gets.
# The check makes the real model under your map, counts the bytes that its devices hold,
# and calls it.


# %% exercise-bytes
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
# ## A training step
#
# First, the step as you would write it for one device.


# %% one-function
import os

cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def in_one_function(model, optimizer):
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            losses = cross_entropy(y, model(x, training=True))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)
        return loss

    return step


# %% probe-text [markdown]
# An optimizer has variables too: `iteration`, which counts its steps,
# and slots, each to be laid out like its variable.
# Told `mesh=mesh`, the optimizer lays out each slot in this way.
# Without it no error comes, but every device holds every slot whole,
# and in the function above `iteration` counts wrongly, for a reason that metrics show below.
#
# `iteration` is there from the start; `build` makes the slots,
# and without it the first `apply_gradients` does.
# The next cell makes them for a model `probe`, and prints their layouts.
# Its `first_losses` takes five steps with five batches, and returns the losses.

# %% probe
probe = split_mlp()
optimizer = tf_keras.optimizers.SGD(0.1, mesh=mesh)
optimizer.build(probe.trainable_variables)
probe_step = in_one_function(probe, optimizer)
for slot in optimizer.variables:
    print(f"{slot.name:18}", slot.layout.sharding_specs)


def first_losses(make_step, model, mesh=None, rate=0.1):
    optimizer = tf_keras.optimizers.SGD(rate, mesh=mesh)
    step = make_step(model, optimizer)
    return [float(step(*batch(number, mesh))) for number in range(5)]


# %% predict-collectives [markdown]
# A dense layer of 48 units, a batch normalisation and a dense layer of 2 lie on a mesh
# with `batch` 4 × `model` 2; `batch` splits the rows, and `model` the hidden units.
# Without `gamma`, `beta`, moving moments and the count of hits, a training step takes 10 all-reduces:
# 1 for the logits, 1 for the loss, 2 for the normalisation, 2 for its way back, 4 for weights and biases.
# Now it trains `gamma` and `beta` as well, and keeps moving moments.
# How many all-reduces does the step take, before TensorFlow combines any?
#
# - [x] `10`
#   The gradients of `gamma` and `beta` need two sums over the batch.
#   The way back through mean and variance needs the same two in any case.
# - [ ] `12`
#   That counts one for each new gradient.
#   But the way back through mean and variance has computed these two sums already.
# - [ ] `14`
#   Every device has the mean and variance of the whole batch already, so the moving moments need none.
#   Nor do `gamma` and `beta`.

# %% reveal-collectives
reveal("keras_layouts-collectives", len(collectives(probe_step, x, y)))

# %% updates-text [markdown]
# None is added: the way back through mean and variance computes the sums for `gamma` and `beta` anyway,
# and each device has what the moving moments need.
#
# Now the optimizer.
# SGD of tf_keras has a slot `m` for each variable, the velocity of {lesson:from_scratch}, there called $u$.
# It is 0 at first, and used even where `momentum` is 0, as here.
# Two lines update a variable
# ([source](https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/optimizers/sgd.py)):
#
# 1. `m.assign(-gradient * lr + m * momentum)`
# 2. `variable.assign_add(m)`

# %% predict-late [markdown]
# DTensor splits a model of tf_keras over eight devices.
# One compiled function computes the gradients and applies them with SGD: for each variable it writes a slot,
# `m.assign(-gradient * lr + m * momentum)`, where `momentum` is 0 and `m` is 0 at first,
# and then the variable, `variable.assign_add(m)`.
# The same model on one device is given the same five batches.
# Which of the five losses is the first that differs by more than rounding?
#
# - [ ] `none` none of the five
#   So it would be if DTensor kept the order of the two lines.
# - [ ] `first` the first of the five
#   It is computed from the initial values, before anything is written.
# - [x] `second` the second of the five
#   On eight devices the slots are read before they are written.
#   They are still 0, so the first step moves no trained variable, and the second loss differs.

# %% reveal-late
eight = first_losses(in_one_function, split_mlp(), mesh)
one = first_losses(in_one_function, mlp())
differing = np.flatnonzero(np.abs(np.subtract(eight, one)) > 1e-3)
late = {0: "first", 1: "second"}
reveal("keras_layouts-late", late[differing[0]] if differing.size else "none")

# %% late
still = first_losses(in_one_function, mlp(), rate=0.0)
runs = {"one": one, "eight": eight, "rate=0.0": still}
for name, losses in runs.items():
    print(f"{name:8}", *(f"{loss:.2f}" for loss in losses))
for combine in (False, True):
    found = collectives(probe_step, x, y, combine=combine)
    print(f"{combine=} {len(found)=}")

# %% late-text [markdown]
# The second loss of eight devices, 0.80, is that of the run with `rate=0.0`, in which no trained variable
# moves: the first update has not arrived.
# That is the third problem: a value that is *wrong in silence*.
#
# You know the reason from {lesson:from_scratch}: a slot is written and then read in one compiled function.
# TensorFlow combines all-reduces over the same devices that do not wait for each other,
# here the ten of a step to six, and thereby changes the order: the slot is read before it is written.
#
# In {lesson:from_scratch} the variable of the last all-reduce was spared.
# Here, as we found in another run, none of the six trained variables moves in the first step.
# We do not know what decides that, so rely on no order.
# Adam of tf_keras writes and then reads as well, and is late in the same way.
#
# TensorFlow leaves the all-reduces apart if an environment variable says so while it compiles:

# %% apart
combining = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
os.environ[combining] = "1"
apart = first_losses(in_one_function, split_mlp(), mesh)
del os.environ[combining]
print(f"{gap(apart, one)=:.5f}")

# %% apart-text [markdown]
# That equals one device.
# The variable must be set before the function is first called, and whenever it is compiled again,
# as for another batch size.
#
# The other way needs no variable:
# compute the gradients in a compiled function, and apply them outside it.
# There no all-reduce of a gradient is left that could be moved.
#
# **Exercise 2.** Write `make_step(model, optimizer)`.
# It returns a function `step(x, y)`, which takes a step and returns the mean loss:
# it computes the gradients in a compiled function, and applies them outside with the given optimizer.
# The check takes several steps on eight devices with a model that has a batch normalisation,
# and compares losses and variables with one device.


# %% exercise-step
def make_step(model, optimizer):
    # solution begin
    @tf.function
    def loss_and_gradients(x, y):
        with tf.GradientTape() as tape:
            losses = cross_entropy(y, model(x, training=True))
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(x, y):
        loss, gradients = loss_and_gradients(x, y)
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)
        return loss

    return step
    # solution end


# %%
check("keras_layouts-step", make_step)

# %% metric-text [markdown]
# ## Metrics and their mesh
#
# Metrics have variables as well, and take `mesh=mesh`.
# Without it their variables are ordinary ones, outside the mesh.
# `SparseCategoricalAccuracy` adds up hits and examples, and divides.
# `counted` updates one with four batches of 64 reviews and returns how many examples it has counted.


# %% counted
Accuracy = tf_keras.metrics.SparseCategoricalAccuracy


def counted(metric):
    model = split_mlp()

    @tf.function
    def update(x, y):
        metric.update_state(y, model(x))

    for number in range(4):
        update(*batch(number, mesh))
    dtensor.barrier(mesh)  # until every device has counted
    return int(metric.count.numpy())


# %% predict-metric [markdown]
# A metric of tf_keras is made without `mesh=mesh`.
# A compiled function on eight devices updates it with four batches of 64 reviews,
# of each of which a device holds 16.
# How many examples has it counted then?
#
# - [ ] `256` 256 examples
#   That is right, and a metric with `mesh=mesh` counts it.
#   Here eight devices share one ordinary variable.
# - [x] `more` more than 256
#   The compiled function runs on every device, and each adds the 64 of the whole batch to the same variable.
# - [ ] `fewer` fewer than 256
#   So it would be if one device alone counted the 16 reviews that it has of each batch.
#   But each of the eight adds.
# - [ ] `error` none: the function raises an error
#   An ordinary variable is accepted in a compiled function on a mesh, and each device adds to it.

# %% reveal-metric
count = counted(Accuracy())
reveal("keras_layouts-metric", "more" if count > 256 else "fewer" if count < 256 else 256)
# %% told
print(f"{counted(Accuracy(mesh=mesh))=}")

# %% [markdown]
# A compiled function on a mesh runs on each of its devices.
# A metric without the mesh has one ordinary variable for the count, to which all eight add.
# Each adds the 64 of the whole batch, so the metric can come to 8 × 256 = 2,048.
# Some additions are lost, and the count varies from run to run: we had 896 to 2,048.
#
# The hits were right in these runs.
# Divided by too many examples, they give too small an accuracy, in silence: the third problem again.
# With its mesh the metric counts 256.
# So give every optimizer and every metric its mesh.
#
# ## Which Keras takes what
#
# Layers of Keras 3 take no layouts as arguments.
# It has an interface of its own, `keras.distribution`, with a mesh, layouts and patterns.
# Keras 3 has several backends; that of this notebook is TensorFlow.
# The next cell asks it to split the columns of a kernel over `model`,
# and prints the device that holds the kernel, with the shape that it has there.

# %% keras-3 tags=["error", "versions"]
import keras

devices = keras.distribution.list_devices("cpu")
grid = keras.distribution.DeviceMesh((4, 2), ["batch", "model"], devices)
patterns = keras.distribution.LayoutMap(grid)
patterns[".*hidden/kernel"] = (None, "model")
options = {"layout_map": patterns, "batch_dim_name": "batch"}
try:
    with keras.distribution.ModelParallel(**options).scope():
        hidden = keras.layers.Dense(48, name="hidden")
        hidden.build((None, 1200))
    kernel = hidden.kernel.value
    print(f"{kernel.device[-5:]=} {kernel.shape=}")
except AttributeError as error:  # raised by Keras 3.13
    print(error)

# %% table-text [markdown]
# With Keras 3.15 the kernel lies whole on the first device, without an error or a warning;
# Keras 3.13 ends in an error.
# According to [Keras's guide](https://keras.io/guides/distribution/),
# this interface works with JAX only, for now.
# With JAX the same calls do split the kernel.
#
# Each entry of the table is a run in a process of its own, of a model with two dense layers.
# Where it trains, it does so with Adam.
# "Equals one device" means split as asked, with the right values;
# "wrong values", split, but with other values; "not split", not as asked;
# "accepted", no error for a pattern that fits no variable.
# A dash stands where nothing was tried.
# The page *Measured results* of the course's book has the details and the versions.

# %% table
measured.table(measured.load("keras_layouts-support").support)

# %% choose [markdown]
# `fit` of tf_keras ends in an error with arrays.
# Its data set here is a `DTensorDataset`, DTensor's own.
# With it `fit` ends with wrong values of the variables,
# since it computes and applies the gradients in one function,
# and with the right ones once the all-reduces are left apart.
#
# What to choose today:
#
# - **Only the batch is split:** `tf.distribute` ({lesson:strategies}), or DTensor as in {lesson:one_step}.
# - **Split variables, and TensorFlow:** DTensor with layers of your own,
#   as in lessons {number:one_step} to {number:splitting_the_model},
#   and an optimizer that writes last, as in {lesson:from_scratch}.
#   Take tf_keras if you need its layers, with the step of exercise 2,
#   and compare the first steps with one device.
# - **Split variables, and Keras's `fit`:** Keras 3 on JAX, the road ahead.
#   All trainings that were tried equal one device, though of two dense layers only.
#   Check with `variable.value.sharding` that a pattern took effect.
#
# Keras 3 on TensorFlow is not for split variables.
#
# ## The plain program
#
# [`keras_layouts.py`](../plain/keras_layouts.py) has nothing of the course's library.
# `mlp`, `split_mlp`, `distribute` and `batch` are those above, `make_step` is the solution of exercise 2.
# It trains the model with Adam on eight devices and on one,
# and ends with an error if the losses differ, if the kernel of `hidden` or one of its slots is not split,
# or if the metric miscounts.

# %% takeaways [markdown]
# ## Takeaways
#
# - tf_keras takes layouts, by arguments or by patterns of names.
#   A pattern that fits nothing raises no error of its own: look at the layouts of the variables.
# - SGD and Adam of tf_keras write slots and then read them.
#   Apply the gradients outside the function that computes them, and give optimizers and metrics their mesh.
# - Keras 3 splits variables with JAX, not with TensorFlow.
#   No error tells that the splitting broke a training: compare it with one device.
#
# {Lesson:strategies} turns to `tf.distribute`.

# %% score
score("keras_layouts")
