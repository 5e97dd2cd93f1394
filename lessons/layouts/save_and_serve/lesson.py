# %% [markdown]
# # Save and serve
#
# To *serve* a model is to answer requests with its predictions.
# Here a model lies on eight devices in *shards*,
# the parts that the devices hold (the blocks of {lesson:splitting_the_model}).
# It is to say whether a review that somebody types praises the film.
# Can it do so on the mesh, and what is lost if it leaves?
#
# After this lesson you can
#
# - restore the checkpoint of a sharded model on one device, and check that no variable was left out;
# - export vectorizer and model as one SavedModel that takes texts, also straight from the shards;
# - load it in another process and test what it predicts there.
#
# **Time:** 40 minutes.
# **You need to know:** {lesson:coupled_rows} (moments of the batch, moving averages), {lesson:a_run} (checkpoints)
# and {lesson:splitting_the_model} (splitting the model).
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% rows-text [markdown]
# ## Texts become rows
#
# Lessons {number:one_step} to {number:any_mesh} trained on rows of numbers.
# A server gets texts, so it must make the same rows.
# It takes a layer of Keras, here called the *vectorizer*, and these steps:
#
# - Before the training `adapt` counts the words of the first 4,096 training reviews.
#   The 1,199 most frequent, the *vocabulary*, get a column each, the most frequent one first;
#   all other words share column 0.
# - Of a text the layer counts the words, and multiplies each count by the word's factor.
#   A word that is in many reviews has a smaller one.
#   The products are the tf-idf of {lesson:one_step}.
# - `to_rows` applies the layer, and scales each nonzero row to length 1.
#
# The layer ignores capitals and punctuation:
# the text below has four different words, all in the vocabulary, so four numbers of its row are not zero.

# %% rows
from course_lib import data

tf = course_lib.start_tensorflow()
SOURCE = None  # the stand-in (or what COURSE_DATA says); "tfds" is the real set
train, test = data.load_imdb(SOURCE).train, data.load_imdb(SOURCE).test

vectorizer = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
vectorizer.adapt(train.texts[:4096])


def to_rows(texts):
    return tf.math.l2_normalize(vectorizer(texts), axis=1)


row = to_rows(["A good film, a good story."])[0]
not_zero = int(tf.math.count_nonzero(row))
print(f"{len(row)=}, {not_zero=}")

# %% sharded-text [markdown]
# ## A model in shards
#
# The layouts are the model-parallel ones of {lesson:splitting_the_model}:
# `batch` splits the rows over four pairs,
# and `model` splits the 48 hidden units over the two devices of a pair.
#
# Model and training step are those of {lesson:coupled_rows}, with moving averages, but the step returns the loss alone,
# and the model has two methods, `hidden` and `logits`, which the export will need.
# Without layouts the class `MLP` makes ordinary variables, `tf.Variable`.

# %% layouts
import numpy as np
from tensorflow.experimental import dtensor

from course_lib import compare, outcome, shard, show

SPECS = {"W1": [dtensor.UNSHARDED, "model"], "b1": ["model"], "W2": ["model", dtensor.UNSHARDED]}
SPECS |= {"b2": [dtensor.UNSHARDED], "mean": ["model"], "variance": ["model"]}
SPECS |= {"x": ["batch", dtensor.UNSHARDED], "y": ["batch"]}
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
LAYOUTS = {name: dtensor.Layout(spec, mesh) for name, spec in SPECS.items()}


def make_variable(value, layout=None):
    if layout is None:
        return tf.Variable(value)
    return dtensor.DVariable(dtensor.copy_to_mesh(value, layout))


# %% model
class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    def hidden(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1)

    def logits(self, hidden, mean, variance):
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2


# %% step
@tf.function
def train_step(model, x, y, learning_rate):
    weights = [model.W1, model.b1, model.W2, model.b2]
    with tf.GradientTape() as tape:
        hidden = model.hidden(x)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        logits = model.logits(hidden, mean, variance)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(learning_rate * gradient)
    model.mean.assign(0.9 * model.mean + 0.1 * mean)
    model.variance.assign(0.9 * model.variance + 0.1 * variance)
    return loss / x.shape[0]


# %% training-text [markdown]
# 64 steps, each with 64 reviews, are enough for this lesson.
# It mainly compares one model before and after, so the moving moments need not catch up.
# The picture shows which device holds which columns of `W1`; it calls the shards *components*.


