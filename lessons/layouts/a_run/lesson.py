# %% [markdown]
# # What does a training run need to survive?
#
# Meta trained Llama 3 on 16,384 GPUs. In 54 days of this training, it counted
# [419 unexpected interruptions](https://arxiv.org/abs/2407.21783): one every three hours.
# If each one had sent the run back to step 1, it would never have finished.
#
# You may have a single machine, but it, too, will be rebooted in the middle of a run. Then one of three things happens.
# You lose a few minutes. You lose everything.
# Or the run resumes with something missing, and nobody notices.
#
# So *what does a training run need to survive?*
# At the end of this lesson you kill a real training process while it works, and start it again.
# Will it end with the same weights as a process that nobody killed? We will look at every bit.
#
# **After this lesson you can**
#
# - watch a run on reviews that it does not train on, and give it a learning-rate schedule;
# - say what belongs to the state of a run, and see what happens if a part of it is lost;
# - write a program that you can kill at any moment, even while it saves.
#
# **Time:** 30 minutes.
# **You need to know:** a training step on eight devices and its layouts ({lesson:one_step}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% [markdown]
# ## A run that you can watch
#
# Before we kill a run, we need one worth killing: you can watch it, and you can trust its loss.
# So we begin with reviews that are held out, and with a learning rate that falls.
#
# We train the network of {lesson:whole_game} on its film reviews.
# But this time 1,000 of the 8,100 reviews are **held out**: the network never trains on them.
# They will tell us how good it is on reviews that it has not seen.
# This is a *validation split*, and the 1,000 reviews are also called *validation data*.
#
# The layouts are those of data parallelism: eight devices share the rows of a batch, and each holds the whole model.

# %% data
import numpy as np

from course_lib import data, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features[:7100]
train_y = reviews.train.labels[:7100]
held_out_x = reviews.train.features[7100:]
held_out_y = reviews.train.labels[7100:]

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}

# %% forward-text [markdown]
# The next three cells come from {lesson:whole_game}. They are folded; just run them.
# Only the learning rate has changed. It was a constant there,
# and here it is the last argument of `adam` and of `train_step`, so that each step can have its own.


# %% forward tags=["known"]
def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% step tags=["known"]
@tf.function
def train_step(model, x, y, step, learning_rate):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(
            weight, mean, square, gradient, step, learning_rate
        )

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% model tags=["known"]
def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts[name]
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


# %% rows-text [markdown]
# Which reviews does a step get?
# An epoch has 110 batches of 64, and each epoch shuffles the reviews anew.
# Look at what this function needs to know: the step number, and nothing else. That will pay off later.


# %% rows
STEPS_PER_EPOCH = len(train_y) // 64


def rows_of(step):
    epoch = step // STEPS_PER_EPOCH
    rng = np.random.default_rng([0, epoch])
    order = rng.permutation(len(train_y))
    first = 64 * (step % STEPS_PER_EPOCH)
    return order[first : first + 64]


# %% evaluate-text [markdown]
# And how good is the model on the held-out reviews?
# All eight devices work on this, too, with 125 reviews each:


# %% evaluate
def evaluate(model, layouts):
    x = place(held_out_x, layouts["x"])
    y = place(held_out_y, layouts["y"])
    logits = logits_of(model.weights, x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        y, logits
    )
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(losses)), float(tf.reduce_mean(hits))


# %% train-text [markdown]
# Now the loop. `step` is an ordinary `tf.Variable` that counts the finished steps, so it begins at 0.
# You give the loop two functions: `rate_of` chooses the learning rate of a step, and `order` chooses its reviews.
# After each step the loop yields a record.
# At the end of each epoch, and at the end of the run, it also evaluates the model and yields a second record, with the held-out loss. (The key is `test_loss`, because that is what the live plot expects.)


# %% train
def train(model, layouts, step, last_step, rate_of, order=rows_of):
    while step < last_step:
        done = int(step)
        rows = order(done)
        x = place(train_x[rows], layouts["x"])
        y = place(train_y[rows], layouts["y"])
        step_number = np.float32(done + 1)
        rate = rate_of(done, last_step)
        loss, accuracy = train_step(model, x, y, step_number, rate)
        step.assign_add(1)
        epoch = 1 + done // STEPS_PER_EPOCH
        yield {
            "step": done + 1,
            "epoch": epoch,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }
        ends_epoch = (done + 1) % STEPS_PER_EPOCH == 0
        if ends_epoch or done + 1 == last_step:
            loss, accuracy = evaluate(model, layouts)
            yield {
                "step": done + 1,
                "epoch": epoch,
                "test_loss": loss,
                "test_accuracy": accuracy,
            }


# %% constant-text [markdown]
# First we train for five epochs at a constant rate:

# %% constant
from course_lib import live


def constant(_step, _last_step):
    return np.float32(3e-3)


constant_model = Model(layouts)
step = tf.Variable(0, dtype=tf.int64)
constant_run = await live(
    train(constant_model, layouts, step, 550, constant), steps=550
)

# %% constant-read [markdown]
# The loss on the batches falls and falls.
# The held-out loss doesn't follow it. It is lowest after three epochs, then it rises a little, and falls again.
#
# The two losses part because the network begins to learn its 7,100 reviews by heart: it *overfits*.
# And at this learning rate, the held-out loss doesn't settle.
# So what would you report as the loss of this model? That depends on when you happened to stop.
#
# ## A learning-rate schedule
#
# A held-out loss settles more easily if the steps get smaller and smaller.
# A function that gives each step its learning rate is a **learning-rate schedule**.
# Ours is a *linear decay*. It falls in a straight line, from 0.003 at the first step to almost zero at the last:


# %% falling
def falling(step, last_step):
    return np.float32(3e-3 * (1 - step / last_step))


falling_model = Model(layouts)
falling_step = tf.Variable(0, dtype=tf.int64)
falling_run = await live(
    train(falling_model, layouts, falling_step, 550, falling), steps=550
)

# %% compare-text [markdown]
# Here are the held-out losses of both runs, after each epoch:


# %% compare
from course_lib import about
from lessons.layouts.a_run.picture import held_out_curves


def losses_of(records, kind):
    losses = {}
    for record in records:
        if kind in record:
            losses[record["step"]] = record[kind]
    return losses


of_constant = losses_of(constant_run.epochs, "test_loss")
of_falling = losses_of(falling_run.epochs, "test_loss")
print("step  constant  falling")
for number in of_constant:
    left = about(of_constant[number], 0.28, 0.38, digits=3)
    right = about(of_falling[number], 0.28, 0.38, digits=3)
    print(f"{number:4}  {left:>8}  {right:>7}")

held_out_curves(of_constant, of_falling)

# %% compare-read [markdown]
# With the schedule, the held-out loss settles at 0.30, and stays there for the last three epochs,
# because the steps get smaller and smaller, and the weights move less and less.
# Whichever of these three epochs you look at, you find 0.30: *that* is a loss to report.
# Report the length of the schedule, too: a longer or shorter one would settle elsewhere.
#
# As always, we compare with one device. It takes the first 100 steps of the same run:

# %% one-device
no_layouts = dict.fromkeys(layouts)  # ordinary tensors
one_model = Model(no_layouts)
step = tf.Variable(0, dtype=tf.int64)
eight_losses = losses_of(falling_run.steps, "loss")

differences = []
# The rate falls as in 550 steps, but we stop after 100
for record in train(one_model, no_layouts, step, 550, falling):
    eight_loss = eight_losses[record["step"]]
    differences.append(abs(record["loss"] - eight_loss))
    if record["step"] == 100:
        break
print("difference", about(max(differences), 0, 1e-5))

# %% one-device-read [markdown]
# The 100 losses agree, up to rounding.

# %% note-best [markdown]
# Can I trust the lowest held-out loss?
#
# Not to the last digit. With 1,000 reviews, the standard error of this loss is about 0.02.
# But all the losses in the table were measured on the same reviews, so the differences between them are more reliable than that.
# On other reviews, all of them could be higher or lower by a hundredth or two.
# And among many values, the lowest is always a little too good.
# If you choose the best epoch or the best schedule by the held-out reviews, measure the model that you chose on the test data, once.
#
# A schedule doesn't end overfitting. Stopping when the held-out loss no longer falls (*early stopping*) does limit it.
#
# `data.load_imdb()` gives us a stand-in, whose reviews are made up. The page *Measured results* has both schedules on the real reviews of IMDB.

# %% note-float32 [markdown]
# Why is the learning rate a float32 of NumPy, and not a Python number?
#
# TensorFlow turns `train_step` into a graph once, and uses that graph for every NumPy number that you pass in.
# Making the graph is called *tracing*. A Python number becomes a constant in the graph, so each new number needs a new graph:
# 550 learning rates would take 550 graphs. The loss would be right, but the run would be terribly slow.
# `train_step.experimental_get_tracing_count()` says how many there are.

# %% warm-up-text [markdown]
# **Exercise 1.** Many schedules begin with a **warm-up**.
# Write `warm_up(step, last_step)`, where `step` counts from 0.
# In the first 50 steps, the rate rises in a straight line: 1/50 of 0.003 for step 0, then 2/50, up to the full 0.003 for step 49.
# From step 50 on it falls in a straight line: at step 50 the rate is still 0.003, and at `last_step` it would be 0.
# Return a `np.float32`, as `falling` does.


