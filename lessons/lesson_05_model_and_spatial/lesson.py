# %% [markdown]
# # 5. Model-parallel and spatial-parallel training
#
# In lessons 3 and 4 every device held the whole model.
# What if the model is too large for one device, or a single example is?
# What do you split then, and what do the devices have to tell each other?
# And can a training that began with whole weights go on with split ones?
#
# After this lesson you can
#
# - train one model data-, model- and spatial-parallel, and say what each device holds and receives;
# - lay out consecutive layers so that they agree, by hand and by a plan;
# - carry a training from any mesh to any other through its checkpoint;
# - find a plan that keeps within given bytes per device and bytes sent.
#
# **Time:** 45 minutes.
# **You need to know:** lesson 3 (a step and its all-reduces) and, of lesson 4, what a checkpoint holds.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.
# > Unless `SOURCE` or `COURSE_DATA` says otherwise, the reviews that the cells train on are a made-up
# > stand-in.
#
# ## An epoch to begin with
#
# Data, model and spatial parallelism are *schemes*: each says what to split.
# A `Plan` is a scheme in code: it names a mesh, and which of its dimensions splits which axis of the tensors.
# The third cell makes a plan for each scheme.
# With the data-parallel one it trains the model of lesson 4 for an epoch,
# with the batch split over eight devices and whole weights on each, and leaves a checkpoint.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% load-reviews
import tempfile

import numpy as np
from IPython.display import display

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, Plan, data
from course_lib import data_parallel, fetch_layout, live, model_parallel
from course_lib import models, observed, pack, spatial_parallel
from course_lib import training

tf = course_lib.start_tensorflow()
# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
reviews = data.tf_idf(data.load_imdb(SOURCE))
values = models.initial_values(seed=0)

# %% first-run
plans = {"data": data_parallel(8), "model": model_parallel(4, 2), "spatial": spatial_parallel(2, 2, 2)}
folder = training.CheckpointFolder(tempfile.mkdtemp())
train_set, held_out = reviews.train.hold_out(4_900)
model = models.MLP(values, plans["data"])
run = training.train(model, train_set, held_out, epochs=1, checkpoints=folder)
history = await live.watch(run)

# %% split-hidden [markdown]
# ## Split the hidden units
#
# The variables of this model take 231,368 bytes, and each of the eight devices holds all of them.
# That is little.
# But a single weight of 50,000 × 50,000 numbers takes 10 GB in float32, its gradient as much again,
# and Adam's averages take 20 GB more.
# Then the model itself must be split: that is *model parallelism*.
#
# The plan `plans["model"]` arranges the eight devices in a mesh of two dimensions, `batch` 4 × `model` 2.
# `batch` splits the axis of the reviews, as before.
# `model` splits the axis `hidden`, wherever a tensor has it:
#
# | tensor | its axes | its layout |
# | --- | --- | --- |
# | x, the reviews | batch, features | `[batch, unsharded]` |
# | W1, first weight | features, hidden | `[unsharded, model]` |
# | b1, first bias | hidden | `[model]` |
# | W2, second weight | hidden, classes | `[model, unsharded]` |
# | b2, second bias | classes | `[unsharded]` |
# | moving mean, moving variance | hidden | `[model]` |

# %% model-scheme
AXES = {"x": ("batch", "features"), "W1": ("features", "hidden"), "W2": ("hidden", "classes")}
SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
plans["model"].of(AXES, SIZES)

# %% sums-text [markdown]
# Devices 4 and 5 differ only along `model`, so both receive the rows 32 to 47.
# Together they hold the 48 hidden units once, 24 each, and what nothing splits, like b2, lies on both.
# They are a *model replica*.
# The mesh has four of these, two devices each, and each replica gets a quarter of the batch.
#
# The gradients are still summed over the reviews.
# But each device needs only the gradient of its own half of W1.
# So it brings 115,200 bytes into this all-reduce in place of 230,400,
# and four devices take part in it instead of eight.
#
# What else do the devices have to tell each other?
# After your prediction, a cell looks at the collectives that TensorFlow really inserts
# into forward and backward pass, and counts those that run over `model`.

