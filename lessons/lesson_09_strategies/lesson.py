# %% [markdown]
# # 9. Strategies
#
# A model trains on one device with Keras.
# Two changes are said to be enough to train it on many.
# Which are they, what happens on the devices then, and are the numbers still those of one device?
#
# After this lesson you can
#
# - choose a strategy of `tf.distribute`, and say where it keeps variables, gradients and batches;
# - train and evaluate under one, with `fit` and with a loop of your own;
# - write by hand what a strategy does with a gradient;
# - say when `fit` differs from one device, and catch mistakes that raise no error.
#
# **Time:** 45 minutes.
# **You need to know:** how to train a Keras model, and of lesson 3 the training step.
#
# > **Where this was run.** TensorFlow 2.21 with Keras 3.15 and tf_keras 2.21, on virtual CPUs.
# > For the table at the end, some strategies ran in several processes, and Estimators on TensorFlow 2.15.
# > No GPU and no TPU was there.
# > The cells need four of the eight devices that the first one asks for.
#
# ## Which strategy?
#
# With DTensor you said for each tensor where its parts lie.
# A *strategy* decides that for the whole program: where variables are kept,
# which device gets which examples, and what is done with the gradients.
# Each device that computes is a *replica*: it runs the whole model on examples of its own.
#
# Which strategy suits depends on a few questions, and the next cell asks them.
# Training is *synchronous* where all replicas wait for each other in every step and make one update together.
# It is *asynchronous* where each updates the variables as soon as it is done.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% chooser
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_09_strategies.strategy import Situation

StrategyExplorer(Situation("GPUs"))

# %% chooser-text [markdown]
# What [TensorFlow's guide](https://www.tensorflow.org/guide/distributed_training) promises of strategies:
# they are easy to use, fast without tuning, and exchanged for one another with little work.
# They can be, it says, because much of TensorFlow knows about them:
# variables, layers, models, optimizers, metrics, summaries and checkpoints.
# They serve evaluation and prediction as well as training.
# It recommends running them in a `tf.function`: without one only to find mistakes, and not on TPUs.
#
# **Exercise 1.** Four teams ask which strategy suits them:
#
# 1. One machine with four GPUs; every step waits for all of them.
# 2. Three machines with two GPUs each; every step waits for all of them.
# 3. Ten machines, some of them slow; no machine is to wait for another.
# 4. One machine with four GPUs that wait for each other;
#    the variables are to be kept once, in the memory of the CPU.
#
# Give the name of each one's strategy, such as `"OneDeviceStrategy"`.

# %% exercise-choose
# solution begin
team_1 = "MirroredStrategy"
team_2 = "MultiWorkerMirroredStrategy"
team_3 = "ParameterServerStrategy"
team_4 = "CentralStorageStrategy"
# solution end

# %%
check("09-choose", (team_1, team_2, team_3, team_4))

# %% line-text [markdown]
# ## Two changes
#
# The model of this lesson is small: one weight and one bias.
# It learns that 1 goes to 1, from 100 equal examples, in batches of 10.
#
# To train it under a strategy takes two changes:
#
# 1. make a strategy;
# 2. make model, optimizer and metrics in its scope, `with strategy.scope():`.
#
# The call of `fit` stays as it is.
# `two` is a `MirroredStrategy` on two of the eight virtual CPUs.
# (`cross_device_ops` says who adds up gradients; more on that below.)
# `tf.distribute.get_strategy()` outside any scope is the *default strategy*, which passes everything through:
# that is training on one device.
#
# The next two cells train on one device and on two, and evaluate.
# They print the loss of each of two epochs, and that of `evaluate` after them.

# %% line
tf = course_lib.start_tensorflow()
import numpy as np

from course_lib import received_examples

keras, ones = tf.keras, np.ones((100, 1), "float32")


def line():
    keras.utils.set_random_seed(1)
    unit = keras.layers.Dense(1, name="unit")
    model = keras.Sequential([keras.Input((1,)), unit], name="line")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def fitted(strategy, features=ones, labels=ones, batch_size=10, epochs=2):
    with strategy.scope():
        model = line()
    options = {"batch_size": batch_size, "epochs": epochs, "shuffle": False, "verbose": 0}
    return model, model.fit(features, labels, **options).history["loss"]


