# %% [markdown]
# # An optimizer from scratch
#
# Four programs train the same network on the same digits, each with an optimizer that calls itself Adam.
# After 30 steps their losses have fallen from 2.3 to about 0.4, 0.3, 1.2 and 1.5.
# There is no error, and no warning.
# Three of the programs have a bug, and the lowest loss of all belongs to one of those three.
#
# The bugs aren't invented. All three were in one version of
# [TensorFlow's own guide](https://github.com/tensorflow/docs/blob/50afd98/site/en/guide/core/distribution.ipynb)
# to this subject.
#
# And what about the Adam that has trained your networks since {lesson:whole_game}?
# It was written by hand as well, and you have taken it on trust.
# Here you put it to the test: *is my optimizer right?*
# You compare it in six ways, and find out which of them would have caught which bug.
#
# **After this lesson you can**
#
# - write an optimizer that is right on any number of devices;
# - choose a comparison that can find the mistake you are afraid of;
# - compare two optimizers so that the comparison is fair.
#
# **Time:** 30 minutes.
# **You need to know:** the training step ({lesson:one_step}), slots ({lesson:a_run}),
# and what fusing all-reduces does ({lesson:faster}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## Digits and a network
#
# The task is the classic one: an image of a handwritten digit has 28 × 28 pixels, and we want to know which digit it is.
# The pixels come as a row of 784 numbers between 0 and 1.
# There are 5,000 images to train on, and 5,000 more to test with:

# %% data
import numpy as np

from course_lib import data, image_grid

digits = data.load_mnist()
train_x = digits.train.features
train_y = digits.train.labels
test_x = digits.test.features
test_y = digits.test.labels

print("train", train_x.shape, "test", test_x.shape)
image_grid(digits.test.images[:24], test_y[:24])

# %% note-digits [markdown]
# Is this MNIST?
#
# Not quite. The course draws these digits itself, so that no notebook has to download anything.
# `data.load_mnist("tfds")` takes the first 5,000 of each kind from the real MNIST,
# and `data.load_mnist("tfds", num_train=60_000, num_test=10_000)` takes all of them.

# %% values-text [markdown]
# The network has three dense layers, 784 → 700 → 500 → 10.
# Each weight matrix begins with random numbers from Xavier's uniform distribution, and each bias with zeros.
# You can skip reading this cell and the next two, which are folded.


# %% values tags=["known"]
def make_values(sizes, seed=0):
    rng = np.random.default_rng(seed)
    values = {}
    for layer in (1, 2, 3):
        inputs, outputs = sizes[layer - 1], sizes[layer]
        limit = np.sqrt(6 / (inputs + outputs))
        weight = rng.uniform(-limit, limit, (inputs, outputs))
        values[f"W{layer}"] = weight.astype("float32")
        values[f"b{layer}"] = np.zeros(outputs, "float32")
    return values


values = make_values([784, 700, 500, 10])
for name, value in values.items():
    print(name, value.shape)

# %% note-seeds [markdown]
# Why does one generator draw all the weights?
#
# The guide gives each layer the same seed.
# Then every matrix begins with the same random numbers, up to a factor, and the layers aren't independent of each other.
# One generator that draws all matrices in turn has no such pattern.

# %% forward-text [markdown]
# Everything below is written with what TensorFlow calls its **Core API**, without Keras:
# `tf.Module` holds variables, `tf.GradientTape` gives gradients, and `tf.function` compiles a step.
# You know this code, too. The forward pass has one layer more, and a `Model` holds weights but no slots:

# %% forward tags=["known"]
from course_lib import shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    hidden = tf.nn.relu(hidden @ weights["W2"] + weights["b2"])
    return hidden @ weights["W3"] + weights["b3"]


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, values, layouts):
        super().__init__()
        self.weights = {}
        for name, value in values.items():
            self.weights[name] = variable(value, layouts.get(name))


# %% layouts-text [markdown]
# We train data-parallel: eight devices share each batch, and every variable is replicated on all of them.
# There is also a layout for a scalar, which the optimizer will need in a moment.

# %% layouts tags=["known"]
WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")

layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "step": dtensor.Layout([], mesh),
}
for layer in (1, 2, 3):
    layouts[f"W{layer}"] = dtensor.Layout([WHOLE, WHOLE], mesh)
    layouts[f"b{layer}"] = dtensor.Layout([WHOLE], mesh)