# %% predict-sums [markdown]
# In a step of the model-parallel MLP, forward and back: how many all-reduces run over `model`, that is within
# a replica?
#
# - [ ] `0`
#   Then each device would have what it needs.
#   But a logit sums over all 48 hidden units, and no device has more than 24 of them.
# - [x] `1`
#   A logit sums over the hidden units, and these are split.
#   Nothing else sums over them.
# - [ ] `2`
#   One forward for the logits, but none on the way back: the gradient of a hidden unit sums over the classes,
#   which every device has.
#   A layer in front would need one.
# - [ ] `4`
#   That would be one for the gradient of each trained variable.
#   But these sum over the reviews, so they run over `batch`.


# %% reveal-sums
rows, labels = train_set.features[:64], train_set.labels[:64]


def gradients(model, inputs, labels):
    with tf.GradientTape() as tape:
        logits = model(inputs)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tape.gradient(losses, model.trained)


def step_on(plan):
    inputs = pack(rows, plan.layout(("batch", "features")))
    packed_labels = pack(labels, plan.layout(("batch",)))
    arguments = models.MLP(values, plan), inputs, packed_labels
    return observed.collectives(gradients, *arguments, mesh=plan.mesh)


in_replica = [each for each in step_on(plans["model"]) if "model" in each.mesh_dims]
reveal("05-sums", len(in_replica))

# %% sums-why [markdown]
# A hidden unit needs its column of W1 and whole rows of `x`: a device has both.
# Normalisation takes each hidden unit for itself, over the reviews:
# its sums run over `batch`, like those of the gradients.
# Then the second layer contracts `hidden`, the axis that is split: each device gets a partial sum
# of 16 × 2 logits, 128 bytes, and an all-reduce over `model` adds the two.
# The way back needs none over `model` here: the gradient of a hidden unit sums over the classes,
# which every device has.
# A layer in front of these two would need one, since the gradient of `x` sums over the hidden units.
#
# ## Layouts that must agree
#
# Write the axes of the two weights as letters: $W_1$ has $i, j$ and $W_2$ has $j, k$.
# The second product sums over the $j$ that the first one leaves.
# If $p$, $q$ and $r$ are what splits the axes $i$, $j$ and $k$,
# the two layouts are Layout[W1] = $[p, q]$ and Layout[W2] = $[q, r]$, with the same $q$.
#
# Many programs pass a layout to each layer by hand.
# Then only care keeps them in agreement.
# The next cells multiply under `[unsharded, model]` for W1 and several layouts for W2.

# %% two-layers
grid = plans["model"].mesh
x = pack(rows, LayoutSpec(["batch", UNSHARDED], grid))
w1 = pack(values["hidden_weight"], LayoutSpec([UNSHARDED, "model"], grid))


def two_layers(x, w1, w2):
    return tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)


def collectives_with(*entries):
    w2 = pack(values["logits_weight"], LayoutSpec(entries, grid))
    return observed.collectives(two_layers, x, w1, w2, mesh=grid)


print(*collectives_with("model", UNSHARDED))

# %% predict-whole [markdown]
# `W1` is split over `model` as before, but `W2` is `[unsharded, unsharded]`.
# How many more bytes does a device bring into the all-reduces of this product than with `[model, unsharded]`?
#
# - [x] `0`
#   Each device has all of `W2`, so it takes the rows that it needs and ignores the others.
#   What this costs is memory.
# - [ ] `384`
#   That is all of `W2`: so much is brought in where `W2` has to be gathered.
#   Here each device holds all of it already.
# - [ ] `refused` No number: TensorFlow refuses such a product
#   It refuses a summed axis that is split over different mesh dimensions in the two factors.
#   Split in one and unsharded in the other is allowed.

# %% reveal-whole
payload = [
    sum(each.payload_bytes for each in collectives_with(*entries))
    for entries in (["model", UNSHARDED], [UNSHARDED, UNSHARDED])
]
reveal("05-whole", payload[1] - payload[0])

# %% [markdown]
# One of the two may be unsharded.
# If the dimension of the other splits nothing else in the product, each device takes the part that it needs.
# If that dimension also splits another axis of the product, as `batch` splits the rows of `x`,
# the split factor is gathered first.
#
# Next, W2 with its *columns* over `model`, and W2 with its rows over `batch`.
# The first is legal but expensive: the hidden units of a replica have to be gathered on each of its devices.
# (On CPUs TensorFlow gathers by an all-reduce of the whole, here 16 × 48 numbers.)
# The second disagrees: `model` splits $j$ in one factor, `batch` in the other.
# The first printed line is the exchange of the first product.
# Then come two messages on the second: TensorFlow's, and the course's, given before TensorFlow runs.

