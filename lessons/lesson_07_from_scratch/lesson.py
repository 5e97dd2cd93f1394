# %% [markdown]
# # 7. From scratch with the Core API: MNIST and Adam
#
# Optimizers come ready-made, so you need never open one.
# Can you write Adam yourself, so that it is right on eight devices?
# And how would you notice if it were not?
#
# After this lesson you can
#
# - write an optimizer whose variables are laid out like those that it trains;
# - hold a training against one device, NumPy, Keras and `MirroredStrategy`,
#   and say which mistakes each comparison finds;
# - explain why DTensor may read a variable as it was before it was written,
#   and write a step that is safe from it.
#
# **Time:** 45 minutes.
# **You need to know:** lesson 3 (the training step and its all-reduces), lesson 4 (the loop of records)
# and lesson 5 (how weights are split).
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.
#
# ## Digits
#
# An image of a handwritten digit has 28 × 28 pixels, here 784 numbers from 0 to 1.
# Unless you ask for another source, the digits are a stand-in that the course draws itself:
# 5,000 to train on and 5,000 to test.
# `"tfds"` takes the first 5,000 of each from the real MNIST.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% digits
import numpy as np

from course_lib import ImageGrid, collectives, data, live
from course_lib import measured, outcome, shard, yours_or_ours

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
digits = data.load_mnist(SOURCE)
train, test = digits.train, digits.test
print(train.features.shape, train.features.dtype, train.labels.dtype)
ImageGrid(test.images[:24], test.labels[:24])

# %% on-mesh-text [markdown]
# ## A model of the Core API
#
# The Core API is what TensorFlow has below Keras:
# `tf.Module` holds variables, `tf.GradientTape` gives gradients, `tf.function` compiles a step.
# The model has three dense layers, 784 → 700 → 500 → 10, with ReLU after the first two.
# It begins with Xavier's uniform values and biases of zero.
# Model and settings follow
# [TensorFlow's guide to the Core APIs](https://www.tensorflow.org/guide/core/distribution).
#
# Eight devices share each batch, and each of them holds every variable whole.
# `on_mesh` packs eight components: eight copies of an array,
# or the eight parts of a batch, if it gets the name of the mesh dimension.
# Packed values and `dtensor.DVariable` make a model on eight devices;
# plain arrays and `tf.Variable` make the same model on one.

# %% on-mesh
from itertools import pairwise

mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")


def on_mesh(components, dim=dtensor.UNSHARDED):
    spec = [dim] + [dtensor.UNSHARDED] * (components[0].ndim - 1)
    return dtensor.pack(components, dtensor.Layout(spec, mesh))


class MLP(tf.Module):
    def __init__(self, values, variable=tf.Variable):
        super().__init__()
        self.weights = [variable(value) for value in values]

    def __call__(self, x):
        W1, b1, W2, b2, W3, b3 = self.weights
        hidden = tf.nn.relu(x @ W1 + b1)
        return tf.nn.relu(hidden @ W2 + b2) @ W3 + b3


# %% values
def initial_values(seed, sizes=(784, 700, 500, 10)):
    random, values = np.random.default_rng(seed), []
    for inputs, outputs in pairwise(sizes):
        limit = np.sqrt(6 / (inputs + outputs))
        weight = random.uniform(-limit, limit, (inputs, outputs))
        bias = np.zeros(outputs, "float32")
        values += [weight.astype("float32"), bias]
    return values


def on_eight(values):
    copies = [on_mesh([each] * 8) for each in values]
    return MLP(copies, dtensor.DVariable)


NAMES = ("W1", "b1", "W2", "b2", "W3", "b3")
VALUES = initial_values(seed=0)
for name, variable in zip(NAMES, on_eight(VALUES).weights):
    print(name, variable.shape, variable.layout.sharding_specs)