# %% adam-text [markdown]
# ## An optimizer with slots
#
# For each weight $w$, Adam keeps two moving averages as slots: the mean $m$ of the gradient $g$,
# and the mean $v$ of its square. Both begin at zero. Step number $t$, counted from 1, computes
#
# $$\begin{aligned}
# m &\leftarrow 0.9\, m + 0.1\, g
# \\ v &\leftarrow 0.999\, v + 0.001\, g^2
# \\ w &\leftarrow w - \alpha\, c_t \frac{m}{\sqrt{v} + \epsilon}
# \\ c_t &= \frac{\sqrt{1 - 0.999^t}}{1 - 0.9^t}
# \end{aligned}$$
#
# Here $\alpha = 0.001$ is the learning rate, and $\epsilon = 10^{-7}$ keeps us from dividing by zero.
# What is $c_t$ for? Averages that begin at zero are too small at first.
# If the gradient were constant, $m$ would be only $1 - 0.9^t$ of what it should be,
# and $\sqrt{v}$ only $\sqrt{1 - 0.999^t}$. The factor corrects both ([Kingma and Ba](https://arxiv.org/abs/1412.6980)).
#
# In code, that is the function you have used all along:


# %% adam
def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% optimizer-text [markdown]
# So far the training loop passed in the number of the step. Usually an optimizer counts for itself,
# so let's make one that does: an object with the slots, the counter, and a method that applies the gradients.
# Each slot gets the layout of its weight, and the counter gets that of a scalar:


# %% optimizer
class Adam(tf.Module):
    def __init__(self, values, layouts, learning_rate=1e-3):
        super().__init__()
        self.learning_rate = learning_rate
        self.step = variable(np.float32(0), layouts.get("step"))
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)

    def apply(self, weights, gradients):
        step = self.step + 1
        self.update(weights, gradients, step)
        self.step.assign(step)

    def update(self, weights, gradients, step):
        # First compute everything, then write it
        updates = {}
        for name, gradient in gradients.items():
            weight = weights[name]
            mean = self.means[name]
            square = self.squares[name]
            updates[name] = adam(
                weight, mean, square, gradient, step, self.learning_rate
            )

        for name, (weight, mean, square) in updates.items():
            weights[name].assign(weight)
            self.means[name].assign(mean)
            self.squares[name].assign(square)


# %% step-text [markdown]
# Look through `apply` and `update`: nothing in them says how many devices there are.
# Adam treats every weight by itself. As long as each slot is laid out like its weight, the update needs no communication, on any mesh.
#
# The step computes the gradients and leaves the rest to the optimizer, whichever it is.
# It also returns the gradients, because we are going to look over the optimizer's shoulder.


# %% step
@tf.function
def train_step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)
    optimizer.apply(model.weights, gradients)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits), gradients


# %% train-text [markdown]
# Batches of 128 come in a new order in each epoch, as in {lesson:a_run}.
# The next cell, which is folded, has the loop. Let's train for two epochs:

# %% train tags=["known"]
STEPS_PER_EPOCH = len(train_y) // 128


def rows_of(step):
    epoch = step // STEPS_PER_EPOCH
    rng = np.random.default_rng([0, epoch])
    order = rng.permutation(len(train_y))
    first = 128 * (step % STEPS_PER_EPOCH)
    return order[first : first + 128]


def evaluate(model, layouts):
    x = place(test_x, layouts.get("x"))
    y = place(test_y, layouts.get("y"))
    logits = logits_of(model.weights, x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        y, logits
    )
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(losses)), float(tf.reduce_mean(hits))


def train(model, optimizer, layouts, steps):
    for step in range(steps):
        rows = rows_of(step)
        x = place(train_x[rows], layouts.get("x"))
        y = place(train_y[rows], layouts.get("y"))
        loss, accuracy, _ = train_step(model, optimizer, x, y)
        epoch = 1 + step // STEPS_PER_EPOCH
        yield {
            "step": step + 1,
            "epoch": epoch,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }
        if (step + 1) % STEPS_PER_EPOCH == 0:
            loss, accuracy = evaluate(model, layouts)
            yield {
                "step": step + 1,
                "epoch": epoch,
                "test_loss": loss,
                "test_accuracy": accuracy,
            }


# %% first-run
from course_lib import about, live

model = Model(values, layouts)
optimizer = Adam(values, layouts)
steps = 2 * STEPS_PER_EPOCH
run = await live(train(model, optimizer, layouts, steps), steps=steps)

accuracy = run.epochs[-1]["test_accuracy"]
print("test accuracy", about(accuracy, 0.95, 0.975))

# %% first-run-read [markdown]
# The loss falls steeply in the first epoch and slowly in the second, and 96 of 100 test digits are recognised.
# This is what everybody hopes to see. The rest of this lesson is about how little it proves.

