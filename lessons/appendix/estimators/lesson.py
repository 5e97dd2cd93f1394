# %% [markdown]
# # How do I get off Estimators?
#
# You have inherited a training script from 2019, and today's TensorFlow answers
# `module 'tensorflow' has no attribute 'estimator'`.
# It is forty lines long, and every line has a successor. So you translate line by line, and after half an hour it runs.
#
# Are you done? On eight GPUs the translation learns from fewer examples than the old program did, and nothing says so.
# If the old one had a `model_fn`, the new one may take larger steps.
# And you can't compare it with the old log: the one below begins with `loss = 2.0`, for a model whose first loss is exactly 1.
# None of this raises an error.
#
# All three come from one thing. Between the batch and the weights, something has to be multiplied or divided by the number of replicas, and an Estimator does that in other places than today's TensorFlow.
# So one question runs through this appendix: *I have a program with Estimators. How do I get off them, and keep its numbers?*
# The best way to find out is to run the old program once more, beside the new one.
#
# **After this appendix you can**
#
# - read a distributed Estimator and its log, and work out how many examples it trains on;
# - write the same training with Keras, or with your own loop, and get the same weights;
# - bring the trained weights with you.
#
# **Time:** 35 minutes.
# **You need to know:** `MirroredStrategy` and its scope ({lesson:strategies}); for the section *Whose mean?*, what a loop divides by ({lesson:custom_training}).
#
# > **Where this runs.** TensorFlow 2.15 is the last version that has Estimators.
# > It runs on Python 3.9 to 3.11, so it gets its own environment (1.4 GB), with Python 3.11.
# > Run `make estimator` in a terminal. It sets the environment up and tests it.
# > Then open this notebook in JupyterLab (`make lab`).
# > Its kernel is "TensorFlow 2.15 (Estimators)"; if another one is running, choose it under *Kernel*, *Change Kernel*.

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

from course_lib import check
from course_lib.i18n import set_language

set_language("en")

# %% devices-text [markdown]
# ## The old program
#
# TensorFlow 2.15 has everything that we need: Estimators, and Keras. So the old program and the new one can run in this notebook, side by side.
# The folded cell makes four virtual CPUs, which take the place of GPUs, and puts two of them under a strategy. Because an Estimator writes a long log, the cell also has `train_with_log`, which takes ten steps and shows only the first loss:

# %% devices tags=["known"]
import sys
import tempfile

import numpy as np

cpus = tf.config.list_physical_devices("CPU")
four_cpus = [tf.config.LogicalDeviceConfiguration()] * 4
tf.config.set_logical_device_configuration(cpus[0], four_cpus)

# Virtual CPUs need `to_one`, which adds up on one device; GPUs don't.
to_one = tf.distribute.ReductionToOneDevice()
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], to_one)


def tells_a_loss(record):
    return record.getMessage().startswith("loss =")


logger = tf.get_logger()
logger.handlers[0].setStream(sys.stdout)
logger.addFilter(tells_a_loss)


def train_with_log(estimator, input_fn):
    logger.setLevel("INFO")
    estimator.train(input_fn, steps=10)
    logger.setLevel("ERROR")


# %% old-text [markdown]
# Our old program trains a line, $y = wx + b$, which starts from $w = b = 0$.
# Its data are simple enough for mental arithmetic: in all 1,000 examples, $x$ is 1, and the line should predict 1.


# %% old-data
def input_fn():
    example = ({"feats": [1.0]}, [1.0])
    examples = tf.data.Dataset.from_tensors(example).repeat(1000)
    return examples.batch(10)


# %% old-model-text [markdown]
# And this is the Estimator. We write it as a function, because we'll need several:


# %% old
def make_sgd():
    return tf.keras.optimizers.legacy.SGD(0.02)


def linear_regressor():
    config = tf.estimator.RunConfig(
        model_dir=tempfile.mkdtemp(),
        train_distribute=strategy,
        eval_distribute=strategy,
    )
    feats = tf.feature_column.numeric_column("feats")
    return tf.estimator.LinearRegressor(
        feature_columns=[feats],
        optimizer=make_sgd,
        config=config,
    )


