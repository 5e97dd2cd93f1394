# %% [markdown]
# # An optimizer from scratch
#
# Four programs learn to read the same handwritten digits, each with an optimizer that calls itself Adam.
# All their losses begin above 2.3. In the last five of 30 steps, they average about 0.4, 0.3, 1.2 and 1.5.
# There is no error, and no warning.
# Three of the programs have a bug, and one of those three has the lowest loss of all.
#
# The bugs aren't invented. All three were in one version of
# [TensorFlow's own guide](https://github.com/tensorflow/docs/blob/50afd98/site/en/guide/core/distribution.ipynb)
# to this subject.
#
# And the Adam that you have used since {lesson:whole_game}? It, too, was written by hand, and you took it on trust. Now you put it to the test: *is my optimizer right?* You test it in six ways. Then the buggy programs take the same six tests, and you see which test finds which bug.
#
# **After this lesson you can**
#
# - write an optimizer that is right on any number of devices;
# - choose a test that can find the bug you are afraid of;
# - compare two optimizers fairly.
#
# **Time:** 60 minutes.
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
# The task is the classic one: an image shows a handwritten digit, and we want to know which digit it is.
# Our images look like those of MNIST, but the course draws them itself, so nothing has to be downloaded.
# Each has 28 × 28 pixels. The network gets them as a row of 784 numbers between 0 and 1.
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
# Can I use the real MNIST?
#
# Yes. `data.load_mnist("tfds")` takes the first 5,000 of its training images and the first 5,000 of its test images.
# `data.load_mnist("tfds", num_train=60_000, num_test=10_000)` takes all of them.

# %% values-text [markdown]
# The network has three dense layers, 784 → 700 → 500 → 10.
# Each weight matrix begins with random numbers from Xavier's uniform distribution, and each bias with zeros.
# This cell and the next two are folded. Just run them.


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
# TensorFlow's guide, the source of three of this lesson's bugs, gives each layer the same seed.
# Then every matrix begins with the same random numbers, only scaled, and the layers aren't independent.
# One generator that draws all matrices in turn has no such pattern.

# %% forward-text [markdown]
# Everything below is written with what TensorFlow calls its **Core API**, without Keras:
# `tf.Module` holds variables, `tf.GradientTape` gives gradients, and `tf.function` compiles a step.
# You know most of this code. The forward pass gets a third layer, and `Model` holds only weights, no slots:

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
# and the mean $v$ of its square. Papers call them the *first moment* and the *second moment*.
# Both begin at zero. With $t$ as the step number, counted from 1, a step computes
#
# $$\begin{aligned}
# m &\leftarrow 0.9\, m + 0.1\, g
# \\ v &\leftarrow 0.999\, v + 0.001\, g^2
# \\ c_t &= \frac{\sqrt{1 - 0.999^t}}{1 - 0.9^t}
# \\ w &\leftarrow w - \alpha\, c_t \frac{m}{\sqrt{v} + \epsilon}
# \end{aligned}$$
#
# Here $\alpha = 0.001$ is the learning rate, and $\epsilon = 10^{-7}$ keeps us from dividing by zero.
#
# What is $c_t$ for? Averages that begin at zero are too small at first.
# Suppose that the gradient never changes. After $t$ steps, $m$ is still only $1 - 0.9^t$ times the gradient,
# and $\sqrt{v}$ only $\sqrt{1 - 0.999^t}$ times its size.
# The factor $c_t$ makes up for both. This is Adam's **bias correction** ([Kingma and Ba](https://arxiv.org/abs/1412.6980)).
#
# In code, that is the function that you know:


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
# Until now the training loop passed in the step number. An optimizer usually counts itself, so let's write one that does: an object with slots, a counter, and a method that applies the gradients.
# Each slot gets its weight's layout, and the counter the scalar layout:


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
# The step computes the gradients, and leaves the rest to whatever optimizer it is given.
# It also returns the gradients, because we want to check the optimizer against them.


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
# Batches of 128 come in a new order in each epoch, as in {lesson:a_run}. An epoch has 39 of them, and the last 8 images are left over.
# The loop is in the next cell, which is folded. Let's train for two epochs:

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
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
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
# The loss falls steeply in the first epoch and slowly in the second, and 96 of 100 test digits are recognized.
# This is what everybody hopes to see. The rest of this lesson is about how little it proves.