# %% adam-text [markdown]
# Every axis is unsharded: each device holds each variable whole.
# One generator draws all weights.
# The guide gives each layer the same seed,
# so its second weight repeats the numbers of the first, up to a factor.
#
# ## Adam, element by element
#
# For each variable Adam keeps two others, its *slots*, which are moving averages of each element:
# $m$ of the gradient $g$, and $v$ of its square.
# Both begin at zero.
# Step $t = 1, 2, \ldots$ computes
#
# $$\begin{aligned}
# m &\leftarrow 0.9\, m + 0.1\, g
# \\ v &\leftarrow 0.999\, v + 0.001\, g^2
# \\ w &\leftarrow w - \alpha\, c_t \frac{m}{\sqrt{v} + \epsilon}
# \\ c_t &= \frac{\sqrt{1 - 0.999^t}}{1 - 0.9^t}
# \end{aligned}$$
#
# with the learning rate $\alpha = 0.001$ and $\epsilon = 10^{-7}$.
# Averages that begin at zero are too small at first:
# $m$ by the factor $1 - 0.9^t$, and $\sqrt{v}$ by $\sqrt{1 - 0.999^t}$.
# The factor $c_t$ makes up for both ([Kingma and Ba](https://arxiv.org/abs/1412.6980), section 2).
#
# To know whether an optimizer is right, you need an answer that was found in another way.
# So begin with NumPy.
#
# **Exercise 1.** `adam_in_numpy(variable, gradients, learning_rate)` gets an array
# and a list of gradients, float64 arrays of the same shape.
# It returns the array after one update for each gradient.