# %% training
def initial_values(seed):
    random = np.random.default_rng(seed)
    W1 = random.normal(0, np.sqrt(2 / 1200), (1200, 48)).astype("float32")
    W2 = random.normal(0, np.sqrt(2 / 48), (48, 2)).astype("float32")
    zeros, ones = np.zeros(48, "float32"), np.ones(48, "float32")
    return {"W1": W1, "b1": zeros, "W2": W2, "b2": zeros[:2], "mean": zeros, "variance": ones}


sharded, step = MLP(initial_values(seed=0), LAYOUTS), tf.Variable(0)
rows = to_rows(train.texts[:4096]).numpy()
for first in range(0, 4096, 64):
    batch = slice(first, first + 64)
    x, y = shard(rows[batch], LAYOUTS["x"]), shard(train.labels[batch], LAYOUTS["y"])
    train_step(sharded, x, y, 1e-2)
    step.assign_add(1)
show(sharded.W1)

# %% checkpoint-text [markdown]
# ## Onto one device
#
# A checkpoint takes the six DVariables of the model and the step, an ordinary variable.
# The cell lists what is in it; `save_counter` is TensorFlow's own.
# Four devices hold the left half of `W1`: how often is it in the files?

# %% checkpoint
import tempfile
from pathlib import Path