# %% exercise-warm-up
def warm_up(step, last_step):
    # solution begin
    if step < 50:
        return np.float32(3e-3 * (step + 1) / 50)
    left = (last_step - step) / (last_step - 50)
    return np.float32(3e-3 * left)
    # solution end


# %%
check("a_run-warm-up", warm_up)

# %% state-heading [markdown]
# ## What is the state of a run?
#
# Now suppose that the process is gone, and with it everything that it had in memory.
# What has to be on disk so that the next step comes out exactly as it would have?
#
# The step itself tells us. This is what goes into it, and what comes out:
#
# ```
# model ─────────────────────────────┐
# step ──┬───────────────────────────┼─► train_step ──► model, step + 1
#        ├─ rows_of ─► x, y ─────────┤
#        └─ rate_of ─► learning_rate ┘
# ```
#
# The next batch follows from the step number. The learning rate follows from the step number and `last_step`.
# So two things have to be on disk: `model` and `step`.
# `last_step` isn't one of them: you pass the same value each time you start the program.
# `step` is a single number. `model` needs a closer look.

# %% predict-size [markdown]
# A model has weights of 1 GB, and is trained with Adam.
# You save a checkpoint from which the training can go on. How large is it, in GB?
#
# - [ ] `1`
#   That is enough to use the model. To go on training, you also need what the optimizer keeps.
# - [ ] `2`
#   Adam has two averages for each weight, not one.
# - [x] `3`
#   The weights, and two averages that each have as many numbers as the weights. The step number takes only 8 bytes.

# %% reveal-size
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
checkpoint = tf.train.Checkpoint(
    model=falling_model, step=falling_step
)
checkpoint.write(str(folder / "complete"))

size = 0
for file in folder.glob("complete.data*"):
    size += file.stat().st_size
weight_bytes = 4 * (1200 * 48 + 48 + 48 * 2 + 2)
reveal("a_run-size", round(size / weight_bytes))

# %% slots-text [markdown]
# What an optimizer keeps for each weight is called its **slots**, or *slot variables*.
# Plain gradient descent has none. Momentum has one for each weight, and Adam has two: its running averages.
# Our model holds them in `means` and `squares`. What do they look like?

# %% slots
for name in values:
    mean = falling_model.means[name]
    square = falling_model.squares[name]
    same = mean.layout == square.layout == layouts[name]
    print(name, mean.shape, square.shape, "same layout:", same)

# %% slots-read [markdown]
# Each slot has the shape of its weight. `Model` also gave it the same layout,
# so if a weight is split over devices, its slots are split along with it.
# With Adam, two thirds of the state is slots.
#
# ## Save it
#
# Now we know what to save: the step, and the model with its weights and slots.
# This is exactly what we hand to `tf.train.Checkpoint`.
# A `Checkpoint` has two pairs of methods. `write`, which we used above, and `read` take a name that you choose.
# `save` numbers the checkpoints for you, and `restore` is its counterpart. Our loop uses the second pair.
# `tf.train.CheckpointManager` writes them into a folder, as `ckpt-1`, `ckpt-2` and so on, and keeps the last three.
# It also keeps a small file there, called `checkpoint`, which names the newest.
# The function `newest` asks this file where to resume. We give it a function of its own because we will have to rewrite it:


# %% newest-named
def newest(folder):
    state = tf.train.get_checkpoint_state(folder)
    if state is None:
        return None  # nothing was saved yet
    return state.model_checkpoint_path


# %% save-text [markdown]
# Now we restore before the loop that we have, and save inside it, after each evaluation:
#
# ```python
# for record in train(model, layouts, step, last_step, falling):
#     yield record
#     if "test_loss" in record:
#         manager.save()
# ```
#
# We also have to save when you press **Stop**. It makes `live` close our generator:
# Python raises `GeneratorExit` inside it, at the `yield` where it is waiting.
# At that point a step is complete, so we catch the exception, save, and raise it again:


# %% save
def train_and_save(model, layouts, last_step, folder):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(
        checkpoint, folder, max_to_keep=3
    )
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()
    try:
        for record in train(
            model, layouts, step, last_step, falling
        ):
            yield record
            if "test_loss" in record:
                manager.save()
    except GeneratorExit:
        # Stop closes the generator at a yield, between two steps
        manager.save()
        raise


# %% stoppable-text [markdown]
# Try it. Run the next two cells, and press **Stop** before the second one ends.
# Then run the cell `history = await live(...)` again: a new model takes over, and the curve goes on.

# %% stop-folder
stop_folder = tempfile.mkdtemp()
history = None

# %% stoppable
run = train_and_save(Model(layouts), layouts, 180, stop_folder)
history = await live(run, history, steps=180)

