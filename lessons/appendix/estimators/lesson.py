# %% [markdown]
# # Estimators
#
# A program of 2019 trains on several GPUs with `tf.estimator`, a module that today's TensorFlow lacks.
# What did its parts do, and what does one write in their place?
# Here such programs run once more, on two virtual CPUs.
#
# After this appendix you can
#
# - read a distributed Estimator, and work out its numbers by hand;
# - name what each of its parts became;
# - avoid two mistakes in moving such a program that raise no error.
#
# **Time:** 20 minutes.
# **You need to know:** {lesson:strategies}; of {lesson:custom_training} the loop.
#
# > **Where this was run.** TensorFlow 2.15, the last that has Estimators.
# > It takes an environment of its own, which no other lesson needs, with Python 3.11 and 1.4 GB.
# > The course's library is not in it, so there are no cards and no checks here.
# > `make estimator` in a terminal makes it and tries it out.
# > Then open this notebook in JupyterLab, by `make lab`:
# > its kernel is "TensorFlow 2.15 (Estimators)", which you can also choose under *Kernel*, *Change Kernel*.

# %%
import os
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.simplefilter("ignore")

import tensorflow as tf


class OtherKernel(Exception):
    def _render_traceback_(self):
        return [str(self)]


if not tf.__version__.startswith("2.15."):
    raise OtherKernel(
        "Run `make estimator` in a terminal, then choose Kernel, Change Kernel, “TensorFlow 2.15 (Estimators)”."
    )
tf.get_logger().setLevel("ERROR")

# %% parts-text [markdown]
# ## The program
#
# A distributed Estimator has four parts; the next two cells have them:
#
# - `input_fn`, a function that makes the data,
#   here 1,000 times the same example: the feature `feats` is 1, and so is the label;
# - a strategy;
# - `RunConfig`, which holds the strategy for training and the one for evaluation,
#   the folder for checkpoints (`model_dir`), and settings of the session (below);
# - the Estimator.
#   A *pre-made* one, such as `LinearRegressor`, brings its model.

# %% parts
import tempfile

import numpy as np

strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
two_cpus = tf.compat.v1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
folders = tempfile.TemporaryDirectory()


def input_fn():
    examples = tf.data.Dataset.from_tensors(({"feats": [1.0]}, [1.0])).repeat(1000)
    return examples.batch(10)


def config(train_distribute, eval_distribute):
    return tf.estimator.RunConfig(
        model_dir=tempfile.mkdtemp(dir=folders.name),
        train_distribute=train_distribute,
        eval_distribute=eval_distribute,
        session_config=two_cpus,
    )


# %% train-text [markdown]
# For each call of `train` and of `evaluate` the Estimator builds its model anew, under the strategy for it.
# So no `scope()` is in sight, nor, where the Estimator is pre-made, a model.


# %% train
def regressor(train_distribute, eval_distribute, optimizer=lambda: tf.keras.optimizers.legacy.SGD(0.02)):
    return tf.estimator.LinearRegressor(
        feature_columns=[tf.feature_column.numeric_column("feats")],
        optimizer=optimizer,
        config=config(train_distribute, eval_distribute),
    )


line = regressor(strategy, strategy)
line.train(input_fn, steps=10)
metrics = line.evaluate(input_fn, steps=10)
names = ("linear/linear_model/feats/weights", "linear/linear_model/bias_weights")
weight, bias = (line.get_variable_value(name).item() for name in names)
print(f"weight {weight:.3f}, bias {bias:.3f}, loss {metrics['average_loss']:.3f}")

# %% by-hand-text [markdown]
# By hand, with NumPy: all examples are alike, so the mean of their gradients is the gradient of one.
# The feature is 1, so the model answers weight + bias, and 1 is right.

# %% by-hand
by_hand = np.zeros(2)  # weight and bias
for _step in range(10):
    error = np.sum(by_hand) - 1.0
    by_hand -= 0.02 * 2 * error  # the gradient of the squared error, for each of the two

loss = (np.sum(by_hand) - 1.0) ** 2
print(f"weight {by_hand[0]:.3f}, bias {by_hand[1]:.3f}, loss {loss:.3f}")
differences = np.abs([weight - by_hand[0], bias - by_hand[1], metrics["average_loss"] - loss])
print("All differ by less than 0.00001:", bool(max(differences) < 1e-5))

# %% one-optimizer-text [markdown]
# A pre-made Estimator is given its optimizer as a function, which makes one for each replica.
# One optimizer for both is refused:

# %% one-optimizer tags=["error"]
try:
    regressor(strategy, None, optimizer=tf.keras.optimizers.legacy.SGD(0.02)).train(input_fn, steps=10)
except RuntimeError as error:
    print(str(error).partition("RuntimeError: ")[2].partition(" Here")[0])