checkpoints = Path(tempfile.mkdtemp())
tf.train.Checkpoint(model=sharded, step=step).save(str(checkpoints / "checkpoint"))
latest = tf.train.latest_checkpoint(checkpoints)
for name, shape in tf.train.list_variables(latest)[1:]:  # the first one describes the objects
    print(name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"), shape)
left_half = dtensor.unpack(sharded.W1.read_value())[0].numpy().tobytes()
times_saved = sum(file.read_bytes().count(left_half) for file in checkpoints.iterdir())
print(f"{times_saved=}")

# %% restore-text [markdown]
# Four devices hold the left half of `W1`, but it was written once.
#
# To serve the model on one device, make it of ordinary variables and restore the checkpoint into them.
# `assert_existing_objects_matched` of {lesson:a_run} checks that each of them got a value.
# Was it the right one?
# That is tested for `W1`, with `compare`.
# It cuts an array for the devices, and compares the parts, the *prediction*,
# with the shards on the mesh, the *reality*.
# Here the shards are the standard and the array, the restored `W1`, is to be checked,
# but the question is the same: are they equal?

# %% restore
restored = MLP(initial_values(seed=1))
status = tf.train.Checkpoint(model=restored).restore(latest)
status.assert_existing_objects_matched()
compare(restored.W1.numpy(), sharded.W1)

# %% predict-names [markdown]
# A checkpoint was written by `tf.train.Checkpoint(model=...)`.
# To restore it, `restore` of `tf.train.Checkpoint(network=other)` is called, and nothing else.
# `other` is a model of the same class, with other initial values.
# What does this do to `other`?
#
# - [ ] `restored` it gets the values, since classes and shapes fit
#   Names decide: the attributes `network` and `W1`, for example, lead to the variable `network/W1`,
#   and the checkpoint has `model/W1`.
# - [ ] `error` nothing, and it raises an error
#   It raises none: a checkpoint may be read before its variables are made, which then get their values.
# - [x] `kept` nothing, and there is no error
#   Names did not fit, so there was nothing to restore.

# %% reveal-names
other = MLP(initial_values(seed=2))
given = outcome(tf.train.Checkpoint(network=other).restore, latest)
kept = np.array_equal(other.W1, initial_values(seed=2)["W1"])
reveal("save_and_serve-names", "error" if isinstance(given, str) else "kept" if kept else "restored")

# %% [markdown]
# `other` kept its initial values.
# TensorFlow goes from name to name: from the `Checkpoint` its attribute `model`,
# and of that the attribute `W1`, lead to `model/W1`.
# The attributes of `other` begin with `network`, which the checkpoint does not have.
# A model that got nothing would be exported with its initial values.
#
# So after every `restore` call `assert_existing_objects_matched`.
# It looks at variables that exist: build a Keras model before you restore into it.
# It allows that the checkpoint holds more, such as the step; `assert_consumed` does not.
#
# Below, the restore whose names do not fit is done once more,
# and `assert_existing_objects_matched` is asked of its result, `unmatched`.
# `assert_consumed` is asked of `status`, the restore on one device, which left out the step.
# Then two models, each on a mesh of its own, are to be saved in one checkpoint.

# %% refused tags=["error"]
other = MLP(initial_values(seed=2))
unmatched = tf.train.Checkpoint(network=other).restore(latest)
for assertion in (unmatched.assert_existing_objects_matched, status.assert_consumed):
    print(assertion.__name__, "->", outcome(assertion).partition(": attributes")[0])

line = dtensor.create_mesh([("batch", 8)], device_type="CPU")
REPLICATED = {name: dtensor.Layout.replicated(line, len(spec)) for name, spec in SPECS.items()}
on_line = MLP(initial_values(seed=0), REPLICATED)
try:
    tf.train.Checkpoint(grid=sharded, line=on_line).write(str(checkpoints / "two_meshes"))
except tf.errors.OpError as error:
    print("two meshes ->", error.message.partition("propagation. ")[2].partition(". ")[0])

# %% gather-text [markdown]
# The first error counts the variables of `other` that got no value, and the second names `step`.
# The third is one of saving:
# one operation saves all DVariables of a checkpoint, and its inputs must lie on one mesh.
# So write a checkpoint for each mesh.
#
# **Exercise 1.** `restore` put the halves of `W1` together.
# Do that by hand for a DVariable, as `join` of {lesson:mesh_and_layout} does for a DTensor:
# write `gather(variable)`, for any layout on any mesh.
# Return the whole value as a NumPy array.
#
# `dtensor.unpack(variable.read_value())` lists the shards,
# `variable.layout.sharding_specs` has an entry for
# each axis, and `variable.layout.mesh.local_device_locations()` says for each device where it stands, such as
# `{"batch": 2, "model": 1}`.
# Any other way is as good.


# %% exercise-gather
def gather(variable):
    # solution begin
    layout = variable.layout
    whole = np.empty(variable.shape, variable.dtype.as_numpy_dtype)
    shards = dtensor.unpack(variable.read_value())
    for place, part in zip(layout.mesh.local_device_locations(), shards):
        block = []
        for dim, length in zip(layout.sharding_specs, part.shape):
            at = 0 if dim == dtensor.UNSHARDED else place[dim]
            block.append(slice(at * length, (at + 1) * length))
        whole[tuple(block)] = part
    return whole
    # solution end


# %%
check("save_and_serve-gather", gather)

# %% export-text [markdown]
# ## Export
#
# A *SavedModel* is a folder with variables and with the graphs of functions.
# Who loads it needs TensorFlow, but none of the Python code that made it.
#
# `Classifier` below holds vectorizer and model as attributes.
# It has a function for rows, `of_rows`, and one for any number of texts, `__call__`.
# Each has an `input_signature`, so that TensorFlow knows what to trace.
# The batch normalisation takes the moving moments, `model.mean` and `model.variance`, never those of a batch.
# Both return a dictionary: in its `"probabilities"`, column 0 is that of a bad review,
# column 1 that of a good one.
# The likelier one is the model's verdict.


# %% classifier
class Classifier(tf.Module):
    def __init__(self, vectorizer, model):
        super().__init__()
        self.vectorizer, self.model = vectorizer, model

    @tf.function(input_signature=[tf.TensorSpec([None, 1200], tf.float32)])
    def of_rows(self, rows):
        hidden = self.model.hidden(rows)
        logits = self.model.logits(hidden, self.model.mean, self.model.variance)
        return {"probabilities": tf.nn.softmax(logits)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        return self.of_rows(tf.math.l2_normalize(self.vectorizer(texts), axis=1))


# %% signatures-text [markdown]
# `export` writes the folder.
# A server that runs no Python calls the *signatures* of the SavedModel
# (these are functions, unlike `input_signature` above),
# by the names that `signatures` gives them:
# here `__call__` gets the usual one, `serving_default`, and `of_rows` gets `rows`.
# The cell prints the files, and whether the word "story" is in `saved_model.pb`, the one with the graphs.


# %% export
def export(vectorizer, model, name):
    classifier, path = Classifier(vectorizer, model), Path(exports, name)
    signatures = {"serving_default": classifier.__call__, "rows": classifier.of_rows}
    tf.saved_model.save(classifier, str(path), signatures)
    return path


exports = tempfile.mkdtemp()
from_one = export(vectorizer, restored, "from_one")
for file in sorted(each for each in from_one.rglob("*") if each.is_file()):
    print(file.relative_to(from_one))
story_in_graphs = b"story" in (from_one / "saved_model.pb").read_bytes()
print(f"{story_in_graphs=}")

# %% untracked-text [markdown]
# The words of the vocabulary are in `saved_model.pb`, with the graphs.
# They must be there: with Keras 3.15 a checkpoint of this layer holds the factors of the words,
# but not the words.
#
# What a function uses, variables and the table of the words, must be reachable from the object
# through attributes.
# `Forgetful` takes `restored` from the global names of this notebook instead, which no other process has.


# %% untracked
class Forgetful(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 1200], tf.float32)])
    def __call__(self, rows):
        return restored.hidden(rows)


