"""What `save_and_serve` says of checkpoints and exports and does not show."""

import numpy as np
import pytest

import course_lib
from course_lib import shard, to_numpy
from tests.course import program

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

SERVING = program("save_and_serve")
TEXTS = ["a good film", "a bad film", "a film that nobody knows", ""]


@pytest.fixture(scope="module")
def vectorizer():
    made = SERVING.make_vectorizer()
    made.adapt(TEXTS[:2])
    return made


@pytest.fixture(scope="module")
def exported(vectorizer, tmp_path_factory):
    """Returns the folder of an export that was made straight from the shards."""
    sharded = {name: SERVING.variable(value, SERVING.layouts[name]) for name, value in SERVING.values.items()}
    folder = tmp_path_factory.mktemp("models") / "1"
    SERVING.export(SERVING.ReviewServer(vectorizer, sharded), folder)
    return folder


def good_of(rows):
    """Returns how probable a good review is, without TensorFlow."""
    values = {name: value.astype("float64") for name, value in SERVING.values.items()}
    logits = np.maximum(rows @ values["W1"] + values["b1"], 0) @ values["W2"] + values["b2"]
    return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))


def test_two_meshes_in_one_checkpoint_are_refused(tmp_path):
    line = dtensor.create_mesh([("batch", 8)], device_type="CPU")
    on_line = SERVING.variable(np.ones(8, "float32"), dtensor.Layout(["batch"], line))
    on_grid = SERVING.variable(np.ones(8, "float32"), dtensor.Layout(["batch"], SERVING.mesh))
    tf.train.Checkpoint(a=on_grid, step=tf.Variable(1)).write(str(tmp_path / "one"))
    with pytest.raises(tf.errors.OpError):
        tf.train.Checkpoint(a=on_grid, b=on_line).write(str(tmp_path / "two"))


def test_a_loaded_export_takes_rows_in_any_layout_and_texts_in_none(exported):
    loaded, mesh = tf.saved_model.load(str(exported)), SERVING.mesh
    rows = np.random.default_rng(1).normal(size=(16, 1200)).astype("float32") / 35
    whole, expected = dtensor.UNSHARDED, good_of(rows)
    for specs in ([whole, whole], ["batch", whole], [whole, "model"], ["batch", "model"]):
        found = loaded.signatures["rows"](rows=shard(rows, dtensor.Layout(specs, mesh)))["good"]
        assert np.abs(to_numpy(found) - expected).max() < 1e-5
    texts = dtensor.copy_to_mesh(tf.constant(TEXTS), dtensor.Layout.replicated(mesh, rank=1))
    with pytest.raises(tf.errors.UnimplementedError, match="1200"):
        loaded.signatures["serving_default"](texts=texts)


def test_a_process_of_its_own_answers_an_empty_text_and_unknown_words_as_numpy_does(exported):
    unknown = np.eye(1, 1200)  # only column 0
    answers = SERVING.ask(exported, ["hieno " * 40, "huono " * 90, ""])
    expected = good_of(np.concatenate([unknown, unknown, 0 * unknown]))
    assert np.abs(answers - expected).max() < 1e-5
    assert abs(SERVING.ask(exported, ["hieno"])[0] - answers[0]) < 1e-5
