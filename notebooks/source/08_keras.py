# %% [markdown]
# # 8. DTensor and Keras
#
# The lessons before wrote their layers and training steps by hand.
# Keras has both ready to use.
# Which Keras takes layouts, what does it split, and are the results those of one device?
#
# After this lesson you can
#
# - give Keras's layers layouts, one by one and by patterns of names;
# - train such a model with a step that is right on eight devices;
# - check what Keras really laid out, and whether its numbers are right;
# - say what each Keras distributes today, and choose one.
#
# **Time:** 45 minutes.
# **You need to know:** lesson 3 (a training step) and lesson 5 (layouts of consecutive layers).
#
# > **Where this was run.** TensorFlow 2.21, tf_keras 2.21 and Keras 3 on eight virtual CPUs,
# > not on GPUs or TPUs.
# > DTensor is experimental, and so is what tf_keras does with it: names may change.
#
# ## There are two Kerases
#
# `tf.keras` has been Keras 3 since TensorFlow 2.16.
# Keras 2 lives on as a package of its own, `tf_keras`.
# One program can import both.
# The layers of `tf_keras` take DTensor's layouts, so the lesson begins with these.
# The next code cell lays out a model with a layout for each variable of each layer.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% layers
tf = course_lib.start_tensorflow()
import numpy as np
import tf_keras
from IPython.display import display

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, data, keras_layouts, models
from course_lib.dtensor import create_mesh, pack, to_layout, to_numpy
from course_lib.exercises import check, predict, reveal, score

grid = MeshSpec([("batch", 4), ("model", 2)])
mesh = create_mesh(grid)


# %% dense
def layout(*entries):
    return to_layout(LayoutSpec(entries, grid), mesh)


def dense(units, name, kernel, bias, **options):
    layouts = {"kernel_layout": layout(*kernel), "bias_layout": layout(*bias)}
    return tf_keras.layers.Dense(units, name=name, **layouts, **options)


def split_model():
    hidden = dense(48, "hidden", (UNSHARDED, "model"), ("model",), activation="relu")
    logits = dense(2, "logits", ("model", UNSHARDED), (UNSHARDED,))
    return tf_keras.Sequential([tf_keras.Input((1200,)), hidden, logits])


tf_keras.utils.set_random_seed(1)
model = split_model()
display(*keras_layouts.shardings(model.weights[:3]))

# %% same-text [markdown]
# These are the weight of the hidden layer, its bias, and the weight of the logits,
# as the variables of the real model are split.
# It is the network of lesson 5 without its normalisation, under the same model-parallel scheme.
# In Keras a layer's weight is called its *kernel*.
#
# Is it the same function as on one device?
# The next cell gives equal values to this model and to one without layouts,
# and compares their logits for 64 reviews of the stand-in.

# %% same
SOURCE = None  # None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
reviews = data.tf_idf(data.load_imdb(SOURCE), unit_length=True).train
values = models.initial_values(seed=0)
first_values = [values[f"{layer}_{kind}"] for layer in ("hidden", "logits") for kind in ("weight", "bias")]


def whole_model():
    layers = [tf_keras.layers.Dense(48, activation="relu"), tf_keras.layers.Dense(2)]
    return tf_keras.Sequential([tf_keras.Input((1200,)), *layers])


one_device = whole_model()
for each in (model, one_device):
    each.set_weights(first_values)
rows = reviews.features[:64]
packed = pack(rows, LayoutSpec(["batch", UNSHARDED], grid), mesh)
gap = np.abs(to_numpy(tf.function(model)(packed)) - one_device(rows)).max()
print("within 0.00001:", gap < 1e-5)

# %% same-seed-given [markdown]
# `set_weights` takes whole arrays and sends each device its part.
# (If a layer has one layout and lacks the other, its second variable is an ordinary one on one device.
# TensorFlow then refuses to add them: "got a regular tensor ... but was expecting a DTensor".)
#
# ## Initial values
#
# The first values of a layer are drawn at random.
# Before a layer with layouts draws, tf_keras asks for a call of `tf_keras.utils.set_random_seed`;
# without it there is an error that says so.
# (Layers that draw later, such as `Dropout`, also ask for
# `tf_keras.backend.experimental.enable_tf_random_generator()`.)
#
# A kernel is drawn whole in one model, and in the other for a layout that splits it.
# Both times the seed is 1.

