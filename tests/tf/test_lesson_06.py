"""What lesson 06 says of exports and checkpoints, held against NumPy; its code is taken from the lesson."""

import ast
import json
import re

import numpy as np
import pytest

import course_lib
from course_lib import data, outcome, shard
from course_lib.dtensor import to_numpy
from tests.course import COURSE
from tests.kernels import ROOT

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

LESSON = next(COURSE.lessons(("06_save_and_serve",)))
CELLS = {cell.cell_id: cell.source for cell in LESSON.cells}
GRID = dtensor.create_mesh([("batch", 4), ("model", 2)], devices=[f"CPU:{at}" for at in range(8)])
LINE = dtensor.create_mesh([("batch", 8)], devices=[f"CPU:{at}" for at in range(8)])
TEXTS = [f"{'good' if at % 3 else 'bad'} film {'story ' * (at % 4)}" for at in range(16)]


def defined(source):
    """Returns the classes, the functions and the program of a text, by name."""
    found = {getattr(node, "name", ""): ast.dump(node) for node in ast.parse(source).body}
    program = re.findall(r'^PROGRAM = """.*?"""', source, re.M | re.S)
    return {**found, "PROGRAM": program[0]} if program else found


def test_the_plain_program_is_the_lessons_code_name_by_name():
    in_lesson = {}
    for cell in LESSON.cells:
        if cell.kind == "code":
            in_lesson |= defined(cell.source)
    names = ["make_variable", "MLP", "Classifier", "ask", "PROGRAM"]
    of_program = defined((ROOT / "notebooks/plain/06_save_and_serve.py").read_text())
    assert set(of_program) == {"", *names}
    assert [of_program[name] for name in names] == [in_lesson[name] for name in names]


@pytest.fixture(scope="module")
def names():
    """The lesson's own classes, and small things to make of them."""
    names = {"tf": tf, "np": np, "dtensor": dtensor}
    for cell in ("layouts", "model", "classifier"):
        exec(CELLS[cell].replace("1200", "8"), names)
    return names


@pytest.fixture(scope="module")
def vectorizer():
    layer = tf.keras.layers.TextVectorization(8, output_mode="tf_idf", pad_to_max_tokens=True)
    layer.adapt(TEXTS)
    return layer


@pytest.fixture(scope="module")
def values():
    random = np.random.default_rng(0)
    shapes = {"W1": (8, 4), "b1": (4,), "W2": (4, 2), "b2": (2,), "mean": (4,), "variance": (4,)}
    return {name: random.uniform(0.5, 1.5, shape).astype("float32") for name, shape in shapes.items()}


def by_numpy(values, rows):
    """Returns the probabilities in float64, from the formulas."""
    rows = np.float64(rows)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    hidden = np.maximum(rows @ values["W1"] + values["b1"], 0)
    normal = (hidden - values["mean"]) / np.sqrt(values["variance"] + 1e-5)
    powers = np.exp(normal @ values["W2"] + values["b2"])
    return powers / powers.sum(axis=1, keepdims=True)


def exported(names, vectorizer, model, path):
    classifier = names["Classifier"](vectorizer, model)
    signatures = {"serving_default": classifier.__call__, "rows": classifier.of_rows}
    tf.saved_model.save(classifier, str(path), signatures)
    return tf.saved_model.load(str(path))


@pytest.mark.parametrize("on_a_mesh", [False, True])
def test_an_export_predicts_as_the_formulas_alone_and_in_any_batch(
    on_a_mesh, names, vectorizer, values, tmp_path
):
    model = names["MLP"](values, names["LAYOUTS"] if on_a_mesh else None)
    served = exported(names, vectorizer, model, tmp_path)
    expected = by_numpy(values, vectorizer(TEXTS))
    np.testing.assert_allclose(served(tf.constant(TEXTS))["probabilities"], expected, atol=1e-6)
    for at, text in enumerate(TEXTS):
        np.testing.assert_allclose(served(tf.constant([text]))["probabilities"][0], expected[at], atol=1e-6)
    for name, value in values.items():
        assert getattr(served.model, name).numpy().tobytes() == value.tobytes()
    assert served.model.W1.device.endswith("CPU:0")
    assert "FetchLayout expects" in outcome(dtensor.fetch_layout, served.model.W1)
    for file in tmp_path.rglob("*"):
        held = file.read_bytes() if file.is_file() else b""
        assert not any(word in held for word in (b"batch=", b"sharding", b"CPU:7", b"dtensor"))


