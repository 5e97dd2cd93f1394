# %% [markdown]
# # What does a training run need to survive?
#
# Meta trained Llama 3 on 16,384 GPUs. Over 54 days of this training, it counted
# [419 unexpected interruptions](https://arxiv.org/abs/2407.21783): about one every three hours.
# If each of them had sent the run back to step 1, it would never have finished.
#
# One day, your own machine will reboot in the middle of a run, too. Then one of three things happens.
# You lose a few minutes. You lose everything.
# Or the run resumes with a part missing, and nobody notices.
#
# So *what does a training run need to survive?*
# To find out, you save a run, resume it, and then leave out one part of its state after another.
# At the end, you kill a real training process while it works, and start it again.
# Will it end with the same weights as one that nobody killed? We will compare the two saved files bit for bit.
#
# **After this lesson you can**
#
# - follow a run on held-out reviews, and give it a learning-rate schedule;
# - name the parts of a run's state, and say what happens to a run that loses one of them;
# - write a program that you can kill at any moment, even while it saves.
#
# **Time:** 65 minutes.
# **You need to know:** a training step on eight devices and its layouts ({lesson:one_step}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% [markdown]
# ## A run that you can watch
#
# Before we can kill a run, we need one.
# Ours shuffles its reviews in each epoch, and lowers its learning rate from step to step.
# After a restart, the shuffling and the learning rate both have to pick up where they were.
#
# We train the network of {lesson:whole_game} on the same made-up film reviews.
# But this time 1,000 of the 8,100 reviews are **held out**: the network never trains on them,
# so they tell us how good it is on reviews that it hasn't seen.
# Such a set is called a *validation split*, or *validation data*.
#
# The layouts are plain data parallelism: the eight devices share the rows of a batch, and each holds the whole model.

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

# %% model-text [markdown]
# The model, Adam and the training step also come from {lesson:whole_game}. They are in the next cell, which is folded; just run it.
# Only the learning rate has changed. It is now an argument of `adam` and `train_step`, so it can differ from step to step.


# %% model tags=["known"]
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
# An epoch has 110 batches of 64 reviews. `rows_of` chooses the reviews of a step.
# It seeds a random generator with the epoch, so each epoch has its own order. The epoch follows from the step number, the only argument, so a given step always gets the same reviews:


# %% rows
STEPS_PER_EPOCH = len(train_y) // 64


def rows_of(step):
    epoch = step // STEPS_PER_EPOCH
    rng = np.random.default_rng([0, epoch])
    order = rng.permutation(len(train_y))
    first = 64 * (step % STEPS_PER_EPOCH)
    return order[first : first + 64]


# %% evaluate-text [markdown]
# `evaluate` computes the loss and the accuracy on the held-out reviews. Each of the eight devices takes 125 of them:


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
# The training loop is a generator. After each step, it yields a record with the loss of the batch.
# At the end of each epoch, and once more at the end of the run, it also evaluates the model and yields a second record, with the held-out loss.
# The live plot expects this loss under the name `test_loss`.
#
# The loop counts the finished steps in `step`, an ordinary `tf.Variable`.
# You also give it two functions: `rate_of` chooses the learning rate of a step, and `order` chooses its reviews.


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


# %% schedule-heading [markdown]
# ## A learning-rate schedule
#
# If the held-out loss bounces from epoch to epoch, the number you report depends on when you happened to stop. The bouncing dies down as the weights move less, so we lower the learning rate as we go.
# A function that gives each step its learning rate is a **learning-rate schedule**.
# Ours is a *linear decay*: the rate falls in a straight line, from 0.003 at the first step to almost zero at the last.
#
# The rate has to be a NumPy number. TensorFlow would bake a Python number into the graph of `train_step` as a constant, and trace the function again for every new rate, which is terribly slow.
#
# Let's train for five epochs, which are 550 steps:

# %% falling
from course_lib import about, live


def falling(step, last_step):
    return np.float32(3e-3 * (1 - step / last_step))


falling_model = Model(layouts)
falling_step = tf.Variable(0, dtype=tf.int64)
falling_run = await live(
    train(falling_model, layouts, falling_step, 550, falling), steps=550
)

# %% compare-text [markdown]
# Here is the held-out loss after each epoch, in numbers:


# %% compare
def losses_of(records, kind):
    losses = {}
    for record in records:
        if kind in record:
            losses[record["step"]] = record[kind]
    return losses


held_out_losses = losses_of(falling_run.epochs, "test_loss")
for number in held_out_losses:
    loss = about(held_out_losses[number], 0.28, 0.38, digits=3)
    print("step", number, "held-out loss", loss)