# %% predict-seed
predict("08-same-seed")


# %% reveal-seed
def drawn(*entries):
    tf_keras.utils.set_random_seed(1)
    layer = dense(48, "drawn", entries, (UNSHARDED,))
    layer.build((None, 1200))
    return to_numpy(layer.kernel)


distance = np.abs(drawn(UNSHARDED, "model") - drawn(UNSHARDED, UNSHARDED)).max()
reveal("08-same-seed", "equal" if distance == 0 else "rounding" if distance < 1e-5 else "different")

# %% seed-why [markdown]
# tf_keras draws the whole kernel on every device and then cuts it:
# see `call_with_layout` in
# [its source](https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/dtensor/utils.py).
# So schemes can be compared from one seed.
# The price is memory: while it draws, a device holds a whole kernel,
# even if the kernel is split because it is too large.
#
# ## A training step
#
# Optimizers have variables too:
# a counter, the learning rate, and for each weight its *slots*, such as Adam's two averages.
# They must lie on the mesh, so the optimizer is told it: `mesh=mesh`.
# With this, the step reads like any step in Keras.
# The next cells define it, take four such steps with Adam on one device and on eight,
# from equal values and with the same batches of 64 reviews.


# %% usual-step
def usual_step(model, optimizer):
    @tf.function
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


# %% losses
def batches(count, split):
    for at in range(count):
        chosen = slice(64 * at, 64 * at + 64)
        features, labels = reviews.features[chosen], reviews.labels[chosen]
        if split:
            features = pack(features, LayoutSpec(["batch", UNSHARDED], grid), mesh)
            labels = pack(labels, LayoutSpec(["batch"], grid), mesh)
        yield features, labels


def trained(make_step, model, optimizer, split, count=4):
    model.set_weights(first_values)
    step = make_step(model, optimizer)
    return np.array([float(step(*batch)) for batch in batches(count, split)])


# %% predict-losses
predict("08-same-losses")

# %% reveal-losses
adam = tf_keras.optimizers.Adam
losses = {
    "one": trained(usual_step, one_device, adam(0.03), split=False),
    "eight": trained(usual_step, model, adam(0.03, mesh=mesh), split=True),
}
distance = np.abs(losses["one"] - losses["eight"]).max()
reveal("08-same-losses", "equal" if distance == 0 else "rounding" if distance < 1e-5 else "different")

# %% stale-text [markdown]
# The next cell prints the losses.
# The first one, before any update, is the same; the others are not, and no error was raised.
# Which variables does a single step change?
# The cell asks that of plain SGD, which shows it best.

# %% stale
for name, found in losses.items():
    print(f"{name:6}", *(f"{loss:.2f}" for loss in found))
sgd = tf_keras.optimizers.SGD(0.1, mesh=mesh)
trained(usual_step, model, sgd, split=True, count=1)
for variable, first in zip(model.weights, first_values):
    print(f"{variable.name:16}", "moved" if np.any(to_numpy(variable) != first) else "did not move")

# %% stale-why [markdown]
# The optimizers of tf_keras assign a slot and then read it.
# For SGD the slot is the momentum `m`, also if the momentum is 0:
# `m.assign(-gradient * lr + m * momentum)`, then `variable.assign_add(m)`.
# DTensor puts the all-reduces of several gradients together into one,
# and with that it moves what depends on them: a read can come before the assignment that it should follow.
# Then the variable gets the `m` of the step before, which at first is 0.
# Each of these updates comes a step late.
#
# The mistake is DTensor's, not Keras's, and it does not touch a step like that of lesson 3,
# which writes each variable once and does not read it again.
# Two ways around it are right:
#
# - Compute the gradients in one `tf.function` and apply them outside it, or in another.
#   When a function returns, its all-reduces are done.
# - Leave the all-reduces uncombined, with the environment variable
#   `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1` while a function is compiled.
#   In this course `no_combining()` of `course_lib.combining` sets it for a block.
#
# **Exercise 1.** Write `make_step(model, optimizer)` in the first way.
# It returns a function `step(inputs, labels)`, which takes a step and returns the mean loss.
# The check calls your step on eight devices, several times with new batches,
# and compares the losses and the variables with NumPy on one device.