# %% note-real [markdown]
# How well does this network do on the real MNIST?
#
# We trained the same program with three seeds, three epochs each.
# With the first 5,000 images, its accuracy is 0.93 on the first 5,000 test images. With all 60,000, it is 0.976 to 0.981 on all 10,000. Every curve is on the page *Measured results*.

# %% programs-text [markdown]
# ## Four curves that fall
#
# Call our program A. Here are the other three.
# **Program B** differs only in `apply`. It counts its steps too, but in a plain Python number, as any ordinary class would:


# %% program-b
class AdamB(Adam):
    count = 0

    def apply(self, weights, gradients):
        self.count += 1
        self.update(weights, gradients, self.count)


# %% program-c-text [markdown]
# **Program C** differs only in `update`. It follows the formulas line by line: it writes a slot, and then uses it.


# %% program-c
class AdamC(Adam):
    def update(self, weights, gradients, step):
        correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        rate = self.learning_rate * correction
        for name, gradient in gradients.items():
            mean = self.means[name]
            square = self.squares[name]
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * gradient**2)
            move = rate * mean / (tf.sqrt(square) + 1e-7)
            weights[name].assign_sub(move)


# %% program-d-text [markdown]
# **Program D** has the optimizer of A. The only difference is that the sizes of its layers have names:

# %% program-d
pixels = 784
units = 700
more_units = 500
more_units = 10  # one for each digit
d_values = make_values([pixels, units, more_units, more_units])

# %% runs-text [markdown]
# Did you spot all three bugs? If you did, imagine them buried in a thousand lines.
#
# Now all four take the same 30 steps. The next cell (folded) trains as before, and keeps what we'll test afterwards: losses, weights, and a few gradients.
# Our variables are replicated, so `numpy()` reads them. Split ones need `to_numpy`, from {lesson:mesh_and_layout}.


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
# And B has the lowest loss of the four. Pick a program by its curve, and you pick a bug.
#
# What is wrong with B? `tf.function` runs the Python code of `apply` only once, while it traces the step.
# In the graph, `count` is the constant 1, so B corrects every step by $c_1$. Here is the factor in A and in B:

# %% factors
from lessons.layouts.from_scratch.picture import factor_curves

t = np.arange(1, 201)
in_a = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
in_b = np.full(200, in_a[0])
factor_curves({"A": in_a, "B": in_b})

# %% factors-read [markdown]
# The right factor falls from 0.32 to 0.15, and is back at 0.32 after about a hundred steps.
# B stays at 0.32. So in these hundred steps it moves the weights too far, at worst twice as far as it should. In our 30 steps, this happens to help. But beyond the edge of the picture, the right factor rises on toward 1. In the end, B moves the weights only a third as far as it should.
#
# What is wrong with D? It has one name for two sizes, so its middle layer has 10 units instead of 500.
# And C? Its formulas are right. We'll come back to it.

# %% note-frozen [markdown]
# Is the learning rate frozen, too?
#
# Yes. `self.learning_rate` is a Python number in every program, and `tf.function` freezes it just like `count`.
# That does no harm while it stays the same. To change it during training, keep it in a variable, or pass it in as a tensor.

# %% tests-text [markdown]
# ## Six tests
#
# How would you have noticed? Here are six tests for an optimizer, from the cheapest to the most thorough.
# You have already run the first, on all four programs. We'll try the others on A first.
#
# ### 1. The loss falls
#
# It fell for all four. So this test finds nothing here, although it is the one that everybody makes.

# %% first-step-text [markdown]
# ### 2. The first step, by hand
#
# Adam's first step is simple. Both slots begin at zero, so you can work out with pencil and paper where each weight goes.