# %% exactly-text [markdown]
# After a Stop, the curve shows no seam. But would you see one?
# Let's be strict. We leave one run of 180 steps alone, close another after step 150, as Stop would do, and resume it:
#
# ```
# alone     1 ────────────────── 180
# closed    1 ─────────── 150 S
# resumed                 151 ── 180
# ```

# %% closed
alone_folder = tempfile.mkdtemp()
alone_model = Model(layouts)
alone = list(
    train_and_save(alone_model, layouts, 180, alone_folder)
)

closed_folder = tempfile.mkdtemp()
run = train_and_save(Model(layouts), layouts, 180, closed_folder)
for record in run:
    if record["step"] == 150:
        break
run.close()

# %% resumed-text [markdown]
# Now a new model resumes from what the closed run has saved. How far is it from the model that was left alone?


# %% resumed
import shutil


def largest_difference(model, other):
    differences = []
    for name in values:
        ours = model.weights[name].numpy()
        theirs = other.weights[name].numpy()
        differences.append(np.abs(ours - theirs).max())
    return max(differences)


# In a copy, so that the closed run stays as it is
resumed_folder = tempfile.mkdtemp()
shutil.copytree(closed_folder, resumed_folder, dirs_exist_ok=True)

resumed_model = Model(layouts)
run = train_and_save(resumed_model, layouts, 180, resumed_folder)
resumed = list(run)

print("goes on with step", resumed[0]["step"])
print("difference", largest_difference(resumed_model, alone_model))

# %% resumed-read [markdown]
# The difference is zero. Between one device and eight there was rounding. Here there is none:
# the same machine did the same computations in the same order, from the same numbers.
#
# ## Leave something out
#
# How much of this did we need? Let's leave out a part of the state, and see whether we get an error.
#
# Suppose somebody saved only the weights, and now you want to continue training from them.
# A checkpoint finds a variable by its path, such as `model.weights["W1"]`,
# so a module with the weights alone must have an attribute `weights`, too:

# %% missing tags=["error"]
from course_lib import last_line


def only_weights_of(model):
    part = tf.Module()
    part.weights = model.weights
    return part


checkpoint = tf.train.Checkpoint(model=only_weights_of(resumed_model))
path = checkpoint.write(str(folder / "weights-only"))

status = tf.train.Checkpoint(model=Model(layouts)).read(path)
try:
    status.assert_existing_objects_matched()
except AssertionError as error:
    print(last_line(error).split(". ")[0])

# %% missing-read [markdown]
# The eight variables without a value are the slots.
# `train_and_save` makes this check right after it restores, and here you see why.
# Without this check, the slots would stay at zero and the run would carry on, with no warning at all.
#
# But the assertion has a blind spot. It checks the variables that you gave to the `Checkpoint`, and it can't know what you forgot.
# What if you never gave it the slots?

# %% slots-lost
closed_at_150 = newest(closed_folder)
without_slots = Model(layouts)
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(
    model=only_weights_of(without_slots), step=step
)
# Leave the slots in the file unread, on purpose
checkpoint.restore(closed_at_150).expect_partial()

# Steps 151 to 180
slots_lost = list(train(without_slots, layouts, step, 180, falling))

# %% predict-slots [markdown]
# A run was saved after step 150. A new model gets back its weights and its step, and sees the same batches as before.
# But Adam's slots begin at zero. Now steps 151 to 180 are run.
# How many of these 30 losses are the same, to the last bit, as those of a run that nobody stopped?
#
# - [ ] `30` all 30
#   They would be, if the slots had no influence on the weights. But Adam multiplies by one of them and divides by the other.
# - [x] `1` the first one
#   A step computes its loss from the weights and the batch, and both are right. Only then does it update the weights, with the wrong slots.
# - [ ] `0` none
#   The loss of the first step comes before its update, from the right weights and the right batch.

# %% reveal-slots
right_losses = losses_of(alone, "loss")
lost_losses = losses_of(slots_lost, "loss")
same = 0
for number in lost_losses:
    if lost_losses[number] == right_losses[number]:
        same += 1
reveal("a_run-slots", same)

# %% slots-lost-text [markdown]
# From the second step on, it is a different run. Would you have seen it in the curve? We will look at the curves soon.
# Before that, let's lose the step, and then the order of the data.
# Without the step, the `Checkpoint` gets only the model, and the run counts from 1 again.

# %% step-lost
without_step = Model(layouts)
checkpoint = tf.train.Checkpoint(model=without_step)
checkpoint.restore(closed_at_150).expect_partial()

step = tf.Variable(0, dtype=tf.int64)
step_lost = list(train(without_step, layouts, step, 180, falling))

# %% order-lost-text [markdown]
# And the order of the data?
# Many programs shuffle with a random generator that is made when the process starts.
# After a restart it begins anew, so the first batch of the first epoch comes once more:


# %% order-lost
def order_from_the_start(step):
    return rows_of(step - 150)


without_order = Model(layouts)
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=without_order, step=step)
checkpoint.restore(closed_at_150).assert_consumed()
run = train(
    without_order, layouts, step, 180, falling, order_from_the_start
)
order_lost = list(run)

# %% lost-curves-text [markdown]
# Here are the losses of steps 151 to 180, for the run that lost nothing and for the three others:

# %% lost-curves
from lessons.layouts.a_run.picture import lost_curves

lost_curves(
    {
        "nothing": right_losses,
        "slots": lost_losses,
        "step": losses_of(step_lost, "loss"),
        "order": losses_of(order_lost, "loss"),
    }
)

# %% lost-curves-read [markdown]
# If you saw only one of these curves, would you be suspicious?
# Without the slots, the losses are nearly the right ones.
# Without the order, the run sees different batches, so its ups and downs fall in different places.
# And the run that lost its step even looks better than the right one.
# It counted from 1 again, so by now it has trained for 150 steps more. Only the step number gives it away.
#
# And the weights? For each of the three runs, the table has the step with which it began,
# and the largest difference between its final weights and the right ones:


# %% lost-table
def row(lost, records, model):
    first = records[0]["step"]
    difference = largest_difference(model, alone_model)
    shown = about(difference, 0.001, 0.5)
    print(f"{lost:5}  {first:5}  {shown:>10}")


print("lost   first  difference")
row("slots", slots_lost, without_slots)
row("step", step_lost, without_step)
row("order", order_lost, without_order)

# %% lost-table-read [markdown]
# Without the step, a weight is off by about 0.13, without the slots by 0.013, and without the order by 0.007.
# In all three, the weights are not those of the run that you started.
# Nobody could repeat such a run from its program.
#
# Would a check have helped? The slots and the step are in the file. So if you call `status.assert_consumed()`
# instead of `expect_partial()`, the run stops, because a value in the file was left unread.
# For the order of the data we did call it, and it said nothing. It can't notice the absence of something that was never saved.
#
# So the state of a run has four parts:
# **the weights, the slots, the step, and the order of the data.** The first two are our `model`, the third is our `step`.
# The fourth is nowhere in our checkpoint, because `rows_of` computes it from the third.

# %% note-order [markdown]
# What if my data comes from a pipeline of tf.data?
#
# Its iterator has a position and a shuffle buffer, and both belong to the state.
# A `tf.data` iterator can go into a `tf.train.Checkpoint`, like a variable. Its shuffle buffer is saved with it, so the file can become large.
# (That of a `DTensorDataset` can't, as {lesson:one_step} said.)
# Or do as we do: shuffle with a seed that follows from the number of the epoch, and skip what is done.
#
# A network with dropout has one more part, its random numbers. They, too, can follow from the step.

# %% torn-heading [markdown]
# ## Killed while it saves
#
# A process that is killed by `SIGKILL` runs neither its `except` nor its `finally`. It is simply gone.
# That is how the operating system ends a process when memory runs out.
# So what if the kill comes in the middle of a save? Let's first see what saves leave behind, in the folder of the run that went on:

# %% files
for file in sorted(Path(resumed_folder).iterdir()):
    print(file.name)

# %% files-read [markdown]
# There are three checkpoints: one after the epoch, one at the Stop after step 150, and one at the end.
# Each has an index, which says what is where ({lesson:any_mesh} looks into it), and here two files of data:
# one for the variables on the mesh, and a small one for the rest, such as the step.
# These files are written one after another.
#
# You would expect `checkpoint` to be written last, once everything else is in place.
# With ordinary variables it was, every time we looked.
# But with variables on a mesh, TensorFlow 2.21 often writes it *before* the index:
#
# ```
# data of ckpt-3  ──►  checkpoint: "ckpt-3"  ── ✗ ──►  ckpt-3.index
# ```
#
# Kill the process at the ✗, and `checkpoint` names a checkpoint that isn't there.
#
# We don't have to wait for such an accident. We copy the folder, and take away the newest index.
# Then `ckpt-3` is *torn*: a part of it is missing.

# %% torn tags=["error"]
torn_folder = tempfile.mkdtemp()
shutil.copytree(resumed_folder, torn_folder, dirs_exist_ok=True)
(Path(torn_folder) / "ckpt-3.index").unlink()

run = train_and_save(Model(layouts), layouts, 180, torn_folder)
try:
    next(run)
except tf.errors.NotFoundError as error:
    print(last_line(error).split(" at ")[0])

