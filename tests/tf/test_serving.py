"""Exports: the same answers as the model, from any mesh, in any process; and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import data
from course_lib.data.text import Reviews, TextExamples
from course_lib.data.tfidf import fit
from course_lib.dtensor import fetch_layout, pack, to_numpy
from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.optimizers.adam import Adam
from course_lib.training.run import train
from lessons.lesson_06_save_and_serve.serving import fresh
from lessons.lesson_06_save_and_serve.serving.exporting import export
from lessons.lesson_06_save_and_serve.serving.loading import load, restore_model

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

DIMS = (400, 8, 2)
PLANS = {
    "one": None,
    "data": data_parallel(8),
    "model": model_parallel(4, 2),
    "spatial": spatial_parallel(2, 2, 2),
    "features": Plan("features", MeshSpec([("feature", 8)]), {"features": "feature"}),
}
REVIEWS = data.load_imdb("built-in")
ALL_TEXTS = REVIEWS.test.texts[:64]


@pytest.fixture(scope="module")
def vectorizer():
    return replace(fit(REVIEWS.train.texts[:400], DIMS[0]), unit_length=True)


@pytest.fixture(scope="module")
def values():
    made, random = initial_values(dims=DIMS), np.random.default_rng(3)
    made["hidden_bias"] = random.normal(size=DIMS[1]).astype(np.float32)
    made["logits_bias"] = random.normal(size=DIMS[2]).astype(np.float32)
    made["moving_mean"] = random.uniform(0, 1, DIMS[1]).astype(np.float32)
    made["moving_variance"] = random.uniform(0.5, 2, DIMS[1]).astype(np.float32)
    return made


@pytest.fixture(scope="module")
def served(vectorizer, values, tmp_path_factory):
    return load(export(MLP(values), vectorizer, tmp_path_factory.mktemp("served") / "export"))


def by_numpy(values, rows):
    """Returns the probabilities in float64, from the formulas."""
    wide = {name: value.astype(np.float64) for name, value in values.items()}
    hidden = np.maximum(rows.astype(np.float64) @ wide["hidden_weight"] + wide["hidden_bias"], 0)
    normal = (hidden - wide["moving_mean"]) / np.sqrt(wide["moving_variance"] + 1e-5)
    powers = np.exp(normal @ wide["logits_weight"] + wide["logits_bias"])
    return powers / powers.sum(axis=1, keepdims=True)


# --- What comes out


@pytest.mark.parametrize("name", PLANS)
def test_an_export_from_any_mesh_holds_the_values_and_answers_as_the_formulas(
    name, vectorizer, values, tmp_path
):
    loaded = load(export(MLP(values, PLANS[name]), vectorizer, tmp_path / "export"))
    for variable, value in values.items():
        assert getattr(loaded.module.model, variable).numpy().tobytes() == value.tobytes()
    expected = by_numpy(values, vectorizer(ALL_TEXTS))
    np.testing.assert_allclose(loaded(ALL_TEXTS), expected, atol=1e-6)


def test_the_export_makes_the_rows_of_the_training_to_the_bit(monkeypatch, tmp_path):
    few = [TextExamples(part.texts[:200], part.labels[:200]) for part in (REVIEWS.train, REVIEWS.test)]
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path))
    made = data.tf_idf(Reviews("built-in", *few), num_tokens=50)

    class Rows(tf.Module):
        def __init__(self):
            super().__init__()
            self.vectorizer = made.vectorizer.module

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, texts):
            return self.vectorizer(texts)

    tf.saved_model.save(Rows(), str(tmp_path / "rows"))
    loaded = tf.saved_model.load(str(tmp_path / "rows"))
    for part, texts in ((made.train, few[0].texts), (made.test, few[1].texts)):
        assert loaded(tf.constant(texts)).numpy().tobytes() == part.features.tobytes()


def test_a_fresh_process_without_the_library_answers_the_same(served):
    answers = fresh.ask(served.path, ALL_TEXTS)
    assert answers.shape == (len(ALL_TEXTS), 2)
    np.testing.assert_allclose(answers, served(ALL_TEXTS), atol=1e-6)
    assert "course_lib" not in fresh.PROGRAM


TEXTS = st.lists(st.one_of(st.sampled_from(ALL_TEXTS), st.text(st.characters(codec="utf-8"))), min_size=1)


@settings(max_examples=50)
@given(texts=TEXTS, data=st.data())
def test_a_text_has_one_answer_alone_and_in_any_batch(served, texts, data):
    at = data.draw(st.integers(0, len(texts) - 1))
    order = data.draw(st.permutations(range(len(texts))))
    together = served(texts)
    np.testing.assert_allclose(served([texts[at]])[0], together[at], atol=1e-6)
    np.testing.assert_allclose(served([texts[place] for place in order]), together[order], atol=1e-6)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-6)


def test_what_is_loaded_has_no_layouts(served, vectorizer, values, tmp_path):
    loaded = load(export(MLP(values, PLANS["spatial"]), vectorizer, tmp_path / "export"))
    weight = loaded.module.model.hidden_weight
    assert weight.shape == DIMS[:2]
    assert weight.device.endswith("CPU:0")
    assert not isinstance(weight, dtensor.DVariable)
    with pytest.raises(tf.errors.InvalidArgumentError, match="FetchLayout expects a tensor"):
        fetch_layout(weight)


def test_no_file_of_an_export_from_shards_names_a_mesh(vectorizer, values, tmp_path):
    folder = export(MLP(values, PLANS["spatial"]), vectorizer, tmp_path / "export")
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(b"hidden_weight" in held for held in files.values())
    for word in (b"feature=", b"batch=", b"sharding", b"CPU:7", b"dtensor"):
        assert not any(word in held for held in files.values()), word
    layout = PLANS["spatial"].layout(("features", "hidden"))
    blocks = {block.tobytes() for block in layout.of(DIMS[:2]).split(values["hidden_weight"])}
    assert len(blocks) == 4
    for block in blocks:
        assert sum(block in held for name, held in files.items() if ".data-" in name) == 1


# --- Checkpoints


def test_a_sharded_checkpoint_is_restored_on_one_device_without_the_slots(values, tmp_path):
    random = np.random.default_rng(0)
    rows = random.random((64, DIMS[0])).astype(np.float32), random.integers(0, 2, 64)
    trained = MLP(values, PLANS["spatial"])
    with train(trained, rows, epochs=1, batch_size=16, optimizer=Adam(1e-3), checkpoints=tmp_path) as run:
        list(run)
    one = MLP(initial_values(seed=1, dims=DIMS))
    saved = restore_model(CheckpointFolder(tmp_path), one)
    assert saved.step == 4
    found = one.values()
    assert all(found[name].tobytes() == value.tobytes() for name, value in trained.values().items())


# --- What a loaded signature takes


ROWS_ON_MESHES = [
    (data_parallel(8).mesh, [UNSHARDED, UNSHARDED], [UNSHARDED, UNSHARDED]),
    (data_parallel(8).mesh, ["batch", UNSHARDED], ["batch", UNSHARDED]),
    (data_parallel(8).mesh, [UNSHARDED, "batch"], [UNSHARDED, UNSHARDED]),
    (model_parallel(4, 2).mesh, ["batch", "model"], ["batch", UNSHARDED]),
    (MeshSpec([("batch", 4)]), ["batch", UNSHARDED], ["batch", UNSHARDED]),
]


@pytest.mark.parametrize(("mesh", "given", "answered"), ROWS_ON_MESHES)
def test_the_signature_of_rows_takes_any_dtensor_and_stays_usable(mesh, given, answered, served, vectorizer):
    rows, expected = vectorizer(ALL_TEXTS), served(ALL_TEXTS)
    found = served.of_rows(rows=pack(rows, LayoutSpec(given, mesh)))["probabilities"]
    assert fetch_layout(found).sharding_specs == tuple(answered)
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)
    plain = served.of_rows(rows=tf.constant(rows))["probabilities"]
    np.testing.assert_allclose(plain, expected, atol=1e-6)
