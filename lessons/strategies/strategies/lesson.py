# %% [markdown]
# # Strategies
#
# With Keras, two changes are said to take a training from one device to many.
# What happens on the devices then, and are the numbers still those of one device?
#
# After this lesson you can
#
# - train and evaluate under a strategy of `tf.distribute`, with `fit` and with a loop of your own;
# - write by hand what a strategy does with gradients;
# - say when `fit` differs from one device, and find mistakes that raise no error;
# - choose a strategy, and say where it keeps variables, gradients and batches.
#
# **Time:** 40 minutes.
# **You need to know:** how to train a Keras model, and the training step of {lesson:one_step}.
#
# > **Where this was run.** TensorFlow 2.21 with Keras 3.15 on eight virtual CPUs, not on GPUs or TPUs.
# > The table at the end comes from other runs.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% line-text [markdown]
# ## Two changes
#
# The model is a line, $y = wx + b$, with one weight and one bias, both 0 at first.
# It learns that 1 goes to 1, from 100 equal examples in batches of 10; first on one device.

# %% on-one
import numpy as np

tf = course_lib.start_tensorflow()
keras, ones = tf.keras, np.ones((100, 1), "float32")


def line():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


QUIET = {"shuffle": False, "verbose": 0}
on_one = line()
told = on_one.fit(ones, ones, batch_size=10, epochs=2, **QUIET)
print("fit", *(f"loss={loss:.3f}" for loss in told.history["loss"]))
print(f"evaluate loss={on_one.evaluate(ones, ones, verbose=0):.5f}")

# %% two-text [markdown]
# A *strategy* of `tf.distribute` says where variables are kept
# and how devices share examples and gradients.
# For several devices,
#
# 1. make a strategy;
# 2. make model, optimizer and metrics in its scope, `with strategy.scope():`.
#
# `fit`, `evaluate` and `predict` stay as they are.
#
# `MirroredStrategy` takes a list of devices, here two of the eight virtual CPUs;
# without a list, all GPUs, or all CPUs if there are none.
# `cross_device_ops` says how values of several devices are added up.
# With `ReductionToOneDevice` one device gets them all, adds, and sends the sum back;
# the last row of the table of mistakes below says why.

# %% two
two = tf.distribute.MirroredStrategy(
    ["CPU:0", "CPU:1"],
    cross_device_ops=tf.distribute.ReductionToOneDevice(),
)
with two.scope():
    on_two = line()

told = on_two.fit(ones, ones, batch_size=10, epochs=2, **QUIET)
print("fit", *(f"loss={loss:.3f}" for loss in told.history["loss"]))
print(f"evaluate loss={on_two.evaluate(ones, ones, verbose=0):.5f}")
print(f"{two.num_replicas_in_sync=}")

# %% two-why [markdown]
# The same losses, also with functional and subclassed models.
#
# A *replica* is a copy of the model that works on examples of its own; here each device has one.
# `num_replicas_in_sync` counts the replicas that make one update together.
#
# An optimizer counts its updates in `iterations`.
# How many does one epoch make?

# %% predict-steps [markdown]
# `fit` was given 100 examples and `batch_size=10`.
# How many updates does it make in one epoch on two replicas of a `MirroredStrategy`?
#
# - [ ] `5`
#   So it would be if each replica took a batch of 10 in every step.
# - [x] `10`
#   100 / 10, as on one device: the replicas share each batch.
# - [ ] `20`
#   So it would be if the replicas took batches of 5 in turn.
# - otherwise
#   Divide the examples by what all replicas together take in a step.

# %% reveal-steps
epochs = 2
reveal(
    "strategies-steps",
    int(on_two.optimizer.iterations.numpy()) // epochs,
)

# %% [markdown]
# `batch_size` is the *global* batch, of all replicas together: in each step each of the two gets 5 examples.
# The batches of a `tf.data.Dataset` are global, too.
# `received_examples` splits a dataset and shows which example went to which replica, here in two batches:

# %% received
from lessons.strategies.global_batches import received_examples

numbers = tf.data.Dataset.range(100)
received_examples(two, numbers.batch(10), most_batches=2)

