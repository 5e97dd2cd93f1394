# %% [markdown]
# # From scratch with the Core API: MNIST and Adam
#
# Optimizers come ready-made, so you need never open one.
# Can you write Adam yourself, so that it is right on eight devices?
# And how would you notice if it were not?
#
# After this lesson you can
#
# - write an optimizer whose variables are laid out like those that it trains;
# - hold a training against one device, NumPy and Keras, and say which mistakes each comparison finds;
# - explain why DTensor may read a variable as it was before it was written,
#   and write a step that is safe from it.
#
# **Time:** 45 minutes.
# **You need to know:** {lesson:one_step} (the training step and its all-reduces),
# {lesson:a_run} (the loop of records)
# and {lesson:splitting_the_model} (how weights are split).
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

from course_lib import collectives, data, image_grid, live
from course_lib import measured, outcome, shard, yours_or_ours

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
digits = data.load_mnist(SOURCE)
train, test = digits.train, digits.test
print("features", train.features.shape, train.features.dtype)
print("labels", train.labels.shape, train.labels.dtype)
image_grid(test.images[:24], test.labels[:24])

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
#
# The class `MLP` makes a model on eight devices from packed values and `dtensor.DVariable`,
# and the same model on one device from plain arrays and `tf.Variable`.

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
# The guide gives each layer the same seed,
# so its second weight repeats the numbers of the first, up to a factor: the layers are not independent.
# So one generator draws all weights here.
#
# ## Adam, element by element
#
# For each variable $w$ Adam keeps two others, its *slots*, which are moving averages of each element:
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
# Averages that begin at zero are too small at first, for a gradient that does not change:
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
check("from_scratch-adam", adam_in_numpy)

# %% predict-first-step [markdown]
# Adam moves a weight in proportion to `m`, the moving average of its gradient, divided by the root of `v`,
# that of the gradient's square.
# In the first step one weight has the gradient 0.5, another one 500.
# How many times as far does Adam move the one with 500?
#
# - [x] `1.0` ± 0.01 as far as the other one
#   In the first step `m` and the root of `v` are both the gradient times a constant, so it cancels.
# - [ ] `31.6` about 32 times as far
#   `v` is an average of squares, so its root grows like the gradient.
# - [ ] `1000.0` 1,000 times as far
#   So it is in gradient descent.
#   Adam divides by the root of `v`, which is 1,000 times as large too.

# %% reveal-first-step
one_step = yours_or_ours("from_scratch-adam", adam_in_numpy)
moved = one_step(np.zeros(2), [np.array([0.5, 500.0])], 1e-3)
reveal("from_scratch-first-step", float(moved[1] / moved[0]))

# %% [markdown]
# In the first step $c_1\, m / \sqrt{v}$ is $g / |g|$,
# so every element whose gradient is not zero moves by $\alpha$.
# Only a tiny gradient moves it less, since $\epsilon$ then counts beside $\sqrt{v}$:
# a gradient of $10^{-5}$, whose $\sqrt{v}$ is $3.2\,\epsilon$, by $0.76\,\alpha$.
#
# ## Slots on eight devices
#
# A slot has an element for each element of its variable, so it is laid out like the variable:
# `tf.zeros_like` of a variable on a mesh is a DTensor of the same layout.
# The counter $t$ of the steps is a variable too.
# It begins as the sum of `self.m[0]`, whose elements are all zero: a scalar, zero, on the same devices.
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
# `train_step` returns the gradients as well; a comparison below needs them.
#
# Now train.
# `batch` gives the 128 images of a step, in a new order in each epoch.
# 5,000 images are 39 batches; 8 are left over, other ones in each epoch.
# That epoch leaves them out: the loss is a mean, so in a step with these 8 alone
# each of them would count 16 times as much, and can do harm.
# After each epoch `evaluate` gives loss and accuracy on the test data, which the picture calls "held out".


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
history = await live(run, steps=2 * per_epoch)
test_accuracy = history.epochs[-1]["test_accuracy"]
print(f"{test_accuracy > 0.9 = }")

# %% measured-text [markdown]
# The run above was short, and on the stand-in.
# `make results` measured the same classes and step over three epochs with three seeds:
# on all of the real MNIST, on its first 5,000 images, and on the stand-in, here called `built-in`.

