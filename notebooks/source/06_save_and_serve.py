# %% [markdown]
# # 6. Save and serve
#
# A model lies in shards on eight devices.
# Somebody types a review and wants an answer.
# What has to leave the mesh for that, and what is lost on the way?
#
# After this lesson you can
#
# - export a model from its shards, so that it takes texts and answers in any process with TensorFlow;
# - say what an export holds and what it loses, and put it back on a mesh;
# - tell an answer that depends on the review alone from one that depends on its neighbours;
# - say what one checkpoint can hold.
#
# **Time:** 40 minutes.
# **You need to know:** lesson 4 (checkpoints, moving moments) and lesson 5 (splitting the model).
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% way-text [markdown]
# ## From a text to a row
#
# The lessons before this one trained on rows of numbers.
# A `Vectorizer` made them of texts, before the training began:
#
# 1. It makes letters small, removes punctuation and splits at spaces, which gives *tokens*.
# 2. It counts each token in the column that its vocabulary has for it,
#    and all tokens that it does not know in column 0.
# 3. It multiplies each count by the token's weight: frequent tokens weigh less.
# 4. It scales the row to length 1.
#
# The next cell shows the way of one text.
# In the picture of the row each stroke is a number that is not 0, as high as it is large.

# %% way
import tempfile
from pathlib import Path

import numpy as np
from IPython.display import display

from course_lib import LayoutSpec, MeshSpec, data, models, serving, training
from course_lib.dtensor import fetch_layout, pack, to_numpy, unpack
from course_lib.exercises import check, predict, reveal, score
from course_lib.specs.plan import data_parallel, spatial_parallel
from course_lib.watch import live

tf = course_lib.start_tensorflow()
SOURCE = None  # the stand-in (or what COURSE_DATA says); "tfds" is the real set
texts = data.load_imdb(SOURCE)
reviews = data.tf_idf(texts)
reviews.vectorizer.path("The story is good, and the acting is wonderful.", (48, 2))

# %% predict-unknown
predict("06-unknown")

# %% reveal-unknown
one_word, three_words = reviews.vectorizer(["Zorp", "Zorp! Blick quux."])
reveal("06-unknown", float(np.abs(one_word - three_words).max()))

# %% sharded-text [markdown]
# Whatever serves the model has to make exactly these rows.
# So the vectorizer, with its vocabulary and its weights, belongs to what is exported.
#
# ## A model in shards
#
# One epoch, spatial-parallel as in lesson 5:
# `feature` and `model` cut the first weight W1 in four blocks, and each block lies on two devices.
# The run leaves a checkpoint.

# %% training
values = models.initial_values(seed=0)
folder = training.CheckpointFolder(tempfile.mkdtemp())
train_set, _others = reviews.train.hold_out(3_600)
sharded = models.MLP(values, spatial_parallel(2, 2, 2))
run = training.train(sharded, train_set, reviews.test, epochs=1, checkpoints=folder)
history = await live.watch(run)

# %% one-device-text [markdown]
# To serve it, a model without a plan is made, which lies on one device,
# and given the values of the checkpoint.
# `restore_model` takes the model out of a checkpoint of a training;
# the slots of an optimizer such as Adam stay in it.
# The pictures show who held which block of W1 in the training, and who holds it now.

# %% one-device
model = models.MLP(models.initial_values(seed=1))
serving.restore_model(folder, model)
one_device = LayoutSpec.replicated(MeshSpec([("device", 1)]), 2)
for layout in (fetch_layout(sharded.hidden_weight), one_device):
    display(layout.of((1200, 48), element_bytes=4))

# %% gather-text [markdown]
# **Exercise 1.** The checkpoint put the blocks together for you.
# Do it by hand: write `gather(model)` for a model on any mesh.
# Return a dictionary with the whole value of each variable, a NumPy array, under its name.
#
# `model.spec.variables` has the names, and `getattr(model, name)` gives a variable.
# `unpack(variable)` lists the component of each device,
# and `fetch_layout(variable).of(variable.shape)` is its sharding:
# `sharding.shards[d]` says which part of the whole device `d` holds, a tuple of slices.
# (The check takes a small model under several plans.)


# %% exercise-gather
def gather(model):
    # solution begin
    whole = {}
    for name in model.spec.variables:
        variable = getattr(model, name)
        sharding = fetch_layout(variable).of(variable.shape)
        whole[name] = np.empty(sharding.global_shape, "float32")
        for device_id, component in enumerate(unpack(variable)):
            whole[name][sharding.shards[device_id]] = component
    return whole
    # solution end


# %%
check("06-gather", gather)

