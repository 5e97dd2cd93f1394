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
# - write a training step for such a model, and say which steps to hold against one device;
# - check what Keras really laid out, and whether its numbers are right;
# - say what each Keras distributes today, and choose one.
#
# **Time:** 45 minutes.
# **You need to know:** lesson 3 (a training step), lesson 5 (layouts of consecutive layers)
# and lesson 7 (slots of an optimizer).
#
# > **Where this was run.** TensorFlow 2.21, tf_keras 2.21 and Keras 3.15,
# > for the table at the end also JAX 0.10, on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental, and so is what tf_keras does with it: names may change.
# > The reviews are a stand-in for the real ones (lesson 3); set `SOURCE` for those.
#
# ## There are two Kerases
#
# `tf.keras` has been Keras 3 since TensorFlow 2.16.
# Keras 2 lives on as a package of its own, `tf_keras`.
# One program can import both.
# In `tf_keras`, a few layers take DTensor's layouts as arguments:
# `Dense`, `Embedding`, convolutions (but no depthwise or separable one),
# and the normalisations of batches and of layers.
# The lesson begins with these.
# The next code cell lays out a model with a layout for each variable of each layer.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% layers
tf = course_lib.start_tensorflow()
import numpy as np
import tf_keras
from IPython.display import display

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, create_mesh
from course_lib import data, fetch_layout, models, pack, to_layout
from course_lib import to_numpy
from lessons.lesson_08_keras import keras_layouts

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
# and compares their logits for 64 reviews.

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
# `set_weights` takes whole arrays.
# It sends each device the whole one, and there it is cut:
# see `_assign_value_to_variable` in
# [its source](https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/backend.py).
#
# ## Initial values
#
# The first values of a layer are drawn at random.
# Before a layer with layouts draws, tf_keras asks for a call of `tf_keras.utils.set_random_seed`;
# without it there is an error that says so.
#
# One kernel gets the layout `[unsharded, unsharded]`, the other `[unsharded, model]`.
# Both are drawn with the seed 1.

# %% predict-seed [markdown]
# How far are the two kernels apart?
#
# - [x] `equal` they are equal to the bit
#   Both were drawn whole, from the same seed, and one of them was cut afterwards.
# - [ ] `rounding` they differ by less than 0.00001
#   Nothing is added up here, so there is nothing to round.
# - [ ] `different` they differ by more
#   So it would be if each device drew its own part, as DTensor's random operations do where their result is
#   split. tf_keras goes another way.


# %% reveal-seed
def drawn(*entries):
    tf_keras.utils.set_random_seed(1)
    layer = dense(48, "drawn", entries, (UNSHARDED,))
    layer.build((None, 1200))
    return to_numpy(layer.kernel)


distance = np.abs(drawn(UNSHARDED, "model") - drawn(UNSHARDED, UNSHARDED)).max()
reveal("08-seed", "equal" if distance == 0 else "rounding" if distance < 1e-5 else "different")

# %% seed-why [markdown]
# tf_keras draws the whole kernel on every device and then cuts it:
# see `call_with_layout` in
# [its source](https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/dtensor/utils.py).
# (With DTensor's function of the same name, in lesson 1, each device draws its own block.)
# So layouts can be compared from one seed, with each other and with one device:
# the table at the end has both.
# The price is memory, here as in `set_weights`: for a moment a device holds a whole kernel,
# even if the kernel is split because it is too large.
#
# ## A training step
#
# Optimizers have variables too:
# a counter, the learning rate, and for each variable that is trained its slots, such as Adam's two averages.
# They are to lie on the mesh, so the optimizer is told it: `mesh=mesh`.
# A slot is split like its variable: with Adam a device holds three times the bytes of its variables.
#
# With this, the step reads like any step in Keras.
# The next cells define it and take one step with SGD on eight devices;
# the learning rate is 0.1 and the batch has 64 reviews.


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


# %% predict-moved [markdown]
# How many of the four variables has the first step changed?
#
# - [ ] `0`
#   The gradients are there, and one variable did get its own.
# - [x] `1`
#   The other three got nothing, and no error says so.
# - [ ] `2`
#   That would be one layer of the two, or one kind of variable.
#   It was fewer.
# - [ ] `4`
#   So it is on one device.
#   On eight, three of the four stayed, though no gradient is zero.