# %% note-real [markdown]
# How well does this network do on the real MNIST?
#
# We trained the same program with three seeds, three epochs each.
# With the first 5,000 images, it gets 0.93 of the first 5,000 test images right.
# With all 60,000, it gets 0.976 to 0.981 of all 10,000 right. Every curve is on the page *Measured results*.
#
# An epoch of 5,000 images has 39 batches of 128, and leaves 8 images over, different ones each time.
# We leave them out, so every batch counts the same in the mean of an epoch.
# If you train on the small last batch as well, weigh each batch by its number of images in that mean.

# %% programs-text [markdown]
# ## Four curves that fall
#
# Call our program A. Here are the other three.
# **Program B** differs in `apply` alone. It counts its steps, too, but in an ordinary Python number, as you would in any other class:


# %% program-b
class AdamB(Adam):
    count = 0

    def apply(self, weights, gradients):
        self.count += 1
        self.update(weights, gradients, self.count)


# %% program-c-text [markdown]
# **Program C** follows the formulas line by line. It updates a slot, and then uses it:


# %% program-c
class AdamC(Adam):
    def apply(self, weights, gradients):
        t = self.step.assign_add(1).read_value()
        rate = 1e-3 * tf.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        for name, gradient in gradients.items():
            mean = self.means[name]
            square = self.squares[name]
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * gradient**2)
            move = rate * mean / (tf.sqrt(square) + 1e-7)
            weights[name].assign_sub(move)


# %% program-d-text [markdown]
# **Program D** has the optimizer of A. It only gives names to the sizes of its layers:

# %% program-d
inputs = 784
units = 700
more_units = 500
more_units = 10  # one for each digit
d_values = make_values([inputs, units, more_units, more_units])

# %% runs-text [markdown]
# Did you see what is wrong with each? If so, imagine it among a thousand lines.
#
# Now let all four take the same 30 steps. The next cell is folded. It trains as before,
# and keeps what we are going to compare: losses, weights, and a few gradients.


# %% runs tags=["known"]
def weights_of(model):
    weights = {}
    for name, weight in model.weights.items():
        weights[name] = weight.numpy()
    return weights


def first_steps(model, optimizer, layouts):
    run = {"losses": [], "gradients": []}
    for step in range(30):
        rows = rows_of(step)
        x = place(train_x[rows], layouts.get("x"))
        y = place(train_y[rows], layouts.get("y"))
        loss, _, gradients = train_step(model, optimizer, x, y)
        run["losses"].append(float(loss))
        run["gradients"].append(gradients["b1"].numpy())
        if step == 0:
            run["after one"] = weights_of(model)
            run["first gradient"] = gradients["b3"].numpy()
    run["weights"] = weights_of(model)
    run["model"] = model
    return run


# %% curves
from lessons.layouts.from_scratch.picture import loss_curves

programs = {
    "A": (values, Adam),
    "B": (values, AdamB),
    "C": (values, AdamC),
    "D": (d_values, Adam),
}
runs = {}
for name, (initial, optimizer_class) in programs.items():
    model = Model(initial, layouts)
    optimizer = optimizer_class(initial, layouts)
    runs[name] = first_steps(model, optimizer, layouts)

loss_curves(runs)


# %% last-losses
def last_five(name):  # the mean of the last five losses
    return np.mean(runs[name]["losses"][-5:])


print("A", about(last_five("A"), 0.36, 0.48))
print("B", about(last_five("B"), 0.23, 0.35))
print("C", about(last_five("C"), 1.0, 1.5))
print("D", about(last_five("D"), 1.3, 1.7))

# %% curves-read [markdown]
# C and D are slow, and C goes up and down. Would that worry you, in a network that you have never trained before?
# And B has the lowest loss of the four. If you had to choose one of these programs by its curve, you would choose a bug.
#
# What is wrong with B? `tf.function` runs the Python code of `apply` only once, while it traces the step.
# In the graph, `count` is the constant 1, so B corrects every step by $c_1$. Here is the factor in A and in B:

# %% factors
from lessons.layouts.from_scratch.picture import factor_curves

steps = np.arange(1, 201)
in_a = np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
in_b = np.full(200, in_a[0])
factor_curves({"A": in_a, "B": in_b})