# %% parts-text [markdown]
# The program has four parts:
#
# - `input_fn` makes the data. The Estimator calls it.
# - The optimizer is given as a *function* that makes one, because each replica and each new graph needs its own.
#   (It is a `legacy` optimizer: Estimators don't accept the ones introduced in TensorFlow 2.11.)
# - `RunConfig` names the strategies, one for training and one for evaluation, and `model_dir`, the folder for checkpoints.
# - The Estimator brings the model. `LinearRegressor` is a *pre-made* one.
#
# Each call to `train` or `evaluate` builds the model from scratch, under its own strategy, and loads the newest checkpoint in `model_dir`.
# That is why you see no `scope()`, and why each of our Estimators gets a new folder: in an old one, it would resume where the last one stopped.
#
# Let's train for ten steps:

# %% old-train
old = linear_regressor()
train_with_log(old, input_fn)
metrics = old.evaluate(input_fn, steps=10)
weight = old.get_variable_value("linear/linear_model/feats/weights")
print(f"weight {weight.item():.3f}")
print(f"loss   {metrics['loss']:.3f}")

# %% old-train-read [markdown]
# Leave the log aside for a moment. Are the weight and the loss right? At first our model predicts 0, so its error is 1. The gradient of the squared error is twice the error, for $w$ and $b$ alike.
# So each step moves $w$ and $b$ by 4 % of the error each (0.02 · 2), and closes 8 % of it.
# After ten steps $0.92^{10} = 0.434$ of the error is left. So the loss is $0.434^2 = 0.189$.
# And the weight is half of $1 - 0.434$, which is 0.283. Both agree.
#
# Now look at the first line, which was logged before the first step. The error is 1, so the loss is $1^2 = 1$. But the log says 2.0.
#
# The training is right, and its log is wrong by a factor of two. We'll come back to that.

# %% new-text [markdown]
# ## Line by line
#
# Every old line has a successor:
#
# | old | new |
# | --- | --- |
# | `LinearRegressor`, with its feature column | a `Dense` layer of one unit |
# | `optimizer=make_sgd` | `SGD(0.02)`, given to `compile` |
# | `train_distribute=strategy` | `with strategy.scope():` around both |
# | `input_fn` | a dataset |
# | `train(input_fn, steps=10)` | `fit(..., steps_per_epoch=10)` |
# | `evaluate(input_fn, steps=10)` | `evaluate(..., steps=10)` |
#
# So here is the same program in Keras:


# %% new
def keras_line(strategy):
    with strategy.scope():
        unit = tf.keras.layers.Dense(1, kernel_initializer="zeros")
        model = tf.keras.Sequential([tf.keras.Input((1,)), unit])
        model.compile(tf.keras.optimizers.SGD(0.02), "mse")
    return model


examples = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(1000)

new = keras_line(strategy)
new.fit(examples.batch(10), steps_per_epoch=10, verbose=0)
loss = new.evaluate(examples.batch(10), steps=10, verbose=0)
weight, bias = new.get_weights()
print(f"weight {weight.item():.3f}")
print(f"loss   {loss:.3f}")

# %% new-read [markdown]
# The new program has the same weight and the same loss. Are we done?
#
# These numbers can't tell us. All our examples are alike, so ten of them teach exactly what twenty would.
# We have to ask how many each program *consumes*.
#
# ## Whose batch?
#
# There are 1,000 examples, in batches of 10. This time we don't say how many steps to take: both programs train until the data are used up.
#
# **Predict.** How many steps does the Estimator take, on two replicas? And how many does `fit`? Write both numbers down, then run the cell.

# %% reveal-until-the-end
print("until the data are used up")
old = linear_regressor()
old.train(input_fn)
print("Estimator:", old.get_variable_value("global_step"), "steps")

new = keras_line(strategy)
new.fit(examples.batch(10), verbose=0)
print("fit:      ", new.optimizer.iterations.numpy(), "steps")

# %% until-the-end-why [markdown]
# The Estimator takes 50 steps, and `fit` takes 100. In one step the Estimator uses up *two* batches, because each replica takes one. `fit` takes one batch, and the replicas share it:
#
# | in one step | replica 0 | replica 1 | together |
# | --- | ---: | ---: | ---: |
# | Estimator, `batch(10)` | 10 | 10 | 20 |
# | `fit`, `batch(10)` | 5 | 5 | 10 |
# | `fit`, `batch(20)` | 10 | 10 | 20 |
#
# So the batch of an `input_fn` is **per replica**, and the batch of `fit` is the **global batch**.
# In ten steps the old program trained on 200 examples, and its translation on 100. That's half; on eight GPUs it would be an eighth.
# The last row is the cure: multiply the batch by the number of replicas, and leave `steps` as it is.
#
# Does that give the same weights, too? To see this, we need examples that differ. Here are 300, with some noise, and the old program once more, with batches of 8:

# %% noisy
random = np.random.default_rng(0)
x = random.uniform(-1, 1, (300, 1)).astype("float32")
noise = random.normal(0, 1, (300, 1))
y = (3 * x + 2 + noise).astype("float32")


def noisy_input_fn():
    pairs = tf.data.Dataset.from_tensor_slices(({"feats": x}, y))
    return pairs.repeat().batch(8)


old = linear_regressor()
old.train(noisy_input_fn, steps=25)
weight = old.get_variable_value("linear/linear_model/feats/weights")
bias = old.get_variable_value("linear/linear_model/bias_weights")
print(f"weight {weight.item():.3f}, bias {bias.item():.3f}")

# %% ported-given [markdown]
# The true line is $3x + 2$, and 25 steps are too few to get there. No matter. If a translation sees the same examples in the same steps, it must end at *these two numbers*.
#
# **Exercise.** Write `ported(strategy, x, y, steps)`: train the line with Keras, under the given strategy,
# on the same examples in each step as the old program, and return the trained model.
#
# - `keras_line` still makes the right model: a line that starts from zeros, SGD with the learning rate 0.02, and the mean squared error.
# - In each step, every replica takes 8 examples. The examples come in order, and start over when they run out.
#
# The check calls your function under two replicas and under four, with other examples, and compares weight and bias with NumPy.
# If you want to compare with the cell above, print `ported(strategy, x, y, 25).get_weights()`.


# %% exercise-ported
def ported(strategy, x, y, steps):
    # solution begin
    model = keras_line(strategy)
    global_batch = 8 * strategy.num_replicas_in_sync
    pairs = tf.data.Dataset.from_tensor_slices((x, y))
    pairs = pairs.repeat().batch(global_batch)
    model.fit(pairs, steps_per_epoch=steps, verbose=0)
    return model
    # solution end


# %%
check("estimators-ported", ported)

# %% ported-read [markdown]
# With the 300 examples, the solution gives 0.980 and 1.407: the old program's weight and bias.

# %% note-end [markdown]
# What if the data don't divide evenly?
#
# An Estimator stops when a replica finds no batch. 250 examples in batches of 10 are 25 batches: on two replicas it took 12 steps, and dropped the last batch.
# `fit`, with `batch(20)`, takes 13 steps, the last with 10 examples. With `batch(20, drop_remainder=True)` it takes 12, as the Estimator did.

# %% model-fn-text [markdown]
# ## Whose mean?
#
# If a program defines its own model, it has a `model_fn`. The Estimator calls it with a batch and a `mode` (train, evaluate or predict),
# and it returns an `EstimatorSpec`: the loss and, for training, `train_op`, the operation that updates the weights.
# Here is our line again, as a `model_fn`. (We only train it, so it ignores the mode.)

# %% model-fn
v1 = tf.compat.v1


def line(features, labels):
    weight = v1.get_variable("weight", initializer=0.0)
    bias = v1.get_variable("bias", initializer=0.0)
    errors = weight * features["feats"] + bias - labels
    return tf.reduce_mean(errors**2), [weight, bias]


def model_fn(features, labels, mode):
    loss, weights = line(features, labels)
    sgd = v1.train.GradientDescentOptimizer(0.02)
    # `minimize` also adds 1 to `step`, by which the Estimator stops.
    step = v1.train.get_global_step()
    train_op = sgd.minimize(loss, step, weights)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
    )


def train_custom(model_fn):
    print(model_fn.__name__)
    config = tf.estimator.RunConfig(
        model_dir=tempfile.mkdtemp(),
        train_distribute=strategy,
    )
    custom = tf.estimator.Estimator(model_fn, config=config)
    train_with_log(custom, input_fn)
    print(f"weight {custom.get_variable_value('weight'):.3f}")


train_custom(model_fn)

# %% loop-text [markdown]
# The weight is 0.283, as before, and this time the log is right: the first loss is 1.
#
# Today you would write the training step yourself, as in {lesson:custom_training}. Each replica gets 10 examples, and the function `average` turns their ten losses into one number. The `model_fn` used `tf.reduce_mean` there, so we'll try that first:


# %% loop
def train_own_loop(average):
    with strategy.scope():
        weight = tf.Variable(0.0)
        bias = tf.Variable(0.0)
        sgd = tf.keras.optimizers.SGD(0.02)
        sgd.build([weight, bias])  # its variables, in the scope

    def on_replica(features, labels):
        with tf.GradientTape() as tape:
            errors = weight * features + bias - labels
            loss = average(errors**2)
        gradients = tape.gradient(loss, [weight, bias])
        sgd.apply_gradients(zip(gradients, [weight, bias]))

    @tf.function
    def train_step(features, labels):
        strategy.run(on_replica, (features, labels))

    ten = tf.ones(10)  # x and y of each replica's ten examples
    for _ in range(10):
        train_step(ten, ten)
    return weight.numpy()


# %% own-mean-text [markdown]
# **Predict.** `model_fn` gave a weight of 0.283. What does this loop give, with the same `tf.reduce_mean`: 0.283, a smaller weight, or a larger one?

# %% reveal-own-mean
print("own loop, tf.reduce_mean")
print(f"weight {train_own_loop(tf.reduce_mean):.3f}")

# %% own-mean-why [markdown]
# The weight is larger: 0.413. The optimizer added up the gradients of two replicas, each already a mean over ten examples. That makes the gradient twice what it was, so each step closes 16 % of the error, and the weight is $(1 - 0.84^{10})/2 = 0.413$.
# You wouldn't complain about a loss that falls faster. But with more replicas, or a larger learning rate, such a run blows up.
#
# Who divided by two in the `model_fn`? Not your code, and not the optimizer by itself. While an Estimator trains, it sets a switch that makes a TensorFlow 1 optimizer (`tf.compat.v1.train`) divide the loss by the number of replicas before taking gradients.
# In your own loop, nothing sets that switch, whatever optimizer you use. So it is up to you: divide by the global batch.


# %% global-mean
def global_mean(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=20)


print(f"weight {train_own_loop(global_mean):.3f}")

# %% clipped-text [markdown]
# The weight is 0.283 again. (`fit` needs no such line, because Keras divides the loss that you give to `compile`.)
#
# So you divide by the global batch, and you're done? Look at a second `model_fn` first. It clips the gradients, as many do. So instead of calling `minimize`, it computes the gradients itself, and hands them to the same optimizer. The limit, 100, is far above our gradients, so the clipping changes nothing.
#
# **Predict.** Does it give 0.283, too?


# %% reveal-clipped
def clipping_model_fn(features, labels, mode):
    loss, weights = line(features, labels)
    gradients = tf.gradients(loss, weights)
    clipped, _ = tf.clip_by_global_norm(gradients, 100.0)
    sgd = v1.train.GradientDescentOptimizer(0.02)
    step = v1.train.get_global_step()
    train_op = sgd.apply_gradients(zip(clipped, weights), step)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
    )


train_custom(clipping_model_fn)

# %% clipped-read [markdown]
# The weight is 0.413: this *old program* added up its gradients. The optimizer never saw the loss, so it couldn't divide it.
# You wouldn't have noticed, because the learning rate was tuned with these doubled gradients.
#
# If you now divide by the global batch, you halve its updates (on eight GPUs, you make them eight times too small).
# So before you translate a `model_fn`, find out which kind it is:
#
# | the `model_fn` updates its weights by | the gradients of the replicas are | first loss in the log (ours is 1) | so your loop takes |
# | --- | --- | ---: | --- |
# | a v1 optimizer's `minimize` or `compute_gradients` | averaged | 1.0 | the mean over the global batch |
# | `tf.gradients`, then a v1 optimizer's `apply_gradients` | added up | 2.0 | `tf.reduce_mean` on each replica, and clips there |
# | a Keras optimizer | added up | 2.0 | `tf.reduce_mean` on each replica |
# | a head, such as `tf.estimator.RegressionHead`, with a Keras optimizer | averaged | 2.0 | the mean over the global batch |
#
# First look for a head, as in the last row. If there is one, the log can't tell you anything: a head averages the gradients and logs 2.0 all the same, as `LinearRegressor` does. (The next section says why.)
#
# For the other rows, the third column is your test. Start the old program on one device and on all of them, from the same weights: is the log's first loss about the same,
# or multiplied by the number of replicas? If the gradients were added up and you'd rather have the mean, multiply the learning rate by the number of replicas.
# With SGD and no clipping, that is the same training.