# %% exercise-step
def make_step(model, optimizer):
    # solution begin
    @tf.function
    def loss_and_gradients(inputs, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(inputs, labels):
        loss, gradients = loss_and_gradients(inputs, labels)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step
    # solution end


# %%
check("08-step", make_step)

# %% metric-given [markdown]
# ## A mesh that was forgotten
#
# Metrics have variables as well, so they take `mesh=mesh` too.
# The next cell measures the accuracy of four batches with the metric told its mesh,
# with one that was not told, and with one that gets plain tensors on one device.

# %% predict-metric
predict("08-metric")


# %% reveal-metric
def accuracy(split, **options):
    metric = tf_keras.metrics.SparseCategoricalAccuracy(**options)
    network = model if split else one_device

    @tf.function
    def update(inputs, labels):
        metric.update_state(labels, network(inputs))
        return metric.result()

    return [float(update(*batch)) for batch in batches(4, split)][-1]


one_device.set_weights(first_values)
model.set_weights(first_values)
told, untold, plain = accuracy(True, mesh=mesh), accuracy(True), accuracy(False)
reveal("08-metric", "untold" if told == plain != untold else "other")

# %% metric-why [markdown]
# A metric adds up two numbers, the hits and the examples, and divides them.
# Without a mesh both are ordinary variables,
# and nothing refuses them in a compiled function on eight devices.
# An optimizer that is not told its mesh is accepted too,
# and Adam then trains wrongly even with uncombined all-reduces.
#
# ## Layouts by patterns of names
#
# Two arguments for every layer are much to write, and many layers, such as `LSTM`, do not take them.
# A `LayoutMap` says it once for the whole model: a pattern of names, and a layout for what it fits.
# In its scope, variables get their layouts by their names.
# For sequential and functional models the name is the layer's name and the attribute, `hidden.kernel`;
# in a class of one's own it is the path of attributes.


# %% kinds
def dense_layers():
    hidden = tf_keras.layers.Dense(48, activation="relu", name="hidden")
    return hidden, tf_keras.layers.Dense(2, name="logits")


def sequential():
    return tf_keras.Sequential([tf_keras.Input((1200,)), *dense_layers()])


def functional():
    inputs, (hidden, logits) = tf_keras.Input((1200,)), dense_layers()
    return tf_keras.Model(inputs, logits(hidden(inputs)))


class Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = dense_layers()

    def call(self, inputs):
        return self.second(self.first(inputs))


# %% mapped
def layout_map(patterns):
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    for pattern, entries in patterns.items():
        layouts[pattern] = layout(*entries)
    return layouts


for make in (sequential, functional, Subclassed):
    layouts = layout_map({".*kernel": (UNSHARDED, "model"), "(hidden|first).bias": ("model",)})
    with layouts.scope():
        mapped = make()
    mapped(packed)
    print(f"{make.__name__:10}", *keras_layouts.names_of(mapped))

# %% mapped-text [markdown]
# These are the names under which Keras looked for layouts.
# In the class the layers are called `first` and `second`, as its attributes are,
# whatever names they were given.
#
# For each name the map has one layout at most:
# a pattern that is the name itself goes first, and otherwise the first one, in the order of the map,
# that fits the *beginning* of the name (`re.match`).
# What no pattern fits is whole on every device.
#
# The model of the next cell gets its layouts from a single pattern, `kernel`.
# The two kernels take 230,400 and 384 bytes.

# %% predict-pattern
predict("08-pattern")

# %% reveal-pattern
layouts = layout_map({"kernel": (UNSHARDED, "model")})
with layouts.scope():
    mapped = sequential()
kernels = [variable for variable in mapped.weights if "kernel" in variable.name]
reveal("08-pattern", max(keras_layouts.bytes_on_devices(kernels)))

# %% matched-text [markdown]
# A pattern that fits no name is a mistake, and tf_keras does not say so.
# The check that catches it compares the patterns with the names of the model:

# %% matched tags=["error"]
try:
    keras_layouts.require_matched(layouts, mapped)
except course_lib.CourseError as error:
    print(error)

# %% unmatched-text [markdown]
# **Exercise 2.** Write the heart of this check: `unmatched(patterns, names)`
# returns the patterns, in their order, from which none of the names gets its layout.
# Both arguments are lists of strings.
# A pattern that fits a name can still be of no use: another one may be chosen for it.


# %% exercise-unmatched
def unmatched(patterns, names):
    # solution begin
    import re

    used = set()
    for name in names:
        fitting = [pattern for pattern in patterns if re.match(pattern, name)]
        used.update([name] if name in patterns else fitting[:1])
    return [pattern for pattern in patterns if pattern not in used]
    # solution end


# %%
check("08-unmatched", unmatched)

# %% bytes-text [markdown]
# **Exercise 3.** The model of this exercise has three dense layers:
# `first` with 96 units, `second` with 64 and `logits` with 2, on 1,200 features.
# Its variables take 486,536 bytes.
# The mesh has `batch` 2 × `model` 4, and no device may hold more than 125,000 bytes of the variables.
# Write `small_enough(mesh)`, which returns a `LayoutMap` for it.
# The check makes the real model under your map, counts the bytes of the real components,
# refuses patterns that fit nothing, and calls the model.


# %% exercise-bytes
def small_enough(mesh):
    # solution begin
    layouts = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
    Layout = tf.experimental.dtensor.Layout
    layouts["first.kernel"] = Layout([UNSHARDED, "model"], mesh)
    layouts["first.bias"] = Layout(["model"], mesh)
    layouts["second.kernel"] = Layout(["model", UNSHARDED], mesh)
    return layouts
    # solution end


# %%
check("08-layout-map", small_enough)

# %% normalisation-text [markdown]
# ## Batch normalisation
#
# A `BatchNormalization` layer has four variables, all with one number for each channel:
# `gamma` and `beta` are trained, `moving_mean` and `moving_variance` are its memory of the batches.
# Each takes a layout.
# For images, with their four axes, the layer chooses a *fused* operation that DTensor does not know.


# %% normalisation tags=["error"]
def normalised(images, **options):
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    layouts = {f"{name}_layout": layout("model") for name in names} if options.pop("split") else {}
    layer = tf_keras.layers.BatchNormalization(**layouts, **options)
    return tf.function(layer)(images, training=True)


images = np.random.default_rng(0).random((8, 4, 4, 6), np.float32)
split_images = pack(images, LayoutSpec(["batch", UNSHARDED, UNSHARDED, "model"], grid), mesh)
try:
    normalised(split_images, split=True)
except tf.errors.OpError as error:
    print(str(error).partition("error: ")[2].partition(". ")[0])
gap = to_numpy(normalised(split_images, split=True, fused=False)) - normalised(images, split=False)
print("fused=False, within 0.00001:", np.abs(gap).max() < 1e-5)

# %% normalisation-given [markdown]
# With `fused=False` mean and variance are computed by ordinary operations, and DTensor adds the all-reduces.
#
# **Exercise 4.** In another model the hidden units are normalised.
# They arrive as `[batch, model]`, so that each device has some rows of some units.
# Write the layouts of the four variables, on the mesh below.

# %% exercise-normalisation
mesh_of_units, layouts_of_four = MeshSpec([("batch", 2), ("model", 4)]), {}
# solution begin
layouts_of_four["gamma"] = LayoutSpec(["model"], mesh_of_units)
layouts_of_four["beta"] = LayoutSpec(["model"], mesh_of_units)
layouts_of_four["moving_mean"] = LayoutSpec(["model"], mesh_of_units)
layouts_of_four["moving_variance"] = LayoutSpec(["model"], mesh_of_units)
# solution end

# %%
check("08-normalisation", layouts_of_four)

# %% fit-given [markdown]
# ## `fit`
#
# `fit` is Keras's own training loop.
# The next cell calls it on a model with layouts, with arrays, as one calls it on one device.

# %% predict-fit
predict("08-fit")

# %% reveal-fit
loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(adam(0.03, mesh=mesh), loss)
try:
    model.fit(reviews.features[:128], reviews.labels[:128], batch_size=64, verbose=0)
    outcome = "runs"
except tf.errors.OpError as error:
    outcome, message = "error", str(error)
reveal("08-fit", outcome)

# %% fit-message
print(message.partition("error: ")[2].splitlines()[0])

# %% fit-why [markdown]
# The data are the trouble: `fit` takes the batches from an iterator, and DTensor finds no layouts in it.
# It finds them in a `tf.experimental.dtensor.DTensorDataset`.
# With one of these, `fit` and `evaluate` run, for a model made in the scope of a `LayoutMap`.
# `fit` applies the gradients in the function that computes them, so it falls under what was said of steps:
# it is right only with uncombined all-reduces.
# The table below has both, measured.
#
# ## Keras 3
#
# Keras 3 has an interface of its own for the same purpose, `keras.distribution`.
# It has a mesh, layouts and a `LayoutMap`, and `fit` is to need nothing else:
# `set_distribution` is called once, before the model is made.
# Layers take no layouts as arguments:

# %% keras-argument tags=["error"]
import keras

try:
    keras.layers.Dense(48, kernel_layout=layout(UNSHARDED, "model"))
except ValueError as error:
    print(str(error).partition(": Layout")[0])

# %% keras-given [markdown]
# This program's Keras 3 computes with TensorFlow, as `tf.keras` does.
# The next cell asks for a distribution over eight devices
# in which the columns of the kernel are split over `model`, makes a model, and looks where its kernel lies.

# %% predict-keras
predict("08-keras-3")

# %% reveal-keras
distribution = keras.distribution
device_mesh = distribution.DeviceMesh((4, 2), ["batch", "model"], distribution.list_devices("cpu"))
layouts = distribution.LayoutMap(device_mesh)
layouts[".*hidden/kernel"] = (None, "model")
distribution.set_distribution(distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch"))
hidden = keras.layers.Dense(48, name="hidden")
keras.Sequential([keras.Input((1200,)), hidden], name="model")
distribution.set_distribution(None)
kernel = hidden.kernel.value
reveal("08-keras-3", "split" if hasattr(kernel, "layout") else kernel.device.partition("device:")[2])

# %% keras-why [markdown]
# No error, no warning, and nothing is distributed.
# In the source of Keras 3 the module for TensorFlow, `keras/src/backend/tensorflow/distribution_lib.py`,
# begins with "!!!DO NOT USE!!!" and calls itself a prototype.
# With JAX the same program splits its variables, as the last column of the next table shows.
# (The `LayoutMap` of Keras 3 has another rule: in Keras 3.15 a pattern has to fit the *whole* path,
# here `model/hidden/kernel`, and two patterns that fit one path are refused.)
#
# ## What works, and what only seems to
#
# Each entry was found by a program in a process of its own:
# it lays out the same two layers, runs what the row says, and is compared with the same layers on one device.
# "In silence" means that there was no error.
# `make jax` and `make results` repeat it; the programs are in `benchmarks/keras_support`.

# %% table
from course_lib.measured import keras_support

recorded = keras_support.recorded()
print(*(f"{name}: {value}" for name, value in recorded.how.items()), sep="\n")
keras_support.table(recorded)

# %% choose [markdown]
# What follows for a choice today:
#
# - **Only the batch is to be split:** that is what `tf.distribute` is for (lesson 9, in preparation).
# - **Split variables and `fit`:** Keras 3 on JAX.
#   Check with `variable.value.sharding` that a pattern took effect.
# - **Split variables in TensorFlow:** DTensor with layers of your own, as in lessons 3 to 5.
#   Or `tf_keras`, if you need its layers: with a mesh for every optimizer and metric, patterns checked,
#   gradients applied outside the function that computes them, and the first steps compared with one device.
# - **Keras 3 on TensorFlow:** not for split variables.

# %% score
score("08")

# %% [markdown]
# ## Takeaways
#
# - tf_keras lays out variables by arguments or by patterns of names.
#   A pattern that fits nothing and a mesh that was forgotten raise no error.
# - A step that writes an optimizer's slots and reads them in the same function comes out wrong under DTensor.
#   Apply the gradients in another one.
# - Keras 3 distributes with JAX; with TensorFlow its distribution does nothing.
#   Only a comparison with one device, and a look at who holds what, tell.
#
# Lesson 9, in preparation, begins with `tf.distribute`.