# %% disagreeing tags=["error"]
from course_lib import product

print(*collectives_with(UNSHARDED, "model"))
try:
    collectives_with("batch", UNSHARDED)
except tf.errors.OpError as error:
    print(str(error).partition("error: ")[2].splitlines()[0])
hidden = LayoutSpec(["batch", "model"], grid).of((64, 48))
try:
    product(hidden, LayoutSpec(["batch", UNSHARDED], grid).of((48, 2)))
except course_lib.CourseError as error:
    print(error)

# %% strict-names [markdown]
# A `Plan` cannot get there.
# It says once which mesh dimension splits the axis named `hidden`, and each layout follows:
# there is no second place that could say something else.
# A plan can still be wrong: one mesh dimension for two axes of one variable or of the input,
# an axis that the model lacks, or an axis of a variable whose length does not divide.
# This is refused when a model is made with it.
# A batch that does not divide is refused when the training starts.
# And a plan can be legal but expensive.
# Let `batch`, of eight devices, split the batch and the hidden units:
# with 1,024 reviews a device then sends 4.3 MB in a step, and 0.4 MB if it splits the batch alone.
# (`step_collectives`, further down, counts these.)
#
# That is a trade-off.
# Layouts by hand can say what no plan of this kind can:
# W1 split along `hidden` and W2 whole, for example, or one axis split in one layer and not in the next.
# They can also disagree, and then the first step fails.
# Some models need one axis laid out in two ways.
# A plan then needs two names for it, say `hidden_in` and `hidden_out`,
# and nothing checks that the two fit together.
#
# **Exercise 1.** Two layers of another network: `y1 = relu(x W1 + b1)` and `y2 = relu(y1 W2 + b2)`.
# W1 has the axes inputs and `hidden`, W2 `hidden` and `second`.
# In the mesh below `batch` splits the batch, `model` splits `hidden`, and nothing splits another axis.
# Write the layouts of the six tensors.

# %% exercise-layouts
mesh, layouts = MeshSpec([("batch", 2), ("model", 4)]), {}
# solution begin
layouts["W1"] = LayoutSpec([UNSHARDED, "model"], mesh)
layouts["b1"] = LayoutSpec(["model"], mesh)
layouts["y1"] = LayoutSpec(["batch", "model"], mesh)
layouts["W2"] = LayoutSpec(["model", UNSHARDED], mesh)
layouts["b2"] = LayoutSpec([UNSHARDED], mesh)
layouts["y2"] = LayoutSpec(["batch", UNSHARDED], mesh)
# solution end

# %%
check("05-layouts", layouts)

# %% split-features [markdown]
# ## Split the features as well
#
# Model parallelism gave each device whole rows of `x`.
# One example can be too large for that if it fills a space:
# an image with its height and width, a volume with its depth, a video with its time.
# A scan of 512 × 512 × 512 voxels takes 512 MiB in float32,
# and 16 feature maps of that size take 8 GiB, all for a single example.
# Splitting the batch does not help there, but splitting height, width or depth does:
# that is *spatial parallelism*.
# [Hou and others](https://arxiv.org/abs/1909.03108) train a network on such scans in this way.
#
# In our rows a feature is a word, and neighbours mean nothing, but they can be split as well.
# `plans["spatial"]` has a mesh of three dimensions, `batch` 2 × `feature` 2 × `model` 2.
# `feature` splits the axis `features`, which `x` and W1 share:
# `x` is `[batch, feature]`, W1 `[feature, model]` and W2 `[model, unsharded]`.
# Two devices that differ only along `feature` have the same 32 reviews, and half of the words of each,
# with the rows of W1 for just these words.

# %% spatial-scheme
plans["spatial"].of(AXES, SIZES)

# %% predict-features [markdown]
# In a step of the spatial-parallel MLP, forward and back: how many bytes does a device bring into all-reduces
# over `feature`?
# A number takes 4 bytes.
#
# - [ ] `0`
#   Then each device would have what it needs.
#   But a hidden unit sums over all 1,200 features, and no device has more than 600 of them.
# - [x] `3072` 3,072
#   Only the first product sums over the features.
#   A device has partial sums of 32 reviews and 24 hidden units, 4 bytes each.
# - [ ] `57600` 57,600
#   That is its part of the gradient of `W1`.
#   It sums over the reviews, so it runs over `batch`: devices that differ along `feature` hold other rows of
#   `W1`.
# - [ ] `60672` 60,672
#   That adds the gradient of `W1` to the partial sums of `x W1`.
#   But the gradient sums over the reviews, not over the features.