# %% settings [markdown]
# Usually one gives *each replica* as many examples as one device had.
# Then the global batch is the per-replica batch times `num_replicas_in_sync`, and an epoch has fewer updates.
# By the *linear scaling rule* ([Goyal and others](https://arxiv.org/abs/1706.02677), section 2.1)
# the learning rate grows by the same factor.
# But so high a rate can fail without a *warm-up*, which raises it slowly from a small value.
#
# ## One variable, a copy on each device
#
# What does each device have of a trained variable?
# Keras 3 wraps a variable of TensorFlow, its `.value`:

# %% copies
weight = on_two.trainable_variables[0].value
print(type(weight).__name__)
for copy in two.experimental_local_results(weight):
    print(copy.device[-5:], f"{copy.numpy().item():.3f}")

# %% copies-why [markdown]
# In the scope of a `MirroredStrategy` a variable is made once on each device.
# The program sees one, a `MirroredVariable`; `experimental_local_results` gives the copy of each device.
#
# The optimizer updates all copies alike, and so keeps them equal:
# `optimizer.apply_gradients` adds up the gradients of all replicas before it uses them.
# You can add up likewise.
# `two.run(function)` calls a function once on each replica.
# There, `tf.distribute.get_replica_context()` is the replica's *context*,
# with an `all_reduce` ({lesson:all_reduce}):


# %% all-reduce
def added():
    context = tf.distribute.get_replica_context()
    number = tf.cast(context.replica_id_in_sync_group, tf.float32)
    return context.all_reduce("SUM", number + 1)


for total in two.experimental_local_results(two.run(added)):
    print(f"{total.device[-5:]} {float(total)=}")

# %% by-hand-text [markdown]
# One replica gave 1, the other 2, and both got 3.
# There are other `cross_device_ops`: `NcclAllReduce`, which calls NVIDIA's library, runs on GPUs alone.
#
# **Exercise 1.** Write `replica_step(weight, features, labels, learning_rate, global_batch)`:
# what one replica does in a step of gradient descent.
#
# - The model is `tf.linalg.matvec(features, weight)`; the loss of an example is its squared error.
# - The loss to minimise is the mean over the *global* batch, of `global_batch` examples.
# - `features` and `labels` are this replica's part of it; parts may differ in size.
# - `weight.assign_sub(change)` changes the copy of this replica.
# - Return the replica's share of the loss: all shares add up to that mean.
#
# Call no `tf.function` in `replica_step`: that could not exchange data between the replicas.
# The check compares two and three replicas with NumPy.


# %% exercise-by-hand
def replica_step(weight, features, labels, learning_rate, global_batch):
    # solution begin
    with tf.GradientTape() as tape:
        errors = tf.linalg.matvec(features, weight) - labels
        loss = tf.reduce_sum(tf.square(errors)) / global_batch
    gradient = tape.gradient(loss, weight)
    context = tf.distribute.get_replica_context()
    total = context.all_reduce("SUM", gradient)
    weight.assign_sub(learning_rate * total)
    return loss
    # solution end


# %%
check("strategies-by-hand", replica_step)

# %% loop-text [markdown]
# ## A loop of your own
#
# Not every training fits into `fit`.
# A loop needs three calls of the strategy:
#
# - `experimental_distribute_dataset(dataset)` splits each global batch;
# - `run(function, args)` calls the function, which returns tensors, on each replica, with its part;
# - `reduce("SUM", values, axis=None)` makes one value of what the replicas returned.
#
# Each replica divides its losses by the size of the *global* batch, so that their sum is the mean:
# `compute_average_loss` does it.
# The loss object must leave the division alone,
# hence `reduction="none"`; {lesson:custom_training} takes this apart.
#
# `train`, a generator, yields what the replicas return in each step.
# It names no strategy.

# %% on-replica
squared_error = keras.losses.MeanSquaredError(reduction="none")


def on_replica(model, x, y, global_batch):
    with tf.GradientTape() as tape:
        losses = squared_error(y, model(x, training=True))
        loss = tf.nn.compute_average_loss(
            losses,
            global_batch_size=global_batch,
        )
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    model.optimizer.apply_gradients(zip(gradients, variables))
    return loss


# %% train
def train(strategy, model, global_batch):
    @tf.function
    def step(x, y):
        return strategy.run(on_replica, (model, x, y, global_batch))

    dataset = tf.data.Dataset.from_tensor_slices((ones, ones))
    batches = dataset.batch(global_batch)
    for x, y in strategy.experimental_distribute_dataset(batches):
        yield step(x, y)