# %% session-text [markdown]
# ## Two virtual CPUs in the session
#
# An Estimator builds a graph and runs it in a *session*, as TensorFlow 1 did.
# The strategy accepted `/cpu:1` without asking whether there is such a device, as {lesson:strategies} showed.
# But the session, not the strategy, makes the devices to compute with:
# one virtual CPU, unless `session_config` asks for more.

# %% session
for options in (None, two_cpus):
    with tf.compat.v1.Session(graph=tf.Graph(), config=options) as session:
        print(*(device.name.rpartition("/")[2] for device in session.list_devices()))

# %% hangs [markdown]
# With one virtual CPU in the session the two replicas hang, and you would have to interrupt the training:
# no cell tries it.
# A session finds all GPUs of a machine, so programs on GPUs do not need `session_config` for that.
#
# ## A model of one's own
#
# A *custom* Estimator gets a `model_fn`, and calls it with a batch and a `mode`, which says what for.
# The function returns an `EstimatorSpec`: the loss, and in training the operation that makes a step.
# This one is the same line, of one weight and one bias.
# It also counts its training examples, over all replicas.

# %% model-fn
v1 = tf.compat.v1


def counted(labels):
    over_replicas = dict(
        synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
    )
    total = v1.get_variable("examples", dtype=tf.int32, initializer=0, trainable=False, **over_replicas)
    return total.assign_add(tf.size(labels))


def model_fn(features, labels, mode):
    weight, bias = (v1.get_variable(name, initializer=0.0) for name in ("weight", "bias"))
    loss = tf.reduce_mean((weight * features["feats"] + bias - labels) ** 2)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = v1.train.GradientDescentOptimizer(0.02).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(step, counted(labels)))


# %% whose-batch [markdown]
# ## Whose batch?
#
# The next cell trains it twice on the data from above, for 10 steps with batches of 10:
# first without a strategy, then on two replicas.
# It prints how many examples the model has counted, and its weight.
#
# **Predict.** How many examples does each of the two trainings take?
# Write it down, then run the cell.


# %% reveal-examples
def trained(train_distribute):
    custom = tf.estimator.Estimator(model_fn, config=config(train_distribute, None))
    custom.train(input_fn, steps=10)
    return {name: custom.get_variable_value(name).item() for name in ("weight", "examples")}


print("Examples that the model has counted, and its weight:")
for name, given in (("one device", None), ("two replicas", strategy)):
    found = trained(given)
    print(f"{name}: {found['examples']}, {found['weight']:.3f}")

# %% per-replica [markdown]
# The batch of an `input_fn` is *per replica*: in a step, two replicas take two batches.
# The batch of `fit` and of `experimental_distribute_dataset` is the global one, and the replicas share it.
# A program for two replicas that moves with its `batch(10)` and its number of steps unchanged
# trains on half the examples, without an error: the first of the two mistakes.
# Only since all examples are equal, the weight is the same here.
#
# An `input_fn` is called once a worker, not once a replica.
# It is the program's own business to split the data between workers, or to shuffle them differently on each.
#
# ## Two strategies
#
# Training and evaluation may have different strategies.
# An `input_fn` with the argument `input_context`, here `told`, can ask how many replicas there are.
# The next cell trains on two replicas, evaluates on one device, and trains on:
# `train` starts from the newest checkpoint in `model_dir`, if there is one.


# %% two-strategies
def told(input_context):
    print("replicas:", input_context.num_replicas_in_sync)
    return input_fn()


other = regressor(strategy, tf.distribute.OneDeviceStrategy("/cpu:0"))
other.train(told, steps=10)
metrics = other.evaluate(told, steps=10)
print(f"loss {metrics['average_loss']:.3f} after {metrics['global_step']} steps")
other.train(told, steps=10)
print(other.get_variable_value("global_step"), "steps")

# %% hook-text [markdown]
# ## Hooks and `train_and_evaluate`
#
# A *hook* is called before and after each step; here it counts the calls after a step.
# `train_and_evaluate` trains until `max_steps` and evaluates on the way and at the end.
# On several machines each process finds its task in `TF_CONFIG` ({lesson:workers});
# the next cell uses only one process, and needs none.


# %% hook
class Calls(tf.estimator.SessionRunHook):
    number = 0

    def after_run(self, *_context_and_values):
        self.number += 1


hook = Calls()
training = tf.estimator.TrainSpec(input_fn, max_steps=10, hooks=[hook])
evaluation = tf.estimator.EvalSpec(input_fn, steps=10)
metrics, _exports = tf.estimator.train_and_evaluate(regressor(strategy, None), training, evaluation)
print(f"{hook.number} calls, loss {metrics['average_loss']:.3f}")

# %% keras-text [markdown]
# ## A Keras model as an Estimator
#
# `model_to_estimator` makes an Estimator of a compiled Keras model:
# here the line again, with the mean squared error as its loss and also as a metric.
# The next cell makes two such Estimators and trains both on two replicas.
# One is evaluated on one device, the other on two replicas.