# %% reveal-features
in_step = step_on(plans["spatial"])
reveal("05-features", sum(each.payload_bytes for each in in_step if "feature" in each.mesh_dims))

# %% product-text [markdown]
# Only the first product sums over the features.
# The gradient of W1 is split as W1 is, and it sums over the reviews: its all-reduce runs over `batch`.
#
# In the next exercise you add up the partial sums by hand.
# `mesh.groups("feature")` lists the devices that differ only along `feature`, group by group.
#
# **Exercise 2.** Write `multiply(x_parts, weight_parts, mesh)`,
# the product of `x` and W1 from their components.
# `x_parts[d]` and `weight_parts[d]` are what device `d` holds, NumPy arrays under the layouts
# `[batch, feature]` and `[feature, model]`.
# Return a list with what each device holds of the product under `[batch, model]`.
# Each device multiplies only what it holds; then the partial sums are added where they belong.
# (The check sees the result alone.)
# The meshes have `feature`, some lack `batch` or `model`, and the order of the dimensions differs.


# %% exercise-multiply
def multiply(x_parts, weight_parts, mesh):
    # solution begin
    components = [x @ weight for x, weight in zip(x_parts, weight_parts)]
    for group in mesh.groups("feature"):
        total = sum(components[device_id] for device_id in group)
        for device_id in group:
            components[device_id] = total
    return components
    # solution end


# %%
check("05-product", multiply)

# %% images [markdown]
# ## What a convolution exchanges
#
# A convolution differs from our product.
# An output depends on its neighbourhood only, not on all inputs.
# So the forward pass of a convolution adds up nothing over the split axes;
# instead each device receives the border of its neighbours' parts, the *halo*.
# The backward pass exchanges borders as well.
# The filters are small and lie whole on every device.
# Their gradient is a sum over all positions: an all-reduce over the dimensions that split the space, too.
# The course does not run this; the paper of Hou and others describes it.
#
# ## The training goes on
#
# The checkpoint of the first epoch was written by eight devices with whole weights.
# The next cell trains a second epoch model-parallel and a third one spatial-parallel,
# each from the checkpoint of the one before.

# %% continued
for epochs, name in ((2, "model"), (3, "spatial")):
    model = models.MLP(values, plans[name])
    run = training.train(model, train_set, held_out, epochs=epochs, checkpoints=folder)
    history = await live.watch(run, history)

# %% same-text [markdown]
# Does each plan compute what one device computes?
# A smoothed curve cannot tell.
# So five steps are trained data-parallel and saved.
# From this checkpoint four runs take the next ten steps, with the same reviews:
# one on one device, and one under each plan.
# The cell that follows the card does it.

# %% predict-same [markdown]
# How far do the losses of the next ten steps under the three plans lie from those on one device?
#
# - [ ] `equal` they are equal to the bit
#   They are the same sums, but split over devices they are added in another order, and float32 rounds after
#   each addition.
# - [x] `rounding` they differ by less than 0.001
#   The sums are the same, but added in another order, so that rounding differs.
# - [ ] `different` they differ by 0.001 or more
#   Another mesh changes who computes what, not what is computed: the reviews, the values and the formulas are
#   the same.


# %% reveal-same
def next_losses(plan, count):
    model = models.MLP(values, plan)
    run = training.train(model, train_set, epochs=1, checkpoints=early)
    return run, [next(run).loss for _step in range(count)]


early = training.CheckpointFolder(tempfile.mkdtemp())
run, _first = next_losses(plans["data"], 5)
run.close()
losses = {name: next_losses(plan, 10)[1] for name, plan in {"one": None, **plans}.items()}
gap = np.ptp(list(losses.values()), axis=0).max()
reveal("05-same", "equal" if gap == 0 else "rounding" if gap < 1e-3 else "different")

# %% losses
for name, found in losses.items():
    print(f"{name:8}", *(f"{loss:.2f}" for loss in found[1:5]))
print("equal to the bit:", gap == 0)
print("all within 0.0001:", gap < 1e-4)