# %% two
to_one = tf.distribute.ReductionToOneDevice()
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=to_one)
one = tf.distribute.get_strategy()
for strategy in (one, two):
    model, losses = fitted(strategy)
    evaluated = model.evaluate(ones, ones, batch_size=10, verbose=0)
    print(strategy.num_replicas_in_sync, *(f"{loss:.3f}" for loss in losses), f"{evaluated:.5f}")

# %% two-why [markdown]
# The losses agree.
# (So do those of models with the functional interface, and of a class of one's own:
# `tests/tf/test_lesson_09.py` has both.)
# The first number of a line is `num_replicas_in_sync`: how many replicas make one update together.
#
# `fit` was given 100 examples and `batch_size=10`.
# The optimizer counts its updates in `iterations`.
# The next measurement reads it from the model that trained two epochs on two replicas, and halves it.

# %% predict-steps [markdown]
# How many updates does `fit` make in one epoch?
#
# - [ ] `5`
#   So it would be if each replica took a batch of 10 in every step.
# - [x] `10`
#   As on one device: the two replicas share each batch.
# - [ ] `20`
#   So it would be if each replica counted its own, or took batches of 5 in turn.
# - otherwise
#   Divide the examples by what all replicas together take in a step.

# %% reveal-steps
reveal("09-steps", int(model.optimizer.iterations.numpy()) // 2)

# %% steps-why [markdown]
# A batch is the *global* batch, of all replicas together.
# So the number of steps does not depend on how many replicas there are.
#
# `fit` takes a data set in place of arrays too, and splits it in the same way:
# `from_tensor_slices` makes one of arrays, `batch` cuts it into global batches.
# The next cell splits a data set of the numbers 0 to 99,
# and shows who got which example of the first two batches.

# %% received
received_examples(two, tf.data.Dataset.range(100).batch(10), most_batches=2)

# %% copies-text [markdown]
# ## One variable, a copy on each device
#
# Which variables did the replicas train?
# The next cell looks at the weight of the model.

# %% copies
weight = model.trainable_variables[0].value
for copy in two.experimental_local_results(weight):
    print(copy.device.partition("device:")[2], f"{copy.numpy().item():.3f}")
print(type(weight).__name__, weight.shape)

# %% copies-why [markdown]
# In the scope of a `MirroredStrategy` a variable is made once on each device.
# The program sees it as one, a `MirroredVariable`.
# `experimental_local_results` hands out what each replica has.
#
# The copies are equal at the beginning, and they stay so if each gets the same updates.
# For this `optimizer.apply_gradients` adds up the gradients of all replicas before it uses them.
#
# By hand this takes one more line than on one device.
# A function that runs on a replica can ask for its context, `tf.distribute.get_replica_context()`.
# The context has an `all_reduce(operation, value)` with the operation `"SUM"` or `"MEAN"`:
# it combines the values of all replicas, and every replica gets the result.
# There, `variable.assign_sub(change)` changes the copy of its own replica.
#
# **Exercise 2.** Write `replica_step(weight, features, labels, learning_rate, global_batch)`:
# what one replica does in a step of gradient descent.
# The model is `tf.linalg.matvec(features, weight)`, the loss of an example is its squared error,
# and the loss to minimise is the mean over the *global* batch.
# `features` and `labels` are the replica's part of the batch; parts may differ in size.
# Return the replica's share of the loss: the shares of all replicas add up to it.
# Leave `tf.function` out: the check calls your function on a replica, and a `tf.function` called there
# cannot exchange data.
# The check runs your function on two and on three replicas, and compares shares and copies with NumPy.


# %% exercise-by-hand
def replica_step(weight, features, labels, learning_rate, global_batch):
    # solution begin
    with tf.GradientTape() as tape:
        errors = tf.linalg.matvec(features, weight) - labels
        loss = tf.reduce_sum(tf.square(errors)) / global_batch
    gradient = tape.gradient(loss, weight)
    context = tf.distribute.get_replica_context()
    weight.assign_sub(learning_rate * context.all_reduce("SUM", gradient))
    return loss
    # solution end


# %%
check("09-by-hand", replica_step)

# %% count-given [markdown]
# ## A variable for the steps
#
# A program counts its steps in a variable `steps`.
# It is made with `tf.Variable(0)`, outside every scope.
# Then four replicas run one step, in which each of them calls `steps.assign_add(1)`.

# %% predict-count [markdown]
# What is the value of `steps` after this one step?
#
# - [ ] `1`
#   So it would be with a variable of the scope: each copy counts to 1.
# - [x] `4`
#   Each replica added 1 to the same variable, and no error says so.
# - [ ] `error` No value: it is an error
#   An error would be welcome: the program goes on, with a wrong count.

# %% reveal-count
from course_lib import mirrored

four = mirrored(4)  # on the first four devices, with ReductionToOneDevice
steps = tf.Variable(0, name="steps")


def count():
    steps.assign_add(1)


four.run(count)
reveal("09-count", int(steps.numpy()))

# %% count-why [markdown]
# A variable that was made outside the scope has no copies: it is one for all replicas.
# Made in the scope it has four copies, and each counts to 1.
# Where replicas have different values to add, `aggregation=` says at the making what becomes of them:
# their sum, their mean, or the value of the first replica
# (`tf.VariableAggregation.SUM`, `MEAN` and `ONLY_FIRST_REPLICA`).
# `tests/tf/test_lesson_09.py` runs all of this.
#
# ## A loop of one's own
#
# Generative adversarial networks, reinforcement learning: not every training fits into `fit`.
# A loop of one's own needs three calls of the strategy:
#
# - `experimental_distribute_dataset(dataset)` splits each batch;
# - `run(function, args)` calls the function on each replica, with its part of the batch;
# - `reduce("SUM", values, axis=None)` makes one value of what the replicas returned.
#
# Each replica divides its losses by the size of the *global* batch, not of its part:
# so the sum over the replicas is the mean.
# `tf.nn.compute_average_loss` does it.
# (Lesson 10 takes this apart.)
# The loss object is to leave the division alone, so it gets `reduction="none"`.
#
# The model begins with an `Input`, and the optimizer is built in the scope:
# so all variables are there before the first step, and a check can look at them.
# With Keras 3, `MirroredStrategy` makes missing ones in the first step, with copies;
# under `CentralStorageStrategy` a model without `Input` fails there (`tests/tf/test_lesson_09.py` has both).


# %% loop
def make_step(strategy, model, global_batch):
    loss_of = keras.losses.MeanSquaredError(reduction="none")
    variables = model.trainable_variables

    def on_replica(features, labels):
        with tf.GradientTape() as tape:
            losses = loss_of(labels, model(features, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch)
        model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return tf.function(lambda *batch: strategy.run(on_replica, args=batch))


# %% trained
def trained(strategy):
    with strategy.scope():
        model = line()
        model.optimizer.build(model.trainable_variables)
    step = make_step(strategy, model, global_batch=10)
    batches = tf.data.Dataset.from_tensor_slices((ones, ones)).batch(10)
    return [step(*batch) for batch in strategy.experimental_distribute_dataset(batches)]


def total(strategy, values):
    return float(strategy.reduce("SUM", values, axis=None))


losses = trained(two)
print("replicas", *(f"{loss:.2f}" for loss in two.experimental_local_results(losses[0])))
print("together", f"{total(two, losses[0]):.2f}")

# %% switched-text [markdown]
# Nothing in `trained` says which strategy it is.
# The next cell gives it four, and prints the mean loss of the first epoch, which was 0.924 with `fit`.
# `OneDeviceStrategy` places everything on one device, here the fourth: variables, input and computation.
# With it code is tried out before it is distributed.
# (By its documentation it also fetches input ahead.)
# `CentralStorageStrategy` keeps its variables once, here on `CPU:0`, and computes on two devices.
# (Made without arguments where there is a single GPU, it has all on that, says its documentation.)
# There is always a strategy, if only the default one: so code of a library needs no `if`.

# %% switched
central = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
for strategy in (one, tf.distribute.OneDeviceStrategy("CPU:3"), two, central):
    losses = [total(strategy, loss) for loss in trained(strategy)]
    print(f"{np.mean(losses):.3f}", type(strategy).__name__)

# %% evaluate-text [markdown]
# **Exercise 3.** Write `mean_loss(strategy, model, dataset)`:
# the mean squared error of the model, a number, over all examples of the data set.
# The replicas of the strategy are to compute it, each from its part of every batch.
# `dataset` yields global batches of features and labels, both `[batch, 1]`, and so is `model(features)`.
# The last batch may be smaller, so small that a replica gets no example of it.
# `tf.function` is not needed here.


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
check("09-evaluate", mean_loss)

# %% settings-text [markdown]
# ## Batch and learning rate
#
# Two replicas with 5 examples each compute what one device computes with 10.
# Usually one wants more from them: as many examples *for each replica* as one device had.
# Then the global batch grows with the number of replicas, and an epoch has fewer steps.
# To make up for it, one raises the learning rate in the same measure as the batch:
# the *linear scaling rule* ([Goyal and others](https://arxiv.org/abs/1706.02677), section 2.1).
# It is where to start and not a promise: with large batches so high a rate can fail without a warm-up.
# `lessons.lesson_09_strategies.learning_rates` has it as a function.
# A table from batch size to rate, such as `{5: 0.1, 10: 0.15}`, lacks the batch size of the next machine.
#
# **Exercise 4.** Write `settings(num_replicas, per_replica, base_batch, base_rate)`.
# `base_rate` trains well with batches of `base_batch` examples.
# Return the global batch size for `per_replica` examples on each replica,
# and the learning rate that the rule gives for it.


# %% exercise-settings
def settings(num_replicas, per_replica, base_batch, base_rate):
    # solution begin
    global_batch = num_replicas * per_replica
    return global_batch, base_rate * global_batch / base_batch
    # solution end


# %%
check("09-settings", settings)

# %% parts-text [markdown]
# ## Parts that are not equal
#
# The numbers above agree with one device, but each batch of 10 fell into two equal parts.
# On four replicas it cannot.
# The next cell shows how it is split, and what `fit` says to that.

# %% parts tags=["error"]
received = received_examples(four, tf.data.Dataset.range(10).batch(10))
print(received.sizes)
try:
    fitted(four)
except tf.errors.InvalidArgumentError as error:
    print(str(error).partition("}} ")[2].partition(" [Op")[0])

# %% parts-why [markdown]
# This is before the first step.
# To see of what shape a batch is, `fit` of Keras 3 adds up the parts of the first one: 3, 3, 3 and 1 rows.
# `evaluate` does so too, also where `fit` calls it for validation data.
# (See `_maybe_symbolic_build` in
# [its source](https://github.com/keras-team/keras/blob/v3.15.1/keras/src/backend/tensorflow/trainer.py).)
#
# Later batches are not looked at in this way.
# Take 13 examples in batches of 4 on two replicas: the next cell shows who gets which.
# Their features are the numbers from 1/4 to 13/4, and their labels lie on a line.
#
# Then `fit` trains one epoch with them.
# Two things are compared with one device: the weights afterwards, and the loss that `fit` reports.

# %% last
features = np.arange(1, 14, dtype="float32")[:, None] / 4
labels = 3 * features - 1


def agreeing(ours, theirs):
    (model, loss), (other, other_loss) = ours, theirs
    pairs = zip(model.get_weights(), other.get_weights())
    weights = all(np.allclose(*pair, rtol=1e-4) for pair in pairs)
    return {(1, 1): "both", (1, 0): "weights", (0, 1): "loss"}.get(
        (weights, np.allclose(loss, other_loss, rtol=1e-4)), "neither"
    )


received_examples(two, tf.data.Dataset.range(13).batch(4))

# %% predict-uneven [markdown]
# What agrees with one device?
#
# - [ ] `both` the weights and the reported loss
#   So it is where all parts are equal.
#   In the last batch here one replica has no example.
# - [ ] `weights` the weights, not the reported loss
#   It is the other way round: the loss is right, and the weights are not.
# - [x] `loss` the reported loss, not the weights
#   The training went another way, and the number that should tell says nothing of it.
# - [ ] `neither` neither of them
#   The weights are others, but the reported loss weights each part by its examples.

# %% reveal-uneven
alone = fitted(one, features, labels, batch_size=4, epochs=1)
shared = fitted(two, features, labels, batch_size=4, epochs=1)
reveal("09-uneven", agreeing(alone, shared))

# %% uneven-why [markdown]
# In `fit` each replica takes the mean over the examples of *its part*,
# and divides it by the number of replicas.
# For equal parts that is the mean over the batch.
# In the last step here it is half of it, since one replica has the only example: the step goes half as far.
# The reported loss is a metric, and that weights each part by its examples.
# tf_keras does the same, and takes a first batch of 3, 3, 3 and 1 as well
# (`tests/tf/test_lesson_09.py` has both).
#
# But the loss agrees because this epoch is the first:
# each batch's loss is measured before its step, and the wrong step is the last one.
# In a second epoch the reported loss differs too (one of these tests works it out).
#
# So for `fit`: let the batch size be a multiple of the number of replicas,
# and the last batch too, or leave it out with `drop_remainder=True`.
# A loop of one's own, as above, divides all parts by the same number.
# Where that is always `global_batch`, the step of a smaller last batch goes less far:
# of 1 example in place of 10, a tenth as far.
#
# ## Who adds up the gradients
#
# A `MirroredStrategy` takes a list of devices
# (without one, all GPUs that TensorFlow sees, and all CPUs if it sees no GPU)
# and `cross_device_ops`, which says how values of replicas are combined.
# One may write one's own, a `tf.distribute.CrossDeviceOps`.
# TensorFlow brings three, and describes them so:
#
# - `ReductionToOneDevice`: one device gets all values, adds them up, and sends the sum back;
# - `HierarchicalCopyAllReduce`: values go up a hierarchy of devices, and their sum comes back the same way;
# - `NcclAllReduce`: NVIDIA's library does it.
#
# The next cell lets two replicas add up their numbers, 1 and 2, in each of these ways.


# %% ops tags=["error"]
def number():
    context = tf.distribute.get_replica_context()
    return context.all_reduce("SUM", tf.cast(context.replica_id_in_sync_group, tf.float32) + 1)


for kind in ("ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce"):
    ops = getattr(tf.distribute, kind)()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    try:
        print(kind, *(float(each) for each in strategy.experimental_local_results(strategy.run(number))))
    except tf.errors.InvalidArgumentError as error:
        print(kind, str(error).partition(" used by")[0], sep=": ")

# %% ops-why [markdown]
# TensorFlow has this operation for GPUs alone.
# To make the strategy raised no error: that came with the first sum.
#
# Without `cross_device_ops`, a strategy on CPUs sends by TensorFlow's own collectives.
# One such strategy in a process is fine.
# A second one numbers its messages from the start again, so that they meet those of the first:
# that can fail (`tests/tf/test_strategies.py` lets it), or wait for ever.
# That is why this lesson names `ReductionToOneDevice`.
#
# ## Devices by their names
#
# TensorFlow sees no GPU here, only eight CPUs.
# The next cell asks for `MirroredStrategy(["GPU:0", "GPU:1"])`, makes the model in its scope, and trains it.
# If that works, it looks at which devices the copies of the weight are.

# %% predict-devices [markdown]
# What happens?
#
# - [ ] `error` it ends in an error
#   An error would be welcome.
#   TensorFlow takes another device where one is missing.
# - [x] `CPU:0, CPU:0` it trains, both copies on `CPU:0`
#   In place of each missing device TensorFlow takes the first CPU, without a word.
# - [ ] `CPU:0, CPU:1` it trains, one copy on `CPU:0`, one on `CPU:1`
#   There is a second CPU, but the number of the missing GPU is not kept.

# %% reveal-devices
try:
    absent = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=to_one)
    trained_there, _losses = fitted(absent)
    misplaced = trained_there.trainable_variables[0].value
    copies = absent.experimental_local_results(misplaced)
    found = ", ".join(copy.device.partition("device:")[2] for copy in copies)
except (ValueError, RuntimeError, tf.errors.OpError):
    found = "error"
reveal("09-devices", found)

# %% devices-why [markdown]
# Two replicas on one device compute the right numbers (`tests/tf/test_lesson_09.py` again), and gain nothing.
# It is one of six mistakes of which TensorFlow says nothing that helps.
# Each has a check in `course_lib.strategies`, to be called before the training.
# (`tests/tf/test_strategies.py` has TensorFlow make each mistake, then calls the check.)
#
# | mistake | what TensorFlow does | check |
# | --- | --- | --- |
# | a device that does not exist | computes on `CPU:0` | `require_devices` |
# | a kind of device in lower case: `list_physical_devices("gpu")` | finds none, ever | `physical_devices` |
# | a model or optimizer made outside the scope | stops with an empty message, or lets copies drift apart | `require_in_scope` |
# | a variable without copies that each replica changes | changes it several times | `require_no_plain_updates` |
# | a second `MirroredStrategy` with collectives | can fail, or wait for ever | `require_alone` |
# | a loss that divides, in a step that divides too | trains with gradients too small | `require_per_example` |

# %% traps tags=["error"]
from course_lib import strategies as checked

both = [tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) for _ in range(2)]
for mistake in (
    lambda: checked.require_devices(["GPU:0", "GPU:1"]),
    lambda: checked.physical_devices("gpu"),
    lambda: checked.require_in_scope(two, line()),
    lambda: checked.require_no_plain_updates(four, count),
    lambda: checked.require_alone(both[1]),
    lambda: checked.require_per_example(keras.losses.MeanSquaredError()),
):
    try:
        mistake()
    except course_lib.CourseError as error:
        print(error.problem, error.cure, sep="\n  ")