# %% factors-read [markdown]
# The right factor falls from 0.32 to 0.15, comes back to 0.32 after a hundred steps, and in the end it approaches 1.
# So B takes steps up to twice as long as it should, and for the first 30 steps of this network that happens to help.
# Later, its steps will be only a third as long as they should be.
#
# D has one name for two sizes, so its middle layer has 10 units instead of 500.
# We'll come back to C. Its formulas are right; something else is wrong.
#
# ## Six comparisons
#
# How would you have noticed? Think of all the ways to check an optimizer, from the cheapest to the most thorough.
# We try each of them on A first.
#
# **The loss falls.** It fell for all four. So this comparison finds nothing here, although it is the one that everybody makes.
#
# **The first step, by hand.** An optimizer does something simple in its first step.
# Both slots begin at zero, and you can work out with pencil and paper where each weight goes.

# %% predict-first-step [markdown]
# Adam moves a weight in proportion to `m`, the moving average of its gradient, divided by the root of `v`,
# that of the gradient's square.
# In the first step one weight has the gradient 0.5, another one 500.
# How many times as far does Adam move the one with 500?
#
# - [x] `1.0` ± 0.01 as far as the other one
#   In the first step `m` and the root of `v` are both the gradient times a constant, so it cancels.
#   With the correction, only the learning rate is left, and the sign.
# - [ ] `31.6` about 32 times as far
#   `v` is an average of squares, so its root grows like the gradient, and not like the root of the gradient.
# - [ ] `1000.0` 1,000 times as far
#   That is what gradient descent does. Adam divides by the root of `v`, which is 1,000 times as large, too.

# %% reveal-first-step
two_gradients = tf.constant([0.5, 500.0])
zeros = tf.zeros(2)
moved, _, _ = adam(zeros, zeros, zeros, two_gradients, 1.0, 1e-3)
reveal("from_scratch-first-step", float(moved[1] / moved[0]))

# %% by-hand-text [markdown]
# So there is a test that needs no second program at all.
# After the first step, each weight must have moved by the learning rate, 0.001, against the sign of its gradient.
# `b3`, the last bias, began at zero. Here are its gradient in the first step of A, and the bias afterwards:

# %% by-hand
print(np.sign(runs["A"]["first gradient"]))
print(runs["A"]["after one"]["b3"].round(5))

# %% copies-text [markdown]
# All ten moved by 0.001, each against the sign of its gradient. This test has passed.
#
# Choose a bias near the loss for it, as we did. Many pixels are always black, so in `W1` many gradients are zero or tiny.
# Because of $\epsilon$, a tiny gradient moves its weight less: a gradient of 0.00001 moves it by 0.00076. That is no bug.
#
# **Equal copies.** The variables are replicated on eight devices, and their copies must stay equal.
# You know from {lesson:one_step} how to look at the copies, with `value()`, so this cell is folded:


# %% copies tags=["known"]
def spread_of(model):
    largest = 0.0
    for weight in model.weights.values():
        copies = []
        for copy in dtensor.unpack(weight.value()):
            copies.append(copy.numpy())
        differences = np.max(copies, axis=0) - np.min(copies, axis=0)
        largest = max(largest, float(differences.max()))
    return largest


spread = spread_of(runs["A"]["model"])
print("largest difference of two copies:", spread)

# %% program-e-text [markdown]
# Not a bit of difference. But you also know from {lesson:one_step} what makes copies differ:
# devices that each draw their own initial weights. Let that be a fifth program, **program E**:

# %% program-e
draws = []
for device in range(8):
    draws.append(make_values([784, 700, 500, 10], seed=device))


def unequal_copies(name):
    # eight different arrays, declared to be one replicated variable
    copies = []
    for draw in draws:
        copies.append(draw[name])
    return dtensor.DVariable(dtensor.pack(copies, layouts[name]))


model = Model(values, layouts)
for name in values:
    model.weights[name] = unequal_copies(name)

runs["E"] = first_steps(model, Adam(values, layouts), layouts)
print("E", about(last_five("E"), 1.1, 1.7))

# %% one-device-text [markdown]
# Its loss falls as well, from 2.3 to 1.4: eight different networks, each updated with the average of all eight gradients.
#
# **One device.** This is the comparison that you know best: the same program without layouts.
# We compare all weights after 30 steps, and look at the largest difference:


# %% one-device
def gap(weights, others):
    largest = 0.0
    for name, weight in weights.items():
        difference = np.abs(weight - others[name]).max()
        largest = max(largest, float(difference))
    return largest


def on_one_device(name):
    initial, optimizer_class = programs[name]
    optimizer = optimizer_class(initial, {})
    return first_steps(Model(initial, {}), optimizer, {})


on_one = {"A": on_one_device("A")}
difference = gap(runs["A"]["weights"], on_one["A"]["weights"])
print("A, eight devices and one:", about(difference, 0, 1e-3))