# %% reveal-moved
def moved(count=1):
    sgd = tf_keras.optimizers.SGD(0.1, mesh=mesh)
    trained(usual_step, model, sgd, split=True, count=count)
    pairs = zip(model.weights, first_values)
    return sum(bool(np.any(to_numpy(variable) != first)) for variable, first in pairs)


reveal("08-moved", moved())

# %% stale-text [markdown]
# DTensor combines the all-reduces of several gradients into one (lesson 7).
# In a block `with no_combining():` it leaves them apart, in every function that is compiled there.
# The next cell takes the same step so.
# Then it takes four steps with Adam, from equal values and with the same batches:
# on one device, on eight, and on eight with all-reduces apart.

# %% stale
from course_lib import no_combining

adam = tf_keras.optimizers.Adam
with no_combining():
    print("moved, all-reduces apart:", moved())
    apart = trained(usual_step, model, adam(0.03, mesh=mesh), split=True)
one = trained(usual_step, one_device, adam(0.03), split=False)
eight = trained(usual_step, model, adam(0.03, mesh=mesh), split=True)
for name, losses in {"one": one, "eight": eight, "eight, apart": apart}.items():
    print(f"{name:12}", *(f"{loss:.2f}" for loss in losses))

# %% stale-why [markdown]
# The first loss, before any update, is the same; with combined all-reduces the others are not.
#
# SGD and Adam of tf_keras assign a slot and then read it, like `WriteThenReadAdam` in lesson 7
# ("Read before it was written").
# For SGD the slot is the momentum `m`, also if the momentum is 0:
# `m.assign(-gradient * lr + m * momentum)`, then `variable.assign_add(m)`.
# `tf.function` promises the order of the program.
# DTensor breaks it when it combines all-reduces: a read can come before the assignment that it should follow.
# Then the variable gets the `m` of the step before, which at first is 0.
# With SGD each of these updates comes a step late (the tests hold five steps against that).
# One variable is spared, as in lesson 7; why that one, we do not know.
#
# One verdict for both lessons: the fault is DTensor's, and code that writes last does not meet it.
# An optimizer of your own can write last; one of tf_keras does not.
# For these, two ways are right (`tests/tf/test_lesson_08.py` has both, with SGD and Adam):
#
# - Compute the gradients in one `tf.function` and apply them outside it, or in another.
#   There no all-reduce of a gradient is left that could be moved.
#   (An optimizer with `clipnorm` has all-reduces of its own, for the norms: apply its gradients outside.
#   In another function its updates came late.)
# - Leave the all-reduces apart during the first call of the function, in which it is compiled,
#   and during every call that compiles it again, such as the first with another batch size.
#   `no_combining()` sets the environment variable
#   `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1` for a block.
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
# The next cell measures the accuracy of four batches three times: with a metric that was told its mesh,
# with one that was not told, and with one of the model on one device.

# %% predict-metric [markdown]
# Which of the three accuracies agree after four batches?
#
# - [ ] `equal` all three
#   It does matter where the variables of the metric lie.
# - [x] `untold` the one with the mesh and the one on one device
#   The metric without the mesh gives another number, and no error says so.
# - [ ] `error` the metric without the mesh ends in an error
#   An error would be welcome: it would say what was forgotten.


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
# This metric adds up two numbers, the hits and the examples, and divides them.
# Without a mesh both are ordinary variables on one device.
# In a compiled function eight devices then share them, and each adds to them:
# the metric counts far more than 256 examples, and another number each time.
# An optimizer without its mesh shares its counter in the same way, so that Adam trains wrongly;
# applied outside a compiled function it came out right, on the first mesh that the program used.
# A layer may lack one of its layouts, too.
# In a compiled function its output was right.
# Outside one TensorFlow refuses it and states the rule behind all this:
# "only scalars and small integer/string tensors are auto-broadcast to DTensors".
# (`tests/tf/test_lesson_08.py` has each of these cases.)
#
# ## Layouts by patterns of names
#
# Two arguments for each layer are a lot to write,
# and many layers, such as `MultiHeadAttention`, do not take them.
# A `LayoutMap` says it once for the whole model: a pattern of names, and a layout for what it fits.
# In its scope, variables get their layouts by their names.
# For sequential and functional models the name is the layer's name and the attribute, `hidden.kernel`;
# in a class of one's own it is the path of attributes.
# (In the scope, `Dropout` and layers with a dropout of their own, even one of 0, ask for a call of
# `tf_keras.backend.experimental.enable_tf_random_generator()`.
# And a layer that has its layouts need not run: DTensor does not know an operation in the loop of `LSTM`.)


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