# %% torn-read [markdown]
# The run does not start any more, although `ckpt-2` is still in the same folder, and complete.
# If this happens at night, a job that restarts itself will fail again and again until the morning.
#
# So don't trust the file `checkpoint`. Look for yourself which checkpoints are *complete*.

# %% note-latest [markdown]
# What does TensorFlow's own latest_checkpoint do here?
#
# It returns `None`, as it does for an empty folder, and logs an error.
# A program that asks it would start again from step 1, and lose everything.
#
# Without a mesh, the file `checkpoint` was written last whenever we looked.
# So a program such as that of {lesson:failures} can ask `latest_checkpoint`.

# %% newest-text [markdown]
# **Exercise 2.** Write `newest(folder)` again, now without the file `checkpoint`.
# It returns the path of the newest checkpoint that is complete, such as `folder + "/ckpt-12"`, or `None` if there is none.
# After a kill, a checkpoint is complete if its index can be read, since of the files `ckpt-N` the index is written last.
# `tf.train.list_variables(path)` reads it. If it can't, it raises a `tf.errors.OpError`.
# The numbers in the names say which is newer.


# %% exercise-newest
def newest(folder):
    # solution begin
    numbers = []
    for index in Path(folder).glob("ckpt-*.index"):
        numbers.append(int(index.stem.removeprefix("ckpt-")))
    for number in sorted(numbers, reverse=True):
        path = f"{folder}/ckpt-{number}"
        try:
            tf.train.list_variables(path)
            return path
        except tf.errors.OpError:
            pass  # it is not complete: try the one before it
    return None
    # solution end


# %%
check("a_run-newest", newest)

# %% newest-again-text [markdown]
# If your function is right, the lesson goes on with it, otherwise with ours. Here is the torn folder once more:

# %% newest-again
from course_lib import yours_or_ours

newest = yours_or_ours("a_run-newest", newest)
# In a copy, as before
again_folder = tempfile.mkdtemp()
shutil.copytree(torn_folder, again_folder, dirs_exist_ok=True)
run = train_and_save(Model(layouts), layouts, 180, again_folder)
print("goes on with step", next(run)["step"])
run.close()

# %% newest-again-read [markdown]
# The run resumes from `ckpt-2`, which was saved after step 150. The torn one costs 30 steps, not the whole run.
# A checkpoint also records how many saves there have been. So the next save is `ckpt-3` again, and replaces the torn one.

# %% note-async [markdown]
# Can the run go on while it saves?
#
# Yes. `manager.save(options=tf.train.CheckpointOptions(enable_async=True))` copies the variables to ordinary ones,
# returns, and lets a thread of its own write the files.
# We tried it with DVariables, whole and split, and changed them as soon as `save` had returned.
# What was restored was the state at the call of `save`, to the last bit.
# Such a checkpoint has a single file of data, even if the variables are split.
# So the process needs memory for a copy of the whole state.
# Before it ends, call `checkpoint.sync()`, which waits for the last save.

# %% note-power [markdown]
# What about a power failure?
#
# `save` hands the files to the operating system, and does not wait until they are on the disk.
# A killed process loses nothing that way, but a machine without power can lose a part of the newest files.
# Then the index may be there while the data is torn. Our `newest` does not see that, and `restore` raises an error.
# Delete that checkpoint, and the run goes on from the one before it.
# Or let `newest` read every variable, and not only the index. Write this instead of its `try`:
#
# ```python
# try:
#     reader = tf.train.load_checkpoint(path)
#     for key in reader.get_variable_to_shape_map():
#         reader.get_tensor(key)
#     return path
# except (tf.errors.OpError, IndexError):
#     pass
# ```
#
# The `IndexError` comes when a file of data is cut short, and it is not a `tf.errors.OpError`.
# Where a run matters, keep some of its checkpoints on another machine, too.

# %% kill-heading [markdown]
# ## Kill it
#
# Enough rehearsals. To have something to kill, we need a program that runs in its own process.
# The cell below writes it into a file. It is long, but you have read nearly all of it, so it is folded.
# It is this lesson's code, with our `newest` from exercise 2 and `shard` from {lesson:mesh_and_layout}.
# Only two things are new. The lines at the beginning make eight devices, and random examples, so that the program needs no reviews.
# And it ends with these lines:
#
# ```python
# for record in train_and_save(model, layouts, last_step, folder):
#     if "loss" in record:
#         print("step", record["step"], record["loss"], flush=True)
#     else:
#         print("held out", record["test_loss"], flush=True)
# ```
#
# `flush=True` sends off each line at once. Without it, output is held back until a few thousand characters have accumulated,
# and we couldn't kill the process right after a certain step.

# %% program-file
# So that %%writefile always prints the same message
Path("a_run_program.py").touch()

