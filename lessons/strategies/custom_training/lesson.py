# %% [markdown]
# # Custom training on Fashion-MNIST
#
# Four replicas share a batch, and each computes the losses of its own images.
# What must each of them divide by, so that together they take the step of one device?
# And would you notice if they did not?
#
# After this lesson you can
#
# - write a training loop with `strategy.run` and `reduce` that takes the steps of one device,
#   also where the replicas get unequal parts of a batch;
# - scale losses and penalties, feed metrics, and say what a loss of Keras has divided already;
# - resume a training from its checkpoint, and restore the model without a strategy.
#
# **Time:** 45 minutes.
# **You need to know:** a Keras model and its optimizer, the checkpoints of {lesson:a_run},
# and `MirroredStrategy` from {lesson:strategies}.
#
# > **Where this was run.** TensorFlow 2.21 with Keras 3.15 on virtual CPUs, not on GPUs or TPUs.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% garments-text [markdown]
# ## A program with a mistake
#
# Four virtual CPUs train a convolutional model that tells ten kinds of garments apart.
# The next six cells are the whole program.
# It runs, the loss falls and the accuracy rises.
# Yet it has a mistake that raises no error: look for it.
#
# The images are a stand-in that the course draws, 2,500 for training and 1,000 for testing.
# With `"tfds"` as `SOURCE` in the next cell, or in `COURSE_DATA`,
# they are as many photographs of the real Fashion-MNIST.
# An image has 28 × 28 pixels, divided by 255, and one channel, which a convolution asks for.

# %% garments
import tempfile
import warnings

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from course_lib import data, image_grid, live, outcome, yours_or_ours

tf = course_lib.start_tensorflow()
warnings.filterwarnings("ignore", "To make it possible")  # tf.data's
SOURCE = None  # the stand-in (or what COURSE_DATA says)
garments = data.load_fashion(SOURCE, num_train=2_500, num_test=1_000)
images, labels = garments.train.features, garments.train.labels
print(f"{images.shape=} {labels.shape=}")
names = np.array(data.class_names())
image_grid(garments.train.images[:10], names[labels[:10]])


# %% model
def convolutional():
    keras = tf.keras.layers
    layers = [tf.keras.Input((28, 28, 1))]
    for filters in (32, 64):
        layers.append(keras.Conv2D(filters, 3, activation="relu"))
        layers.append(keras.MaxPooling2D())
    layers += [keras.Flatten(), keras.Dense(64, activation="relu")]
    return tf.keras.Sequential([*layers, keras.Dense(10)])


def build(strategy, make_model=convolutional):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model, adam = make_model(), tf.keras.optimizers.Adam()
        adam.build(model.trainable_variables)  # makes its slots
    return model, adam


# %% own-mean
def batches(strategy, arrays, size):
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(size)
    return strategy.experimental_distribute_dataset(dataset.repeat())


def mirrored(num_replicas):
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    ops = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)


cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def own_mean(model, optimizer, images, labels, _size):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = tf.reduce_mean(cross_entropy(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits


# %% train-step
def make_train_step(strategy, model, optimizer, inner):
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def on_replica(images, labels, size):
        loss, logits = inner(model, optimizer, images, labels, size)
        accuracy.update_state(labels, logits)
        return loss

    @tf.function(reduce_retracing=True)
    def train_step(images, labels):
        accuracy.reset_state()
        sizes = strategy.run(lambda rows: tf.shape(rows)[0], (labels,))
        size = strategy.reduce("SUM", sizes, axis=None)
        losses = strategy.run(on_replica, (images, labels, size))
        return strategy.reduce("SUM", losses, axis=None)

    return train_step, accuracy


# %% train
def train(strategy, model, adam, inner, dataset, steps, epochs, folder):
    train_step, accuracy = make_train_step(strategy, model, adam, inner)
    epoch, iterator = tf.Variable(0), iter(dataset)
    state = tf.train.Checkpoint(model=model, adam=adam, epoch=epoch)
    manager = tf.train.CheckpointManager(state, folder, max_to_keep=2)
    manager.restore_or_initialize()
    while epoch < epochs:
        for _ in range(steps):
            loss = float(train_step(*next(iterator)))
            now = {"step": int(adam.iterations.numpy()), "epoch": int(epoch) + 1}
            yield {**now, "loss": loss, "accuracy": float(accuracy.result())}
        epoch.assign_add(1)
        if epoch % 2 == 0:
            manager.save()


# %% first-run
four = mirrored(4)
dataset = batches(four, (images, labels), 256)  # 10 of them
folder = tempfile.mkdtemp()
run = train(four, *build(four), own_mean, dataset, 10, 2, folder)
history = await live(run, steps=20)
first_loss = history.steps[0]["loss"]
print(f"{first_loss=:.1f}")

# %% shares-text [markdown]
# The accuracy rises, the loss falls.
# But the first loss is 9.1.
# A model that guesses among ten classes has a loss of about $\ln 10 \approx 2.3$: four times less.
#
# `strategy.run` calls a function once on each replica, with its part of the batch.
# Here each replica returns the mean loss of its own images, and `reduce` adds the four means up:
# the picture calls their sum, averaged over the steps so far, the loss per example.
# With `axis=None` it adds up the replicas, and no axis of the values.
# A mean in place of the sum would mend the picture.
# But is the training right?
#
# ## What to divide by
#
# Take the smallest model, $y = wx$ with the one weight $w = 3$.
# The loss is $|wx - t|$, where $t$ is the target.
# Two replicas have two examples each, with the losses 2 and 3, and 4 and 5.
# The mean of the four is $14 / 4 = 3.5$.
# It is a sum over the replicas if each of them divides the sum of its own losses by 4,
# the size of the global batch.
# `tf.nn.compute_average_loss` does that.
#
# What a replica adds to the whole is its *share*.
# The next cell also gives the two shares to a `Mean` metric.

# %% shares
two = mirrored(2)
x, targets = tf.constant([1.0, 2, 3, 4]), tf.constant([1.0, 3, 5, 7])
with two.scope():
    metric = tf.keras.metrics.Mean()


def share(x, target):
    losses = tf.abs(3 * x - target)
    loss = tf.nn.compute_average_loss(losses, global_batch_size=4)
    metric.update_state(loss)
    return loss


batch = next(iter(batches(two, (x, targets), 4)))
found = two.run(share, batch)
shares = [float(each) for each in two.experimental_local_results(found)]
total = float(two.reduce("SUM", found, axis=None))
print(f"{shares=} {total=} metric={float(metric.result())}")

# %% after-step-text [markdown]
# `Mean` takes the mean of the two shares: too small by the number of replicas.
# Give metrics what belongs to single examples, as `accuracy` gets labels and logits above.
#
# A loss that is only printed can be mended later; a gradient is used at once.
# A Keras optimizer adds up the gradients of all replicas,
# and every copy of a variable takes the same step.
# With `clipnorm` it clips them before, on each replica, and the step is not that of one device.
#
# The gradient of each loss above with respect to $w$ is its $x$: 1 and 2, 3 and 4.
# If each replica divides by 4, their gradients are 0.75 and 1.75, in all 2.5,
# and a step of SGD with the rate 0.4 takes $w$ from 3 to 2:


# %% after-step
def after_step(strategy, x, divide):
    with strategy.scope():
        weight, sgd = tf.Variable(3.0), tf.keras.optimizers.SGD(0.4)
        sgd.build([weight])

    def step(x, target):
        with tf.GradientTape() as tape:
            loss = divide(tf.abs(weight * x - target))
        sgd.apply([tape.gradient(loss, weight)], [weight])
        return loss

    batch = next(iter(batches(strategy, (x, 2 * x - 1), len(x))))
    loss = strategy.reduce("SUM", strategy.run(step, batch), axis=None)
    return float(loss), float(weight.numpy())


loss, weight = after_step(two, x, lambda losses: tf.reduce_sum(losses) / 4)
print(f"{loss=} {weight=}")

# %% predict-own [markdown]
# A model has one weight, `w` = 3, and two replicas have two examples each.
# The gradients of their losses are 1 and 2 on one replica, 3 and 4 on the other.
# Each replica takes the mean over its own two losses, and a Keras optimizer makes the step:
# SGD with the rate 0.4.
# What is `w` then?
#
# - [x] `1.0`
#   The two means have the gradients 1.5 and 3.5, and these are added up:
#   5.
# - [ ] `2.0`
#   That is the right step.
#   It would be taken if gradients were averaged.
# - [ ] `1.6`
#   So it would be if the copies went their own ways: this one by 3.5.
# - [ ] `2.4`
#   So it would be if the copies went their own ways: this one by 1.5.
# - otherwise
#   Compute the gradient of each replica's mean, and add them up.

# %% reveal-own
reveal("custom_training-own", after_step(two, x, tf.reduce_mean)[1])

# %% own-why [markdown]
# So `own_mean` is the mistake.
# Where parts are equal, the sum of two means is twice the mean of all, and that of four is four times.
# For SGD that is another learning rate.
# Adam divides its steps by the size of the gradients so far:
# a factor of all gradients hardly changes them.
# That is why the accuracy above rises as it should; the loss falls too, and is four times too large.
#
# Where parts are unequal, no learning rate mends it:
# an example counts more on a replica that has fewer of them.
# By default a distributed dataset that lies in memory, as here, cuts each batch into parts of its size
# divided by the replicas, rounded up, until nothing is left.
# (Read from files and repeated, the parts differ by one at most: the next epoch fills a last batch.)
# A replica without examples, an *empty* one, runs the step all the same, on tensors with no rows.

# %% predict-empty [markdown]
# Five examples fall to four replicas in parts of 2, 2, 1 and 0.
# Each replica takes the mean over its own losses with `tf.reduce_mean`,
# and SGD takes a step with the sum of the gradients of these means.
# Which is not a number (NaN): the sum of the four means, which is reported as the loss,
# or the weight after the step?
#
# - [ ] `none` neither of the two
#   The loss adds up the means, and the mean over nothing, 0 / 0, makes it NaN.
# - [x] `loss` only the loss
#   The mean over nothing is NaN.
#   Its gradient is a sum over the examples, and a sum over nothing is 0.
# - [ ] `loss weight` both
#   It would be if the gradient of that mean were NaN, too.
#   But it is a sum over the examples.
# - [ ] `weight` only the weight
#   The loss adds up the means, of which one is NaN; the gradients are numbers.

# %% reveal-empty
loss, weight = after_step(four, tf.range(1.0, 6.0), tf.reduce_mean)
found = {"loss": loss, "weight": weight}
nan = [name for name, value in found.items() if np.isnan(value)]
reveal("custom_training-empty", " ".join(nan) or "none")

# %% empty-why [markdown]
# A curve of the loss would have a hole there.
# But the weight goes from 3 to −1 without a warning:
# the mean of the empty replica has the gradient 0, those of the others 1.5, 3.5 and 5, in all 10.
# Shares of the true mean take it to 1.8.
# `compute_average_loss` of no example is 0, and so is its gradient.
#
# The explorer has the model from above, with the losses 2, 3, 4 and so on, and five ways to divide.
# It begins with the way of `own_mean` and a batch of eight.
# Which are right (✓) for five examples on four replicas?
# Which for four, and which for eight?

# %% scaling
from lessons.strategies.custom_training import loss_scaling_explorer

loss_scaling_explorer.LossScalingExplorer(4, 8, num_examples=8, division="replica")

# %% keras-text [markdown]
# ## What Keras has divided already
#
# A loss object of Keras 3 divides, if it is not told otherwise:
# by the number of losses that it computes, and then, under a strategy, by the number of replicas.
# `fit` uses that too.
# Where parts are equal, the sum is the true mean.
# Of the first three examples above, whose mean is 3, the first replica has two and the second has one.
# Then the sum is $(2 + 3) / 2 / 2 + 4 / 2 = 3.25$: the third example counts a half, not a third.
# But for labels and predictions of one axis `MeanAbsoluteError` does not divide by the replicas:
# give them two.
# And on an empty replica a loss object can return an empty tensor, which `reduce` refuses.
#
# A loop that divides once more scales twice.
# `compute_average_loss` refuses a loss that is one number already;
# a division that is written out nobody refuses.
# In a loop under a strategy `tf_keras`, which is Keras 2, refuses its default.
# There choose `reduction="none"`, the losses of the examples, or `"sum"`,
# and divide once.

# %% reductions tags=["error"]
import tf_keras

keras_3 = tf.keras.losses.MeanAbsoluteError()
keras_2 = tf_keras.losses.MeanAbsoluteError()
three = tuple(each[:3, tf.newaxis] for each in (x, targets))
batch = next(iter(batches(two, three, 4)))
losses = two.run(lambda x, target: keras_3(target, 3 * x), batch)
print("total:", float(two.reduce("SUM", losses, axis=None)))
for attempt in (
    lambda: tf.nn.compute_average_loss(keras_3(targets, 3 * x)),
    lambda: two.run(lambda: keras_2(targets, 3 * x)),
):
    try:
        attempt()
    except ValueError as error:
        print("-", str(error).partition("\n")[0])

# %% axes-text [markdown]
# Even `"none"` does not always give one loss for each example.
# `MeanSquaredError`, `MeanAbsoluteError` and `BinaryCrossentropy` take the mean over the last axis,
# whatever it stands for, and over no other:
# that is one loss for each example where labels and predictions have two axes.
# Two images of 4 × 4 pixels have more losses than two, without a last axis of length 1 and with it:

# %% axes
ones, zeros = tf.ones((2, 4, 4)), tf.zeros((2, 4, 4))
squared = tf.keras.losses.MeanSquaredError(reduction="none")
whole = squared(ones, zeros)
pointwise = squared(ones[..., tf.newaxis], zeros[..., tf.newaxis])
print(f"{whole.shape=} {pointwise.shape=}")

# %% objective-text [markdown]
# Of `whole`, `compute_average_loss` would add up eight numbers and divide by two examples:
# four times too much.
# Of `pointwise` take the mean over the pixels of each example,
# `tf.reduce_mean(pointwise, axis=(1, 2))`, and pass that on.
#
# ### Penalties
#
# A layer with `kernel_regularizer="l2"` adds a penalty to the list `model.losses`.
# It depends on the variables alone, which are the same on all replicas:
# each computes the whole penalty, so their sum would count it once for each.
#
# **Exercise 1.** Write `objective(losses, penalties, size)`:
# the scalar of which a replica takes the gradient.
# `losses` are those of its own examples, `[rows]`, `penalties` is a list of scalars,
# and `size` is the number of examples in the global batch, an integer tensor.
# Summed over the replicas, it has to be the mean loss of the global batch plus the sum of the penalties.
# `tf.nn.scale_regularization_loss(penalties)` gives their sum divided by the number of replicas.


# %% exercise-objective
def objective(losses, penalties, size):
    # solution begin
    loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
    return loss + tf.nn.scale_regularization_loss(penalties)
    # solution end


# %%
check("custom_training-objective", objective)

# %% step-exercise [markdown]
# ## A step that is right
#
# **Exercise 2.** Write `replica_step(model, optimizer, images, labels, size)`,
# to take the place of `own_mean`.
# All replicas together are to take the step of one device, whatever their parts,
# also if the model has penalties on variables.
# Return the replica's share of the objective, and the logits.
# `size` is that of the global batch, as `train_step` counts it.
#
# The check compares losses and variables with NumPy, on two replicas and on four,
# with equal, unequal and empty parts, with penalties and without.


# %% exercise-step
def replica_step(model, optimizer, images, labels, size):
    # solution begin
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=size)
        loss += tf.nn.scale_regularization_loss(model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits
    # solution end


# %%
check("custom_training-replica-step", replica_step)

# %% beside-text [markdown]
# Now take two steps with `own_mean` and with `replica_step`, and compare with one device.
# Outside a scope `tf.distribute.get_strategy()` is the default strategy: one device.
# The optimizer is SGD, which hides no factor of the gradients.
# 71 images make a batch of 64 and one of 7, with parts of 2, 2, 2 and 1.
# `largest_gap` is the largest difference of a variable from that of one device.
# From here on the lesson uses your `replica_step` if it is right, else ours.


# %% beside-one
def two_steps(strategy, inner):
    model, _adam = build(strategy)
    with strategy.scope():
        sgd = tf.keras.optimizers.SGD(0.1)
    step, _accuracy = make_train_step(strategy, model, sgd, inner)
    parts = iter(batches(strategy, (images[:71], labels[:71]), 64))
    losses = [round(float(step(*next(parts))), 2) for _ in range(2)]
    return losses, [each.numpy() for each in model.trainable_variables]


one = tf.distribute.get_strategy()
right_step = yours_or_ours("custom_training-replica-step", replica_step)
_losses, right = two_steps(one, right_step)
for name, inner in {"own_mean": own_mean, "replica_step": right_step}.items():
    losses, found = two_steps(four, inner)
    largest_gap = max(np.abs(ours - one).max() for ours, one in zip(found, right))
    print(f"{name}: {losses=} {largest_gap=:.3f}")

# %% saved-text [markdown]
# `replica_step` takes the steps of one device.
# With `own_mean` losses are about four times too large, and variables off by up to 0.05.
#
# 71 images leave no replica empty.
# TensorFlow uses oneDNN on many processors, and with it this model may fail on an empty one:
# in TensorFlow 2.21 its convolution of no images has a wrong shape, and the next one fails.
# The course switches oneDNN off, your programs may not:
# choose batches that leave no replica empty, or drop the last one.
#
# ## Save and resume
#
# Look at `train`: as in {lesson:a_run}, a `CheckpointManager` saves what the next step depends on,
# here after every second epoch:
# the model, the optimizer with its count of steps, and the number of finished epochs.
# The images come in the same order in each epoch, so nothing of them has to be saved.
# Where `shuffle` orders them anew in each, with a seed,
# a resumed run must make the dataset anew and skip the finished epochs,
# or make the order from the seed and the epoch, as in {lesson:workers}.
#
# The next cell trains for two epochs.
# The cell after it goes on to the fourth, with a new model and the checkpoint in `folder`.
# Press **Stop** there: what came after the last checkpoint is lost,
# and the cell, run again, goes on from there.

# %% saved-run
folder = tempfile.mkdtemp()
run = train(four, *build(four), right_step, dataset, 10, 2, folder)
saved = await live(run, steps=20)

# %% resumed-run
model, adam = build(four)
run = train(four, model, adam, right_step, dataset, 10, 4, folder)
saved = await live(run, saved, steps=40)

# %% predicted
tests = garments.test
predictions = tf.argmax(model(tests.features), axis=1).numpy()
matrix = tf.math.confusion_matrix(tests.labels, predictions, 10).numpy()
print("accuracy > 0.5:", np.trace(matrix) > 500)
figure, axes = plt.subplots(figsize=(6, 5))
axes.imshow(np.sqrt(matrix), cmap="Blues", vmax=20)
for (row, column), count in np.ndenumerate(matrix):
    axes.text(column, row, count or "", ha="center", va="center")
axes.set_xticks(range(10), names, rotation=45, ha="right")
axes.set_yticks(range(10), names)
plt.close(figure)
rows = "; ".join(f"{name}: {row}" for name, row in zip(names, matrix))
display(figure, metadata={"image/png": {"alt": rows}})
image_grid(tests.images[:20], names[tests.labels[:20]], names[predictions[:20]])

# %% restore-text [markdown]
# The bend at step 20 does not come from resuming:
# from there on a point is the mean of 20 steps, before it of all so far.
# A row of the matrix is what the images show, a column what the model takes them for.
#
# `make results` trained such models in three ways, with three seeds each.
# The test accuracy on photographs was 0.906 to 0.913
# after ten epochs with all 60,000 training images on two replicas,
# and 0.758 to 0.776 after three epochs with 5,000 on four;
# with 5,000 of the stand-in on four it was 0.848 to 0.884.
# All nine models were also restored without a strategy: they gave every test image the same class as before.
#
# ## Restore without a strategy
#
# A checkpoint holds values and no strategy.
# `restore` gives them to the variables, and `assert_consumed` makes sure that none is left over.

# %% predict-early [markdown]
# The model, `adam = tf.keras.optimizers.Adam()` and the variable `epoch` are made anew, without a strategy.
# Then `tf.train.Checkpoint(model=model, adam=adam, epoch=epoch)`
# restores the last checkpoint of a training with Adam,
# and `assert_consumed()` is called on what `restore` returns.
# What comes of this call?
#
# - [ ] `passes` It passes, and all values are in their variables.
#   It would if all variables were there.
#   Adam makes its slots in its first step, or in its `build`.
# - [ ] `anew` It passes, but the averages of Adam keep their first values.
#   It does not pass: a value that waits has not been used.
#   Nor is it lost: Adam gets it when it makes the variable.
# - [x] `AssertionError` It raises an error.
#   Adam makes its slots in its first step, or in its `build`.
#   Until then their values wait, and `assert_consumed` takes them for left over.

# %% reveal-early
path, epoch = tf.train.latest_checkpoint(folder), tf.Variable(0)
alone, unbuilt = convolutional(), tf.keras.optimizers.Adam()
early = tf.train.Checkpoint(model=alone, adam=unbuilt, epoch=epoch)
found = outcome(lambda: early.restore(path).assert_consumed())
reveal("custom_training-early", str(found).partition(":")[0])

# %% slots-text [markdown]
# Adam had no slots yet, and a value of the checkpoint waits until its variable is made.
# `build`, from the beginning of the lesson, makes the slots as well:

# %% restored
path, epoch = tf.train.latest_checkpoint(folder), tf.Variable(0)
alone, its_adam = build(one)
whole = tf.train.Checkpoint(model=alone, adam=its_adam, epoch=epoch)
whole.restore(path).assert_consumed()
logits, expected = alone(tests.features), model(tests.features)
largest_gap = np.abs(logits - expected).max()
step = int(its_adam.iterations.numpy())
print(f"epoch={int(epoch)} {step=} {largest_gap=:.4f}")

# %% dropout-text [markdown]
# Now every value is used: `epoch` and `step` are those of the training,
# and the logits are those under the strategy.
#
# `assert_consumed` says nothing of what `Checkpoint` never finds.
# `Dropout` draws its masks from a seed and a counter, both in one variable of the model,
# which `tf.train.Checkpoint` does not find in a model of Keras 3.
# The next cell saves a model with `Dropout` as it is,
# then with this variable named beside it in `Checkpoint`, and counts what was saved.


# %% dropout
def with_dropout():
    keras = tf.keras.layers
    layers = [tf.keras.Input((28, 28, 1)), keras.Flatten()]
    layers += [keras.Dropout(0.5, seed=0), keras.Dense(10)]
    return tf.keras.Sequential(layers)


dropping = with_dropout()
seed = dropping.layers[1].seed_generator.state.value
for named in ({}, {"seed": seed}):
    state = tf.train.Checkpoint(model=dropping, **named)
    held = tf.train.list_variables(state.write(f"{folder}/dropout"))
    in_it = [name for name, _shape in held if name.endswith("VALUE")]
    of_model, saved = len(dropping.variables), len(in_it)
    print(f"named={list(named)} variables={of_model} {saved=}")

# %% several-text [markdown]
# The variable is saved only where it is named.
# Without it, a resumed training with a seed draws the masks of its beginning again, in the same order.
#
# ## Three ways through an epoch
#
# - **A `for` loop in Python** starts each step, and Python sees every batch.
# - **Several steps in a call**: a `tf.range` loop takes batches from an iterator with `next`.
# - **The whole epoch in a call**: no Python runs between the steps,
#   so no curve is drawn, and a Stop button waits.
#
# If a step itself is slow, look into it with the profiler:
# `with tf.profiler.experimental.Profile(folder):` around a few steps writes a trace for TensorBoard.
#
# The next cell has the three ways for the `Dropout` model and an epoch of 20 steps,
# the cell after it trains in each.
# Its explorer measures how long a step takes: choose how many images a step has, and press; then more.
# What Python costs hardly depends on the batch, so it matters where steps are short.


# %% several
@tf.function
def several_steps(train_step, iterator, count):
    total = 0.0
    for _ in tf.range(count):
        total += train_step(*next(iterator))
    return total / count


def ways_of(batch_size):
    arrays = images[:batch_size], labels[:batch_size]
    iterator = iter(batches(two, arrays, batch_size))
    model = build(two, with_dropout)
    step, _accuracy = make_train_step(two, *model, right_step)
    yield lambda: [step(*next(iterator)) for _ in range(20)]
    yield lambda: [several_steps(step, iterator, 10) for _ in range(2)]
    yield lambda: [several_steps(step, iterator, 20)]


# %% ways
from lessons.strategies.custom_training import iterating_explorer

for at in range(3):
    mean_loss = np.mean(list(ways_of(64))[at]())
    print(f"{mean_loss=:.2f}")
measure = iterating_explorer.measuring(ways_of, steps=20)
iterating_explorer.IterationExplorer(measure)

# %% takeaways [markdown]
# The mean loss of 20 steps is the same in all three ways, to two decimals.
#
# ## The plain program
#
# [`custom_training.py`](../plain/custom_training.py) is this lesson without the course's library:
# it trains, resumes with a new model, and restores without a strategy.
#
# ## Takeaways
#
# - Each replica divides its losses by the examples of the global batch, once,
#   and penalties on variables by the number of replicas.
#   Then the sum over the replicas is the step of one device,
#   if no layer mixes examples, as batch normalisation does, or draws at random,
#   and the optimizer clips no gradients.
# - Metrics take what belongs to single examples; they divide by themselves.
# - A checkpoint needs no strategy, but it does need all that the next step depends on.
#
# {Lesson:workers} has many processes.

# %% score
score("custom_training")