# %% switched
one = tf.distribute.get_strategy()
fourth = tf.distribute.OneDeviceStrategy("CPU:3")
central = tf.distribute.experimental.CentralStorageStrategy(
    compute_devices=["CPU:0", "CPU:1"], parameter_device="CPU:0"
)
for strategy in (one, fourth, two, central):
    with strategy.scope():
        model = line()
    epoch = [*train(strategy, model, global_batch=10)]
    first = strategy.experimental_local_results(epoch[0])
    shares = [float(each) for each in first]
    losses = [strategy.reduce("SUM", each, axis=None) for each in epoch]
    print(type(strategy).__name__)
    print(f"  {shares=} {np.mean(losses)=:.3f}")

# %% evaluate-text [markdown]
# In the first step the `shares` of the replicas add up to the loss, 1.
# The mean over the epoch is that of `fit` on one device.
# The three besides `MirroredStrategy`:
#
# - The *default strategy*, `_DefaultDistributionStrategy`,
#   is what `get_strategy` returns where none was chosen.
#   It passes everything through, so code that serves with and without a strategy needs no `if`.
# - `OneDeviceStrategy` places the variables of its scope, and what `run` computes,
#   on the device that you name.
#   With it a program is tried out before it is distributed.
# - `CentralStorageStrategy` keeps each variable once, here on `CPU:0`, and computes on several devices.
#
# TensorFlow's guide advises to call `run` in a `tf.function`, as `step` does:
# without one only to find mistakes, and not on TPUs.
# Some small examples here, and the next solution, do without.
#
# **Exercise 2.** Write `mean_loss(strategy, model, dataset)`:
# the mean squared error, a number, over all examples of the dataset.
#
# - The replicas compute it, each from its part of every batch.
# - `dataset` yields global batches of features and labels, both `[batch, 1]`, and so is `model(features)`.
# - The last batch may be smaller, so small that a replica gets no example.


# %% exercise-evaluate
def mean_loss(strategy, model, dataset):
    # solution begin
    def sums(features, labels):
        squares = tf.square(model(features) - labels)
        return tf.reduce_sum(squares), tf.size(squares)

    loss, count = 0, 0
    for batch in strategy.experimental_distribute_dataset(dataset):
        losses, sizes = strategy.run(sums, args=batch)
        loss += strategy.reduce("SUM", losses, axis=None)
        count += strategy.reduce("SUM", sizes, axis=None)
    return float(loss) / int(count)
    # solution end


# %%
check("strategies-evaluate", mean_loss)

# %% last-text [markdown]
# ## Parts that are not equal
#
# In `fit` of Keras 3 each replica takes the mean over *its part*, and divides it by the number of replicas;
# the gradients of these are added up.
# So far, exercises aside, each batch fell into equal parts.
# What if it cannot?
# Take five examples, numbered in the picture, in batches of four:

# %% last
received_examples(two, tf.data.Dataset.range(5).batch(4))

# %% predict-last [markdown]
# `fit` trains a line, whose weight and bias are 0, for one epoch with five examples, all (1, 1),
# and `batch_size=4`.
# The first step takes the weight from 0 to 0.1.
# On one device the second step, with the one example that is left, adds another 0.08.
# What is the weight on two replicas after the epoch?
#
# - [ ] `0.18`
#   It would be, as on one device, if the only example counted in full.
#   But its gradient is divided by the number of replicas, and the other replica adds nothing.
# - [x] `0.14`
#   Replica 0 has the mean over one example, divides it by two, and replica 1 adds nothing: half a step.
# - [ ] `0.1`
#   It would be, if such a batch were left out.
#   Replica 0 still computes a gradient.
# - [ ] `0.12`
#   It would be, if the last example were divided by the batch size of 4.
#   `fit` divides by the examples of the part, which is 1, and by the number of replicas.

# %% reveal-last
with two.scope():
    last_model = line()
last_model.fit(ones[:5], ones[:5], batch_size=4, **QUIET)
weight, _bias = last_model.get_weights()
reveal("strategies-last", round(weight.item(), 2))

# %% [markdown]
# A wrong step, without an error.
# Replica 0 gives half a gradient and replica 1 none: the weight grows by 0.04, half of 0.08.
# Does the reported loss show it?

# %% epochs
for strategy in (one, two):
    with strategy.scope():
        model = line()
    five = ones[:5]
    told = model.fit(five, five, batch_size=4, epochs=2, **QUIET)
    losses = [f"loss={loss:.3f}" for loss in told.history["loss"]]
    print(f"{strategy.num_replicas_in_sync=}", *losses)