print(outcome(tf.saved_model.save, Forgetful(), str(Path(exports, "forgetful"))))

# %% process-text [markdown]
# TensorFlow refused to export it: no attribute leads to the variables of `restored`.
#
# ## In another process
#
# `PROGRAM` is a server without its network:
# it loads the export, and for each line of texts it prints their probabilities.
# As it runs Python, it calls the loaded object, not a signature.
# `ask` starts it in a process of its own.

# %% process
import json
import subprocess
import sys

PROGRAM = """import json, sys
import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
for line in sys.stdin:
    predicted = served(tf.constant(json.loads(line)))["probabilities"]
    print(json.dumps(predicted.numpy().tolist()))
"""


def ask(path, *requests):
    lines = "\n".join(json.dumps(texts) for texts in requests)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


# %% ask-text [markdown]
# The first 2,000 test reviews go there in one request (`together`), then the first of them alone,
# then all of them in reverse order.
# Then this process asks the model on the mesh, with rows that `batch` splits.
# Each time the cell prints the largest difference of probabilities, rounded to five digits.
# The cell also checks that the accuracy is above 0.8.


# %% ask
def largest_difference(found, wanted):
    return float(np.abs(found - wanted).max().round(5))


texts = list(test.texts[:2000])
together, alone, backwards = ask(from_one, texts, texts[:1], texts[::-1])
print(f"{largest_difference(alone[0], together[0])=}")
print(f"{largest_difference(backwards[::-1], together)=}")

x = shard(to_rows(texts).numpy(), LAYOUTS["x"])
trained, everywhere = Classifier(vectorizer, sharded), dtensor.Layout.replicated(mesh, rank=2)
on_mesh = dtensor.relayout(trained.of_rows(x)["probabilities"], everywhere).numpy()
print(f"{largest_difference(on_mesh, together)=}")
accuracy = float(np.mean(together.argmax(axis=1) == test.labels[:2000]))
print(f"{accuracy > 0.8=}")

# %% server-text [markdown]
# To five digits, the first review alone gets the same prediction as among 2,000,
# the reverse order changes none, and the model on the mesh predicts the same.
# The accuracy is above 0.8.
# So a model in shards can serve on its mesh.
# With the moments of the batch, which couple the rows, predictions would depend on the other reviews:
# {lesson:coupled_rows} said what becomes of one alone.
#
# **Exercise 2.** A web page that shows a prediction needs words, not columns.
# Write the class `Labeller`: its `__call__`, with an `input_signature`, takes a tensor of any number of texts
# and returns a dictionary.
# `"label"` is a tensor of strings, for each text the likelier of `"bad"` (column 0) and `"good"` (column 1),
# and `"probability"` that of the label.
#
# `vectorizer` and `model` are as above, and rows are scaled to length 1 as above.
# The check exports an object of your class, with a small model, and asks it in another process.


# %% exercise-server
class Labeller(tf.Module):
    def __init__(self, vectorizer, model):
        super().__init__()
        # solution begin
        self.vectorizer, self.model = vectorizer, model
        # solution end

    # solution begin
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        hidden = self.model.hidden(tf.math.l2_normalize(self.vectorizer(texts), axis=1))
        logits = self.model.logits(hidden, self.model.mean, self.model.variance)
        label = tf.gather(["bad", "good"], tf.argmax(logits, axis=1))
        return {"label": label, "probability": tf.reduce_max(tf.nn.softmax(logits), axis=1)}

    # solution end


# %%
check("save_and_serve-server", Labeller)