# %% checkpoint-text [markdown]
# The losses of steps 7 to 10 are the same to the printed digits, and they rise on one device as well.
# (Step 6 is not printed: its loss is close to 0.825, and rounding could tip its second digit.)
# Single steps may agree to the bit; over all ten steps the losses do not.
# Over an epoch or more, runs from the initial values can drift apart all the same:
# the real reviews, below, show when and by how much.
#
# ## A checkpoint belongs to no mesh
#
# What was in that file, so that every mesh could go on from it?
# To see it, the next cells save another checkpoint: a model alone, under the spatial plan.
# `feature` and `model` cut W1 in four blocks, and each block lies on two devices, which `batch` makes copies:
# eight devices hold 57,600 bytes of W1 each, 460,800 in all.
# Each device can write what it holds.

# %% predict-disk [markdown]
# The data files of the checkpoint are added up and divided by the bytes of the model's variables, each
# counted once.
# What comes out?
#
# - [ ] `0.25` about 0.25
#   That is one device's part of `W1`.
#   The other parts are needed too.
# - [x] `1.0` about 1
#   Each block is written once, by one of the devices that hold it: the replicas are equal.
# - [ ] `2.0` about 2
#   The devices hold `W1` twice.
#   But the copies are equal, so that one of them is enough.
# - [ ] `8.0` about 8
#   Then each device would write the whole model, and none of them has it.

# %% reveal-disk
spatial = models.MLP(values, plans["spatial"])
by_blocks = training.CheckpointFolder(tempfile.mkdtemp())
by_blocks.save(0, {}, model=spatial)
files = by_blocks.latest().path.glob("variables.data-*")
sizes_on_disk = sorted(file.stat().st_size for file in files)
variables_bytes = sum(value.nbytes for value in values.values())
reveal("05-disk", round(sum(sizes_on_disk) / variables_bytes, 1))

# %% restored-text [markdown]
# Each of the four blocks is written once, each to another file;
# two of these files hold the small variables as well.
# An index says which part of the *whole* variable each block is;
# mesh, layout and devices are not in it.
# So another mesh can be given other parts of the same variable.
#
# The next cell restores the checkpoint on a mesh of another form, `feature` 8,
# under a plan that splits nothing but the features.
# The pictures show who held which block of W1 before, and who holds which afterwards.
# Then the cell restores the checkpoint under every plan and on one device,
# and counts the numbers whose bits differ from those that were saved.

# %% ownership
print(sum(size > 50_000 for size in sizes_on_disk), "files with a block of W1")
by_features = Plan("features", MeshSpec([("feature", 8)]), {"features": "feature"})
restored = models.MLP(models.initial_values(seed=1), by_features)
by_blocks.restore_latest(model=restored)
weights = spatial.hidden_weight, restored.hidden_weight
display(*(fetch_layout(weight).of((1200, 48), element_bytes=4) for weight in weights))

saved = spatial.values()
for name, plan in {"one": None, **plans, "features": by_features}.items():
    model = models.MLP(models.initial_values(seed=1), plan)
    by_blocks.restore_latest(model=model)
    found = model.values()
    bits = [(found[variable].view("int32"), saved[variable].view("int32")) for variable in saved]
    differing = sum(int((ours != theirs).sum()) for ours, theirs in bits)
    print(f"{name:8} {differing} of {sum(ours.size for ours, _theirs in bits):,} numbers differ")
    assert differing == 0

# %% restore-text [markdown]
# `tests/tf/test_checkpoints.py` does this for every pair of plans and one device, in both directions.
#
# **Exercise 3.** Write what a restore under another mesh has to do:
# `restore(components, before, after)` turns the components of a tensor on one mesh
# into those of the same tensor on another.
# `components[d]` is what device `d` of the old mesh holds, a NumPy array.
# `before` and `after` are shardings, the values that the pictures above were drawn from:
# `before.global_shape` is the shape of the whole tensor, `after.mesh.size` the number of devices,
# and `after.shards[d]` the part that device `d` holds, a tuple of slices that can index an array.
# Return a list with the component of each device of the new mesh, with the dtype of the old ones.
# You may put the whole tensor together first;
# where no device has room for that, the parts are copied one by one.
# The check packs real tensors, hands your function their components, and packs what it returns.