# %% measured
for name in ("from_scratch-mnist", "from_scratch-mnist_5000", "from_scratch-stand_in"):
    found = measured.load(name)
    print(found.how["data"])
    for epoch, seeds in enumerate(zip(*found.runs.adam.epochs), start=1):
        test_accuracies = [round(seed.test_accuracy, 3) for seed in seeds]
        print(f"{epoch=} {test_accuracies=}")

# %% trained-text [markdown]
# ## Is it right?
#
# That a model learns proves little, so hold the first 30 steps against other ways to compute them.
# `trained` takes them on eight devices or, with `eight=False`, on **one device**:
# the same classes and the same compiled step, without a mesh.
# `gap` is the largest difference of an element, over all arrays of two lists.


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


# %% numpy-text [markdown]
# `by_keras` writes layers, loss and optimizer a second time, with **Keras**.
# Your **NumPy** function updates `b1` alone, by the gradients that the steps on eight devices returned.


# %% compared
def gaps(weights, gradients, on_one):
    b1 = by_numpy(np.zeros(700), gradients, 1e-3)
    found = {"one_device": gap(weights, on_one)}
    found["numpy_b1"] = gap(weights[1:2], [b1])
    if weights[2].shape == in_keras[2].shape:
        found["keras"] = gap(weights, in_keras)
    return [f"{name}={value:.4f}" for name, value in found.items()]


by_numpy = yours_or_ours("from_scratch-adam", adam_in_numpy)
right, right_on_one = trained(Adam), trained(Adam, eight=False)
in_keras = by_keras(VALUES)
weights, right_losses, gradients = right
print(*gaps(weights, gradients, right_on_one[0]))

# %% mistakes-text [markdown]
# Eight devices agree with one and with Keras in all six variables, and with NumPy in `b1`,
# to four decimal places.
#
# Not every Adam would.
# [PyTorch's](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html)
# and algorithm 1 of the paper add $\epsilon$ to the root of the *corrected* $v$.
# With the $\epsilon$ of this lesson they move, in the first step, an element with the gradient $10^{-6}$
# by $0.91\,\alpha$, and the Adam above moves it by $0.24\,\alpha$.
# Measured over the same 30 steps, the losses of both differ by up to 0.006: two optimizers of one name.
#
# ## Three mistakes
#
# Each of the following mistakes is in
# [a version](https://github.com/tensorflow/docs/blob/50afd98/site/en/guide/core/distribution.ipynb)
# of the guide.
#
# The first: `CountsInPython` counts its steps in a Python number.


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


# %% writes-text [markdown]
# The second: `WritesThenReads` assigns each new value at once and goes on computing with the variable.
# {Lesson:faster} showed what comes of that.
#
# The third: `units` is used for two layers, so the second one gets 10 units like the last, in place of 500.
#
# The picture after that has the losses of 30 steps, of the right Adam as well.


# %% writes-then-reads
class WritesThenReads(Adam):
    def apply(self, gradients, variables):
        self.t.assign_add(1)
        c = tf.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        for g, w, m, v in zip(gradients, variables, self.m, self.v):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * tf.square(g))
            w.assign_sub(1e-3 * c * m / (tf.sqrt(v) + 1e-7))


units = 500  # of the second layer
units = 10  # of the last layer
TEN_UNITS = initial_values(0, (784, 700, units, units))
print({name: value.shape for name, value in zip(NAMES, TEN_UNITS)})
WRONG = {"CountsInPython": (CountsInPython, VALUES)}
WRONG["WritesThenReads"] = WritesThenReads, VALUES
WRONG["784-700-10-10"] = Adam, TEN_UNITS

# %% curves
import matplotlib.pyplot as plt
from IPython.display import display

runs, alone = {"Adam": right}, {"Adam": right_on_one}
for name, version in WRONG.items():
    runs[name] = trained(*version)
    alone[name] = trained(*version, eight=False)

figure, axes = plt.subplots(figsize=(6, 3))
for name in runs:
    axes.plot(range(1, 31), runs[name][1], label=name)