# %% compare-read [markdown]
# After three epochs the held-out loss reaches 0.30 and stays there, so 0.30 is a number you can report.
# Report the length of the schedule, too: with a longer or shorter one, the loss would settle somewhere else.
#
# Meanwhile, the loss on the batches has fallen further, to about 0.2.
# The network has begun to learn its 7,100 reviews by heart: it *overfits*.

# %% note-best [markdown]
# Does the schedule end overfitting?
#
# No. To limit it, stop when the held-out loss no longer falls (*early stopping*).
# If you choose an epoch or a schedule by the held-out reviews, measure the model that you chose on the test data, once.
# The lowest of many values always flatters the model a little. With 1,000 reviews, the standard error of this loss is about 0.02.
#
# The page *Measured results* has this schedule and a constant rate on the real reviews of IMDB.

# %% warm-up-text [markdown]
# **Exercise 1.** Many schedules begin with a **warm-up**, some steps in which the rate rises.
# Write `warm_up(step, last_step)`, where `step` counts from 0.
# In the first 50 steps, the rate rises in a straight line: step 0 has 1/50 of 0.003, step 1 has 2/50, and step 49 has the full 0.003.
# Then it falls in a straight line, from 0.003 at step 50 toward 0 at `last_step`.
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
# Suppose that the process is gone, and with it everything that it had in memory.
# What must be on disk for the next step to come out exactly as it would have without the crash?
#
# Look at what goes into a step, and what comes out of it:
#
# ```
# model ─────────────────────────────┐
# step ──┬───────────────────────────┼─► train_step ──► model, step + 1
#        ├─ rows_of ─► x, y ─────────┤
#        └─ rate_of ─► learning_rate ┘
# ```
#
# The next batch follows from the step number. So does the learning rate: it needs only the step number and `last_step`, which you pass to the program every time you start it.
# So two things have to be on disk: `model` and `step`.
# `step` is a single number. Nearly all of the file is `model`.

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

# %% size-why [markdown]
# What an optimizer keeps for each weight is called its **slots**, or *slot variables*.
# Plain gradient descent has none, and momentum has one for each weight.
# Adam has two, its running averages, so two thirds of our state is slots.
#
# Our model holds them in `means` and `squares`, each with its weight's shape and layout.
# If you split a weight over devices, you split its slots along with it.
#
# ## Save it
#
# `tf.train.Checkpoint` saves what we give it, and we give it the model and the step.
# To measure the size, we called its method `write`, and chose a name for the file.
# A run saves many times, so we let a `tf.train.CheckpointManager` choose the names: `ckpt-1`, `ckpt-2` and so on.
# It keeps the last three, and writes the name of the newest into a small file, `checkpoint`.
# From that file, `newest` finds out where to resume:


# %% newest-named
def newest(folder):
    state = tf.train.get_checkpoint_state(folder)
    if state is None:
        return None  # nothing was saved yet
    return state.model_checkpoint_path


# %% save-text [markdown]
# `train_and_save` runs our loop.
# Before the first step, it restores the newest checkpoint, if there is one. After each evaluation, it saves.
#
# It also saves when you press **Stop**. Stop makes `live` close our generator, and Python then raises `GeneratorExit` at the `yield` where the generator is waiting.
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
# Then run that one, `history = await live(...)`, again: a new model takes over, and the curve goes on.

# %% stop-folder
stop_folder = tempfile.mkdtemp()
history = None

# %% stoppable
run = train_and_save(Model(layouts), layouts, 180, stop_folder)
history = await live(run, history, steps=180)

# %% exactly-text [markdown]
# The curve shows no seam where you stopped it, but a small seam would be hard to see. So let's compare numbers.
# We leave one run of 180 steps alone. We close another after step 150, as Stop would do, and resume it. S is the save on closing; the saves after epochs aren't drawn:
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
# Now a new model resumes from what the closed run has saved.
# Then we compare its final weights with those of the run we left alone:


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
# The difference is zero. There isn't even the rounding that {lesson:one_step} found between one device and eight:
# the same machine did the same computations in the same order, from the same numbers.
#
# ## Leave something out
#
# Did we have to save all of this? Let's leave out one part at a time, and see whether anything complains.
#
# We start with the slots. Suppose somebody saved only the weights, and you want to continue training from them.
# A checkpoint finds a variable by its path, such as `model.weights["W1"]`.
# To save the weights alone under the same paths, we put them in an empty module, again as `weights`:

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
# `train_and_save` calls the same assertion right after it restores.
# Without it, the slots would stay at zero and the run would carry on, with no warning at all.
#
# But the assertion only checks the variables that you gave to the `Checkpoint`. So let's forget to give it the slots, and resume from step 150 of the closed run. Its file does have slots; `expect_partial()` says that we leave them unread on purpose:

# %% slots-lost
closed_at_150 = newest(closed_folder)
without_slots = Model(layouts)
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(
    model=only_weights_of(without_slots), step=step
)
status = checkpoint.restore(closed_at_150)
status.assert_existing_objects_matched()  # no error
status.expect_partial()

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
# From the second step on, it is a different run. Before we look at its curve, let's lose the step instead, in another run.
# Here the `Checkpoint` gets only the model, so the run counts from 1 again:

# %% step-lost
without_step = Model(layouts)
checkpoint = tf.train.Checkpoint(model=without_step)
checkpoint.restore(closed_at_150).expect_partial()

step = tf.Variable(0, dtype=tf.int64)
step_lost = list(train(without_step, layouts, step, 180, falling))

# %% order-lost-text [markdown]
# Last, we lose the order of the data.
# Many programs shuffle with a random generator created at startup.
# After a restart, the generator begins anew, and the first batch comes again.
# To imitate that, we subtract the 150 steps that are already done, so step 151 gets the first batch again:


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
# If you saw only one of these curves, you would hardly be suspicious.
# Without the slots, the losses are almost right.
# Without the order, the run sees different batches, so its ups and downs fall in different places.
# And the run that lost its step even looks better than the right one.
# It counted from 1 again, so by the time it reaches "step 151", it has really trained for 300 steps.
#
# Here are the first step of each of the three runs,
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
# The worst weight is off by about 0.13 without the step, by 0.013 without the slots, and by 0.007 without the order.
# None of the three reached the weights of the original run, and nobody can reproduce theirs by running the program.
# Only the run without the step shows that something is wrong: it began with step 1.
#
# An assertion could have caught two of these mistakes. The slots and the step are in the file.
# Call `assert_consumed()` in place of `expect_partial()`, and it raises an error, because a value in the file was left unread.
# (`train_and_save` doesn't need it: it restores the same two objects that it saves.)
# The run without the order did call `assert_consumed()`, and got no error, because the order had never been in the file.
#
# So the state of a run has four parts:
# **the weights, the slots, the step, and the order of the data.** The first two are our `model`, and the third is our `step`.
# We don't have to save the fourth, because `rows_of` computes it from the third.

# %% note-order [markdown]
# What if my data comes from a tf.data pipeline?
#
# Its iterator has a position and a shuffle buffer, and both belong to the state.
# You can give the iterator to a `tf.train.Checkpoint`, like a variable, unless it is that of a `DTensorDataset` ({lesson:one_step}).
# With the shuffle buffer, the file can become large.
# Or do as we do: shuffle with a seed that follows from the epoch, and skip what is done.
#
# A network with dropout has one more part, its random numbers. They, too, can follow from the step.

# %% torn-heading [markdown]
# ## Killed while it saves
#
# A process that is killed by `SIGKILL` runs neither its `except` nor its `finally`. It is simply gone.
# The operating system uses this signal when memory runs out, and the kill may come in the middle of a save.
# To see what can go wrong then, we first list the files of complete saves, in the folder of the resumed run:

# %% files
for file in sorted(Path(resumed_folder).iterdir()):
    print(file.name)

# %% files-read [markdown]
# There are three checkpoints: one from the end of the epoch, one from step 150, where we closed the run, and one from the end of the run.
# Each consists of an index, which says what is stored where ({lesson:any_mesh} opens one), and of data files, here two.
# TensorFlow writes these files one after another.
#
# You would expect it to write `checkpoint` last, when everything else is in place.
# But with variables on a mesh, TensorFlow 2.21 often writes it *before* the index:
#
# ```
# data of ckpt-3  ──►  checkpoint: "ckpt-3"  ── ✗ ──►  ckpt-3.index
# ```
#
# If the process is killed at the ✗, `checkpoint` names a checkpoint that has no index.
# We don't have to wait for such an accident. We copy the folder, and delete the newest index.
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
# The run doesn't start anymore, although `ckpt-2` is still in the folder, and complete.
# If this happens at night, a job that restarts itself will fail again and again until the morning.
#
# TensorFlow's own `tf.train.latest_checkpoint` returns `None` for this folder, as it does for an empty one, and logs an error.
# A program that relies on it would start from step 1, and lose everything.
#
# So don't trust the file `checkpoint`. Look for yourself which checkpoints are *complete*.

# %% newest-text [markdown]
# **Exercise 2.** Write `newest(folder)` again, now without the file `checkpoint`.
# It returns the path of the newest complete checkpoint, such as `folder + "/ckpt-12"`, or `None` if no checkpoint is complete.
# The numbers in the names say which is newer.
#
# Of the files `ckpt-N`, TensorFlow writes the index last. So after a kill, a checkpoint is complete if its index can be read.
# `tf.train.list_variables(path)` reads the index, or raises a `tf.errors.OpError`.


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
# If your function passes, the rest of the lesson uses it; otherwise it uses ours. We try it on the torn folder:

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
# The run resumes from `ckpt-2`, which was saved after step 150. The torn checkpoint costs 30 steps, not the whole run.
# A checkpoint also records how many saves there have been. So when we closed this run, it saved `ckpt-3` again, and replaced the torn one.