# %% central-given [markdown]
# ## Variables in one place
#
# In the loop above `CentralStorageStrategy` agreed with one device.
# Now `fit` trains the line under it, on two devices, with the 100 examples of before.
# Again the next cell compares weights and reported losses with those of one device.

# %% predict-central [markdown]
# What agrees with one device this time?
#
# - [ ] `both` the weights and the reported loss
#   This was to be hoped: all parts are equal.
#   But the reported loss is another.
# - [x] `weights` the weights, not the reported loss
#   The training is that of one device, and the reported loss is not.
# - [ ] `loss` the reported loss, not the weights
#   It is the other way round: the weights are right, and the reported loss is not.
# - [ ] `neither` neither of them
#   The reported loss is another, but the weights are right.

# %% reveal-central
reveal("09-central", agreeing(fitted(one), fitted(central)))

# %% central-why [markdown]
# The training is right, and `fit` of Keras 3 reports another loss: here more than twice the right one,
# and where losses rise, less than it.
# A metric keeps a sum and a count.
# To add to a variable, Keras 3 assigns it the old value plus the new one.
# `CentralStorageStrategy` adds up what the replicas assign,
# and so the old value as often as there are replicas.
# On two of them each batch weighs twice as much as the next
# (`tests/tf/test_lesson_09.py` works it out by hand, on two devices and on four).
# A loop of one's own that has a metric of Keras 3 gets wrong values too:
# the tests have `Sum`, `Mean` and `BinaryAccuracy`.
# `fit` of tf_keras reports the right losses.
#
# The two errors of this lesson are opposite: a loss alone does not tell whether a training is right,
# neither that it is nor that it is not.
#
# ## Several machines, and TPUs
#
# Three strategies need more than this notebook has.
# Lesson 11 runs the first two in processes of their own.
#
# - `MultiWorkerMirroredStrategy` is `MirroredStrategy` over several machines:
#   each *worker* runs the same program and finds the others in the environment variable `TF_CONFIG`.
#   TensorFlow's documentation says: they communicate by `RING` (over gRPC) or NCCL,
#   `AUTO` leaves the choice to TensorFlow, which looks at hardware, network and size,
#   and small all-reduces are combined into larger ones.
# - `ParameterServerStrategy` keeps the variables on *servers*.
#   Workers fetch them, compute, and send updates without waiting for each other;
#   a *coordinator* hands out the steps.
# - `TPUStrategy` runs on TPUs, and there is none here.
#   The guide says: it has collectives of its own;
#   a *resolver* finds the TPU; then it is initialised, which clears its memory.
#
# The next cell shows where the first two keep everything, and asks for the resolver.