# %% exercise-adam
def adam_in_numpy(variable, gradients, learning_rate):
    # solution begin
    m = v = 0
    for t, g in enumerate(gradients, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        c = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        move = c * m / (np.sqrt(v) + 1e-7)
        variable = variable - learning_rate * move
    return variable
    # solution end


# %%
check("07-adam", adam_in_numpy)

# %% predict-first-step [markdown]
# In Adam's first step one weight has the gradient 0.5, another one 500.
# How many times as far does Adam move the one with 500?
#
# - [x] `1.0` ± 0.01 as far as the other one
#   `m` and the root of `v` are both the gradient times a constant, so it cancels.
# - [ ] `31.6` about 32 times as far
#   The root is taken of the *square* of the gradient, so it grows like the gradient.
# - [ ] `1000.0` 1,000 times as far
#   So it is in gradient descent.
#   Adam divides by the gradient's usual size.

# %% reveal-first-step
one_step = yours_or_ours("07-adam", adam_in_numpy)
moved = one_step(np.zeros(2), [np.array([0.5, 500.0])], 1e-3)
reveal("07-first-step", float(moved[1] / moved[0]))

# %% [markdown]
# In the first step $c_1\, m / \sqrt{v}$ is $g / |g|$, so every element moves by $\alpha$.
# Only a tiny gradient moves it less, since $\epsilon$ then counts beside $\sqrt{v}$:
# a gradient of $10^{-5}$ by $0.76\,\alpha$.
#
# ## Slots on eight devices
#
# A slot has an element for each element of its variable, so it is laid out like the variable:
# `tf.zeros_like` of a variable on a mesh is a DTensor of the same layout.
# The counter $t$ is a variable too; it begins as the sum of such zeros, a zero on the same devices.
#
# `apply` computes every new value as a tensor and assigns last.
# Nothing in it says how many devices there are.


# %% updated
def updated(t, g, w, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * tf.square(g)
    rate = 1e-3 * tf.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return w - rate * m / (tf.sqrt(v) + 1e-7), m, v


# %% adam
class Adam(tf.Module):
    def __init__(self, variables, variable=tf.Variable):
        super().__init__()
        self.m = [variable(tf.zeros_like(each)) for each in variables]
        self.v = [variable(tf.zeros_like(each)) for each in variables]
        self.t = variable(tf.reduce_sum(self.m[0]))

    def apply(self, gradients, variables):
        t = self.t + 1
        new_values = [(self.t, t)]
        for g, w, m, v in zip(gradients, variables, self.m, self.v):
            new_values += zip((w, m, v), updated(t, g, w, m, v))
        for variable, value in new_values:  # last, after all reads
            variable.assign(value)


# %% step
def results_and_gradients(model, x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits), tape.gradient(loss, model.weights)


@tf.function
def train_step(model, optimizer, x, y):
    loss, accuracy, gradients = results_and_gradients(model, x, y)
    optimizer.apply(gradients, model.weights)
    return loss, accuracy, gradients


# %% records-text [markdown]
# The step returns the gradients as well; a comparison below needs them.
#
# Now train.
# `batch` gives the 128 images of a step, in a new order in each epoch.
# 5,000 images are 39 batches; 8 are left over, other ones in each epoch.
# A step with these 8 would do harm: the loss is a mean, so each of them would count 16 times as much.
# After each epoch `evaluate` gives loss and accuracy on the test data.


# %% records
def batch(step):
    epoch, at = divmod(step, len(train) // 128)
    order = np.random.default_rng([0, epoch]).permutation(len(train))
    rows = order[128 * at : 128 * (at + 1)]
    return train.features[rows], train.labels[rows]


def split(arrays):
    return [on_mesh(np.split(each, 8), "batch") for each in arrays]


@tf.function
def evaluate(model, x, y):
    logits = model(x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return tf.reduce_mean(losses), tf.reduce_mean(hits)


# %% first-run
def records(model, optimizer, epochs):
    for step in range(epochs * per_epoch):
        arrays = split(batch(step))
        loss, accuracy, _ = train_step(model, optimizer, *arrays)
        count = {"step": step + 1, "epoch": step // per_epoch + 1}
        yield {**count, "loss": loss, "accuracy": accuracy}
        if (step + 1) % per_epoch == 0:
            test_arrays = split((test.features, test.labels))
            loss, accuracy = evaluate(model, *test_arrays)
            yield {**count, "test_loss": loss, "test_accuracy": accuracy}


per_epoch, model = len(train) // 128, on_eight(VALUES)
run = records(model, Adam(model.weights, dtensor.DVariable), epochs=2)
history = await live.watch(run, steps=2 * per_epoch, epochs=2)
print(history.epochs[-1].test_accuracy > 0.9)

# %% measured
for name in ("07_mnist", "07_mnist_5000", "07_stand_in"):
    found = measured.load(name)
    print(found.how["data"])
    print(measured.accuracies(found.runs))

# %% trained-text [markdown]
# These test accuracies are not of the run above.
# `make results` measured them with the same classes and step, over three epochs and with three seeds:
# on all of the real MNIST, on its first 5,000 images, and on the stand-in.
#
# ## Is it right?
#
# That a model learns proves little.
# So take the first 30 steps again, in three other ways:
#
# - **one device**: the same classes and the same compiled step, without a mesh;
# - **NumPy**: your function gets the gradients of `b1` that the steps on eight devices returned;
# - **Keras**: layers, loss and optimizer, written a second time.
#
# `gap` is the largest difference of an element, over all six variables.


# %% trained
def trained(optimizer_class, values=VALUES, eight=True):
    model = on_eight(values) if eight else MLP(values)
    variable = dtensor.DVariable if eight else tf.Variable
    optimizer = optimizer_class(model.weights, variable)
    losses, gradients = [], []
    for step in range(30):
        arrays = split(batch(step)) if eight else batch(step)
        loss, _, found = train_step(model, optimizer, *arrays)
        losses.append(float(loss))
        gradients.append(np.float64(found[1].numpy()))  # of b1
    return [each.numpy() for each in model.weights], losses, gradients


def gap(ours, theirs):
    return max(np.abs(a - b).max() for a, b in zip(ours, theirs))


# %% by-keras
def by_keras(values):
    dense = tf.keras.layers.Dense
    layers = [dense(700, "relu"), dense(500, "relu"), dense(10)]
    inputs = tf.keras.Input((784,))
    model = tf.keras.Sequential([inputs, *layers], name="digits")
    model.set_weights(values)
    kind = tf.keras.losses.SparseCategoricalCrossentropy
    model.compile(tf.keras.optimizers.Adam(1e-3), kind(from_logits=True))
    for step in range(30):
        model.train_on_batch(*batch(step))
    return model.get_weights()


# %% compared
by_numpy = yours_or_ours("07-adam", adam_in_numpy)


def gap_to_numpy(weights, gradients):
    b1 = by_numpy(np.zeros(700), gradients, 1e-3)
    return np.abs(weights[1] - b1).max()


right, right_on_one = trained(Adam), trained(Adam, eight=False)
in_keras = by_keras(VALUES)
weights, _losses, gradients = right
print(f"{gap(weights, right_on_one[0]):.5f}")
print(f"{gap_to_numpy(weights, gradients):.5f}")
print(f"{gap(weights, in_keras):.5f}")

# %% mistakes-text [markdown]
# One device, NumPy and Keras agree with eight devices to five decimal places.
#
# Not every Adam would.
# [PyTorch's](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html)
# and algorithm 1 of the paper add $\epsilon$ to the root of the *corrected* $v$.
# With the $\epsilon$ of this lesson they move, in the first step, an element with the gradient $10^{-6}$
# by $0.91\,\alpha$, and the Adam above moves it by $0.24\,\alpha$.
# Over the 30 steps above, the losses of both differ by up to 0.006: two optimizers of one name.
#
# ## Three mistakes
#
# Each of the following mistakes is in a version of the
# [guide](https://github.com/tensorflow/docs/blob/50afd98/site/en/guide/core/distribution.ipynb).
# None raises an error, and with each the loss falls, though with ups and downs.
#
# - `CountsInPython` counts its steps in a Python number.
# - `WritesThenReads` assigns each new value at once and goes on computing with the variable.
#   Lesson 4 warned of that.
# - The second layer gets the size of the last one, because one name is used for both.


# %% counts-in-python
class CountsInPython(Adam):
    count = 0

    def apply(self, gradients, variables):
        self.count += 1
        new_values = []
        for g, w, m, v in zip(gradients, variables, self.m, self.v):
            new_values += zip((w, m, v), updated(self.count, g, w, m, v))
        for variable, value in new_values:
            variable.assign(value)


# %% writes-then-reads
class WritesThenReads(Adam):
    def apply(self, gradients, variables):
        self.t.assign_add(1)
        c = tf.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        for g, w, m, v in zip(gradients, variables, self.m, self.v):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * tf.square(g))
            w.assign_sub(1e-3 * c * m / (tf.sqrt(v) + 1e-7))


first_units = 700
units = 500  # of the second layer
units = 10  # of the last layer
TEN_UNITS = initial_values(0, (784, first_units, units, units))
print([value.shape for value in TEN_UNITS])

# %% curves
import matplotlib.pyplot as plt
from IPython.display import display

WRONG = {"CountsInPython": (CountsInPython, VALUES)}
WRONG["WritesThenReads"] = WritesThenReads, VALUES
WRONG["784-700-10-10"] = Adam, TEN_UNITS
runs, alone = {"Adam": right}, {"Adam": right_on_one}
for name, version in WRONG.items():
    runs[name] = trained(*version)
    alone[name] = trained(*version, eight=False)

figure, axes = plt.subplots(figsize=(6, 3))
for name in runs:
    axes.plot(range(1, 31), runs[name][1], label=name)
axes.legend()
plt.close(figure)
display(figure, metadata={"image/png": {"alt": ", ".join(runs)}})

# %% predict-caught [markdown]
# Three trainings with Adam are wrong:
# one counts its steps in a Python number, one writes its slots and then reads them,
# one has 10 units where 500 were meant.
# Each makes the same 30 steps, compiled with `tf.function`, on eight devices and on one.
# Which of them end with other weights on eight devices than on one?
#
# - [ ] `none` none of the three
#   So it would be if each read waited for the write before it, on eight devices too.
# - [x] `written` only the one that writes and then reads
#   On one device a read waits for the write before it.
#   The other two are wrong in the same way on any number of devices.
# - [ ] `adams` the one that counts in Python, and the one that writes and then reads
#   The Python number is frozen when the step is compiled, on one device too.
# - [ ] `all` all three
#   Ten units are ten units on any number of devices.

# %% reveal-caught
gaps = {name: gap(runs[name][0], alone[name][0]) for name in WRONG}
other = tuple(name for name in WRONG if gaps[name] > 1e-3)
known = {(): "none", ("WritesThenReads",): "written"}
known |= {("CountsInPython", "WritesThenReads"): "adams", (*WRONG,): "all"}
reveal("07-caught", known[other])

# %% table-text [markdown]
# `tf.function` runs the Python code once, to build a graph.
# So `count` stays 1, and $c_t$ stays $c_1 = 0.32$.
# The true factor falls to 0.15, passes 0.32 again after a hundred steps and ends at 1.
# In the picture, with the losses of the 30 steps, `CountsInPython` even ends lowest.
#
# The table has each version's gap to one device, to NumPy and to Keras.
# Keras's network has 500 units and refuses the values of the one with 10; its message ends the output.

# %% table tags=["error"]
for name, (weights, _losses, gradients) in runs.items():
    gaps = [gap(weights, alone[name][0])]
    gaps.append(gap_to_numpy(weights, gradients))
    if weights[2].shape == in_keras[2].shape:
        gaps.append(gap(weights, in_keras))
    print(f"{name:15}", *(f"{each:.4f}" for each in gaps))
try:
    by_keras(TEN_UNITS)
except ValueError as error:
    print(error)

# %% written-text [markdown]
# - **One device** finds what goes wrong *because* there are eight, and nothing else.
# - **NumPy** finds wrong updates, here those of both wrong Adams.
#   It takes gradients as they come, so a wrong network passes.
# - **Keras** finds all three: its layers, loss and optimizer share no code with ours.
#   Batches and initial values it takes from us, so a mistake in those it does not find.
#
# ## Written, then read
#
# Here is the second mistake at its smallest.
# Three variables of 1, 2 and 3 elements each get a sum over eight rows of ones, and are then read.
# Every element should be 8.


# %% written
def zeros_on_mesh(size):
    return dtensor.DVariable(on_mesh([np.zeros(size, "float32")] * 8))


slots = [zeros_on_mesh(size) for size in (1, 2, 3)]
ones = [np.ones((1, size), "float32") for size in (1, 2, 3)]
rows = [on_mesh([each] * 8, "batch") for each in ones]


def write_then_read(rows):
    for slot, each in zip(slots, rows):
        slot.assign(tf.reduce_sum(each, axis=0))
    return [slot + 0.0 for slot in slots]


print(*(each.numpy() for each in tf.function(write_then_read)(rows)))
print(*collectives(write_then_read, rows), sep="\n")
print(*collectives(write_then_read, rows, combine=True), sep="\n")

# %% order-text [markdown]
# The sums need three all-reduces: `collectives` compiles the function once more, without combining them.
# For speed TensorFlow makes one of them, padded to 4,096 bytes.
# Its pass
# [`DTensorAllReduceCombineOptimization`](https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/dtensor/mlir)
# moves them down to the last one, and sorts the operations anew, by the values that they use.
# A write uses the sum, so it now comes after the one all-reduce.
# A read uses no value that the write makes: it can stay in its place, before the write.
# Here the last all-reduce, which did not move, is the only one whose write still comes before the read.
#
# Which one is the last, the program does not show:
# the compiled graph has an order of its own, here that of the arguments.
# And in lesson 8 not even the last is spared.
# A write that uses no such sum, as that of the counter `t`, keeps its place.
#
# In a training step the gradients are the sums.
# In the graph their all-reduces come in this order, after two for loss and accuracy:

# %% order
model = on_eight(VALUES)
optimizer = WritesThenReads(model.weights, dtensor.DVariable)
arrays = split(batch(0))
print(*collectives(train_step, model, optimizer, *arrays), sep="\n")

# %% predict-spared [markdown]
# An Adam writes its slots and then reads them, in one step on eight devices.
# Uncombined, the all-reduces of the gradients would come in the order
# `b3` (40 bytes), `b2` (2,000), `b1` (2,800), `W1` (2,195,200), `W2` (1,400,000), `W3` (20,000).
# Which of the model's six variables does the first step move?
#
# - [ ] `all` all six
#   So it is on one device.
#   Here most slots are read before they are written, and are still zero.
# - [ ] `b3` only `b3`, the first
#   The all-reduce of `b3` moves down to the last one, and the writes of its slots move with it.
# - [x] `W3` only `W3`, the last
#   The all-reduce of `W3` stays in its place, so its slots are written before they are read.
# - [ ] `none` none of the six
#   One all-reduce does not move: the last.

# %% reveal-spared
spared = on_eight(VALUES)
adam = WritesThenReads(spared.weights, dtensor.DVariable)
train_step(spared, adam, *split(batch(0)))
moved = []
for name, variable, before in zip(NAMES, spared.weights, VALUES):
    if np.abs(variable.numpy() - before).max() > 0:
        moved.append(name)
reveal("07-spared", {0: "none", 6: "all"}.get(len(moved), ", ".join(moved)))

# %% [markdown]
# The other five read slots of zero, and $0 / (0 + \epsilon)$ moves nothing.
# From then on they move by the slots of the step before.
# So compare every variable: NumPy would have found nothing in `W3`.
#
# The cure is the order of `Adam.apply`: compute all new values as tensors, use these, and assign last.
#
# **Exercise 2.** *Momentum* keeps one slot $u$ for each variable $w$, its velocity:
#
# $$u \leftarrow 0.9\, u - \alpha g,\qquad w \leftarrow w + u$$
#
# with the new $u$ in the second formula.
# Write `momentum(variables, velocities, gradients, learning_rate)` for three dictionaries by name.
# It writes the new values with `assign` or `assign_add`, and returns nothing.
# The check calls it in a compiled step, first on one device and then on eight.


# %% exercise-momentum
def momentum(variables, velocities, gradients, learning_rate):
    # solution begin
    for name, variable in variables.items():
        step = learning_rate * gradients[name]
        velocity = 0.9 * velocities[name] - step
        velocities[name].assign(velocity)
        variable.assign_add(velocity)
    # solution end


# %%
check("07-momentum", momentum)

# %% split-text [markdown]
# ## The same Adam elsewhere
#
# On a mesh of 4 by 2, `model` splits the 700 units of the first layer, as in lesson 5:
# the columns of `W1`, `b1`, and the rows of `W2`.
# The same classes train there.
# The cell prints the layout of `W1`'s slot, how far five losses are from those above,
# and the collectives of a step.

# %% split
grid = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
WHOLE = dtensor.UNSHARDED
SPECS = [[WHOLE, "model"], ["model"], ["model", WHOLE], [WHOLE]]
SPECS += [[WHOLE, WHOLE], [WHOLE]]


def on_grid(arrays, specs):
    layouts = [dtensor.Layout(spec, grid) for spec in specs]
    return [shard(*each) for each in zip(arrays, layouts)]


model = MLP(on_grid(VALUES, SPECS), dtensor.DVariable)
adam = Adam(model.weights, dtensor.DVariable)
ROWS = ["batch", WHOLE], ["batch"]
steps = [on_grid(batch(step), ROWS) for step in range(5)]
results = [train_step(model, adam, *arrays) for arrays in steps]
losses = [float(loss) for loss, _accuracy, _gradients in results]
print(adam.m[0].layout.sharding_specs, f"{gap(losses, right[1]):.5f}")
print(*collectives(train_step, model, adam, *steps[0]), sep="\n")

# %% mirrored-text [markdown]
# The first all-reduce adds the parts of the second layer's sums, two belong to loss and accuracy,
# and six to the gradients.
# None is for a slot: each device has the gradient and the slots of just the elements that it holds.
# What Adam costs is memory: on each device its slots take twice as much as the variables.
# Plain gradient descent has no slots.
# After the same two epochs as above, on the stand-in, its test accuracy was 0.86 with the learning rate 0.1
# and 0.94 with 0.3, where Adam's was 0.96.
#
# `tf.distribute.MirroredStrategy` distributes in another way (lesson 9).
# In its scope `tf.Variable` makes a copy on each device.
# `strategy.run` calls a function once for each *replica*, with its part of the batch,
# and you say how the results are put together.
# The mean of the replicas' gradients is that of the batch because each replica has 16 rows.
# `ReductionToOneDevice` copies the gradients to one device and adds them there;
# then `apply` writes each new value into all copies.
# The number is the largest difference of ten losses from those of DTensor.

# %% mirrored
devices = mesh.local_devices()
ops = tf.distribute.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)


def per_replica(array):
    def part(context):
        return np.split(array, 8)[context.replica_id_in_sync_group]

    return strategy.experimental_distribute_values_from_function(part)


# %% mirrored-step
with strategy.scope():
    mirrored = MLP(VALUES)
    mirrored_adam = Adam(mirrored.weights)


@tf.function
def mirrored_step(*arrays):
    found = strategy.run(results_and_gradients, (mirrored, *arrays))
    loss, _accuracy, gradients = found
    means = [strategy.reduce("MEAN", each, axis=None) for each in gradients]
    mirrored_adam.apply(means, mirrored.weights)
    return strategy.reduce("MEAN", loss, axis=None)


steps = [map(per_replica, batch(step)) for step in range(10)]
losses = [float(mirrored_step(*arrays)) for arrays in steps]
print(f"{gap(losses, right[1]):.5f}")

# %% export
import tempfile

exported, path = tf.Module(), tempfile.mkdtemp()
exported.model = on_eight(right[0])
images = tf.TensorSpec([None, 784], tf.float32)
exported.logits = tf.function(exported.model.__call__, [images])
tf.saved_model.save(exported, path)
loaded = tf.saved_model.load(path)
(x,) = split([test.features[:24]])
logits = tf.function(exported.model)(x)
ours = np.concatenate([each.numpy() for each in dtensor.unpack(logits)])
print(f"{gap(ours, loaded.logits(test.features[:24])):.5f}")

# %% takeaways [markdown]
# The cell above took the model off the mesh, as in lesson 6:
# a `tf.Module` and a function with an input signature, saved and loaded.
# Its number is the largest difference of a logit between eight devices and the loaded model.
#
# ## The plain program
#
# [`07_from_scratch.py`](../plain/07_from_scratch.py) has the model, Adam and the step as above,
# without the course's library.
# It makes images of its own, trains ten steps on eight devices, on one, and under `MirroredStrategy`,
# and ends with an error if the losses differ by more than rounding.
#
# ## Takeaways
#
# - An optimizer that computes each element from its own gradient and slots needs no distribution code
#   and adds no communication.
#   What it counts must be a variable, or be given to the step as a tensor.
# - Under DTensor compute every new value first, and assign last.
# - Comparing with one device finds what distribution breaks.
#   Formulas and sizes need an answer that shares no code with yours.
#
# Lesson 8, DTensor and Keras: which version of Keras takes layouts, and what of all this is right with it.

# %% score
score("07")