hidden, logits = "(hidden|first)", "(logits|second)"
scheme = {hidden + ".kernel": (UNSHARDED, "model"), hidden + ".bias": ("model",)}
scheme[logits + ".kernel"] = ("model", UNSHARDED)
for make in (sequential, functional, Subclassed):
    with layout_map(scheme).scope():
        mapped = make()
    mapped(packed)
    print(make.__name__)
    for name, variable in keras_layouts.names_of(mapped).items():
        print(f"  {name:13}", fetch_layout(variable))

# %% mapped-text [markdown]
# These are the names under which Keras looked for layouts, and the layouts that it found.
# In the class the layers are called `first` and `second`, as its attributes are,
# whatever names they were given.
#
# For each name the map has one layout at most:
# a pattern that is the name itself goes first, and otherwise the first one, in the order of the map,
# that fits the *beginning* of the name (`re.match`).
# What no pattern fits is whole on every device, if the map knows a mesh: `LayoutMap(mesh=mesh)`.
#
# The model of the next cell gets its layouts from a single pattern, `kernel`.
# The two kernels take 230,400 and 384 bytes.

# %% predict-pattern [markdown]
# The pattern `kernel` has the layout `[unsharded, model]`, and `model` has two places.
# How many bytes of the two kernels does a device hold?
#
# - [ ] `115392` 115,392
#   That is half of each.
#   But `hidden.kernel` does not begin with `kernel`.
# - [ ] `115584` 115,584
#   That is half of the first and all of the second.
#   But neither name begins with `kernel`.
# - [x] `230784` 230,784
#   All of both: the pattern fits the beginning of neither name, and nothing says so.
# - [ ] `error` No number: the pattern is refused
#   An error would be welcome here.

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
# returns, in their order, the patterns that give no name its layout.
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
# Write `small_enough(mesh)`, which returns a `LayoutMap` for it, on the mesh that it gets:
# `tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)`,
# its layouts made with `tf.experimental.dtensor.Layout(entries, mesh)`.
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
#
# The next cell calls it on images that are split over `batch` and over their channels,
# and compares it with `fused=False` on one device: the output and the two moving moments.


# %% normalisation tags=["error"]
def normalised(images, split, **options):
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    layouts = {f"{name}_layout": layout("model") for name in names} if split else {}
    layer = tf_keras.layers.BatchNormalization(**layouts, **options)
    output = tf.function(layer)(images, training=True)
    return output, layer.moving_mean, layer.moving_variance


images = np.random.default_rng(0).random((8, 4, 4, 6), np.float32)
split_images = pack(images, LayoutSpec(["batch", UNSHARDED, UNSHARDED, "model"], grid), mesh)
try:
    normalised(split_images, True)
except tf.errors.OpError as error:
    print(str(error).partition("error: ")[2].partition(" (")[0])
eight, one = normalised(split_images, True, fused=False), normalised(images, False, fused=False)
gaps = [np.abs(to_numpy(ours) - theirs.numpy()).max() for ours, theirs in zip(eight, one)]
print("fused=False, within 0.00001:", max(gaps) < 1e-5)

# %% normalisation-given [markdown]
# With `fused=False` mean and variance are computed by ordinary operations, and DTensor adds the all-reduces.
# (On one device the two differ a little: for a batch of n numbers a channel, the fused operation moves
# the moving variance towards n/(n−1) times the variance, `fused=False` towards the variance.)
#
# **Exercise 4.** In another model the rows of pixels are split instead of the channels:
# the images, `[images, height, width, channels]`, arrive as `[batch, model, unsharded, unsharded]`.
# Write the layouts of the four variables, on the mesh below,
# so that each device holds the numbers of its own channels and no others.