# %% predict-first-step [markdown]
# Adam moves a weight in proportion to `m`, the moving average of its gradient, divided by the root of `v`,
# that of the gradient's square. Both begin at zero.
# In the first step one weight has the gradient 0.5, another one 500.
# How much farther does Adam move the one with 500?
#
# - [x] `1.0` ± 0.01 no farther
#   In the first step, `m` is a constant times the gradient, and the root of `v` a constant times its size.
#   The size cancels, and after the correction only the learning rate and the sign are left.
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
# After the first step, a weight must have moved by the learning rate, 0.001, against the sign of its gradient.
# For this test, pick a bias near the loss. In `W1`, many gradients are zero, because many pixels are black in every image of the batch. A weight with a zero gradient doesn't move. So we take `b3`, the last bias, which began at zero. Here are its gradient in the first step of A, and the bias afterwards:

# %% by-hand
print(np.sign(runs["A"]["first gradient"]))
print(runs["A"]["after one"]["b3"].round(5))

# %% copies-text [markdown]
# All ten biases moved by 0.001, each against the sign of its gradient. A has passed this test.
#
# ### 3. Equal copies
#
# The variables are replicated on eight devices, and their copies must stay equal.
# If the model is split, compare devices with the same shard.
# You know from {lesson:one_step} how to look at the copies, so this cell is folded:


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
# The copies are equal, to the last bit. Now let's make them differ on purpose.
# As you saw in {lesson:one_step}, copies differ when each device draws its own initial weights. That is our fifth program, **program E**:


# %% program-e
def draw_on_each_device(name):
    copies = []
    for device in range(8):
        drawn = make_values([784, 700, 500, 10], seed=device)
        copies.append(drawn[name])
    # The layout says that these eight are equal. They aren't
    return dtensor.DVariable(dtensor.pack(copies, layouts[name]))


model = Model(values, layouts)
for name in values:
    model.weights[name] = draw_on_each_device(name)

runs["E"] = first_steps(model, Adam(values, layouts), layouts)
print("E", about(last_five("E"), 1.1, 1.7))
spread = spread_of(runs["E"]["model"])
print("largest difference of two copies:", about(spread, 0.2, 0.23))

# %% one-device-text [markdown]
# The third test finds E: copies of one weight are up to 0.22 apart.
# Yet the loss came down to about 1.4, though E is really eight networks, each updated with the average of all eight gradients.
#
# ### 4. One device
#
# This is the test that you know best: the same program on one device. There it gets no layouts (an empty dictionary). We compare all weights and biases after 30 steps, and look at the largest difference:


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
# The difference is rounding, near $10^{-7}$. A tolerance must lie well above rounding errors, and below the damage that a bug does in 30 steps.
# Ours is 0.001, about as far as Adam moves a weight in one step.
#
# ### 5. NumPy
#
# One device ran the same code again. Now we want an answer from other code. Adam sees only weights and gradients. So a second Adam needs no network: given the recorded gradients, it should arrive at the same weights. You write it.
#
# **Exercise 1.** Write `adam_in_numpy(weight, gradients, learning_rate)`, from the formulas above.
# `weight` is an array, and `gradients` is a list of arrays, one for each step.
# Return the weight after all steps. Use NumPy alone: not TensorFlow, and no optimizer that somebody else wrote.


# %% exercise-adam
def adam_in_numpy(weight, gradients, learning_rate):
    # solution begin
    m = np.zeros_like(weight)
    v = np.zeros_like(weight)
    for t, g in enumerate(gradients, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        c = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        move = c * m / (np.sqrt(v) + 1e-7)
        weight = weight - learning_rate * move
    return weight
    # solution end


# %%
check("from_scratch-adam", adam_in_numpy)

# %% followed-text [markdown]
# Adam treats each weight on its own, so your function need only follow the 700 numbers of `b1`.
# (The gradients of all weights would take 100 MB for each program.)
# It computes in float64, so it adds hardly any rounding.
# Until the check accepts your function, we use ours.

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
# ### 6. Keras
#
# Last, a program that shares none of our code: Keras's own layers, loss and Adam.
# Only the initial values and the batches are ours.


# %% keras
def train_with_keras(values):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((784,)),
            tf.keras.layers.Dense(700, "relu"),
            tf.keras.layers.Dense(500, "relu"),
            tf.keras.layers.Dense(10),
        ],
        name="digits",
    )
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
# Over all 900,000 weights, the largest difference is again rounding. Program A has passed all six tests.
# For this network and these 30 steps, then, the Adam that you took on trust is right.
#
# How much is that worth? As much as the bugs that the six tests can find.