# %% note-v1 [markdown]
# What if the program says `tf.compat.v1.estimator`?
#
# It is older still. By default the pre-made Estimators of TensorFlow 1 take the *sum* of a batch's losses, where those of TensorFlow 2 take the mean, and a sum isn't divided by the number of replicas. We ran one with batches of 10. Compared with a mean, its first update was 10 times as large on one device, 20 times on two replicas, and 40 times on four.
# So with SGD, take a mean, and multiply the learning rate by the *global* batch. Or check whether the program sets `loss_reduction`.

# %% keras-text [markdown]
# ## Whose loss?
#
# Back to the first log, and its 2.0. In training, an Estimator logs the *sum* of its replicas' losses. Where a v1 optimizer divides the loss, the log has their mean.
# `LinearRegressor` halves the loss that it hands to its optimizer, so it trains as it should. But the loss that it *reports* is the undivided one: each replica reports 1, and the Estimator adds them up to 2.
#
# What `evaluate` returned was right, 0.189. Can you rely on that at least?
# Take a program that was halfway to Keras: `model_to_estimator` turned a compiled Keras model into an Estimator.
# Here is our line once more. It always trains on two replicas, and we choose where it is evaluated:


# %% keras
def keras_input_fn():
    example = ([1.0], [1.0])
    return tf.data.Dataset.from_tensors(example).repeat(1000).batch(10)


def converted(eval_distribute):
    unit = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), unit])
    model.compile(make_sgd(), "mse", metrics=["mse"])
    config = tf.estimator.RunConfig(
        model_dir=tempfile.mkdtemp(),
        train_distribute=strategy,
        eval_distribute=eval_distribute,
    )
    return tf.keras.estimator.model_to_estimator(model, config=config)


def report(name, eval_distribute):
    estimator = converted(eval_distribute)
    estimator.train(keras_input_fn, steps=10)
    found = estimator.evaluate(keras_input_fn, steps=10)
    print(f"{name}  loss {found['loss']:.3f}  mse {found['mse']:.3f}")


report("one device", None)

# %% converted-text [markdown]
# The loss is the mean squared error, so loss and metric are one number, computed in two places.
#
# **Predict.** We train it again, but evaluate it on two replicas, then on four. What happens to the loss, and to the metric?

# %% reveal-converted
print("evaluated on")
four_devices = ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
four = tf.distribute.MirroredStrategy(four_devices, to_one)
report("two       ", strategy)
report("four      ", four)

# %% keras-read [markdown]
# The training is the same, so the metric is 0.189 each time. But on two replicas the loss is half of what it should be, and on four a quarter.
#
# It was divided twice. Keras divides each replica's compiled loss by the number of replicas, so that the parts can be added up. But the Estimator's `evaluate` doesn't add them up: it takes their mean, and the mean of two halves is a half.
# (In training the same parts *are* added up, so the training log of such a program is right.)
#
# Here is what is right in each of these programs, and what is off by the number of replicas. (Not all of these runs are shown here. In all of them, the replicas had equally many examples.)
#
# | on $N$ replicas | the gradients | the training log | the loss of `evaluate` |
# | --- | --- | --- | --- |
# | `LinearRegressor` | right | $N$ times too large | right |
# | `model_fn`, a v1 optimizer's `minimize` | right | right | right |
# | `model_fn`, `tf.gradients` or a Keras optimizer | added up | $N$ times too large | right |
# | `model_to_estimator` | right | right | $N$ times too small |
# | Keras, `compile` and `fit` | right | right | right |
#
# So don't compare the losses of an old log with today's. Compare metrics, and better still, predictions.
#
# ## What about the trained weights?
#
# Here is the best test of a translation: with the old weights, the new model must give the old predictions. And you needn't train again.
# A checkpoint in `model_dir` is a list of arrays, each with a name, and today's TensorFlow still reads it.
# `old` is the program that trained on the noisy examples:

# %% checkpoint
for name, shape in tf.train.list_variables(old.model_dir):
    print(name, shape)

# %% carry-text [markdown]
# `bias_weights` and `feats/weights` are our line. The rest is the step counter and the optimizer's settings, which we leave behind: our SGD has no momentum, so nothing is lost. (Adam would start with empty slots, so its first steps would be different.)
# Put those two arrays into a Keras model, and let both models predict:

# %% carry
names = "linear/linear_model/"
weight = tf.train.load_variable(old.model_dir, names + "feats/weights")
bias = tf.train.load_variable(old.model_dir, names + "bias_weights")

new = keras_line(strategy)
new.set_weights([weight, bias])

points = np.array([[-1.0], [0.0], [1.0]], "float32")
predicted = new.predict(points, verbose=0)


def points_fn():
    return tf.data.Dataset.from_tensors({"feats": points})


old_predicted = []
for each in old.predict(points_fn):
    old_predicted.append(each["predictions"].item())

print("old", np.round(old_predicted, 3))
print("new", np.round(predicted[:, 0], 3))

# %% carry-read [markdown]
# The new model makes the old predictions, without a single step of training.
# A deep model has a longer list, and you have to match each array to its layer. If one is mismatched, a few such predictions will almost surely show it.
#
# And when you leave TensorFlow 2.15? `fit`, the loop, and a checkpoint of the old program gave the same numbers in TensorFlow 2.21, the version of the other lessons.

# %% successors [markdown]
# ## What became of each part
#
# Look up what your program uses. The last column says which lesson has it; a dash means that none does.
#
# **Training**
#
# | Estimator | today | lesson |
# | --- | --- | --- |
# | `RunConfig(train_distribute=...)` | a strategy, and its `scope()` around model, optimizer and metrics | {number:strategies} |
# | `session_config` | `tf.config`, before TensorFlow starts | {number:strategies} |
# | `LinearRegressor`, `DNNClassifier`, … | a Keras model | {number:strategies} |
# | `model_fn` and `mode` | two functions, for training and for evaluation, given to `strategy.run` | {number:custom_training} (training) |
# | `train`, `evaluate`, `predict` | `fit`, `evaluate` and `predict`, or your own loop | {number:strategies}, {number:custom_training} |
# | a different strategy in `eval_distribute` | a checkpoint, restored under a different strategy or under none | {number:own_steps} |
# | hooks | a line in your loop, or a Keras callback | {number:custom_training} (the loop) |
# | `model_to_estimator` | nothing: the Keras model | {number:strategies} |
# | `train_and_evaluate` with `TF_CONFIG` | `MultiWorkerMirroredStrategy`, or `ParameterServerStrategy` where `TF_CONFIG` has `ps` | {number:workers}, {number:parameter_servers} |
# | `TPUEstimator` | `TPUStrategy` | {number:strategies} (a note) |
#
# **Data**
#
# | Estimator | today | lesson |
# | --- | --- | --- |
# | `input_fn` | a `tf.data.Dataset` of global batches | {number:strategies}, {number:custom_training} |
# | `input_fn` with an `input_context` | `distribute_datasets_from_function`, whose batches are per replica, too | {number:workers} |
# | `numeric_column` and other feature columns | `Dataset.map`, or Keras layers such as `Normalization` and `StringLookup` | – |
#
# **Saving**
#
# | Estimator | today | lesson |
# | --- | --- | --- |
# | checkpoints in `model_dir`, in a loop | `tf.train.Checkpoint` and a `CheckpointManager` | {number:own_steps}, {number:failures} |
# | checkpoints in `model_dir`, with `fit` | Keras's `ModelCheckpoint` and `BackupAndRestore` | – |
# | `Scaffold` with an `init_fn`, for weights to start from | `load_variable` and `set_weights`, as above, or a `Checkpoint` | {number:own_steps} |
# | `export_saved_model` | `tf.saved_model.save` with a signature | {number:save_and_serve} |

# %% note-workers [markdown]
# Did the program run on several machines?
#
# Then each machine called `train_and_evaluate`, found its task in `TF_CONFIG`, and called `input_fn` once, not once per replica.
# TensorFlow didn't split the data between the machines. The program did, or shuffled the data differently on each machine.
# Look for a `shard` in the `input_fn`, and keep it, or let today's strategy split the data: {lesson:workers} shows who then gets which example.

# %% [markdown]
# ## Takeaways
#
# - The batch of an `input_fn` is per replica. Multiply it by the number of replicas, and leave `steps` as it is.
# - Before you translate a `model_fn`, find out whether its gradients were averaged or added up. Unless a head calls the optimizer, the first loss in its log tells you.
# - Test the new program by its predictions, not by a log of losses: give it the old weights, and it must predict what the old program did.