# %% note-power [markdown]
# What about a power failure?
#
# `save` hands the files to the operating system without waiting for them to reach the disk.
# A killed process loses nothing that way, but a machine without power can lose a part of the newest files.
# Then the index may be there while the data is torn. Our `newest` doesn't see that, and `restore` raises an error.
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
# The `IndexError` comes when a file of data is cut short.
# Where a run matters, keep some of its checkpoints on another machine, too.
#
# Without a mesh, TensorFlow wrote the file `checkpoint` last whenever we looked.
# So a program such as that of {lesson:failures} can ask `latest_checkpoint`.

# %% kill-heading [markdown]
# ## Kill it
#
# To kill a real process, we need a program. The cell below writes one into a file.
# It is folded, because you have read nearly all of it: this lesson's code, our `newest` from exercise 2, and `shard` from {lesson:mesh_and_layout}.
# Two parts are new. The program begins by making eight devices, and random examples in place of the reviews. And its ending is new:
#
# ```python
# for record in train_and_save(model, layouts, last_step, folder):
#     if "loss" in record:
#         print("step", record["step"], record["loss"], flush=True)
#     else:
#         print("held out", record["test_loss"], flush=True)
# ```
#
# `flush=True` sends each line immediately. Without it, Python would hold lines back until a few thousand characters have accumulated,
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
# We start the program twice, with a folder for each process. S is a save, and ✗ is the kill:
#
# ```
# untouched  1 ────────── 110 S ───────── 220 S
# killed     1 ────────── 110 S ── 130 ✗
# restarted               111 ─────────── 220 S
# ```
#
# We leave the first process alone. We kill the second as soon as we read its line for step 130.
# Later, we start a third from what the second has saved:

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
# The process had no chance to save anything more.
#
# At the end, we compare what the processes have saved. You can read a checkpoint without a model.
# It stores each variable under its path: `model.weights["W1"]` is `model/weights/W1`, followed by a suffix that is the same for all variables.


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
# Let's see whether the losses agree, too. Both processes printed them with all their digits:

# %% survived
print("begins with    ", lines[0].split()[:2])
print("lines          ", len(lines), "of", len(untouched_lines))
print("the same lines ", lines == untouched_lines[-len(lines) :])
print("difference     ", difference)

# %% survived-read [markdown]
# The restarted process began with step 111, and printed 111 lines, for 110 steps and an evaluation.
# The untouched process ended with the same 111 lines, and all twelve saved variables, weights and slots alike, agree to the last bit.
# The kill cost us about twenty steps, which had to be run a second time.
#
# One of our tests goes further. It kills a single run 20 times, at random times, also in the middle of saves.
# The run resumed all 20 times, and all its final variables were the same to the last bit as those of an untouched run.

# %% note-machines [markdown]
# What about several machines, other meshes, and GPUs?
#
# If one of several machines dies, all processes end, since a step needs all of them,
# and all start again from the newest checkpoint. {Lesson:failures} does this.
# {Lesson:any_mesh} goes on with a different mesh, and gets the same losses up to rounding.
#
# We haven't tried any of this on GPUs. There, some operations add in a changing order unless you call
# `tf.config.experimental.enable_op_determinism()`, so don't expect equality to the last bit.

# %% often-heading [markdown]
# ## How often should you save?
#
# Every save takes time, and every death throws away the work since the last save.
# Suppose a save takes $c$ seconds, you save every $T$ seconds, and the run dies every $M$ seconds on average.
# Saving then costs a fraction $c/T$ of your time.
# A death throws away half a save interval, on average, which is a fraction $T/(2M)$ of your time.
# The sum of the two is smallest at
#
# $$T = \sqrt{2cM}$$
#
# This is *Young's formula*. If a save takes 30 seconds and the run dies every three hours, save about every 13 minutes.

# %% note-async [markdown]
# Can the run go on while it saves?
#
# Yes. `manager.save(options=tf.train.CheckpointOptions(enable_async=True))` copies the variables to ordinary ones, returns, and writes the files in a separate thread. So the process needs memory for a copy of the whole state.
# Before it ends, call `checkpoint.sync()`, which waits for the last save.
#
# When we changed DVariables as soon as `save` had returned, the checkpoint still had the state from before, to the last bit.

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
# - Compute the order of the data and the learning rate from the step.
#   Then the step number alone brings both back, provided you start the program with the same arguments.
# - Test your program by killing it. A run survives if it ends with the same bits as one that nobody touched.
#
# Our run now survives. Next, {lesson:faster} makes it fast.

# %% score
score("a_run")