# %% note-epsilon [markdown]
# What can epsilon change?
#
# Because of $\epsilon$, a tiny gradient moves its weight less: in the first step, a gradient of 0.00001 moves it by 0.00076 instead of 0.001. That is no bug.
#
# And not everybody adds $\epsilon$ in the same place.
# [PyTorch](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html),
# and algorithm 1 of the paper, correct $v$ first, and then add $\epsilon$ to its root.
# Ours, like that of Keras, adds $\epsilon$ to the root of the raw $v$. With $\epsilon = 10^{-7}$ in both, a gradient of 0.000001 moves its weight by 0.00091 in the first step of PyTorch's Adam, and by 0.00024 in the first step of ours. In 30 steps of this network, the losses differ by up to 0.006. They are two optimizers under one name. If you compared them without knowing it, you could hunt a long time for a bug that isn't there.

# %% caught-text [markdown]
# ## Which test finds which bug?
#
# Now let's put the buggy programs through all six.
#
# The first three tests need no second program. The last three compare a program on eight devices with a second program,
# and a comparison can't find a bug that both sides have. So ask what the two sides share. For A, B and C:
#
# | compared with | devices | update | network | `values` and batches |
# | --- | --- | --- | --- | --- |
# | one device | differ | shared | shared | shared |
# | NumPy | shared | differs | shared | shared |
# | Keras | differ | differs | differs | shared |
#
# NumPy is fed the gradients that the eight devices computed, so it can't tell whether those are right. What it checks is the update.

# %% predict-caught [markdown]
# Three trainings with Adam are wrong:
# B counts its steps in a Python number, C writes its slots and then reads them, D has 10 units where 500 were meant.
# Each takes the same 30 steps, compiled with `tf.function`, on eight devices and on one.
# Which of them end with other weights on eight devices than on one?
#
# - [ ] `none` none of the three
#   One of them does everything right on one device.
# - [x] `C` only C
#   C is right on one device and wrong on eight. B and D are wrong on one device, too, and end with the same weights there.
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
# How does D compare with Keras? Let's give the Keras network the initial values of D:

# %% keras-refuses tags=["error"]
try:
    train_with_keras(d_values)
except ValueError as error:
    print(error)

# %% table-text [markdown]
# Keras won't even take the values of D. Here is the whole table, six tests for five programs. The cell that makes it is folded:

# %% table tags=["known"]
on_one["E"] = on_one["A"]  # on one device, E is simply A


def caught_by_hand(run):
    expected = -1e-3 * np.sign(run["first gradient"])
    return not np.allclose(run["after one"]["b3"], expected, atol=1e-5)


def caught_by_keras(run):
    if run["weights"]["W2"].shape != in_keras["W2"].shape:
        return True
    return gap(run["weights"], in_keras) > 1e-3


def findings(name):  # True: this test has caught the program
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


def print_table():
    print("  ", *findings("A"), sep="  ")
    for name in "ABCDE":
        row = name.ljust(4)
        for test, found in findings(name).items():
            if found:
                mark = "found"
            else:
                mark = "-"
            row += mark.ljust(len(test) + 2)
        print(row)


# %% table-printed
print_table()

# %% table-read [markdown]
# B is found by two tests, C by four, D by one and E by three. But look at the columns, because a test is what you choose:
#
# - **The falling loss** finds nothing at all. It would catch a wrong sign, since the loss would rise.
# - **The first step by hand** finds C, whose `b3` didn't move at all. It misses B, which uses $c_1$ forever: in the first step, $c_1$ is right. A first step can't show what goes wrong later.
# - **The copies** find E alone. In B, C and D all eight devices go wrong together, so their copies stay equal.
# - **One device** finds what goes wrong *because* there are eight: C and E. B and D go wrong on one device as well.
# - **NumPy** finds a wrong update, so B and C. It never sees the network of D, and E's update is right on every device.
# - **Keras** finds all four, because it shares the least with us. But it would miss a mistake in `values` themselves.
#
# Unlike D and E, the Keras network starts from `values`, and so does the one-device run that E is compared with.
#
# Then why not use Keras alone? Because it only says *that* something is wrong. The other columns say where to look.
# If one device differs, look at the distribution. If NumPy differs, look at the update.
# If both differ, as for C, look at what the update does on several devices.
# If only Keras differs, look at the network.
# And sometimes it isn't a bug at all, because optimizers disagree on where to add $\epsilon$. Add $\epsilon$ where Keras does, and see whether the difference goes away.
#
# One mistake changes no number, so none of the six tests can find it. If you replicate the slots of a split weight, every weight is right, but each device needs more memory, and each step more exchanges. So check that `slot.layout == weight.layout` holds for every slot.
#
# ## Written, then read
#
# That leaves C. Its formulas are right, and so is everything that it does on one device.
#
# Here is its bug at its smallest. Three variables have 1, 2 and 3 elements, all zero.
# For each of them, a function takes eight rows of ones, adds up the rows, and writes the sums into the variable. Once all three are written, it reads them back. Every element should be 8:

# %% written
replicated = dtensor.Layout([WHOLE], mesh)
split = dtensor.Layout(["batch", WHOLE], mesh)
variables = []
inputs = []
for size in (1, 2, 3):
    zeros = np.zeros(size, "float32")
    variables.append(variable(zeros, replicated))
    ones = np.ones((8, size), "float32")
    inputs.append(shard(ones, split))


def write_then_read(inputs):
    for each, ones in zip(variables, inputs):
        each.assign(tf.reduce_sum(ones, axis=0))

    results = []
    for each in variables:
        results.append(each.read_value())
    return results


# %% written-run
for each in variables:
    # In case you run this cell again
    each.assign(tf.zeros_like(each))
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
# In {lesson:faster} you found that fusing moves a read ahead of a write. Let's see how that happens.
# These are the all-reduces of our function, first as DTensor inserts them, then as TensorFlow fuses them:

# %% order
from course_lib import collectives

for each in collectives(write_then_read, inputs):
    print(each)

print("fused:")
for each in collectives(write_then_read, inputs, combine=True):
    print(each)

# %% order-read [markdown]
# Each sum takes an all-reduce, of 4, 8 and 12 bytes for 1, 2 and 3 numbers.
# Fusing makes one all-reduce of the three: 4,096 bytes, with the padding of {lesson:faster}.
#
# Now the order. Our function reads at the end. But a read has to wait only for the write to its own variable, so TensorFlow's graph puts each read right after its write. Fusing then puts one all-reduce where the last of the three was.
# Writes 1 and 2 have to wait for the fused sum, so they come after it:
#
# ```
# graph:  sum 1  write 1  read 1  sum 2  write 2  read 2  sum 3  write 3  read 3
#
# fused:  read 1  read 2  sums 1 + 2 + 3  write 3  read 3  write 1  write 2
#         └─ too early ┘
# ```
#
# Why don't the reads move too? `tf.function` recorded that each read must follow its write. But the fusing pass looks only at data flow, and no data flows from a write to a read. So the pass leaves the read where it was.
#
# In a training step, the sums are the gradients. So C reads almost all of its slots too early, and gets values that are one step old.
# In the first step they are still zero, and $0 / (0 + \epsilon)$ moves nothing. Are all weights affected? Let's see which moved:

# %% spared
for name, weight in runs["C"]["after one"].items():
    change = np.abs(weight - values[name]).max()
    print(name, "moved" if change > 0 else "did not move")

# %% spared-read [markdown]
# Only `W3` moved: its all-reduce came last, so its slots were read correctly.
# That was luck, because you can't tell from your program which all-reduce will be the last.
# With `W3` instead of `b1`, our NumPy test would have missed the bug.
#
# Writes can overtake writes as well. Suppose a step adds a sum to a variable and then resets it to zero. The reset may come first, and the sum stays.
#
# The cure costs nothing: *in a step, write each variable only once, and don't read it afterwards.* Go on with the tensor that you computed.
# A does more than it must: it computes everything before it writes anything.