axes.set(xlabel="step", ylabel="loss")
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
#   On one device a read waits for the write before it, on eight it need not.
#   The other two are wrong in the same way on any number of devices.
# - [ ] `adams` the one that counts in Python, and the one that writes and then reads
#   The Python number is frozen when the step is compiled, on one device too, so both agree.
# - [ ] `all` all three
#   Ten units are ten units on any number of devices, so both agree.

# %% reveal-caught
apart = {name: gap(runs[name][0], alone[name][0]) for name in WRONG}
other = tuple(name for name in WRONG if apart[name] > 1e-3)
known = {(): "none", ("WritesThenReads",): "written"}
known |= {("CountsInPython", "WritesThenReads"): "adams", (*WRONG,): "all"}
reveal("from_scratch-caught", known[other])

# %% table-text [markdown]
# `tf.function` runs the Python code only while it builds a graph, in the first step of each training.
# So `count` stays 1, and $c_t$ stays $c_1 = 0.32$.
# The true factor falls to 0.15, passes 0.32 again after a hundred steps and ends at 1.
#
# No mistake raises an error.
# Beside the right Adam, the losses of the second and the third are too high.
# But each falls, though with ups and downs, so that alone they need not look wrong;
# `CountsInPython` even ends lowest.
# So hold each against the three answers.
# The second layer of Keras's network has 500 units, so it refuses the values for 10.

# %% table tags=["error"]
for name, (weights, _losses, gradients) in runs.items():
    print(f"{name:15}", *gaps(weights, gradients, alone[name][0]))
try:
    by_keras(TEN_UNITS)
except ValueError as error:
    print(error)

# %% written-text [markdown]
# - **One device** finds what goes wrong *because* there are eight, and nothing else.
# - **NumPy** finds wrong updates, here those of both wrong Adams.
#   It takes gradients as they come, so a wrong network passes.
# - **Keras** finds all three, the third by its error: its layers, loss and optimizer
#   are written by others, on the same operations of TensorFlow.
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


read = tf.function(write_then_read)(rows)
print("read:", *(each.numpy() for each in read))
print("combine=False:", *collectives(write_then_read, rows), sep="\n  ")
combined = collectives(write_then_read, rows, combine=True)
print("combine=True:", *combined, sep="\n  ")

# %% order-text [markdown]
# Two of the three variables were read as they were before they were written.
# The sums need three all-reduces.
# For speed TensorFlow makes one of them, padded to 4,096 bytes.
# Its pass
# [`DTensorAllReduceCombineOptimization`](https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/dtensor/mlir)
# moves them down to the place of the last one, and thereby changes the order:
#
# - A write uses its sum, so it comes after the one all-reduce.
# - `tf.function` notes that the read comes after the write, but this pass orders by data alone.
#   The read uses no data of the write, so it can stay in its place, before it.
#
# The last all-reduce did not move here, so its variable was read rightly.
#
# But do not rely on that: which one is the last, `collectives` tells, but not the program.
# Here they come in the order of the arguments, but the compiled graph may have another order,
# and in {lesson:keras_layouts} not even the last is spared.
# A write that uses no result of an all-reduce, as that of the counter `t`, does keep its place.
#
# In a training step the gradients, which come from all-reduces, stand where the sums stand here.

# %% predict-spared [markdown]
# An Adam writes its slots, which are zero at first, and then reads them, in one step on eight devices.
# TensorFlow moves the all-reduces of the gradients down to the last one, and makes one of them.
# The model has three layers with weights (W) and biases (b); before that its all-reduces come in the order
# `b3` (40 bytes), `b2` (2,000 bytes), `b1` (2,800 bytes), `W1` (2,195,200 bytes),
# `W2` (1,400,000 bytes), `W3` (20,000 bytes).
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
#   In this step one all-reduce does not move, the last, so `W3` does.

# %% reveal-spared
spared = on_eight(VALUES)
adam = WritesThenReads(spared.weights, dtensor.DVariable)
train_step(spared, adam, *split(batch(0)))
moved = []
for name, variable, before in zip(NAMES, spared.weights, VALUES):
    if np.abs(variable.numpy() - before).max() > 0:
        moved.append(name)