# %% exercise-normalisation
mesh_of_images, layouts_of_four = MeshSpec([("batch", 2), ("model", 4)]), {}
# solution begin
layouts_of_four["gamma"] = LayoutSpec([UNSHARDED], mesh_of_images)
layouts_of_four["beta"] = LayoutSpec([UNSHARDED], mesh_of_images)
layouts_of_four["moving_mean"] = LayoutSpec([UNSHARDED], mesh_of_images)
layouts_of_four["moving_variance"] = LayoutSpec([UNSHARDED], mesh_of_images)
# solution end

# %%
check("08-normalisation", layouts_of_four)

# %% fit-given [markdown]
# ## `fit`
#
# `fit` is Keras's own training loop.
# For its counters and metrics it has to find the mesh, and it looks for it in the model's `LayoutMap`.
# So the next cell makes a model in the scope of one.
# It calls `fit` with arrays, as one calls it on one device, and compares the loss with that of one device.

# %% predict-fit [markdown]
# What does `fit` do with this model and arrays?
#
# - [ ] `equal` it trains, with the loss of one device
#   It would have to split the batches over the mesh, and it does not.
# - [ ] `other` it trains, with another loss
#   The model gets no batch at all.
# - [x] `error` it ends with an error
#   The batches come from an iterator, and DTensor finds no layouts in it.


# %% reveal-fit
arrays = reviews.features[:256], reviews.labels[:256]
with layout_map(scheme).scope():
    mapped = sequential()