# %% export-text [markdown]
# ## Export
#
# A *SavedModel* is a folder with variables and with the graph of a function, traced before.
# Whoever loads it needs TensorFlow and none of the Python code that made it.
# TensorFlow exports an object of a class that inherits from `tf.Module`:
# its functions, and what they use, if an attribute of the object leads to it.
#
# `input_signature` says what the function takes: here one tensor of strings, of any length.
# `serving.export` traces the class `TextClassifier`, which is about this
# (`course_lib/serving/module.py`):
#
# ```python
# class TextClassifier(tf.Module):
#     def __init__(self, vectorizer, model):
#         super().__init__()
#         self.vectorizer, self.model = vectorizer.module, model
#
#     @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
#     def __call__(self, texts):
#         logits = self.model.evaluate_logits(self.vectorizer(texts))
#         return {"probabilities": tf.nn.softmax(logits)}
# ```
#
# It writes to a temporary folder and renames that last:
# whoever looks finds a whole export or none.

# %% export
exports = Path(tempfile.mkdtemp())
path = serving.export(model, reviews.vectorizer, exports / "1")
for file in sorted(each for each in path.rglob("*") if each.is_file()):
    print(file.relative_to(path))

# %% fresh-text [markdown]
# Now a process of its own, which knows nothing of the course.
# It runs the program that the next cell prints, for the 2,000 test reviews, as texts.
# The cell then compares its answers with those of the trained model on its eight devices.

# %% fresh
from course_lib.serving import fresh
from course_lib.training import evaluate as evaluation

print(fresh.PROGRAM)
answers = fresh.ask(path, texts.test.texts)
accuracy = np.mean(answers.argmax(axis=1) == texts.test.labels)
_loss, trained = evaluation.evaluate(sharded, reviews.test)
print(answers.shape)
print("accuracy above 0.7:", accuracy > 0.7)
print("within 0.001 of the trained model's:", abs(accuracy - trained) <= 0.001)

# %% shards-text [markdown]
# ## What an export loses
#
# One device had room for the whole model.
# Where none has, export straight from the shards: the model on its mesh, instead of one on one device.
# Each block is written by a device that holds it.
# `serving.load` loads the export here.

# %% shards
from_shards = serving.export(sharded, reviews.vectorizer, exports / "2")
served = serving.load(from_shards)
loaded = served.module.model
gap = np.abs(served(texts.test.texts[:100]) - answers[:100]).max()
print("answers as before, within 0.00001:", gap < 1e-5)

# %% predict-layout
predict("06-layout")

# %% reveal-layout
bytes_on_cpu_0 = loaded.hidden_weight.numpy().nbytes
reveal("06-layout", bytes_on_cpu_0)

# %% lost [markdown]
# The layouts are gone.

# %% plain-variable tags=["error"]
weight = loaded.hidden_weight
print(type(weight).__name__, weight.shape, weight.device)
try:
    fetch_layout(weight)
except Exception as error:
    print(type(error).__name__, str(error)[:200])

# %% predict-sharded
predict("06-sharded-input")

# %% reveal-sharded
reveal("06-sharded-input", "refused")

# %% on-mesh-text [markdown]
# **Exercise 2.** On a mesh again.


# %% exercise-on-mesh
def answer_on_mesh(model, rows):
    # solution begin
    filled = np.pad(rows, ((0, -len(rows) % 8), (0, 0)))
    x = pack(filled, data_parallel(8).layout(("batch", "features")))
    probabilities = tf.nn.softmax(model.evaluate_logits(x))
    return to_numpy(probabilities)[: len(rows)]
    # solution end


# %%
check("06-on-mesh", answer_on_mesh)

# %% alone-text [markdown]
# ## Alone or among others

# %% predict-alone
predict("06-alone")

# %% reveal-alone
good, bad = texts.test.texts[0], texts.test.texts[2]
own_moments = [tf.nn.softmax(model(reviews.vectorizer([text])))[0, 1] for text in (good, bad)]
reveal("06-alone", round(float(abs(own_moments[0] - own_moments[1])), 2))

# %% exercise-alone-text [markdown]
# **Exercise 3.**


# %% exercise-alone
def alone(values, row):
    # solution begin
    powers = np.exp(values["logits_bias"])
    return powers / powers.sum()
    # solution end


# %%
check("06-alone", alone)

# %% server-text [markdown]
# ## What belongs to an export
#
# **Exercise 4.**


# %% exercise-server
class Server(tf.Module):
    def __init__(self, vectorizer, model):
        super().__init__()
        # solution begin
        self.vectorizer = vectorizer
        self.model = model
        # solution end

    # solution begin
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        return tf.nn.softmax(self.model.evaluate_logits(self.vectorizer(texts)))

    # solution end


# %%
check("06-server", Server)

# %% score
score("06")

# %% [markdown]
# ## Takeaways
#
# - x