# %% numpy-text [markdown]
# Rounding is near $10^{-7}$. Our tolerance is 0.001, one full step of Adam.
#
# **NumPy.** All comparisons so far have run our own code. Now we need an answer that was found in another way.
# Adam treats every weight by itself, so a second Adam needn't know the network.
# It gets the recorded gradients, and has to arrive at the same weights. You write it.
#
# **Exercise 1.** Write `adam_in_numpy(variable, gradients, learning_rate)`, from the formulas above.
# `variable` is an array, and `gradients` is a list with an array for each step.
# Return the array after all steps. Use NumPy alone: not TensorFlow, and no optimizer that somebody else wrote.


# %% exercise-adam
def adam_in_numpy(variable, gradients, learning_rate):
    # solution begin
    m = np.zeros_like(variable)
    v = np.zeros_like(variable)
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

# %% followed-text [markdown]
# Your function follows the 700 weights of `b1`, in float64. Until the check accepts it, we use ours.

# %% followed
from course_lib import yours_or_ours

second_adam = yours_or_ours("from_scratch-adam", adam_in_numpy)


def numpy_gap(run):
    gradients = []
    for gradient in run["gradients"]:
        gradients.append(gradient.astype("float64"))
    b1 = second_adam(np.zeros(700), gradients, 1e-3)
    return gap({"b1": b1}, run["weights"])


print("A and NumPy:", about(numpy_gap(runs["A"]), 0, 1e-3))

# %% keras-text [markdown]
# **Keras.** Last, a program that shares none of our code: the layers, the loss and the Adam of Keras.
# Only the initial weights and the batches are ours.


# %% keras
def train_with_keras(values):
    model = tf.keras.Sequential([
        tf.keras.Input((784,)),
        tf.keras.layers.Dense(700, "relu"),
        tf.keras.layers.Dense(500, "relu"),
        tf.keras.layers.Dense(10),
    ], name="digits")
    model.set_weights(list(values.values()))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True
    )
    model.compile(tf.keras.optimizers.Adam(1e-3), loss)
    for step in range(30):
        rows = rows_of(step)
        model.train_on_batch(train_x[rows], train_y[rows])
    return dict(zip(values, model.get_weights()))


in_keras = train_with_keras(values)
difference = gap(runs["A"]["weights"], in_keras)
print("A and Keras:", about(difference, 0, 1e-3))

# %% keras-read [markdown]
# Again nothing but rounding, in all 900,000 weights. Program A has passed all six.
# For this network and these 30 steps, then, the Adam that you took on trust is right.
# Is that much? It depends on what the six comparisons would have found.

# %% note-epsilon [markdown]
# Would the Adam of PyTorch agree, too?
#
# No. [PyTorch](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html),
# and algorithm 1 of the paper, correct $v$ first, and then add $\epsilon$ to its root.
# Ours, like that of Keras, adds $\epsilon$ to the root of $v$ as it is.
# With the same $\epsilon$ of $10^{-7}$, a weight whose gradient is 0.000001 moves by 0.00091 there in its first step, and by 0.00024 here.
# In 30 steps of this network, the losses differ by up to 0.006.
# That is no bug: they are two optimizers of one name. But if you compared the two, you could hunt a long time for a bug that isn't there.

# %% caught-text [markdown]
# ## Which one finds which?
#
# A comparison can't find a mistake that both sides make. So for each one, ask what its two sides share.
# The falling loss is compared with nothing, the first step with a formula, the copies with one another.
# The last three compare a program on eight devices with another program:
#
# | compared with | devices | update | network | initial weights and batches |
# | --- | --- | --- | --- | --- |
# | one device | differ | shared | shared | shared |
# | NumPy | differ | differs | shared | shared |
# | Keras | differ | differs | differs | shared |
#
# Now let the programs with bugs meet them.

# %% predict-caught [markdown]
# Three trainings with Adam are wrong:
# B counts its steps in a Python number, C writes its slots and then reads them, D has 10 units where 500 were meant.
# Each takes the same 30 steps, compiled with `tf.function`, on eight devices and on one.
# Which of them end with other weights on eight devices than on one?
#
# - [ ] `none` none of the three
#   One of them depends on an order, and on eight devices TensorFlow doesn't keep it.
# - [x] `C` only C
#   On one device a read waits for the write before it. On eight it need not: fusing may move it.
#   B and D are wrong in the same way on any number of devices.
# - [ ] `BC` B and C
#   The Python number is frozen when the step is traced. That happens on one device, too, so both agree.
# - [ ] `BCD` all three
#   The number is frozen on one device as well, and ten units are ten units on any number of devices.