# %% note-spared [markdown]
# When does a read come too early?
#
# You can't tell from your code. Here two of three reads come too early. Pass the three variables as an argument, in a list, and all reads return 8, though the sums are fused just the same. But that is no cure: C also gets its variables as an argument (in a module), and still reads too early.
#
# With fusing off, as in {lesson:faster}, C is right. That is a good way to test a suspicion, but costs more all-reduces in every step.
#
# The pass is called `DTensorAllReduceCombineOptimization`, and is in
# [TensorFlow's source](https://github.com/tensorflow/tensorflow/tree/v2.21.0/tensorflow/dtensor/mlir).
# {Lesson:keras_layouts} meets the same bug in the optimizers of Keras.

# %% momentum-text [markdown]
# **Exercise 2.** Now write an optimizer that writes each variable once and doesn't read it afterwards. Unlike A, it needn't compute everything before it writes.
# *Momentum* has one slot for each weight $w$, its velocity $u$:
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
# ## One more question: is it better?
#
# Your optimizer is right. Is it also worth its memory? Adam needs two slots for each weight,
# momentum one, and plain gradient descent (SGD) none. On a large model, that is a lot of memory.
# So let's end with a short question: *is Adam better than its rivals?*
#
# Here are the two rivals. Momentum uses your function:


# %% rivals
class SGD(tf.Module):
    def __init__(self, values, layouts, learning_rate):
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
# Each optimizer starts from the same initial weights, and takes the same batches for two epochs, on one device.
# With a rate of 0.001, which is its default in Keras, Adam got to 0.96. Let's give SGD 0.1, ten times its own default there:


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
# Ten points less! Comparisons like this sell optimizers. It is unfair.
# Adam had a rate that does well on many networks, and SGD one that we made up. Neither was tuned for this network.
# So each gets three tries, in a range of its own. To find that range, begin anywhere, and shift it until the best rate lies inside it:

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
# Each curve is a valley. At too low a rate, training hasn't got far after two epochs; at too high a rate, it overshoots.
# Each best rate, the one with the lowest test loss, is inside its range.
# How good is each optimizer there?

# %% best
for name, results in tried.items():
    best_rate = None
    best_loss = np.inf
    for rate, (loss, accuracy) in results.items():
        if loss < best_loss:
            best_rate = rate
            best_loss = loss
            best_accuracy = accuracy
    print(f"{name:8}  rate {best_rate:<5}", end="  ")
    print("loss", about(best_loss, 0.07, 0.22), end="  ")
    print("accuracy", about(best_accuracy, 0.94, 0.98))

# %% best-read [markdown]
# Adam has the lowest loss, so it still wins. But of the lead of ten points, about one is left, and a single run can't tell whether that one is real.
#
# Now look at the rates that won. SGD's is more than a hundred times Adam's: a rate that suits one optimizer says little about the next.
# And Adam's is 0.003, three times its default. Even for Adam, it was worth looking.

# %% note-tuning [markdown]
# What would a comparison need that you could publish?
#
# More than one seed, and a finer search. One run of each can't rank SGD and momentum, which both reach an accuracy of 0.96.
# We also used the same images to choose the rates and to measure the result. That flatters all three in the same way,
# but to report an accuracy, measure again on fresh data.
#
# With a learning-rate schedule ({lesson:a_run}), the valleys are elsewhere. With weight decay, there is a second number to tune.

# %% plain-heading [markdown]
# ## The plain program
#
# [`from_scratch.py`](../plain/from_scratch.py) is a test bench for an optimizer, in one file that needs only TensorFlow and NumPy.
# It checks the first step, then takes ten steps on eight devices: as a row, and as 4 × 2, with weights and slots split.
# It compares the weights with those of one device and of NumPy. To test your own optimizer, put it there instead of `Adam`, and its formulas instead of `adam_in_numpy`.

# %% takeaways [markdown]
# ## Takeaways
#
# - A loss that falls proves nothing. Compare with something that can't share the bug you fear: one device to find what distribution breaks, another program to find a mistake in the formulas or the network.
# - In a DTensor step, write each variable only once, and don't read it afterwards: go on with the tensor that you computed.
#   A step number belongs in a variable, or is passed in as a tensor.
# - Before you compare two optimizers, give each its own best learning rate.
#
# {Lesson:keras_layouts} shows what Keras takes off your hands, and what it gets wrong without a word.

# %% score
score("from_scratch")