reveal("from_scratch-spared", {0: "none", 6: "all"}.get(len(moved), ", ".join(moved)))
# %% [markdown]
# The other five variables read slots of zero, and $0 / (0 + \epsilon)$ moves nothing.
# From then on they move by the slots of the step before.
# So compare every variable: after this step NumPy would have found nothing in `W3`.
#
# To be safe, write in the order of `Adam.apply`:
# compute all new values as tensors, use these, and assign last.
# What matters is that no variable is read after it was written, so one variable after another is right too.
# To test such a suspicion, turn the combining off; {lesson:keras_layouts} shows how.
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
check("from_scratch-momentum", momentum)

# %% split-text [markdown]
# ## The same Adam elsewhere
#
# On a mesh of 4 by 2, `model` splits the 700 units of the first layer, as in {lesson:splitting_the_model}:
# the columns of `W1`, `b1`, and the rows of `W2`.
# The same classes train there, here for five steps; `shard`, of {lesson:mesh_and_layout},
# distributes the arrays.

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
losses = [float(train_step(model, adam, *arrays)[0]) for arrays in steps]
print(f"{adam.m[0].layout.sharding_specs=}")
print(f"{gap(losses, right_losses)=:.5f}")
print(*collectives(train_step, model, adam, *steps[0]), sep="\n")

# %% mirrored-text [markdown]
# The slot $m$ of `W1` is split like `W1`, and the losses are those of the first five steps above,
# where the eight devices split nothing but the batch.
#
# The first all-reduce adds the parts of the second layer's sums, two belong to loss and accuracy,
# and six to the gradients.
# None is for a slot: each device has the gradient and the slots of just the elements that it holds.
#
# So what Adam costs is memory, not communication:
# on each device its slots take twice as much as the variables.
# Plain gradient descent has no slots.
# But measured after the same two epochs as above, on the stand-in,
# its test accuracy was 0.86 with the learning rate 0.1 and 0.94 with 0.3, where Adam's was 0.96.
#
# The same `Adam` also works without DTensor.
# `tf.distribute.MirroredStrategy`, which is the subject of {lesson:strategies}, distributes in another way:
#
# - In its scope `tf.Variable` makes a copy on each device.
# - `strategy.run` calls a function once for each replica, with its part of the batch, here 16 rows.
#   Here each device has one replica; {lesson:strategies} says more of them.
# - `strategy.reduce` puts the results together.
#   Each replica has as many rows, so the mean of their gradients is that of the batch.
# - `apply` then writes each new value into all copies.
#
# The losses of ten steps are those of DTensor:

# %% mirrored
ops = tf.distribute.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(mesh.local_devices(), ops)
with strategy.scope():
    mirrored = MLP(VALUES)
    adam = Adam(mirrored.weights)

run = tf.function(strategy.run)
ten = map(np.concatenate, zip(*map(batch, range(10))))
dataset = tf.data.Dataset.from_tensor_slices(tuple(ten)).batch(128)
losses = []
for arrays in strategy.experimental_distribute_dataset(dataset):
    loss, _, gradients = run(results_and_gradients, (mirrored, *arrays))
    means = [strategy.reduce("MEAN", each, axis=None) for each in gradients]
    adam.apply(means, mirrored.weights)
    losses.append(float(strategy.reduce("MEAN", loss, axis=None)))
print(f"{gap(losses, right_losses)=:.5f}")

# %% takeaways [markdown]
# ## The plain program
#
# [`from_scratch.py`](../plain/from_scratch.py) has the model, Adam and the step as above,
# without the course's library.
# It makes images of its own, trains ten steps on eight devices, on one, and under `MirroredStrategy`,
# and ends with an error if the losses differ by more than rounding.
#
# ## Takeaways
#
# - An optimizer that computes each element from its own gradient, its own slots and the number of the step
#   needs no distribution code under DTensor, and adds no communication there.
#   The number of the step must be a variable, or be given to the step as a tensor.
# - Under DTensor compute new values as tensors, and read no variable after it was written in the same step.
# - Comparing with one device finds what distribution breaks.
#   Formulas and sizes need an answer that shares no code with yours.
#
# {Lesson:keras_layouts}, DTensor and Keras: which Keras takes layouts, and what of all this is right with it.

# %% score
score("from_scratch")