# %% reveal-caught
differing = ""
for name in "BCD":
    on_one[name] = on_one_device(name)
    if gap(runs[name]["weights"], on_one[name]["weights"]) > 1e-3:
        differing += name
if differing == "":
    differing = "none"
reveal("from_scratch-caught", differing)

# %% keras-refuses-text [markdown]
# Keras doesn't even accept the weights of D:

# %% keras-refuses tags=["error"]
try:
    train_with_keras(d_values)
except ValueError as error:
    print(error)

# %% table-text [markdown]
# Here is the whole table, six comparisons for five programs. The cell that makes it is folded:

# %% table tags=["known"]
on_one["E"] = on_one["A"]  # without devices, E is simply A


def caught_by_hand(run):
    expected = -1e-3 * np.sign(run["first gradient"])
    return not np.allclose(run["after one"]["b3"], expected, atol=1e-5)


def caught_by_keras(run):
    if run["weights"]["W2"].shape != in_keras["W2"].shape:
        return True
    return gap(run["weights"], in_keras) > 1e-3


def findings(name):  # True: this comparison has caught the program
    run = runs[name]
    by_one = gap(run["weights"], on_one[name]["weights"])
    return {
        "loss": run["losses"][-1] >= run["losses"][0],
        "by hand": caught_by_hand(run),
        "copies": spread_of(run["model"]) > 0,
        "one device": by_one > 1e-3,
        "NumPy": numpy_gap(run) > 1e-3,
        "Keras": caught_by_keras(run),
    }


# %% table-printed
print("  ", *findings("A"), sep="  ")
for name in "ABCDE":
    row = name.ljust(4)
    for comparison, found in findings(name).items():
        if found:
            mark = "found"
        else:
            mark = "-"
        row += mark.ljust(len(comparison) + 2)
    print(row)

# %% table-read [markdown]
# Read it row by row.
#
# - **B** is caught by NumPy and Keras, which compute the update anew. One device makes the same mistake as eight.
# - **C** is caught by four of the six, even by hand: in the first step, `b3` didn't move at all.
# - **D** is caught by Keras alone, because the Keras version states the layer sizes a second time. NumPy takes the gradients as they come, so it never sees the network.
# - **E** is caught by its copies, by one device, and by Keras. Its update is right on every device, so the first step and NumPy find nothing.
#
# Now read it column by column.
#
# - **The falling loss** finds nothing at all. It would find a wrong sign, for then the loss rises.
# - **The first step by hand** finds C, but not B, although B has a wrong update. B uses $c_1$ for ever, and in the first step $c_1$ is right. A first step can't show what goes wrong later.
# - **The copies** find E alone. B, C and D make their mistakes on every device alike.
# - **One device** finds what goes wrong *because* there are eight, and nothing else.
# - **NumPy** finds a wrong update, and nothing else.
# - **Keras** finds all four, because it shares the least with us: only the initial weights and the batches. It would miss a mistake in those.
#
# Then why not use Keras alone? Because it only says *that* something is wrong. The other columns say where to look.
# If one device differs, look at the distribution. If NumPy differs, look at the update.
# If only Keras differs, look at the network.
#
# ## Written, then read
#
# We still owe an explanation for C. Its formulas are right, and so is everything that it does on one device.
#
# Here is the mistake at its smallest. Three variables have 1, 2 and 3 elements.
# For each, a function adds up eight rows of ones and assigns the result. Then it reads all three.
# It *captures* the variables: they aren't among its arguments. Every element should be 8:

# %% written
whole, split_rows = layouts["b1"], layouts["x"]
variables = []
inputs = []
for size in (1, 2, 3):
    variables.append(variable(np.zeros(size, "float32"), whole))
    inputs.append(place(np.ones((8, size), "float32"), split_rows))


def write_then_read(inputs):
    for each, ones in zip(variables, inputs):
        each.assign(tf.reduce_sum(ones, axis=0))
    results = []
    for each in variables:
        results.append(each.read_value())
    return results


# %% written-run
for each in variables:
    each.assign(0.0 * each)  # in case you run this cell again
for result in tf.function(write_then_read)(inputs):
    print(result.numpy())

# %% written-read [markdown]
# Two of the three came back as zeros, although the function had written an 8 into each. What has become of these two writes?