# %% exercise-restore
def restore(components, before, after):
    # solution begin
    whole = np.empty(before.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] = component
    return [whole[after.shards[device_id]] for device_id in range(after.mesh.size)]
    # solution end


# %%
check("05-restore", restore)

# %% choose-text [markdown]
# ## Which plan?
#
# Each split makes something smaller and adds an exchange.
# The next cell prints, for each plan and a batch of 64,
# the bytes that a device holds of the reviews and of the variables
# (gradients, activations and an optimizer's averages come on top),
# and the bytes that it sends in a step if each collective runs as a ring.
# `step_collectives` predicts the collectives of the MLP's step under any plan, without TensorFlow;
# below stand those of the spatial plan.
# (`n` in `n W2` stands for the normalised outputs of the hidden layer.)
# The bytes of an all-reduce are what a device brings in, those of an all-gather what it has afterwards.
# `step_collectives` says all-gather where TensorFlow on CPUs takes an all-reduce, which sends more.
# (`models.MLP` exchanges mean and variance at once, so it takes fewer exchanges than the `MLP` of lesson 3.)

# %% costs
from course_lib import step_collectives


def costs(plan, batch_size):
    sizes = {**SIZES, "batch": batch_size}
    reviews = plan.of({"x": AXES["x"]}, sizes).shardings["x"].bytes_per_device("float32")
    variables = models.MLP.spec.bytes_on_a_device(sizes, plan)
    return reviews + sum(variables.values()), step_collectives(plan, sizes).bytes_sent


for name, plan in plans.items():
    held, sent = costs(plan, 64)
    print(f"{name:8} holds {held:,}, sends {sent:,.0f}")
print(*step_collectives(plans["spatial"], SIZES).exchanges, sep="\n")

# %% predict-larger [markdown]
# The batch grows from 64 to 1,024 reviews.
# By what factor do the bytes grow that a device sends in a step of the spatial plan?
#
# - [ ] `1.0` about 1
#   So it is in data parallelism: gradients are as large as the weights, whatever the batch.
#   Here the partial sums of `x W1` are exchanged too, and they have a row for each review.
# - [x] `1.8` ± 0.1 about 2
#   The gradients stay as large as they were; the partial sums of `x W1` and of the logits have 16 times the
#   rows.
# - [ ] `16.0` about 16
#   The partial sums of `x W1` and of the logits grow by that.
#   But most of what is sent in a batch of 64 are gradients, and these do not grow.

# %% reveal-larger
_held, sent_with_64 = costs(plans["spatial"], 64)
_held, sent_with_1024 = costs(plans["spatial"], 1_024)
reveal("05-larger", sent_with_1024 / sent_with_64)

# %% three-batches
for batch_size in (64, 1_024, 8_192):
    print(f"{batch_size:,} reviews")
    for name, plan in plans.items():
        held, sent = costs(plan, batch_size)
        print(f"    {name:8} holds {held:9,}, sends {sent:7,.0f}")

# %% plan-text [markdown]
# With 64 reviews the spatial plan holds least and sends least.
# With 8,192 it sends most, and the data-parallel plan holds least.
# So no plan is the best one for every batch.
# A split batch sends gradients, as large as the part of the weights that a device holds;
# split features or hidden units send partial sums, with a row for each review.
# And what a plan does not split it copies: `model` makes copies of the reviews.
#
# **Exercise 4.** The batch has 1,024 reviews.
# Each of the eight devices may hold 700,000 bytes of reviews and variables
# and send 300,000 bytes in a step.
# None of the three plans keeps within both: see above.
# Find one that does.
# The check makes the model and a batch under your plan, counts the bytes of the real components,
# and takes the bytes sent from `step_collectives`.

# %% exercise-plan
# solution begin
# A dimension that splits hidden units copies the reviews: so let both dimensions split axes of `x`.
# Features in four parts make W1 and its gradient small, the batch in two the partial sums.
mine = Plan(
    "mine",
    MeshSpec([("batch", 2), ("feature", 4)]),
    {"batch": "batch", "features": "feature"},
)
# solution end

# %%
check("05-plan", mine)