def fitted(network, *examples, **options):
    network.set_weights(first_values)
    told = {} if network is one_device else {"mesh": mesh}
    network.compile(adam(0.03, **told), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return network.fit(*examples, shuffle=False, verbose=0, **options).history["loss"][0]


expected = fitted(one_device, *arrays, batch_size=64)
try:
    found = fitted(mapped, *arrays, batch_size=64)
    outcome = "equal" if abs(found - expected) < 1e-5 else "other"
except tf.errors.OpError as error:
    outcome, message = "error", str(error)
reveal("08-fit", outcome)

# %% dataset-text [markdown]
# `fit` takes the batches from an iterator, and that of a `DTensorDataset` does have layouts.
# The next cell prints the error, and then calls `fit` with one.
# `fit` applies the gradients in the function that computes them, so the all-reduces must be left apart.

# %% dataset
print(message.partition("error: ")[2].splitlines()[0])
dataset = tf.experimental.dtensor.DTensorDataset(
    tf.data.Dataset.from_tensor_slices(arrays),
    mesh=mesh,
    layouts=(layout("batch", UNSHARDED), layout("batch")),
    global_batch_size=64,
    batch_dim="batch",
)
with no_combining():
    found = fitted(mapped, dataset, steps_per_epoch=4)
print("within 0.00001:", abs(found - expected) < 1e-5)

# %% fit-why [markdown]
# `evaluate` and `predict` take such a data set, too, and no arrays either; the table below has all of them.
# (Its mesh must have all devices: on four of eight each batch held only half of its examples,
# each of them twice, and there was no error.)
# A model whose layers got their layouts as arguments has no `LayoutMap`.
# Its `fit` runs with the same data set and reports too small a loss, without an error
# (`tests/tf/test_lesson_08.py`).
#
# ## Keras 3
#
# Keras 3 has an interface of its own for the same purpose, `keras.distribution`,
# with a mesh, layouts and a `LayoutMap`.
# According to [its guide](https://keras.io/guides/distribution/), `set_distribution` is called once,
# before the model is made, and `fit` needs nothing else.
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

# %% predict-keras [markdown]
# Where does the kernel lie?
#
# - [ ] `split` split over `model`, four copies of each half
#   This was asked for.
#   With JAX it comes true.
# - [ ] `copies` whole on each of the eight devices
#   That would be data parallelism:
#   `batch` alone.
# - [x] `CPU:0` whole on the first device
#   It is an ordinary variable on the first device: the distribution was not used.
# - [ ] `error` nowhere: `set_distribution` is refused
#   Keras 3.13 ends in an error.
#   With Keras 3.15 none comes, and no warning.

# %% reveal-keras
distribution = keras.distribution
device_mesh = distribution.DeviceMesh((4, 2), ["batch", "model"], distribution.list_devices("cpu"))
layouts = distribution.LayoutMap(device_mesh)
layouts[".*hidden/kernel"] = (None, "model")
try:
    distribution.set_distribution(distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch"))
    hidden = keras.layers.Dense(48, name="hidden")
    keras.Sequential([keras.Input((1200,)), hidden], name="model")
    kernel = hidden.kernel.value
    found = "split" if hasattr(kernel, "layout") else kernel.device.partition("device:")[2]
except AttributeError:  # Keras 3.13
    found = "error"
distribution.set_distribution(None)
reveal("08-keras", found)

# %% keras-why [markdown]
# With Keras 3.15 there is no error and no warning, and nothing is distributed.
# (With Keras 3.13, as Colab has it, `ModelParallel` ends in an error:
# the module for TensorFlow has no `num_processes`.)
# In the source of Keras 3 the module for TensorFlow, `keras/src/backend/tensorflow/distribution_lib.py`,
# begins with "!!!DO NOT USE!!!" and calls itself a prototype.
# With `KERAS_BACKEND=jax` in the environment before the import,
# and `jax` and `keras` in an environment of their own, the same calls split the kernel:
# see `patterns` in `benchmarks/keras_support/keras_3.py`.
# (The `LayoutMap` of Keras 3 has another rule: in Keras 3.15 a pattern has to fit the *whole* path,
# here `model/hidden/kernel`, and two patterns that fit one path are refused,
# unless one is the path itself.)
#
# ## What works, and what only seems to
#
# Each entry of the table is a run in a process of its own: two dense layers, 20 → 48 → 2.
# "Equals one device": the first device holds as much of every variable and slot as was asked for,
# and numbers and variables, after 20 steps with Adam where there is training,
# differ by at most 0.00001 from those of the same layers without layouts.
# "Not split": the variables are not split as asked; the numbers may be right all the same.
# "No error" says nothing of warnings.
# A dash stands where nothing was asked.
#
# A data set is a `DTensorDataset` for tf_keras and a `keras.utils.PyDataset` for Keras 3.
# In the first column look at steps and `fit`; in the second, no row splits anything.
# `make jax`, and then `python -m benchmarks.results 08_keras`, repeat it; the programs are in
# `benchmarks/keras_support`.
# The first lines name the versions; `keras beside JAX` is the Keras of JAX's environment.

# %% table
from course_lib import measured

recorded = measured.load("08_keras")
print(*(f"{name}: {value}" for name, value in recorded.how.items()), sep="\n")
measured.table(recorded.support)

# %% choose [markdown]
# What follows for a choice today:
#
# - **Only the batch is to be split:** `tf.distribute` (lesson 9), or DTensor as in lesson 3.
# - **Split variables and `fit`:** Keras 3 on JAX, as far as two dense layers on eight virtual CPUs can tell.
#   Check with `variable.value.sharding` that a pattern took effect.
# - **Split variables in TensorFlow:** DTensor with layers of your own, as in lessons 3 to 5,
#   and an optimizer that writes last, as in lesson 7.
#   Or `tf_keras`, if you need its layers: with a mesh for every optimizer and metric, patterns checked,
#   gradients applied outside the function that computes them, and the first steps compared with one device.
# - **Keras 3 on TensorFlow:** not for split variables.

# %% score
score("08")

# %% [markdown]
# ## Takeaways
#
# - tf_keras lays out variables by arguments or by patterns of names.
#   A pattern that fits nothing raises no error.
#   Neither does, in a compiled function, a mesh that was forgotten.
# - A step that writes an optimizer's slots and reads them in the same function can come out wrong:
#   DTensor combines its all-reduces.
#   With the optimizers of tf_keras, apply the gradients outside the function that computes them.
# - Keras 3 distributes with JAX; with TensorFlow its distribution does nothing to variables.
#   Only a comparison with one device, and a look at who holds what, tell.
#
# Lesson 9 begins with `tf.distribute`.
