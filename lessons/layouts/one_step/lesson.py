# %% [markdown]
# # One training step on eight devices
#
# Eight devices hold the same model, and 64 film reviews arrive.
# What does each device compute, what must the devices tell each other,
# and how do you know that the result is right?
#
# After this lesson you can
#
# - write a training step with TensorFlow that runs on eight devices, and compare it with one device;
# - compute its gradient from the parts that the devices hold, and say where that goes wrong;
# - deal with the last, smaller batch.
#
# **Time:** 40 minutes.
# **You need to know:** lessons {number:mesh_and_layout} and {number:communication},
# and how gradient descent trains a small network.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.
#
# ## A model trains on eight devices
#
# The first eight cells of code are a whole training program.
# Run them now, down to the curves; after that the lesson takes one step apart.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% load
import numpy as np

from course_lib import collectives, data, live, outcome, show

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

SOURCE = None  # the stand-in, or what COURSE_DATA says; "tfds" is the real set
reviews = data.load_imdb(SOURCE)
train_set = data.tf_idf(reviews).train
train_x, train_y = train_set.features, train_set.labels
print("train_x:", train_x.shape, train_x.dtype)
print("train_y:", train_y.shape, train_y.dtype)

# %% layouts
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")

WEIGHT = dtensor.Layout([dtensor.UNSHARDED, dtensor.UNSHARDED], mesh)
BIAS = WEIGHT.delete([0])
ROWS = dtensor.Layout(["batch", dtensor.UNSHARDED], mesh)
LAYOUTS = {"W1": WEIGHT, "b1": BIAS, "W2": WEIGHT, "b2": BIAS}
LAYOUTS |= {"x": ROWS, "y": ROWS.delete([1])}