# %% shards-text [markdown]
# ## Straight from the shards
#
# The model need not be restored on one device before:
# `tf.saved_model.save` takes the model on the mesh as well.
# This was tried with TensorFlow 2.21.
# The next cell does so, counts again how often the left half of `W1` is in the files,
# and loads the export in this process, which has eight devices.

# %% from-shards
from_shards = export(vectorizer, sharded, "from_shards")
files = [file for file in from_shards.rglob("*") if file.is_file()]
times_saved = sum(file.read_bytes().count(left_half) for file in files)
print(f"{times_saved=}")
served = tf.saved_model.load(str(from_shards))

# %% predict-layout [markdown]
# A model on a mesh of eight devices was exported with `tf.saved_model.save`.
# The weights `W1` of its first layer, of shape (1200, 48), have 230,400 bytes;
# each device held the left 24 columns or the right 24.
# `tf.saved_model.load` loads the export in a process that has eight devices.
# Where does `W1` lie there?
#
# - [ ] `halves` in halves on the eight devices, as before
#   For that the export would have to hold mesh and layouts.
#   It holds the halves of `W1`, and the shape of the whole.
# - [ ] `everywhere` whole on each of the eight devices
#   To replicate `W1` takes a mesh, too, and no mesh is in the export.
# - [x] `one` whole on one device
#   The two halves of `W1` were put together to an ordinary variable.

# %% reveal-layout
W1 = served.model.W1.read_value()
parts = dtensor.unpack(W1) if dtensor.is_dtensor(W1) else [W1]
reveal(
    "save_and_serve-layout",
    "one" if len(parts) == 1 else "everywhere" if parts[0].shape[1] == 48 else "halves",
)

# %% lost
loaded = served.model.W1
print(loaded.device.partition("task:0/")[2], f"{loaded.numpy().nbytes=}")
print(outcome(dtensor.fetch_layout, loaded))
predicted = served(tf.constant(texts))["probabilities"]
print(f"{largest_difference(predicted, together)=}")

# %% dtensors-text [markdown]
# The predictions are those of the export from one device.
# But two things are lost, the mesh and the layouts.
# The files hold the left half of `W1` once, and on loading the halves became an ordinary variable on CPU 0.
# So `fetch_layout`, which is for DTensors, raises an error.
#
# Who loads the export needs a device with room for whole variables.
# Who wants shards again must say how: `MLP` with the loaded values and `LAYOUTS`,
# or the checkpoint restored into a model with layouts, as in {lesson:any_mesh},
# without any export.
#
# Can the eight devices of this process use the loaded functions?
# `of_rows` gets the rows as a NumPy array, as a replicated DTensor, and split over all eight.
# These lie on the mesh `line` from above, whose one dimension, `batch`, has size 8.
# At last `__call__` is given texts as a replicated DTensor.

# %% dtensors tags=["error"]
whole, split = [dtensor.UNSHARDED, dtensor.UNSHARDED], ["batch", dtensor.UNSHARDED]
plain_rows = to_rows(texts).numpy()
answer = served.of_rows(plain_rows)["probabilities"]
print(f"{dtensor.is_dtensor(answer)=}")
for spec in (whole, split):
    answer = served.of_rows(shard(plain_rows, dtensor.Layout(spec, line)))["probabilities"]
    on_host = dtensor.relayout(answer, dtensor.Layout.replicated(line, rank=2)).numpy()
    answer_spec = dtensor.fetch_layout(answer).sharding_specs
    print(f"{spec=} {answer_spec=} {largest_difference(on_host, together)=}")
try:
    served(dtensor.copy_to_mesh(tf.constant(texts), dtensor.Layout.replicated(line, rank=1)))
except tf.errors.UnimplementedError as error:
    print(error.message.partition(" got ")[2].partition(". For")[0])

# %% dtensors-why [markdown]
# For ordinary rows, the NumPy array, the function returns an ordinary tensor.
# For a DTensor, DTensor lays the function out for the rows that it gets.
# The weights stay ordinary variables, which are not split:
# split rows share the work, but not the memory for the weights.
# TensorFlow's tutorial, written for 2.9, names ordinary tensors and replicated DTensors alone.
# That split rows are taken too was tried on CPUs.
#
# A DTensor of texts is refused, even a replicated one.
# `shape [1200]` in the message is that of the factors of the words.
# They are saved as a variable, but the function uses an ordinary tensor that was read from it before.
# DTensor hands no such tensor to a mesh by itself;
# the weights are variables, and each device reads those itself.
# So make rows on the host, in the Python program, and split the rows.
#
# ## Another vectorizer
#
# Suppose that the server has no training reviews:
# somebody adapts a vectorizer with the same settings to reviews that the server has.
# Here these are all test reviews, 2,000 in the stand-in,
# while that of the training was adapted to the first 4,096 training reviews.