# %% predict-held [markdown]
# On eight devices, a compiled function writes 8 into each of three variables, which held 0, and then reads all three.
# It returns 0, 0 and 8. Then the function is over, and you look at the three variables.
# What do they hold?
#
# - [ ] `(0, 0, 8)` 0, 0 and 8
#   Then two writes would be lost. But nothing has kept the function from writing. What came too early?
# - [x] `(8, 8, 8)` 8, 8 and 8
#   No write is lost. Two of the reads came before the writes, and returned what was there at that time.
# - [ ] `(0, 0, 0)` 0, 0 and 0
#   Then the function would write only into something of its own. But the third read did find an 8.

# %% reveal-held
held = []
for each in variables:
    held.append(int(each.numpy()[0]))
reveal("from_scratch-held", tuple(held))

# %% order-text [markdown]
# The writes took place, but two reads came before them. These are **stale reads**.
# In {lesson:faster} you suspected that fusing moves a read ahead of a write. Here you can see it.
# These are the all-reduces of our function, first as DTensor inserts them, then as TensorFlow fuses them:

# %% order
from course_lib import collectives

for each in collectives(write_then_read, inputs):
    print(each)

print("fused:")
for each in collectives(write_then_read, inputs, combine=True):
    print(each)

# %% order-read [markdown]
# Each sum takes an all-reduce. TensorFlow's graph has each read right after its write.
# Fusing then makes one all-reduce of all three, at the place of the last, and pads it to 1,024 numbers.
# A write needs its sum, so it has to move, too:
#
# ```
# graph:  sum 1  write 1  read 1  sum 2  write 2  read 2  sum 3  write 3  read 3
#
# fused:  read 1  read 2  sums 1 + 2 + 3  write 3  read 3  write 1  write 2
#         └─ too early ┘
# ```
#
# And the reads? `tf.function` had recorded that each read must follow its write.
# But the fusing pass looks only at where data flows. No data flows from the write to the read,
# so the pass leaves the read where it was.
#
# In a training step, the sums are the gradients. C reads almost all of its slots one step late.
# In the first step they are still zero, and $0 / (0 + \epsilon)$ moves nothing:

# %% spared
for name, weight in runs["C"]["after one"].items():
    change = np.abs(weight - values[name]).max()
    print(name, "moved" if change > 0 else "did not move")

# %% spared-read [markdown]
# Only the weight whose all-reduce came last was read rightly.
# Don't rely on it: you can't tell from your program which all-reduce will be the last.
# But remember it when you compare: had you followed only `W3` with NumPy, you would have found nothing.
#
# The cure costs nothing: *compute every new value first, use the computed tensors, and write last.*
# Then no variable is read after it was written. This is what A does, and what its comment says.

# %% note-spared [markdown]
# Is every such read stale? And does it help to turn fusing off?
#
# Not every one. Pass the three variables to the function as arguments, and all reads return 8, though the sums are fused just the same.
# Reads go stale when the function captures its variables, as here, or receives them inside a module, as in a training step.
#
# With fusing off, as in {lesson:faster}, C is right. That is a good way to test a suspicion, but every step then takes more all-reduces.
#
# C also writes its counter and then reads it. That came out right:
# the counter needs no all-reduce, so nothing moves its write.
# The pass is called `DTensorAllReduceCombineOptimization`, and is in
# [TensorFlow's source](https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/dtensor/mlir).
# {Lesson:keras_layouts} meets the same mistake in the optimizers of Keras.

# %% momentum-text [markdown]
# **Exercise 2.** *Momentum* keeps one slot $u$ for each weight $w$, its velocity:
#
# $$u \leftarrow 0.9\, u - \alpha\, g,\qquad w \leftarrow w + u$$
#
# The second formula uses the new $u$.
# Write `momentum(weights, velocities, gradients, learning_rate)`. The first three are dictionaries with the same names;
# weights and velocities are variables, and gradients are tensors.
# Write the new values into the variables with `assign` or `assign_add`, and return nothing.
# The check calls your function in a compiled step, on one device and then on eight.


# %% exercise-momentum
def momentum(weights, velocities, gradients, learning_rate):
    # solution begin
    for name, weight in weights.items():
        change = learning_rate * gradients[name]
        velocity = 0.9 * velocities[name] - change
        velocities[name].assign(velocity)
        weight.assign_add(velocity)
    # solution end


# %%
check("from_scratch-momentum", momentum)

# %% rivals-text [markdown]
# ## Right, and better?
#
# Adam is right. But why Adam at all? It needs two slots for each weight.
# Momentum needs one, and plain gradient descent (SGD) none. On a large model, that is a lot of memory.
#
# Here are the two rivals. Momentum uses your function:


# %% rivals
class SGD(tf.Module):
    def __init__(self, _values, _layouts, learning_rate):
        super().__init__()  # it has no slots to make
        self.learning_rate = learning_rate

    def apply(self, weights, gradients):
        for name, gradient in gradients.items():
            weights[name].assign_sub(self.learning_rate * gradient)


apply_momentum = yours_or_ours("from_scratch-momentum", momentum)


class Momentum(tf.Module):
    def __init__(self, values, layouts, learning_rate):
        super().__init__()
        self.learning_rate = learning_rate
        self.velocities = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.velocities[name] = variable(zeros, layout)

    def apply(self, weights, gradients):
        rate = self.learning_rate
        apply_momentum(weights, self.velocities, gradients, rate)


# %% unfair-text [markdown]
# Each starts from the same initial weights, and takes the same batches for two epochs, on one device.
# With its usual rate of 0.001, Adam got to 0.96. Let's give SGD 0.1, ten times the default of Keras:


# %% unfair
def test_results(optimizer_class, rate):
    model = Model(values, {})
    optimizer = optimizer_class(values, {}, rate)
    for step in range(2 * STEPS_PER_EPOCH):
        rows = rows_of(step)
        x, y = train_x[rows], train_y[rows]
        train_step(model, optimizer, tf.constant(x), tf.constant(y))
    return evaluate(model, {})


_, accuracy = test_results(SGD, 0.1)
print("SGD: test accuracy", about(accuracy, 0.84, 0.885))

# %% unfair-read [markdown]
# Ten points less! Such comparisons sell optimizers, and this one is unfair.
# Adam has a learning rate that many people have tuned, on many networks like ours, and SGD has one that we made up.
# So each of them gets three tries, in a range of its own:

# %% rates
rates = {
    SGD: [0.15, 0.5, 1.5],
    Momentum: [0.03, 0.1, 0.3],
    Adam: [0.001, 0.003, 0.01],
}
tried = {}
for optimizer_class, some_rates in rates.items():
    results = {}
    for rate in some_rates:
        results[rate] = test_results(optimizer_class, rate)
    tried[optimizer_class.__name__] = results

# %% rates-picture
from lessons.layouts.from_scratch.picture import rate_curves

rate_curves(tried)

# %% rates-read [markdown]
# Each curve is a valley. A rate that is too low hasn't come far after two epochs, and one that is too high overshoots.
# Each best rate is inside its range. If it were at an end, you would have to look further. What does each reach there?

# %% best
for name, results in tried.items():
    rate = min(results, key=results.get)  # the lowest test loss
    loss, accuracy = results[rate]
    print(f"{name:8}  rate {rate:<5}", end="  ")
    print("loss", about(loss, 0.07, 0.22), end="  ")
    print("accuracy", about(accuracy, 0.94, 0.98))

# %% best-read [markdown]
# Adam still wins, with 0.97. But ten points have become one or two.
#
# Now look at the rates that won. That of SGD is more than a hundred times that of Adam: a rate that suits one optimizer says little about another.
# And Adam's is 0.003, three times the usual one. Even Adam had not been tuned.

# %% note-tuning [markdown]
# What would a comparison need that you could publish?
#
# More than one seed, and a finer search. With 5,000 test images, an accuracy of 0.96 has a standard error of about 0.003,
# too much to rank SGD and momentum, which both reach 0.96.
# We also chose the rates by the same images with which we then measured. That flatters all three in the same way,
# but to report an accuracy, measure again on fresh data.
#
# With a learning-rate schedule ({lesson:a_run}), the valleys are elsewhere. With weight decay, there is a second number to tune.

# %% plain-heading [markdown]
# ## The plain program
#
# [`from_scratch.py`](../plain/from_scratch.py) is a test bench for an optimizer, in one file that needs TensorFlow and NumPy alone.
# It looks at the first step, then takes ten steps on eight devices: as a row, and as 4 × 2, where the slots are split like their weights.
# It compares the weights with those of one device and of NumPy. Put your own optimizer in place of `Adam`, and its formulas in place of `adam_in_numpy`.

# %% takeaways [markdown]
# ## Takeaways
#
# - A loss that falls proves nothing. Compare with something that doesn't share the mistake you are afraid of:
#   one device for what distribution breaks, another program for the formulas and the network.
# - In a DTensor step, compute every new value first, and write last. A step number belongs in a variable, or is passed in as a tensor.
# - Before you compare two optimizers, give each its own best learning rate.
#
# {Lesson:keras_layouts} asks which of all this Keras can take off your hands.

# %% score
score("from_scratch")