# %% keras
def converted(eval_distribute):
    unit = tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(1,))
    model = tf.keras.Sequential([unit])
    model.compile(tf.keras.optimizers.legacy.SGD(0.02), "mse", metrics=["mse"])
    return tf.keras.estimator.model_to_estimator(model, config=config(strategy, eval_distribute))


def pairs():
    return input_fn().map(lambda features, labels: (features["feats"], labels))


for name, given in (("one device", None), ("two replicas", strategy)):
    estimator = converted(given)
    estimator.train(pairs, steps=10)
    metrics = estimator.evaluate(pairs, steps=10)
    print(f"evaluated on {name}: loss {metrics['loss']:.3g}, metric {metrics['mse']:.3g}")

# %% halved [markdown]
# The training is right: the metric is 0.189 twice, the loss of the first program.
# But the loss told by the evaluation on two replicas is half the right one.
# Keras divides the loss of each replica by the number of replicas, so that their sum is the right loss.
# The Estimator takes their mean.
# To hold such a loss from an old log against `evaluate` of today is the second mistake: compare metrics.
#
# ## The same today
#
# This is all that is left of the first program.
# In the environment of the course, on two virtual CPUs, it gives the same weight and bias;
# the `import` and the setting of the CPUs are left out.
#
# ```python
# strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
# with strategy.scope():
#     unit = tf.keras.layers.Dense(1, kernel_initializer="zeros")
#     model = tf.keras.Sequential([tf.keras.Input((1,)), unit])
#     model.compile(tf.keras.optimizers.SGD(0.02), "mse")
#
# examples = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(1000)
# model.fit(examples.batch(2 * 10), steps_per_epoch=10)
# model.evaluate(examples.batch(2 * 10), steps=10)
# ```
#
# The same part by part.
# The last column says which lesson runs today's side; "named" means that no cell of a lesson runs it.
#
# | Estimator | today | where |
# | --- | --- | --- |
# | `RunConfig(train_distribute=..., eval_distribute=...)` | a strategy, and its `scope()` around model, optimizer and metrics | 9 |
# | different strategies for training and evaluation | a checkpoint, restored under the other strategy or under none | 10 |
# | `session_config` | `tf.config`, before TensorFlow starts | 1 |
# | `input_fn`, called by the Estimator | a `tf.data.Dataset` of global batches | 9, 10 |
# | `input_context` | `distribute_datasets_from_function` | named; an exercise of {lesson:workers} has such a function |
# | `numeric_column` and other feature columns | `Dataset.map`, or Keras layers such as `Normalization` and `StringLookup` | named |
# | `LinearRegressor`, `DNNClassifier` and other pre-made Estimators | a Keras model | 9 |
# | `model_fn` and `mode` | two functions, for training and for evaluation, given to `strategy.run` | 10 for training; for evaluation an exercise of {lesson:strategies} |
# | `EstimatorSpec` | what these functions return | 10 |
# | `train`, `evaluate` | `fit` and `evaluate`, or a loop of one's own | 9, 10 |
# | checkpoints in `model_dir` | `tf.train.Checkpoint`, or Keras's `ModelCheckpoint` and `BackupAndRestore` | 10, the callbacks named |
# | hooks | a line in the loop, or a Keras callback | 10, the callback named |
# | `train_and_evaluate` with `TF_CONFIG` | `MultiWorkerMirroredStrategy` or, where `TF_CONFIG` has `ps`, `ParameterServerStrategy` | 11 |
# | `Scaffold`, which says how variables get their first values and are saved | nothing: variables have values at once, and `tf.train.Checkpoint` saves them | 10 |
# | `predict` | the model's own `predict` | named |
# | `export_saved_model` with a `serving_input_receiver_fn` | `tf.saved_model.save` with a signature | 6 |
# | `model_to_estimator` | nothing: the Keras model | 9 |
# | `TPUEstimator` | `TPUStrategy` | named |
#
# TensorFlow's guide named among the limits of training Estimators under a strategy
# `TPUStrategy`, and a `Scaffold` in a `model_fn`.
# But version 2.15 accepts a `Scaffold` under a strategy without a word.
#
# ## Exercise
#
# A program has `RunConfig(train_distribute=MirroredStrategy())` on a machine with four GPUs,
# of which it uses all.
# Its `input_fn` ends in `batch(32)`, and it calls `train(input_fn, steps=1000)`.
# Which batch and steps give `fit` the same training under the same strategy,
# and how many examples does it take?
#
# <details>
# <summary>Solution</summary>
#
# A global batch of 4 × 32 = 128, and still 1,000 steps: `fit(examples.batch(128), steps_per_epoch=1000)`.
# That is 128,000 examples.
#
# </details>

# %% [markdown]
# ## Takeaways
#
# - A distributed Estimator has its strategy in `RunConfig` and builds the model itself;
#   today you make the model in the strategy's scope.
# - The batch of an `input_fn` is per replica: multiply it by the number of replicas for `fit`.
# - Compare metrics when you move a program with `model_to_estimator`, not losses:
#   evaluated under a strategy, it reports the loss divided by the number of replicas.