def test_a_loaded_function_takes_rows_on_any_mesh_and_no_texts(names, vectorizer, values, tmp_path):
    served = exported(names, vectorizer, names["MLP"](values, names["LAYOUTS"]), tmp_path)
    rows = tf.math.l2_normalize(vectorizer(TEXTS), axis=1).numpy()
    expected = by_numpy(values, rows)
    split = "batch", dtensor.UNSHARDED
    whole = dtensor.UNSHARDED, dtensor.UNSHARDED
    for mesh, given, answered in [
        (LINE, whole, whole),
        (LINE, split, split),
        (GRID, ("batch", "model"), split),
    ]:
        x = shard(rows, dtensor.Layout(list(given), mesh))
        found = served.signatures["rows"](rows=x)["probabilities"]
        assert tuple(dtensor.fetch_layout(found).sharding_specs) == answered
        np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)
    x, weight = shard(rows, dtensor.Layout(list(split), LINE)), served.model.W1
    _rows, read = tf.function(lambda x: (x + 0, weight.read_value()))(x)
    assert {tuple(part.shape) for part in dtensor.unpack(read)} == {(8, 4)}  # each device reads it whole
    for number, layout in ((8, dtensor.Layout.replicated(LINE, 1)), (1, dtensor.Layout(["batch"], LINE))):
        parts = [tf.constant(TEXTS if number == 8 else TEXTS[2 * at : 2 * at + 2]) for at in range(8)]
        with pytest.raises(
            tf.errors.UnimplementedError, match=r"regular tensor for input \d+ \(shape \[8\]\)"
        ):
            served(dtensor.pack(parts, layout))


def test_a_checkpoint_restores_by_name_and_is_silent_where_none_fits(names, values, tmp_path):
    sharded, step = names["MLP"](values, names["LAYOUTS"]), tf.Variable(64)
    path = tf.train.Checkpoint(model=sharded, step=step).save(str(tmp_path / "checkpoint"))
    half = values["W1"][:, :2].tobytes()
    assert sum(file.read_bytes().count(half) for file in tmp_path.iterdir()) == 1
    zeros = {name: np.zeros_like(value) for name, value in values.items()}
    one, other = names["MLP"](zeros), names["MLP"](zeros)
    status = tf.train.Checkpoint(model=one).restore(path)
    status.assert_existing_objects_matched()
    assert outcome(status.assert_consumed).startswith(
        "AssertionError: Unresolved object in checkpoint (root).step"
    )
    assert all((getattr(one, name).numpy() == value).all() for name, value in values.items())
    unmatched = tf.train.Checkpoint(network=other).restore(path)
    assert "Found 6 Python objects" in outcome(unmatched.assert_existing_objects_matched)
    assert not any(variable.numpy().any() for variable in other.variables)


def test_a_checkpoint_holds_one_mesh_alone(names, values, tmp_path):
    layouts = {name: dtensor.Layout.replicated(LINE, value.ndim) for name, value in values.items()}
    two = {"grid": names["MLP"](values, names["LAYOUTS"]), "line": names["MLP"](values, layouts)}
    with pytest.raises(tf.errors.UnknownError, match="must have same mesh configuration"):
        tf.train.Checkpoint(**two).write(str(tmp_path / "two"))
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_the_text_layer_lacks_its_words(vectorizer, tmp_path):
    path = tf.train.Checkpoint(layer=vectorizer).save(str(tmp_path / "checkpoint"))
    assert any("idf_weights" in name for name, _shape in tf.train.list_variables(path))
    assert "story" in vectorizer.get_vocabulary()
    assert not any(b"story" in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.drill_all
def test_the_numbers_of_the_two_vocabularies():
    (words, columns) = re.search(
        r"have ([\d,]+) words in common, and (\d+) of these", json.dumps(CELLS)
    ).groups()
    reviews = data.load_imdb("built-in")
    vocabularies = []
    for texts in (reviews.train.texts[:4096], reviews.test.texts):
        layer = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
        layer.adapt(texts)
        vocabularies.append(layer.get_vocabulary()[1:])  # [UNK] is no word
    ours, theirs = vocabularies
    assert len(set(ours) & set(theirs)) == int(words.replace(",", ""))
    assert sum(our == their for our, their in zip(ours, theirs, strict=True)) == int(columns)