# %% several tags=["error"]
from IPython.display import display

display(Situation("GPUs", several_machines=True))
display(Situation("GPUs", several_machines=True, synchronous=False))
try:
    tf.distribute.cluster_resolver.TPUClusterResolver()
except ValueError as error:
    print(error)

# %% table-text [markdown]
# On Colab with a TPU, says TensorFlow's guide, the resolver needs no address;
# elsewhere it takes the TPU's name.
#
# ## What works
#
# Each entry of the table is a run in processes of its own,
# with two replicas or workers where there are several.
# Two dense layers train for 20 steps; with an Estimator, it is one weight and one bias for 10.
# "Equals one device" means: each variable is where the strategy is to keep it
# (of an Estimator, only the number of replicas is known),
# and variables and losses differ from those worked out without TensorFlow by at most 0.00001.
# Parameter servers train in no fixed order, so there the loss is to fall in each of five runs.
# A dash stands where nothing was asked.
# The commands in the first line below repeat it.

# %% table
from course_lib import measured

recorded = measured.load("09_strategies")
print(*(f"{name}: {value}" for name, value in recorded.how.items()), sep="\n")
measured.table(recorded.support)

# %% estimators [markdown]
# ## What became of Estimators
#
# Until TensorFlow 2.15 there was a third interface, `tf.estimator`.
# Old programs still have it.
# There the strategy stood in a `RunConfig`, and the rest was the Estimator's.
#
# | Estimator | today |
# | --- | --- |
# | `RunConfig(train_distribute=..., eval_distribute=...)` | `with strategy.scope():`, one for each where they differ |
# | `LinearRegressor(feature_columns, optimizer=...)` | a Keras model with `Dense(1)`, compiled with the optimizer and `"mse"` |
# | `model_to_estimator(keras_model)` | the Keras model |
# | `train(input_fn, steps=10)` | `fit(dataset, steps_per_epoch=10)` |
# | `evaluate(input_fn, steps=10)` | `evaluate(dataset, steps=10)` |
# | `train_and_evaluate` with `TF_CONFIG` | `MultiWorkerMirroredStrategy`, also with `TF_CONFIG`; `fit` of tf_keras, or a loop of one's own |
#
# One difference changes numbers without a word: the batch of an `input_fn` is *per replica*.
# In a step N replicas take N batches.
# A batch size of 10 on two replicas is a global batch of 20 today.
# An `input_fn` ran once for each worker, so to split the data between workers was the program's own business.
# By TensorFlow's documentation, pre-made Estimators could be distributed and custom ones too,
# these without a `Scaffold`; `TPUStrategy` took none of them: TPUs had a `TPUEstimator` of their own.
# [Appendix A1](A1_estimators.ipynb) runs such Estimators, with TensorFlow 2.15 in an environment of its own,
# and says of each of their parts what it became.

# %% score
score("09")

# %% [markdown]
# ## Takeaways
#
# - Under a `MirroredStrategy`, with model and optimizer made in its scope, each replica has a copy of
#   every variable, gets a part of the global batch, and makes the same update, from the sum of all gradients.
# - Equal parts make `fit` under it equal to one device, except for what works on a replica's part alone:
#   batch normalisation takes the moments of each part by default, `clipnorm` clips gradients before they are
#   added up, and dropout draws the same mask for every part.
#   Unequal parts can end in an error, or in wrong steps, which the loss of the same epoch does not show.
# - TensorFlow accepts devices that do not exist, and variables that every replica changes.
#   Check before the training, and hold the first steps against one device.
#
# Lesson 10 trains on images with a loop under a strategy.
