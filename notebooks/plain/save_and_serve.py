"""A sharded checkpoint becomes an export that takes texts: python save_and_serve.py [FOLDER]."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}

# Random, not trained: any_mesh.py trains on a mesh
rng = np.random.default_rng(0)
values = {
    "W1": rng.normal(0, 0.3, (1200, 48)).astype("float32"),
    "b1": rng.normal(0, 0.3, 48).astype("float32"),
    "W2": rng.normal(0, 0.3, (48, 2)).astype("float32"),
    "b2": rng.normal(0, 0.3, 2).astype("float32"),
}

# The server: a process that has TensorFlow and the export, and nothing of this file
PROGRAM = """
import json
import sys
import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
signature = served.signatures["serving_default"]
texts = json.load(sys.stdin)
answer = signature(texts=tf.constant(texts))
print(json.dumps(answer["good"].numpy().tolist()))
"""


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


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def make_vectorizer():
    return tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)


def to_rows(vectorizer, texts):
    return tf.math.l2_normalize(vectorizer(texts), axis=1)


class ReviewServer(tf.Module):
    def __init__(self, vectorizer, weights):
        super().__init__()
        self.vectorizer = vectorizer
        self.weights = weights

    @tf.function(input_signature=[tf.TensorSpec([None, 1200], name="rows")])
    def of_rows(self, rows):
        probabilities = tf.nn.softmax(logits_of(self.weights, rows))
        return {"good": probabilities[:, 1]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def of_texts(self, texts):
        return self.of_rows(to_rows(self.vectorizer, texts))


def export(server, path):
    signatures = {
        "serving_default": server.of_texts,
        "rows": server.of_rows,
    }
    tf.saved_model.save(server, str(path), signatures)


def ask(path, texts):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(json.loads(done.stdout))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    texts = ["a good film", "a bad film", "good story, good film", "bad story", "a film"]
    vectorizer = make_vectorizer()
    vectorizer.adapt(texts)

    # A model on the mesh, and its checkpoint
    sharded = {name: variable(value, layouts[name]) for name, value in values.items()}
    path = tf.train.Checkpoint(weights=sharded).write(str(folder / "trained"))

    # The same weights on one device; without the second line, a wrong name would raise nothing
    one = {name: tf.Variable(np.zeros_like(value)) for name, value in values.items()}
    status = tf.train.Checkpoint(weights=one).read(path)
    status.assert_existing_objects_matched()

    rows = to_rows(vectorizer, tf.constant(texts))
    expected = tf.nn.softmax(logits_of(values, rows))[:, 1]
    models = folder / "models" / "reviews"
    for version, weights in [("1", one), ("2", sharded)]:
        export(ReviewServer(vectorizer, weights), models / version)
        together = ask(models / version, texts)
        alone = ask(models / version, texts[:1])
        assert np.abs(together - expected).max() < 1e-5
        assert abs(alone[0] - together[0]) < 1e-5
        print(f"version {version}: another process answers", together.round(3))
