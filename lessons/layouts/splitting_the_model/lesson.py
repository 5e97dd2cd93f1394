# %% [markdown]
# # Model-parallel and spatial-parallel training
#
# In lessons {number:one_step} and {number:a_run} every device held the whole model.
# What if it is too large for one device?
# What can you split then, what do the devices have to exchange,
# and can a training that began with whole weights go on with split ones?
#
# After this lesson you can
#
# - train one model under data-, model- and spatial-parallel layouts,
#   and say what each device holds and receives;
# - lay out consecutive layers so that they agree, tensor by tensor or from the names of their axes;
# - carry a training from any mesh to any other through its checkpoint.
#
# **Time:** 45 minutes.
# **You need to know:** {lesson:one_step} (a step and its all-reduces) and, of {lesson:a_run},
# what a checkpoint holds.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% schemes-text [markdown]
# ## Three ways to split one model
#
# Eight devices are to train one model.
# `AXES` gives the axes of its tensors names, `MESHES` lists three meshes,
# and `SPLITS` says which mesh dimension splits which axis, if the mesh has it.
# Dimension and axis may have one name, as `batch` has, or two:
# `feature` splits the axis `features`, and `model` splits `hidden`.
#
# A mesh with its splits is a `Plan`.
# Each picture shows one, with the same batch `x` and weights `W1` and `W2`.
# `SIZES` and `drawn` are for these pictures.

# %% pictures
from IPython.display import display

from course_lib import MeshSpec, Plan
from lessons.layouts.splitting_the_model.scheme import Scheme

AXES = {"W1": ("features", "hidden"), "b1": ("hidden",)}
AXES |= {"W2": ("hidden", "classes"), "b2": ("classes",)}
AXES |= {"x": ("batch", "features"), "y": ("batch",)}
SPLITS = {"batch": "batch", "features": "feature", "hidden": "model"}
MESHES = {"data": [("batch", 8)], "model": [("batch", 4), ("model", 2)]}
MESHES["spatial"] = [("batch", 2), ("feature", 2), ("model", 2)]

SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
drawn = {name: AXES[name] for name in ("x", "W1", "W2")}
for scheme, dims in MESHES.items():
    splits = {axis: dim for axis, dim in SPLITS.items() if dim in dict(dims)}
    display(Scheme(Plan(scheme, MeshSpec(dims), splits), drawn, SIZES))

# %% model-text [markdown]
# The picture *data* is of *data parallelism*: the rows of `x` are split,
# and every device holds both weights whole.
# *model* is *model parallelism*: the hidden units are split too, the columns of `W1` and the rows of `W2`.
# *spatial* is what TensorFlow's tutorial calls *spatial parallelism* (not its usual sense):
# the features are split as well, the columns of `x` and the rows of `W1`.
#
# ## One model and one step for all three
#
# The next cell loads the reviews and draws initial values.
# Model and step compute what those of {lesson:one_step} do;
# neither says what is split: the class takes each variable's layout from a dictionary.
#
# `shard` sends each device its part of an array, as in {lesson:one_step}.
# `place` makes an ordinary tensor where the layout is `None`, and else calls `shard`.
# Nothing is evaluated here, so the moving moments of {lesson:a_run} are left out.
# They would be laid out as `b1` is, and an optimizer's slot as its variable.

# %% load
import numpy as np

from course_lib import collectives, data, live, outcome, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

SOURCE = None  # the stand-in, or what COURSE_DATA says; "tfds" is the real set
reviews = data.tf_idf(data.load_imdb(SOURCE))
train_x, train_y = reviews.train.features, reviews.train.labels
draw = np.random.default_rng(0).normal
values = {"W1": draw(0, np.sqrt(2 / 1200), (1200, 48)), "b1": np.zeros(48)}
values |= {"W2": draw(0, np.sqrt(2 / 48), (48, 2)), "b2": np.zeros(2)}
values = {name: value.astype("float32") for name, value in values.items()}