# %% time-text [markdown]
# ## Memory and time
#
# Splitting saves memory: a device holds less, and it may send less as well.
# Does a step take less time, too?
# In all three plans a device makes an eighth of the multiplications of `x W1`.
# But each split adds collectives, and in each of them devices wait for each other, however few the bytes.
# The training loop has TensorFlow join those that need not wait for each other.
#
# `make results` measured on two cores how long a step with 64 rows takes, and its collectives by themselves.
# The next cell prints how many collectives were left in a step, the bytes of all their results on one device,
# and then two times in milliseconds: that of the collectives and that of the step.
# The bytes are more than those above, since TensorFlow pads each tensor that it joins
# to a multiple of 1,024 bytes;
# the sums of loss and right answers are left out.

# %% step-parts
from course_lib import measured

parts = measured.load("05_step_parts").step_parts
for name, each in parts.items():
    collectives, step = 1_000 * each.exchanges, 1_000 * each.step
    print(f"{name:8} {each.num_collectives} collectives, {each.payload_bytes:7,} bytes:", end=" ")
    print(f"{collectives:4.1f} of {step:4.1f}")

# %% lab-text [markdown]
# Under each plan the collectives take more than half of the step.
# The plan with the fewest bytes has the shortest step of the three, although it has the most collectives.
# Yet one device without DTensor takes less time for 64 rows than any of them (see the table of lesson 4):
# for this small model with 64 rows, splitting saves memory and no time.
#
# Eight virtual devices share two cores, and their collectives are copies within one memory.
# Neither these times nor their order carry over to real devices, and no GPU was measured.
#
# The page *What a step takes* of the book draws all parts of a step,
# and says how each was obtained.
# Dispatch, arithmetic and collectives account for about nine tenths of each recorded step.
# `python -m benchmarks.parts` measures them on your machine.
# `make bench` sets a step of each scheme beside one of the loop of TensorFlow's tutorial,
# and a data-parallel one beside one device.
#
# ## The training lab
#
# Here you train this model under any of these plans, or under one of your own, run beside run.
# Choose *data parallel* and press **Run**; then choose *spatial parallel* and press it again.
# The curves nearly lie on each other, and the lab says how far apart they are and what each device holds.
# Then ask for an epoch more, choose the checkpoint of a run under *Start from*, and another scheme.

# %% lab
from lessons.lesson_05_model_and_spatial.lab import TrainingLab

TrainingLab(models.MLP, values, train_set, reviews.test)

# %% real-text [markdown]
# ## The real reviews
#
# `make results` trains the same model on the 25,000 real IMDB reviews,
# on one device and under the three plans, from equal initial values and with the same batches.
# It also continues a checkpoint of one data-parallel epoch in each of the four ways, for another epoch.
# The tables compare each run with that on one device, after the first 20 steps and after all.
# The first two columns are the largest differences up to then, in the loss of a step and in its accuracy.
# The third is the largest difference in any number of any variable at that point, moving moments included.
# The pictures show the runs from equal initial values:
# how far the loss of a step lies from that on one device, then the curves.
#
# From equal initial values the losses agree to 0.0001 for 240 steps, in all three plans.
# From step 244 to step 247 the difference grows to more than 0.005, again in all three.
# Why it does so there, we did not find out.
# Later it reaches 0.03 in the loss of a step, and at the end 0.8 in some variable;
# after the second epoch one plan's test accuracy is 0.83, another's 0.85.
# After the third all four are at 0.86.
# The runs from the checkpoint meet no such place: over 390 steps their losses differ by less than 0.00001.
# To compare plans, compare the first steps, or begin with a checkpoint.

# %% real-results
from course_lib import measured

from lessons.lesson_05_model_and_spatial import distances

recorded = measured.load("05_schemes_imdb")
print("from equal initial values", distances.differences(recorded.equal), sep="\n")
print("from one checkpoint", distances.differences(recorded.continued), sep="\n")
display(distances.loss_differences(recorded.equal), measured.picture(recorded.equal))

# %% score
score("05")

# %% [markdown]
# ## Takeaways
#
# - A plan says which mesh dimension splits which axis of the model.
#   Every layout follows, so that consecutive layers agree,
#   and the losses of the first steps are those of one device up to rounding.
# - Where a step sums over a split axis, devices exchange:
#   an all-reduce of partial sums, or here a gather of each part's mean and variance.
#   Split batches send gradients, split features and hidden units send parts of activations,
#   and what nothing splits is copied.
# - A checkpoint holds each block of a variable once, and no mesh: it restores under any plan, bit for bit.
#
# Lesson 6, "Save and serve", takes trained weights off the mesh and serves them.