# %% first-text [markdown]
# Not in the first epoch: a loss is computed before its step, and the reported mean counts each example once.
# The next starts from other weights than on one device, and differs.
# All this holds for tf_keras (Keras 2), too.
#
# Where the *first* batch falls into unequal parts, `fit` and `evaluate` of Keras 3 stop.
# To learn the shape of a batch they add up the parts of the first one.
# Ten examples on four replicas are 3, 3, 3 and 1:

# %% first tags=["error"]
four = tf.distribute.MirroredStrategy(
    [f"CPU:{number}" for number in range(4)],
    cross_device_ops=tf.distribute.ReductionToOneDevice(),
)
with four.scope():
    model = line()
try:
    model.fit(ones, ones, batch_size=10, **QUIET)
except tf.errors.InvalidArgumentError as error:
    print(str(error).partition("}} ")[2].partition("  Input")[0])

# %% count-given [markdown]
# So make the batch size a multiple of the number of replicas.
# If the last batch is no multiple, leave it out: `batch(size, drop_remainder=True)`.
# In your own loop you choose the divisor:
# the number of examples that the batch really has (in `train` every batch is full).
#
# With equal parts `fit` equals one device, with exceptions such as these:
#
# - Batch normalisation takes the moments of each part, unless it is built with `synchronized=True`.
# - In Keras 3 `clipnorm` clips the gradients of each part before they are added up,
#   and dropout draws the same mask on every replica.
# - In Keras 3 training with `gradient_accumulation_steps` ends in an error.
#
# ## Mistakes and what helps
#
# What becomes of a variable made outside the scope?

# %% predict-count [markdown]
# `steps = tf.Variable(0)` is made outside the scope.
# Four replicas of a `MirroredStrategy` run one step, in which each calls `steps.assign_add(1)`.
# What is the value of `steps` then?
#
# - [ ] `1`
#   So it would be with a variable of the scope: each of its copies counts to 1.
# - [x] `4`
#   Outside the scope there are no copies: each replica adds 1 to the same variable.
# - [ ] `error` no value: it is an error
#   TensorFlow lets a replica change a variable that has no copies, without a word.

# %% reveal-count
steps = tf.Variable(0)
four.run(lambda: steps.assign_add(1))
reveal("strategies-count", int(steps.numpy()))

# %% [markdown]
# A variable made in the scope can say what becomes of different values:
# `tf.Variable(0, aggregation=tf.VariableAggregation.SUM)` adds up what the replicas assign;
# `MEAN`, of floats only, and `ONLY_FIRST_REPLICA` are other choices.
# Where none was chosen and they assign different values, each copy keeps its own, in silence.
#
# The next mistake: TensorFlow sees no GPU here, but is asked for two.
# *Soft placement* decides whether it takes another device in place of one that does not exist.

# %% devices tags=["error"]
to_one = tf.distribute.ReductionToOneDevice()
for soft in (True, False):
    tf.config.set_soft_device_placement(soft)
    try:
        absent = tf.distribute.MirroredStrategy(
            ["GPU:0", "GPU:1"],
            cross_device_ops=to_one,
        )
        with absent.scope():
            misplaced = tf.Variable(1.0)
        copies = absent.experimental_local_results(misplaced)
        print(f"{soft=}", *(copy.device[-5:] for copy in copies))
    except tf.errors.InvalidArgumentError as error:
        print(f"{soft=}", str(error).partition(". ")[0])
tf.config.set_soft_device_placement(True)

# %% outside-text [markdown]
# Soft placement is on by default, and both copies come to `CPU:0`.
# Two replicas on one device gain nothing.
# `tf.config.set_soft_device_placement(False)` at the beginning of a program makes this an error.
#
# The next mistake is a model outside the scope:

# %% outside tags=["error"]
too_early = line()
try:
    with two.scope():
        too_early.fit(ones, ones, batch_size=10, **QUIET)
except AssertionError as error:
    print(f"{type(error).__name__} {str(error)=}")