# %% distribute
def distribute(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


# %% values
def initial_values(seed, number_type="float32", features=1200, hidden=48, classes=2):
    random = np.random.default_rng(seed)
    W1 = random.normal(0, np.sqrt(2 / features), (features, hidden))
    W2 = random.normal(0, np.sqrt(2 / hidden), (hidden, classes))
    values = {"W1": W1, "b1": np.zeros(hidden), "W2": W2, "b2": np.zeros(classes)}
    return {name: value.astype(number_type) for name, value in values.items()}


def make_variable(value, layout=None):
    return tf.Variable(value) if layout is None else dtensor.DVariable(distribute(value, layout))


# %% model
class MLP(tf.Module):
    def __init__(self, values, layouts=None, normalise=True):
        super().__init__()
        self.normalise = normalise
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        if self.normalise:
            mean, variance = tf.nn.moments(hidden, axes=[0])
            hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return hidden @ self.W2 + self.b2


# %% train-step
def sums(model, x, y):
    logits = model(x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return tf.reduce_sum(losses), tf.reduce_sum(hits)


@tf.function
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        loss, hits = sums(model, x, y)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        variable.assign_sub(learning_rate * gradient)
    return loss / x.shape[0], hits / x.shape[0]


# %% first-run
def train(model, epochs, batch_size=64):
    per_epoch = len(train_y) // batch_size
    for step in range(epochs * per_epoch):
        start = step % per_epoch * batch_size
        x = distribute(train_x[start : start + batch_size], LAYOUTS["x"])
        y = distribute(train_y[start : start + batch_size], LAYOUTS["y"])
        loss, accuracy = map(float, train_step(model, x, y, 1e-2))
        counted = {"step": step + 1, "epoch": step // per_epoch + 1}
        yield {**counted, "loss": loss, "accuracy": accuracy}


values = initial_values(seed=0)
run = train(MLP(values, LAYOUTS), epochs=3)
history = await live(run, steps=len(train_y) // 64 * 3)

# %% [markdown]
# `train` is a generator: it does a step and yields a dictionary;
# `live` takes these and draws the curves.
# They show the mean loss and the accuracy of each batch just before its update, as means of 20 steps.
# In three epochs the loss falls from about 1 to below 0.3.
#
# ## What goes in
#
# Each row of `train_x` is the feature vector of a film review,
# and `train_y` says whether the review is positive (1) or negative (0).
# Unless you choose another source, the reviews are a *stand-in*:
# texts that the course invents, which tell you nothing about real reviews.
# `SOURCE = "tfds"` loads the 50,000 real ones of IMDB.
#
# `TextVectorization` turned each review into 1,200 numbers:
# one for each of the 1,199 most frequent words, and one for all others.
# Such a number, *tf-idf*, is how often the word occurs, weighted by how few reviews contain it.
# Each row is scaled to unit length.
# Here all this was done once, before the training.
# In production it belongs in the input pipeline and in the served model.
#
# The first layer computes for a row $x$ the 48 hidden units
#
# $$h_j = \mathrm{relu}\Big(\sum_i x_i W_{ij} + b_j\Big)$$
#
# *Batch normalisation* follows: of each hidden unit it subtracts the mean over the batch,
# and divides by the standard deviation, so that all units vary alike.
# The second layer makes two logits of them, one for each label.
#
# $x$ and $W$ share the letter $i$, over which the product sums.
# The product and the bias share $j$, so the bias is laid out like the last axis of the weight.
# `WEIGHT.delete([0])` is the weight's layout without its first entry.
# Likewise the labels have `ROWS` without the second entry.
#
# In `LAYOUTS` the batch is split, and the variables are whole on every device:
# this choice of layouts is *data parallelism*.
# `distribute` is `cut` and `dtensor.pack` of {lesson:mesh_and_layout} in one function:
# it cuts the array on the host and sends each device its part alone.
# `batch_at` distributes the batch that begins at a given row.


# %% batch
def batch_at(start, rows=64, number_type="float32"):
    x = train_x[start : start + rows].astype(number_type)
    y = train_y[start : start + rows]
    return distribute(x, LAYOUTS["x"]), distribute(y, LAYOUTS["y"])


x, y = batch_at(0)
probe = MLP(values, LAYOUTS)
show(x)

# %% parts [markdown]
# Each device has 8 rows of its own and all 57,746 numbers of the model `probe`, which has not been trained.
#
# TensorFlow also has `dtensor.DTensorDataset`, which wraps a `tf.data` dataset and yields packed batches.
# But its iterator cannot be saved in a checkpoint (tried with TensorFlow 2.21).
# So the course packs arrays itself; you also see what is sent where.
#
# **Exercise 1.** Now the inputs are images, again data parallel on `mesh`.
# A batch has the shape (64, 28, 28), and its labels (64,).
# The step computes a loss for each image, (64,), the gradient of a first weight, (784, 100),
# and the mean loss, a single number.
# Give each its `dtensor.Layout`.

# %% exercise-layouts
image_layouts = {}
# solution begin
image_layouts["images"] = dtensor.Layout(["batch", dtensor.UNSHARDED, dtensor.UNSHARDED], mesh)
image_layouts["labels"] = dtensor.Layout(["batch"], mesh)
image_layouts["losses"] = dtensor.Layout(["batch"], mesh)
image_layouts["gradient"] = dtensor.Layout([dtensor.UNSHARDED, dtensor.UNSHARDED], mesh)
image_layouts["mean_loss"] = dtensor.Layout([], mesh)
# solution end

# %%
check("one_step-layouts", image_layouts)

# %% step [markdown]
# ## The step names no device
#
# Look at `MLP` and `train_step` again: but for the layouts, they are what you would write for one device.
# The gradient is that of the summed loss.
# Without batch normalisation such gradients of parts of a batch can simply be added.
# A learning rate of 0.01 on the sum of 64 losses is 0.64 on their mean.
#
# All gradients are there before the first variable changes:
# a variable that is written and then read in one `tf.function` can give its old value
# ({lesson:mesh_and_layout}).
# Use no optimizer of Keras 3 here ({lesson:from_scratch} writes its own).
# Many, such as Adam, RMSprop, Adagrad and SGD with momentum, read what they have just written
# and train wrongly, in silence; in all that we tried, even plain SGD, the step counter goes wrong.
#
# The layouts of the batch and of the variables decide what each device computes.
# Operation by operation, TensorFlow finds the layout of the result from its arguments
# and from where it is used, and adds the communication that it needs.
#
# `tf.function` compiles the step.
# `train_step.python_function` is the same step uncompiled, as TensorFlow runs it operation by operation.

# %% predict-eager [markdown]
# A training step runs without `tf.function`, operation by operation, on eight devices.
# Batch and variables are DTensors.
# `tf.reduce_sum(losses)` adds up the losses of the 64 rows; on the way back through it
# TensorFlow makes 64 ones, the derivatives of the sum by each loss,
# and multiplies them with the derivatives of each loss by the logits.
# What happens?
#
# - [ ] `1.08` the step returns the same loss as with `tf.function`
#   On one device that is so.
#   Here the 64 ones are an ordinary array, and the derivatives of the losses are a DTensor.
# - [ ] `0.13` the step returns the loss of the 8 rows of one device, divided by 64
#   Sums and products of a DTensor mean the whole tensor, also without `tf.function`.
#   The way forward works; the way back does not.
# - [x] `UnimplementedError` an error
#   The 64 ones are an ordinary array, and an operation that runs by itself takes no array of fractions
#   beside a DTensor.

# %% reveal-eager
reveal("one_step-eager", outcome(train_step.python_function, probe, x, y, 1e-2))

# %% [markdown]
# Operation by operation TensorFlow makes the 64 ones as an ordinary array,
# and cannot multiply it with a DTensor ({lesson:mesh_and_layout}).
# In a `tf.function` DTensor sees the whole computation, and gives the ones a layout too.
# So put a DTensor training step in a `tf.function`.
#
# Number types must agree as well:
# the model is float32, and fractions in NumPy are float64 unless told otherwise.
# In a `tf.function` that is a `TypeError`.
# Outside one, an operation on two number types can end the process,
# in a notebook the kernel ({lesson:mesh_and_layout}).
# So convert arrays before you distribute them, and labels too:
# `tf.argmax(logits, axis=1) == y` needs int64.
#
# ## One device beside eight
#
# A distributed step can be wrong in silence.
# So run the same steps on one device and compare:
# without layouts, `MLP` makes ordinary variables, and the same `train_step` is an ordinary step.
#
# `differences` takes twenty steps on both, and returns the model on eight devices
# and how far the losses are apart, step by step.
# The cells call it in float32 and in float64,
# print the largest difference of the first five steps in float32, and of all twenty in float64,
# and draw each step.


# %% both
def differences(number_type, steps=20):
    start_values = initial_values(0, number_type)
    eight, one = MLP(start_values, LAYOUTS), MLP(start_values)
    found = []
    for start in range(0, steps * 64, 64):
        on_eight, _ = train_step(eight, *batch_at(start, number_type=number_type), 1e-2)
        x_whole = tf.constant(train_x[start : start + 64].astype(number_type))
        on_one, _ = train_step(one, x_whole, tf.constant(train_y[start : start + 64]), 1e-2)
        found.append(abs(float(on_eight) - float(on_one)))
    return eight, found


in_float32 = differences("float32")[1]
eight, in_float64 = differences("float64")
print(f"float32, steps 1-5:  {max(in_float32[:5]):.5f}")
print(f"float64, steps 1-20: {max(in_float64):.8f}")

# %% rounding
from lessons.layouts.one_step.picture import differences_picture

differences_picture({"float32": in_float32, "float64": in_float64})

# %% rounding-text [markdown]
# Equal losses stand at 1e-17.
# Sums in another order round differently, and training magnifies that from step to step, though not in each.
#
# In float32 the losses agree to five digits at first;
# within 20 steps they can come to be thousandths, even hundredths, apart, with nothing wrong;
# how far depends on the machine.
# In float64 the differences start so low that all 20 steps agree to eight digits.
# A mistake in the step is no rounding: in float64 it does not become smaller.
# So compare the first steps, or in float64.

# %% predict-copies [markdown]
# Eight devices began with equal copies of a model and trained it for 20 steps,
# data parallel and in float64.
# In each step a device got 8 reviews that no other device got.
# How far apart are the eight copies of the first layer's weight `W1` now?
#
# - [x] `equal` equal to the last bit
#   They began equal, and all subtracted the same numbers.
# - [ ] `rounding` apart by rounding, about 1e-16
#   Rounding would part them if each device added up the gradient in an order of its own.
#   All get the same total.
# - [ ] `apart` far more apart than rounding explains
#   So it would be if each device used the gradient of its own reviews only.

# %% reveal-copies
copies = [copy.numpy() for copy in dtensor.unpack(eight.W1.read_value())]
apart = np.ptp(copies, axis=0).max()
reveal("one_step-copies", "equal" if apart == 0 else "rounding" if apart < 1e-9 else "apart")

# %% [markdown]
# In each step a device gets 8 rows, and still it subtracts the gradient of all 64.
# An all-reduce in a ring finishes each chunk of it once and copies it, so all subtract the same bits.
#
# ## From partial sums to an all-reduce
#
# Take the DTensors apart and do by hand what each device does.
# Without batch normalisation the loss of a row depends on this row alone.
# So each device can take its copy of the variables and its 8 rows, as ordinary tensors,
# and compute their gradient alone.
# `gradients` computes it for one model and batch; `partial_gradients` makes a model on each device
# from its components, and calls `gradients` there.
# The cell after it prints on which devices the gradients of `b2` are.


# %% partial-gradients
@tf.function
def gradients(model, x, y):
    with tf.GradientTape() as tape:
        loss, _hits = sums(model, x, y)
    return tape.gradient(loss, {name: getattr(model, name) for name in values})


def partial_gradients(model):
    held = {name: dtensor.unpack(getattr(model, name).read_value()) for name in values}
    partial = []
    for device_id, part in enumerate(zip(dtensor.unpack(x), dtensor.unpack(y))):
        with tf.device(f"CPU:{device_id}"):
            own_values = {name: held[name][device_id] for name in values}
            partial.append(gradients(MLP(own_values, normalise=model.normalise), *part))
    return partial


# %% on-devices
plain = MLP(values, LAYOUTS, normalise=False)
partial = partial_gradients(plain)
print("b2:", [each["b2"].device[-5:] for each in partial])

# %% stack-text [markdown]
# What a device adds to a sum is its *partial sum*.
# Now the eight gradients must be added, and every device needs the total.
# `stacked` makes one DTensor of them: a new first axis, split over `batch`, has one entry on each device.
# `all_reduced` sums over that axis, and this sum is the all-reduce.
#
# The picture shows it for the gradient of `b2`, two numbers: the partial sums, their total,
# and what each device receives, all rounded to two digits, which need not quite add up.


# %% all-reduce
from lessons.layouts.one_step.reduction import Reduction


def stacked(partial, name):
    components = [tf.expand_dims(each[name], 0) for each in partial]
    spec = ["batch"] + [dtensor.UNSHARDED] * partial[0][name].shape.rank
    return dtensor.pack(components, dtensor.Layout(spec, mesh))


def all_reduced(stack):
    return tf.reduce_sum(stack, axis=0)


print(*collectives(all_reduced, stacked(partial, "b2")), sep="\n")
received = dtensor.unpack(all_reduced(stacked(partial, "b2")))
Reduction(show(mesh), "batch", [each["b2"] for each in partial], received, digits=2)


# %% compared-text [markdown]
# `relative_differences` compares these sums, for all four variables, with the gradients
# that DTensor computes for the whole batch at once.
# It returns the length of each difference, relative to that of the whole batch's gradient
# (the length of a matrix is that of the vector of all its elements).
# Without batch normalisation only rounding should be left.


# %% compared
def relative_differences(model):
    partial, whole = partial_gradients(model), gradients(model, x, y)
    found = {}
    for name in values:
        ours = dtensor.unpack(all_reduced(stacked(partial, name)))[0].numpy()
        theirs = dtensor.unpack(whole[name])[0].numpy()
        found[name] = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
    return found


print({name: f"{difference:.5f}" for name, difference in relative_differences(plain).items()})

# %% predict-coupled [markdown]
# Now the model has batch normalisation between its first layer, `W1` and `b1`, and its second, `W2` and `b2`.
# Again each device computes the four gradients from its own 8 rows alone, and the eight of each are added.
# Which of the four sums still equal the gradients that DTensor gives for the whole batch?
#
# - [ ] `b2` that of `b2` alone, which is only added
#   The gradient of `b2` adds up the derivatives of the losses by the logits,
#   and these change with the moments.
# - [ ] `last` those of `W2` and `b2`, which come after the normalisation
#   What goes into the second layer has changed, and so have the logits:
#   their gradients are wrong as well.
# - [ ] `first` those of `W1` and `b1`, which come before the normalisation
#   Their gradients come back through the normalisation, which used other moments.
# - [x] `none` none
#   With other moments each row gets other logits, and every gradient follows from the logits.

# %% reveal-coupled
normalised = relative_differences(MLP(values, LAYOUTS))
equal = [name for name in values if normalised[name] < 1e-3]
reveal("one_step-coupled", {0: "none", 4: "all"}.get(len(equal), equal))

# %% coupled
found = relative_differences(MLP(values, LAYOUTS))
print({name: f"{difference:.2f}" for name, difference in found.items()})

# %% coupled-why [markdown]
# The moments couple the rows: the mean and the variance of each hidden unit run over all 64.
# With the moments of 8 rows the sums are off by 0.19 (`b2`) to 0.86 (`b1`), relative to the right gradient.
# Keras's `BatchNormalization` under `MirroredStrategy` computes just that, from each device's own rows,
# unless it is built with `synchronized=True`.
#
# To get the gradient of the whole batch, the devices must all-reduce the moments *before*
# they can compute a loss.
# `train_step` does not say so; TensorFlow found it from the layouts.
# `collectives` compiles the step anew, runs it once, puts the variables back, and lists what ran;
# with `combine=True` all-reduces of one group, number type and kind (sum or mean)
# that do not depend on each other are combined, as in training.

# %% collectives
step_collectives = collectives(train_step, probe, x, y, 1e-2)
print(*step_collectives, sep="\n")
payload_bytes = sum(each.payload_bytes for each in step_collectives)
print(f"all-reduces: {len(step_collectives)}, {payload_bytes:,} bytes")
print("combine=True:", len(collectives(train_step, probe, x, y, 1e-2, combine=True)))

# %% collectives-text [markdown]
# | pass | payload in bytes | what is added |
# | --- | --- | --- |
# | forward | 192, 192 | for the mean and the variance, 48 float32 numbers each |
# | forward | 4, 4 | the losses; the hits |
# | backward | 8, 384, 230,400, 192 | the gradients of `b2`, `W2`, `W1` and `b1` |
# | backward | 192, 192 | the gradients of a scale and a shift, which TensorFlow makes of mean and variance |
#
# With `combine=True` these ten become four.
#
# Batch normalisation adds four of the ten, two in each direction:
# the list for `plain`, the model without it, lacks them.

# %% predict-bytes [markdown]
# Eight devices train a model with 48 hidden units and batch normalisation,
# data parallel, on batches of 64 rows.
# The payloads of a step's all-reduces, before TensorFlow combines any, are 231,760 bytes in all.
# How many bytes are they with a batch of 1,024 rows?
#
# - [x] `same` just as many
#   A gradient has the shape of its variable, and the moments are 48 numbers each, however many rows there are.
# - [ ] `more` 16 times as many
#   Rows stay where they are; sums over rows travel, and their shapes do not depend on the batch.
# - [ ] `fewer` a sixteenth
#   That is what each row then costs.
#   The step sends as much as before.

# %% reveal-bytes
bigger = collectives(train_step, probe, *batch_at(0, rows=1024), 1e-2)
before, after = (sum(each.payload_bytes for each in found) for found in (step_collectives, bigger))
reveal("one_step-bytes", {1: "same", 16: "more"}.get(after / before, "fewer"))

# %% [markdown]
# In data parallelism what a step sends does not depend on the batch size,
# since the number of rows changes no shape of what is added:
# a larger batch means more computing for the same communication.
#
# ## The last, smaller batch
#
# The number of reviews is rarely a multiple of the batch size.
# Say 20 are left: they cannot be split evenly over eight devices, and `tf.split` raises an error.
# Training may drop them if the reviews are shuffled for each epoch: then others are left out each time.
# (Our `train` does not shuffle, and leaves out the same 36 each time.)
#
# In evaluation each review must count once.
# Then pad the batch with rows of zeros, and give each row a weight: 1 for a review, 0 for padding.
# The cell pads 20 rows to 64, and finds the mean loss in three ways.
# The last line is right: `alone` has the losses of the 20 rows without padding, on one device.


# %% padding
@tf.function
def row_losses(model, x, y):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))


padded_x = np.pad(train_x[:20], ((0, 44), (0, 0)))
padded_y, weights = np.pad(train_y[:20], (0, 44)), np.repeat([1, 0], [20, 44])
packed = distribute(padded_x, LAYOUTS["x"]), distribute(padded_y, LAYOUTS["y"])
losses = np.concatenate(dtensor.unpack(row_losses(probe, *packed)))
alone = row_losses(MLP(values), tf.constant(train_x[:20]), tf.constant(train_y[:20]))
print(f"64 losses / 64: {losses.mean():.2f}")
print(f"20 losses / 64: {weights @ losses / 64:.2f}")
print(f"20 losses / 20: {weights @ losses / 20:.2f}")
print(f"alone:          {np.mean(alone):.2f}")

# %% moments-text [markdown]
# The first mean counts the padding, the second divides by 64, and even the third is 1.15, not 1.01.
# The 44 rows of zeros took part in the moments, and so they changed the losses of the 20 reviews.
# The weights must go into the moments too.
#
# **Exercise 2.** Write `moments_of_reviews(hidden, weights)` for eight devices:
# the mean and the variance over the rows of weight 1, each of the shape (units,).
# `hidden` is a DTensor of the shape (rows, units) and `weights` one of (rows, 1),
# the rows of both split over `batch`; padding can stand anywhere.
# The check runs your function in a `tf.function`, on real DTensors.


# %% exercise-moments
def moments_of_reviews(hidden, weights):
    # solution begin
    count = tf.reduce_sum(weights)
    mean = tf.reduce_sum(weights * hidden, axis=0) / count
    variance = tf.reduce_sum(weights * (hidden - mean) ** 2, axis=0) / count
    return mean, variance
    # solution end


# %%
check("one_step-moments", moments_of_reviews)

# %% weighted-text [markdown]
# With these moments the 20 losses are those of the 20 reviews alone.
# (The evaluation of {lesson:a_run} needs no weights in them:
# it uses moving moments, collected in training, which do not depend on the batch.)
#
# So training need not drop the last batch: `weighted_step` weights the losses and the moments,
# which `tf.nn.weighted_moments` computes as in exercise 2.
# Always pad to the full batch, here 64 rows: then one compiled step serves all batches,
# on any mesh whose dimension `batch` divides the full batch.
#
# After it, a step with the 20 reviews runs padded on eight devices (`weighted_step`),
# and without padding on one (`train_step`).


# %% weighted-step
@tf.function
def weighted_step(model, x, y, weights, learning_rate):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(x @ model.W1 + model.b1)
        mean, variance = tf.nn.weighted_moments(hidden, [0], weights)
        hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, hidden @ model.W2 + model.b2)
        loss = tf.reduce_sum(tf.squeeze(weights, 1) * losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        variable.assign_sub(learning_rate * gradient)
    return loss / tf.reduce_sum(weights)


# %% weighted-run
eight, one = MLP(values, LAYOUTS), MLP(values)
row_weights = distribute(weights.reshape(64, 1).astype("float32"), LAYOUTS["x"])
on_eight = weighted_step(eight, *packed, row_weights, 1e-2)
on_one, _ = train_step(one, tf.constant(train_x[:20]), tf.constant(train_y[:20]), 1e-2)
difference = dtensor.unpack(eight.W1.read_value())[0] - one.W1
print(f"on_eight: {float(on_eight):.2f}, on_one: {float(on_one):.2f}")
print(f"W1, largest difference: {np.abs(difference).max():.5f}")

# %% takeaways [markdown]
# The mean losses and the updated `W1` agree to the digits shown.
#
# ## The plain program
#
# [`one_step.py`](../plain/one_step.py) is this lesson without the course's library:
# it makes its eight virtual devices and its data itself,
# and has `distribute`, `MLP` and `train_step` as in this lesson.
# It does five steps on eight devices and on one, in float32 and in float64,
# and ends with an error if the losses differ by more than rounding.
#
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the variables.
#   The step, in a `tf.function`, names no device; TensorFlow adds the all-reduces.
# - Gradients that devices compute alone may be added only where no row sees one of another device.
#   Batch normalisation needs the moments of all rows first.
# - Compare with one device: the first steps, or in float64, where rounding cannot hide a mistake.
#
# {Lesson:a_run} makes a run of these steps: one that you can watch, stop and resume.

# %% score
score("one_step")