# %% model
def place(array, layout):
    return tf.constant(array) if layout is None else shard(array, layout)


class MLP(tf.Module):
    def __init__(self, values, layouts):
        super().__init__()
        for name, value in values.items():
            kind = tf.Variable if layouts[name] is None else dtensor.DVariable
            setattr(self, name, kind(place(value, layouts[name])))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2


# %% train-step
@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    weights = model.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(learning_rate * gradient)
    return loss / x.shape[0], tf.reduce_mean(tf.cast(tf.argmax(logits, axis=1) == y, tf.float32))


# %% split-hidden [markdown]
# ## Split the hidden units
#
# A single weight of 50,000 × 50,000 numbers takes 10 GB in float32, its gradient as much again,
# and Adam's two averages another 20 GB.
# With whole weights, as in {lesson:one_step}, every device holds these 40 GB, however many there are.
# So split the weight.
#
# Here are the layouts of the model-parallel scheme, tensor by tensor,
# and the shapes of what device 0 holds.

# %% by-hand
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
by_hand = {
    "x": dtensor.Layout(["batch", dtensor.UNSHARDED], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([dtensor.UNSHARDED, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", dtensor.UNSHARDED], mesh),
    "b2": dtensor.Layout([dtensor.UNSHARDED], mesh),
}
mlp = MLP(values, by_hand)
x, y = place(train_x[:64], by_hand["x"]), place(train_y[:64], by_hand["y"])
for name, tensor in {"x": x, "W1": mlp.W1.read_value(), "W2": mlp.W2.read_value()}.items():
    print(name, dtensor.unpack(tensor)[0].shape)

# %% sums-text [markdown]
# Devices 0 and 1 differ only along `model`.
# Both hold the same 16 reviews, and each holds half of the hidden units.
# The mesh has four such pairs.
#
# The gradients are still summed over the reviews, that is over `batch`.
# But each device needs the gradient of its own half of `W1` alone:
# the payload of that all-reduce is 115,200 bytes, not 230,400.

# %% predict-sums [markdown]
# An MLP has one hidden layer of 48 units, with batch normalisation.
# On a mesh of `batch` 4 × `model` 2 its inputs are split over `batch`, and its hidden units over `model`:
# the columns of its first weights, their bias, and the rows of its second weights.
# In one training step, forward and back, how many all-reduces run over `model`?
#
# - [ ] `0`
#   Then each device would have what it needs.
#   But a logit sums over all 48 hidden units, and no device has more than 24 of them.
# - [x] `1`
#   A logit sums over the hidden units, and these are split.
#   Nothing else sums over them.
# - [ ] `2`
#   One forward, for the logits.
#   On the way back the gradient of a hidden unit sums over the classes, which every device has.
# - [ ] `4`
#   That would be one for the gradient of each variable, two weights and two biases.
#   But these sum over the reviews, so they run over `batch`.

# %% reveal-sums
found = collectives(train_step, mlp, x, y, 1e-2)
reveal("splitting_the_model-sums", sum("model" in each.mesh_dims for each in found))

# %% [markdown]
# A hidden unit needs a column of `W1` and whole rows of `x`: a device has both.
# The normalisation takes each hidden unit by itself, over the reviews.
# Then the second product sums over the hidden units.
# Each device of a pair gets partial sums of 16 × 2 logits, 128 bytes, and an all-reduce adds the two.
#
# The way back needs none over `model` here.
# With a layer in front it would: that layer needs the gradient of `x`, which sums over the hidden units.
#
# ## Layouts that must agree
#
# Write the axes of the weights as letters: `W1` has $i, j$ and `W2` has $j, k$.
# The second product sums over the $j$ that the first one leaves.
# Let the letters also stand for what splits these axes, a mesh dimension or nothing:
#
# Layout[W1] = $[i, j]$, Layout[W2] = $[j, k]$, with the same $j$.
#
# What if the two disagree?
# `exchanged` takes a layout of `W2` and lists the collectives of the two products,
# with `x` and `W1` as above; `W2_SPECS` has four layouts to try.


# %% two-layers
def two_layers(x, W1, W2):
    return tf.nn.relu(x @ W1) @ W2


def exchanged(spec):
    W2 = shard(values["W2"], dtensor.Layout(spec, mesh))
    return collectives(two_layers, x, mlp.W1.read_value(), W2)


W2_SPECS = {
    "right": ["model", dtensor.UNSHARDED],
    "whole": [dtensor.UNSHARDED, dtensor.UNSHARDED],
    "columns": [dtensor.UNSHARDED, "model"],
    "rows": ["batch", dtensor.UNSHARDED],
}

# %% predict-second [markdown]
# `x` of shape (64, 1200) is `[batch, unsharded]` and `W1` of shape (1200, 48) is `[unsharded, model]`,
# on a mesh of `batch` 4 × `model` 2.
# Which layout of `W2`, of shape (48, 2), does TensorFlow refuse in `relu(x @ W1) @ W2`?
#
# - [ ] `whole` whole: `[unsharded, unsharded]`
#   Each device has all of `W2` and can take the rows that it needs.
#   That costs memory.
# - [ ] `columns` its columns over `model`: `[unsharded, model]`
#   Then `model` splits the columns of the product, so each device needs all hidden units.
#   TensorFlow gathers them, which costs more, but it runs.
# - [x] `rows` its rows over `batch`: `[batch, unsharded]`
#   The product sums over an axis that `model` splits in one factor and `batch` in the other.
# - [ ] `none` none of them
#   TensorFlow changes a layout where one of the factors is unsharded along the axis.
#   Where both are split, over different dimensions, it gives up.


# %% reveal-second
found = {name: outcome(exchanged, spec) for name, spec in W2_SPECS.items()}
refused = [name for name, result in found.items() if isinstance(result, str)]
reveal("splitting_the_model-second", ", ".join(refused) or "none")

# %% disagreeing tags=["error"]
for name in ("right", "whole", "columns"):
    print(f"{name:8}", *exchanged(W2_SPECS[name]))
try:
    exchanged(W2_SPECS["rows"])
except tf.errors.OpError as error:
    print("rows    ", error.message.partition("error: ")[2].splitlines()[0])

# %% layouts-text [markdown]
# If `model` splits the columns of `W2` (`columns`), it also splits those of the result.
# Each device of a pair then needs all hidden units, which both gather:
# by default by an all-reduce of 16 × 48 numbers, 3,072 bytes.
# Rows of `W2` over `batch` (`rows`) are refused:
# the two factors split the axis of the sum over different dimensions.
#
# A whole `W2` (`whole`) costs the two products nothing more than `right`, but memory.
# And a training step?

# %% whole-step
for name in ("right", "whole"):
    layouts = {**by_hand, "W2": dtensor.Layout(W2_SPECS[name], mesh)}
    found = collectives(train_step, MLP(values, layouts), x, y, 1e-2)
    over_model = [str(each) for each in found if "model" in each.mesh_dims]
    print(f"{name:6} {len(found)=} {over_model=}")

# %% exercise-text [markdown]
# With a whole `W2` the step pays on the way back.
# The gradient of `W2` is split, 24 rows on each device, and the variable needs it whole:
# that is the all-reduce of 384 bytes.
#
# **Exercise 1.** Two layers of another network: `y1 = relu(x @ W1 + b1)` and `y2 = relu(y1 @ W2 + b2)`,
# where `x` has the axes `batch` and `inputs`, `W1` has `inputs` and `hidden`, `W2` has `hidden` and `second`.
# On the mesh `wide` below, `batch` splits the axis `batch`, `model` splits `hidden`,
# and nothing splits another axis.
# Write the layouts of the six tensors `W1`, `b1`, `y1`, `W2`, `b2`, `y2`.

# %% exercise-layouts
wide = dtensor.create_mesh([("batch", 2), ("model", 4)], device_type="CPU")
layouts = {}
# solution begin
layouts["W1"] = dtensor.Layout([dtensor.UNSHARDED, "model"], wide)
layouts["b1"] = dtensor.Layout(["model"], wide)
layouts["y1"] = dtensor.Layout(["batch", "model"], wide)
layouts["W2"] = dtensor.Layout(["model", dtensor.UNSHARDED], wide)
layouts["b2"] = dtensor.Layout([dtensor.UNSHARDED], wide)
layouts["y2"] = dtensor.Layout(["batch", dtensor.UNSHARDED], wide)
# solution end

# %%
check("splitting_the_model-layouts", layouts)

# %% table [markdown]
# ## Or names of axes
#
# `make_layouts` makes layouts from `AXES`, `SPLITS` and `MESHES` at the beginning.
# `LAYOUTS` holds them, scheme by scheme.
# Its `one` is one device without DTensor: no layouts.
# The cell also counts the model-parallel layouts that equal those by hand,
# and prints three spatial-parallel ones.


# %% make-layouts
def make_layouts(dims):
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    entry = {axis: dim for axis, dim in SPLITS.items() if dim in mesh.dim_names}
    specs = {name: [entry.get(axis, dtensor.UNSHARDED) for axis in axes] for name, axes in AXES.items()}
    return {name: dtensor.Layout(spec, mesh) for name, spec in specs.items()}


LAYOUTS = {scheme: make_layouts(dims) for scheme, dims in MESHES.items()}
LAYOUTS["one"] = dict.fromkeys(AXES)
equal = [name for name in AXES if LAYOUTS["model"][name] == by_hand[name]]
print(f"{len(equal)=}, {len(by_hand)=}")
for name in ("x", "W1", "W2"):
    print("spatial", name, LAYOUTS["spatial"][name].sharding_specs)

# %% features [markdown]
# All six are equal.
# `SPLITS` splits each axis in one place, so layers that give an axis the same name cannot disagree.
# By hand a slip is refused, as the rows of `W2` over `batch` were,
# or costs exchanges, computing or memory in silence, as its columns over `model` did exchanges.
#
# But to split an axis in `W1` and not in `W2`, give it two names, say `hidden_in` and `hidden_out`.
# Nothing checks the names: one that `SPLITS` lacks, as it lacks `classes`, or that is misspelt, is not split.
# And, as by hand, a layout in which one mesh dimension splits two axes is refused.
#
# ## Split the features as well
#
# Model parallelism gives each device whole rows of `x`.
# A single example can be too large for that: a scan of 512 × 512 × 512 voxels takes 0.54 GB in float32,
# and 16 feature maps of that size take 8.6 GB.
# Splitting its height, width or depth is *spatial parallelism*;
# [Hou and others](https://arxiv.org/abs/1909.03108) train a network on such scans so.
# There a convolution needs the borders of its neighbours' parts, and devices exchange these *halos*.
#
# This lesson runs instead what TensorFlow's
# [tutorial](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial) calls spatial:
# the feature axis is split.
# Our features are words (column 0 is all the rest),
# and a dense layer reads no neighbour's border: none is exchanged.
# But here too no device holds a whole example.

# %% predict-features [markdown]
# On a mesh of `batch` 2 × `feature` 2 × `model` 2, `x` of shape (64, 1200) is `[batch, feature]`
# and `W1` of shape (1200, 48) is `[feature, model]`: the first product of an MLP with one hidden layer.
# In a training step, forward and back, what is the payload of all all-reduces over `feature`, in bytes:
# what a device holds as their results?
# A number takes 4 bytes.
#
# - [ ] `0`
#   Then each device would have what it needs.
#   But a hidden unit sums over all 1,200 features, and no device has more than 600 of them.
# - [x] `3072`
#   Only the first product sums over the features.
#   A device has sums of 32 reviews and 24 hidden units.
# - [ ] `57600`
#   That is its part of the gradient of `W1`.
#   It sums over the reviews, so it runs over `batch`.
# - [ ] `60672`
#   That adds the gradient of `W1`, 57,600 bytes, to the sums of the first product, 3,072 bytes.
#   But the gradient sums over the reviews, not over the features.

# %% reveal-features
spatial = LAYOUTS["spatial"]
batch = shard(train_x[:64], spatial["x"]), shard(train_y[:64], spatial["y"])
found = collectives(train_step, MLP(values, spatial), *batch, 1e-2)
payload = sum(each.payload_bytes for each in found if "feature" in each.mesh_dims)
reveal("splitting_the_model-features", payload)

# %% product-text [markdown]
# One all-reduce over `feature`, in the first product:
# it adds partial sums of 32 reviews × 24 hidden units, 3,072 bytes.
# On the way back nothing sums over the features.
# TensorFlow put the all-reduce there; in this exercise you do its work.
#
# **Exercise 2.** Write `multiply(x_parts, W1_parts, mesh)`: the product `x @ W1` from what each device holds.
#
# - `x_parts` and `W1_parts` are lists with a tensor for each device, as `dtensor.unpack` returns them,
#   under the layouts `[batch, feature]` and `[feature, model]`.
# - `mesh.local_device_locations()` says where each device stands,
#   such as `{"batch": 0, "feature": 1, "model": 0}`.
# - Multiply parts of one device only, then add where it is needed.
#   Return the list of what each device holds of the product under `[batch, model]`,
#   in the order of `mesh.local_device_locations()`.
#
# The check uses three meshes of eight devices with these dimensions, in several orders and sizes.


# %% exercise-multiply
def multiply(x_parts, W1_parts, mesh):
    # solution begin
    products = [x @ W1 for x, W1 in zip(x_parts, W1_parts)]
    totals = {}
    blocks = [(at["batch"], at["model"]) for at in mesh.local_device_locations()]
    for block, product in zip(blocks, products):
        totals[block] = totals.get(block, 0) + product
    return [totals[block] for block in blocks]
    # solution end


# %%
check("splitting_the_model-product", multiply)

# %% goes-on [markdown]
# ## One training, three schemes
#
# `train` is a generator of records, one a step.
# If the folder has a checkpoint, it restores the newest, under whatever layouts that was written,
# and checks that every variable was in it.
# It saves after each epoch, after its last step, and after the step at which it is closed.


# %% train
def train(layouts, folder, steps, batch_size=64, learning_rate=1e-2):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=MLP(values, layouts), step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
    steps_per_epoch = len(train_y) // batch_size
    try:
        for _ in range(steps):
            epoch, at = divmod(int(step), steps_per_epoch)
            rows = slice(at * batch_size, (at + 1) * batch_size)
            x, y = place(train_x[rows], layouts["x"]), place(train_y[rows], layouts["y"])
            loss, accuracy = train_step(checkpoint.model, x, y, learning_rate)
            counted = {"step": int(step.assign_add(1)), "epoch": epoch + 1}
            if at + 1 == steps_per_epoch:
                manager.save()
            yield {**counted, "loss": float(loss), "accuracy": float(accuracy)}
    except GeneratorExit:  # closed at a yield, where step and model agree
        pass
    manager.save()


# %% through-text [markdown]
# `through_all` does an epoch data-parallel, one model-parallel and one spatial-parallel:
# the scheme changes after the steps 126 and 252.

# %% continued
import tempfile

folder, per_epoch = tempfile.mkdtemp(), len(train_y) // 64


def through_all(folder):
    for scheme in MESHES:
        yield from train(LAYOUTS[scheme], folder, per_epoch)


history = await live(through_all(folder), steps=3 * per_epoch)

# %% same-text [markdown]
# A mean of 20 steps shows no jump there.
# But does each scheme compute what one device computes?
# Five data-parallel steps are saved; from that checkpoint each scheme, and one device without DTensor,
# takes the next five.
# Each gets the folder as a copy, in which it saves.

# %% same
import shutil

early = tempfile.mkdtemp()
list(train(LAYOUTS["data"], early, 5))
losses = {}
for scheme, scheme_layouts in LAYOUTS.items():
    copy = shutil.copytree(early, tempfile.mkdtemp(), dirs_exist_ok=True)
    losses[scheme] = [record["loss"] for record in train(scheme_layouts, copy, 5)]
    print(f"{scheme:8}", *(f"{loss:.2f}" for loss in losses[scheme]))
largest_difference = np.ptp(list(losses.values()), axis=0).max()
print(f"{largest_difference=:.3f}")

# %% disk-text [markdown]
# To three digits the losses are equal.
# The loss rises from step 6 to 9 on one device too.
# Over many steps rounding can part the runs, as {lesson:one_step} showed.
# The book's page *Measured results* says how far, in three epochs.
#
# ## A checkpoint belongs to no mesh
#
# Why can every scheme read it?
# First see how much is in the files.

# %% predict-disk [markdown]
# A model lies on eight devices.
# Its largest variable, nearly all of the model, is cut into four blocks, and each block lies on two devices.
# The model is saved.
# Divide the bytes of the data files by the bytes of all variables, each counted once.
# About what comes out?
#
# - [ ] `0.25`
#   That much of the large variable lies on one device.
#   The other blocks are needed too.
# - [x] `1`
#   Each block is written once, by one of the devices that hold it.
# - [ ] `2`
#   The devices hold each block twice.
#   But the two are equal, so one of them is enough.
# - [ ] `8`
#   Then each device would write the whole model, and none of them has it.

# %% reveal-disk
from pathlib import Path

files = Path(tempfile.mkdtemp())
tf.train.Checkpoint(model=MLP(values, LAYOUTS["spatial"])).write(str(files / "weights"))
on_disk = sum(file.stat().st_size for file in files.glob("*.data-*"))
reveal("splitting_the_model-disk", round(on_disk / sum(value.nbytes for value in values.values())))

# %% blocks-text [markdown]
# Each block of `W1` has 57,600 bytes.
# Eight devices hold 460,800 bytes of `W1`; the files, by the ratio, hold it once, 230,400.
#
# An index in the checkpoint says which part of the *whole* variable each block is.
# So `tf.train.list_variables` shows `W1` with its global shape,
# and TensorFlow can give any mesh other parts of it.
# The cell saves the spatial-parallel model and prints that list.
# Then it restores the checkpoint under each scheme, into a model of zeros,
# and counts the numbers on all devices that differ from those saved.

# %% restored
saved = tempfile.mkdtemp() + "/weights"
tf.train.Checkpoint(model=MLP(values, LAYOUTS["spatial"])).write(saved)
shapes = dict(tf.train.list_variables(saved))
print({key.split("/")[1]: shape for key, shape in shapes.items() if shape})
zeros = {name: 0 * value for name, value in values.items()}
for scheme in MESHES:
    other, differing = MLP(zeros, LAYOUTS[scheme]), 0
    tf.train.Checkpoint(model=other).read(saved).assert_consumed()
    for name, value in values.items():
        wanted = dtensor.unpack(shard(value, LAYOUTS[scheme][name]))
        held = dtensor.unpack(getattr(other, name).read_value())
        differing += sum(np.sum(ours != theirs) for ours, theirs in zip(held, wanted))
    print(f"{scheme:8} differing={int(differing)}")

# %% costs-text [markdown]
# None differs; but `b1` and `b2` were zeros anyway.
#
# ## Which scheme?
#
# The next cell compares the schemes, for batches of 64 and 1,024 reviews.
# `in_one_step` counts the bytes of `x` and of the variables that device 0 holds (`held`),
# and lists the collectives of a step before TensorFlow joins several into one (`found`).
# `payload` is what a device holds after all of them.


# %% costs
def in_one_step(scheme, rows):
    layouts = LAYOUTS[scheme]
    x, y = shard(train_x[:rows], layouts["x"]), shard(train_y[:rows], layouts["y"])
    model = MLP(values, layouts)
    tensors = [x, *(variable.read_value() for variable in model.variables)]
    held = sum(dtensor.unpack(tensor)[0].numpy().nbytes for tensor in tensors)
    return held, collectives(train_step, model, x, y, 1e-2)


for rows in (64, 1024):
    for scheme in MESHES:
        held, found = in_one_step(scheme, rows)
        payload = sum(each.payload_bytes for each in found)
        print(f"{rows=:4} {scheme:8} {held=:9,} {len(found)=} {payload=:7,}")

# %% lanes-text [markdown]
# When in a step do the devices exchange these bytes?
# Here is the step as lanes, one for each device. Choose a mesh, and press *Forward*:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("spatial", normalised=True)

# %% lab-text [markdown]
# With 64 reviews the spatial scheme holds least, and its payload is the smallest.
# But it has the most collectives, and in each that is not joined devices wait for each other.
#
# With 1,024 reviews its payload is still the smallest, but the data-parallel scheme holds least:
# in the other two, devices that differ only along `model` hold the same part of `x`.
# Gradients, hidden layers and an optimizer's averages come on top.
#
# Of the payload, gradients do not depend on the batch;
# partial sums of products grow in proportion to it.
#
# The book's page *What a step takes* times a step on two cores, part by part.
# On GPUs times and order may differ.
#
# ## The training lab
#
# The widget trains with `train`, under the schemes above or a mesh and splits of your own.
# It keeps its runs in the folder `training_lab`, beside this notebook:
# restart the kernel, and they can go on.
#
# Choose *data parallel* and press **Run**, then *spatial parallel* and press it again.
# The curves nearly coincide; the lab gives the largest differences of loss and accuracy.
# Then ask for an epoch more, choose a run under *Start from*, and another scheme.
#
# With a batch size of 1,024, find a mesh and splits
# under which variables, rows and labels take less than 700,000 bytes on a device,
# which sends less than 300,000 in a step.
# What is sent is counted around a ring: only in rings of two, as in the spatial scheme,
# does it equal the payload above.
# Nor did `held` count labels.

# %% lab
from lessons.layouts.splitting_the_model.lab import TrainingLab

subject = {"meshes": MESHES, "splits": SPLITS, "axes": AXES, "sizes": SIZES}
TrainingLab(train, "training_lab", **subject, num_examples=len(train_y))

# %% takeaways [markdown]
# ## The plain program
#
# [`splitting_the_model.py`](../plain/splitting_the_model.py) is this lesson in one file
# that needs TensorFlow and NumPy alone.
# `AXES`, `SPLITS`, `MESHES`, `make_layouts`, `MLP`, `train_step` and `train` are those above.
# It trains ten steps under each scheme in turn, each from the checkpoint that the one before left,
# and beside it on one device.
# It ends with an error if two losses differ by 0.001 or more.
# Given a folder, it goes on from there the next time;
# names of schemes after it choose the order.
#
# ## Takeaways
#
# - Layouts alone make a model data-, model- or spatial-parallel.
#   Consecutive layers should split the axis that they share in the same way:
#   otherwise TensorFlow refuses the product, or exchanges more in silence,
#   in the product or on the way back.
# - Where a step sums over a split axis, devices exchange.
#   Split batches send mainly gradients and the sums of the moments,
#   split features and hidden units the partial sums of products.
# - A checkpoint holds each block of a variable once, and no mesh: it restores under any layouts, bit for bit.
#
# {Lesson:save_and_serve} takes trained weights off the mesh and serves them.

# %% score
score("splitting_the_model")