# %% mistakes [markdown]
# Where `fit` of Keras 3 ends in an `AssertionError` without a message,
# look for a model made outside the scope.
# With `fit` outside the scope, too, there is no error: the model trains on one device.
#
# | mistake | what TensorFlow or Keras does | what helps |
# | --- | --- | --- |
# | a device that does not exist | computes on another, here `CPU:0` | call `set_soft_device_placement(False)` |
# | a kind of device in lower case: `list_physical_devices("gpu")` | finds none | upper case |
# | a variable without copies that each replica changes | changes it several times | make it in the scope |
# | only SGD of Keras 3, without momentum, made outside the scope | counts each update once for each replica: a learning-rate schedule runs too fast | make it in the scope |
# | only Adam or SGD with momentum, of Keras 3, made outside the scope | an error; if it is built there by `build`, copies can drift apart, and train wrongly | make it in the scope |
# | a second `MirroredStrategy` on CPUs without `cross_device_ops` | its messages can meet those of the first: an error, `Shape mismatch in the collective instance` | one strategy, or `ReductionToOneDevice()` |
#
# ## Which strategy?
#
# Training is *synchronous* where all replicas wait for each other in every step and make one update together.
# It is *asynchronous* where each updates the variables as soon as it is done.
#
# Say what you have; the explorer shows the strategy, what lives where, and a program.

# %% chooser
from lessons.strategies.strategies.explorer import StrategyExplorer

StrategyExplorer()

# %% several-text [markdown]
# Three strategies of [TensorFlow's guide](https://www.tensorflow.org/guide/distributed_training)
# are made for several processes or a TPU, and not run here.
#
# - `MultiWorkerMirroredStrategy` is `MirroredStrategy` over several machines.
#   Each *worker* runs the same program and finds the others in the environment variable `TF_CONFIG`.
#   They exchange values by `RING` (over gRPC), `NCCL`, or `AUTO` (TensorFlow chooses).
# - `ParameterServerStrategy` keeps the variables on *servers*.
#   Workers fetch them, compute, and send gradients without waiting for each other;
#   a *coordinator* hands out the steps.
# - `TPUStrategy` has collectives of its own.
#   A *resolver* finds the TPU, which must then be initialised; that clears its memory.
#
# {Lesson:workers} runs the first two.
# The resolver says here:

# %% tpu tags=["error"]
try:
    tf.distribute.cluster_resolver.TPUClusterResolver()
except ValueError as error:
    print(error)

# %% table-text [markdown]
# ## What works
#
# Each entry of the table ran in processes of its own, with two replicas or workers where it has several.
# Two dense layers train for 20 steps; with an Estimator, one weight and one bias for 10.
# "Equals one device" means two things:
# variables and losses differ by at most 0.00001 from those of one device, which NumPy computed,
# and each variable is where the strategy keeps it, as in the explorer.
# With an Estimator, TensorFlow's older way to train,
# the number of replicas was looked at in place of the second.
# Parameter servers train in no fixed order, so there the loss is to fall in each of five runs,
# without momentum: with it, it rose in two of eight.
# A dash means "not tried"; the last row fails for want of a TPU.

# %% table
from course_lib import measured

recorded = measured.load("strategies-support")
for name, value in recorded.how.items():
    print(f"{name}: {value}")
measured.table(recorded.support)

# %% takeaways [markdown]
# `fit` of Keras 3 ends in an error under `MultiWorkerMirroredStrategy` and `ParameterServerStrategy`,
# and under `CentralStorageStrategy` it reports a wrong loss.
# To add to a metric, Keras 3 assigns the old value plus the new one.
# `CentralStorageStrategy` adds up what the replicas assign, and so the old value once for each,
# with a metric in your own loop, too.
# The training is right, and so is the loss of tf_keras.
#
# *Estimators* are gone since TensorFlow 2.16.
# [{Lesson:estimators}]({notebook:estimators}) runs some, and says what they became.
#
# ## The plain program
#
# [`strategies.py`](../plain/strategies.py) is `fit` and the loop without the course's library.
# It trains the line on one, two and four replicas,
# and ends with an error if a weight or a loss is not that of one device.
#
# ## Takeaways
#
# - Under a `MirroredStrategy` each device has a copy of every variable.
#   Each replica computes gradients from its part of the global batch,
#   and makes the same update, from their sum.
# - With equal parts `fit` equals one device, with exceptions such as batch normalisation.
#   With unequal parts `fit` ends in an error, or can take wrong steps.
#   In the last batch, the loss of the first epoch does not show them.
# - Make everything in the scope, look where variables and results lie,
#   and hold the first steps against one device.
#
# {Lesson:custom_training} trains on images with its own loop.

# %% score
score("strategies")