# %% program tags=["known"]
# %%writefile a_run_program.py
"""A run that survives SIGKILL. Start it with the name of a folder.

Kill it, start it again with the same folder, and it goes on.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

# 7,100 examples to train on, 1,000 are held out.
# 200 of the 1,200 numbers tell the label
rng = np.random.default_rng(1)
labels = rng.integers(0, 2, 8100)
features = rng.normal(size=(8100, 1200))
features[:, :200] += 0.12 * (2 * labels[:, np.newaxis] - 1)
features = (features / 35).astype("float32")
train_x, held_out_x = features[:7100], features[7100:]
train_y, held_out_y = labels[:7100], labels[7100:]

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b1": dtensor.Layout([WHOLE], mesh),
    "W2": dtensor.Layout([WHOLE, WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


@tf.function
def train_step(model, x, y, step, learning_rate):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(
            weight, mean, square, gradient, step, learning_rate
        )

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


def shard(array, layout):
    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                parts = np.split(part, layout.num_shards(axis), axis)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layout)


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts[name]
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


STEPS_PER_EPOCH = len(train_y) // 64


def rows_of(step):
    epoch = step // STEPS_PER_EPOCH
    rng = np.random.default_rng([0, epoch])
    order = rng.permutation(len(train_y))
    first = 64 * (step % STEPS_PER_EPOCH)
    return order[first : first + 64]


def falling(step, last_step):
    return np.float32(3e-3 * (1 - step / last_step))


def evaluate(model, layouts):
    x = place(held_out_x, layouts["x"])
    y = place(held_out_y, layouts["y"])
    logits = logits_of(model.weights, x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        y, logits
    )
    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return float(tf.reduce_mean(losses)), float(tf.reduce_mean(hits))


def train(model, layouts, step, last_step, rate_of, order=rows_of):
    while step < last_step:
        done = int(step)
        rows = order(done)
        x = place(train_x[rows], layouts["x"])
        y = place(train_y[rows], layouts["y"])
        step_number = np.float32(done + 1)
        rate = rate_of(done, last_step)
        loss, accuracy = train_step(model, x, y, step_number, rate)
        step.assign_add(1)
        epoch = 1 + done // STEPS_PER_EPOCH
        yield {
            "step": done + 1,
            "epoch": epoch,
            "loss": float(loss),
            "accuracy": float(accuracy),
        }
        ends_epoch = (done + 1) % STEPS_PER_EPOCH == 0
        if ends_epoch or done + 1 == last_step:
            loss, accuracy = evaluate(model, layouts)
            yield {
                "step": done + 1,
                "epoch": epoch,
                "test_loss": loss,
                "test_accuracy": accuracy,
            }


def newest(folder):
    numbers = []
    for index in Path(folder).glob("ckpt-*.index"):
        numbers.append(int(index.stem.removeprefix("ckpt-")))
    for number in sorted(numbers, reverse=True):
        path = f"{folder}/ckpt-{number}"
        try:
            tf.train.list_variables(path)
            return path
        except tf.errors.OpError:
            pass  # it is not complete: try the one before it
    return None


def train_and_save(model, layouts, last_step, folder):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = tf.train.CheckpointManager(
        checkpoint, folder, max_to_keep=3
    )
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()
    try:
        for record in train(
            model, layouts, step, last_step, falling
        ):
            yield record
            if "test_loss" in record:
                manager.save()
    except GeneratorExit:
        # Stop closes the generator at a yield, between two steps
        manager.save()
        raise


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "run"
    last_step = int(sys.argv[2]) if len(sys.argv) > 2 else 220
    model = Model(layouts)
    for record in train_and_save(model, layouts, last_step, folder):
        if "loss" in record:
            print("step", record["step"], record["loss"], flush=True)
        else:
            print("held out", record["test_loss"], flush=True)

# %% start-text [markdown]
# Here is the plan. S is a save, and ✗ is the kill:
#
# ```
# untouched  1 ────────── 110 S ───────── 220 S
# killed     1 ────────── 110 S ── 130 ✗
# restarted               111 ─────────── 220 S
# ```
#
# We start the program twice, as two processes, each with its own folder.
# We leave the first alone, and kill the second as soon as we read its line for step 130.
# Later we will start the second again, with what it has saved:

# %% start
import subprocess
import sys


def start(folder):
    command = [sys.executable, "a_run_program.py", folder]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


# %% kill
untouched_folder = tempfile.mkdtemp()
untouched = start(untouched_folder)

killed_folder = tempfile.mkdtemp()
process = start(killed_folder)
for text in process.stdout:
    if text.startswith("step 130 "):
        process.kill()
        break

# The other process goes on to its end
untouched_lines = untouched.stdout.readlines()

print("exit code of the killed process", process.wait())
print("exit code of the other one     ", untouched.wait())

# %% kill-read [markdown]
# `process.kill()` sends `SIGKILL`, signal number 9, and exit code −9 means "killed by signal 9".
# The process had no chance to save anything.
#
# At the end we will compare what the processes have saved.
# A checkpoint can be read without a model. It stores each variable under its path:
# `model.weights["W1"]` is `model/weights/W1`, followed by a suffix that is the same for all variables.


# %% saved
def largest_saved_difference(path, other_path):
    one = tf.train.load_checkpoint(path)
    other = tf.train.load_checkpoint(other_path)
    differences = []
    for kind in ["weights", "means", "squares"]:
        for name in values:
            key = f"model/{kind}/{name}/.ATTRIBUTES/VARIABLE_VALUE"
            difference = one.get_tensor(key) - other.get_tensor(key)
            differences.append(np.abs(difference).max())
    return max(differences)


# %% predict-killed [markdown]
# Three processes run the same program on the same machine.
# The *killed* one saves its whole state after step 110, and dies soon after step 130.
# The *restarted* one restores the state of step 110, and trains to step 220.
# The *untouched* one trains from step 1 to step 220.
# How do the final weights of the restarted one and of the untouched one compare?
#
# - [x] `equal` They are equal to the last bit.
#   The restarted process begins with the state that the untouched one had after step 110. From there on, both take the same steps with the same batches.
# - [ ] `rounding` They differ by rounding.
#   Rounding differs if numbers are added in a different order. Here everything is added in the same order.
# - [ ] `trained twice` They differ: steps 111 to 130 were run twice.
#   They were run twice, but the results of the first time died with the process. The checkpoint has none of them.

# %% reveal-killed
# In a copy, as before
restarted_folder = tempfile.mkdtemp()
shutil.copytree(killed_folder, restarted_folder, dirs_exist_ok=True)
process = start(restarted_folder)
lines = process.stdout.readlines()
process.wait()

difference = largest_saved_difference(
    newest(restarted_folder), newest(untouched_folder)
)
if difference == 0:
    answer = "equal"
elif difference < 1e-4:
    answer = "rounding"
else:
    answer = "trained twice"
reveal("a_run-killed", answer)

# %% survived-text [markdown]
# Do the losses agree, too? Both processes printed them with all their digits:

# %% survived
print("begins with    ", lines[0].split()[:2])
print("lines          ", len(lines), "of", len(untouched_lines))
print("the same lines ", lines == untouched_lines[-len(lines) :])
print("difference     ", difference)

# %% survived-read [markdown]
# The restarted process began with step 111, and printed 111 lines, for 110 steps and an evaluation.
# They are the same as the last 111 lines of the untouched one.
# And all twelve variables, weights and slots, are the same to the last bit.
# The kill cost some twenty steps, which had to be run again.
#
# We didn't stop at one kill. One of our tests kills a single run 20 times, at random times, also in the middle of saves.
# The run resumed all 20 times. At its end, all its variables were the same to the last bit as those of an untouched run.
#
# ## How often should you save?
#
# Save often, and saving eats up your time. Save seldom, and each death throws away a lot of work.
# Say a save takes $c$ seconds, you save every $T$ seconds, and the run dies every $M$ seconds on average.
# Then saving eats up a fraction $c/T$ of your time. And every death throws away half a save interval, on average: a fraction $T/(2M)$.
# The sum of the two is smallest at
#
# $$T = \sqrt{2cM}$$
#
# This is *Young's formula*. If a save takes 30 seconds and the run dies every three hours, save about every 13 minutes.

# %% note-machines [markdown]
# What about several machines, other meshes, and GPUs?
#
# If one of several machines dies, all processes end, since a step needs all of them.
# All start again from the newest checkpoint. {Lesson:failures} does this.
#
# The checkpoint doesn't know the mesh. {Lesson:any_mesh} goes on with a different mesh, and gets the same losses up to rounding.
#
# We have not tried any of this on GPUs. There, some operations add in a changing order unless you call
# `tf.config.experimental.enable_op_determinism()`, so don't expect equality to the last bit.

# %% plain-heading [markdown]
# ## The plain program
#
# [`a_run.py`](../plain/a_run.py) is the program that you have just killed, under another name.
# Start it with the name of a folder, kill it, and start it again with the same folder.
#
# ## Takeaways
#
# - The state of a run is the weights, the optimizer's slots, the step, and the order of the data.
#   What you never gave to the checkpoint is lost without a warning.
# - Compute everything else from the step: the next batch, the learning rate.
#   Then one number, the step, brings them all back, as long as you start the program with the same arguments.
# - Test your program by killing it. A run survives if it ends with the same bits as one that nobody touched.
#
# Our run now survives. Next, {lesson:faster} makes it fast.

# %% score
score("a_run")