# %% predict-vocabulary [markdown]
# A model was trained on reviews of the stand-in that comes with the course.
# It reads rows of 1,200 columns, which a vectorizer makes of texts:
# column 0 for all words that are not in the vocabulary,
# then one for each of its 1,199 words, the most frequent in 4,096 training reviews first.
# On the test data its accuracy is above 0.8.
# It is exported with another vectorizer, which also makes 1,200 columns,
# but took words and order from the 2,000 test reviews.
# What becomes of this accuracy?
#
# - [ ] `refused` there is none: TensorFlow refuses the export
#   It does not: TensorFlow compares shapes, and both vectorizers make 1,200 columns.
# - [ ] `same` it stays above 0.8
#   That needs the same words in the same columns.
#   But counts differ from reviews to reviews, and so do the columns.
# - [ ] `between` it falls to between 0.65 and 0.8
#   So it might if most words kept their columns.
#   A word that has a little larger share of all words than in the training reviews may move,
#   and shift those that it passes;
#   there are many such words.
# - [x] `guess` it falls below 0.65, near to guessing
#   Most words are in both vocabularies, but in other columns.

# %% reveal-vocabulary
stranger = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
stranger.adapt(test.texts)
strange = outcome(export, stranger, restored, "strange")
if not isinstance(strange, str):
    predicted = tf.saved_model.load(str(strange))(tf.constant(texts))["probabilities"]
    accuracy = np.mean(np.argmax(predicted, axis=1) == test.labels[:2000])
    strange = "same" if accuracy > 0.8 else "guess" if accuracy < 0.65 else "between"
else:
    strange = "refused"
reveal("save_and_serve-vocabulary", strange)

# %% widget-text [markdown]
# The vocabulary did not fit, and neither the export nor the prediction warned of it.
# On the stand-in the two vocabularies have 1,050 words in common, and 46 of these have the same column.
# So export the vectorizer of the training with the weights,
# and test the export with texts whose labels are known.
#
# ## Ask it
#
# The widget asks the loaded export.
# In a notebook that runs, try in English what counting words cannot tell:
# "not good", irony, a sad story in a good film.
# The model was trained on 4,096 reviews, by default of the stand-in,
# and all words but 1,199 are the same to it.
#
# On a page of the book no kernel runs.
# There the widget offers a few reviews, among them a "not bad" and a "not good",
# with predictions that were recorded,
# of a model that was trained on the 25,000 real reviews for three epochs.
# Its accuracy on the 25,000 test reviews is 0.86,
# and its export, asked in another process, gave each of the 25,000 the label that the model on the mesh gave.

# %% widget
from lessons.layouts.save_and_serve.explorer import ReviewExplorer

ReviewExplorer(lambda texts: served(tf.constant(texts))["probabilities"])

# %% takeaways [markdown]
# ## The plain program
#
# [`save_and_serve.py`](../plain/save_and_serve.py) is this lesson in one file,
# with TensorFlow, its Keras and NumPy alone, but without the training: its weights are drawn at random.
# It writes a checkpoint of such a model on a mesh of 4 by 2 and restores it on one device.
# It exports the model with a signature of texts, from one device and from the shards,
# and checks that another process predicts what a model with the same values in ordinary variables predicts,
# and for a text alone the same as among others.
#
# ## Takeaways
#
# - Restore the checkpoint of a sharded model into ordinary variables, or export straight from the shards:
#   who loads the export gets whole values, and neither mesh nor layouts.
# - Vectorizer and model belong in one export, with moving moments and a signature of texts.
# - Neither `restore` with no fitting name nor a strange vocabulary raises an error.
#   So call `assert_existing_objects_matched`,
#   and test what was loaded, in another process, with labelled texts, alone and in a batch.
#
# {Lesson:from_scratch} writes the optimizer by hand, right on eight devices.

# %% score
score("save_and_serve")
