"""Exports: the same answers as the model, from any mesh, in any process; and what is refused."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import CourseError, data
from course_lib.data.text import Reviews, TextExamples
from course_lib.data.tfidf import fit
from course_lib.dtensor import fetch_layout, pack, to_numpy, unpack
from course_lib.errors import CourseWarning
from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.optimizers.adam import Adam
from course_lib.training.run import train
from lessons.lesson_06_save_and_serve import serving
from lessons.lesson_06_save_and_serve.serving import fresh
from lessons.lesson_06_save_and_serve.serving.exporting import SIGNATURE, export
from lessons.lesson_06_save_and_serve.serving.loading import load
from lessons.lesson_06_save_and_serve.serving.module import TextClassifier
from lessons.lesson_06_save_and_serve.serving.restoring import restore_model

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


def test_more_texts_than_go_at_a_time_come_back_in_their_order(served, monkeypatch):
    expected = served(ALL_TEXTS)
    monkeypatch.setattr("lessons.lesson_06_save_and_serve.serving.loading._TEXTS_AT_A_TIME", 7)
    np.testing.assert_allclose(served(ALL_TEXTS), expected, atol=1e-6)


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


def test_the_moments_of_the_batch_would_answer_every_single_text_alike(vectorizer, values):
    model = MLP(values)
    expected = tf.nn.softmax(values["logits_bias"]).numpy()
    for text in ALL_TEXTS[:5]:
        alone = tf.nn.softmax(model(vectorizer([text])))[0].numpy()
        np.testing.assert_allclose(alone, expected, atol=1e-6)


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


def test_the_function_gets_handles_of_variables_and_the_weights_of_the_tokens_as_a_tensor(served):
    kinds = [(tensor.dtype, tuple(tensor.shape)) for tensor in served.signature.captured_inputs]
    variables = [kind for kind in kinds if kind == (tf.resource, ())]
    assert len(variables) >= 6
    assert (tf.float32, (DIMS[0],)) in kinds


def test_unknown_words_weigh_the_mean_of_all_and_get_one_answer(served, vectorizer):
    weights = vectorizer.idf_weights
    np.testing.assert_allclose(weights[0], weights[1:].mean(), rtol=1e-6)
    one, three = served(["Zorp", "Zorp! Blick quux."])
    assert one.tobytes() == three.tobytes()


def test_the_signature_is_plain_tensorflows(served):
    answers = served.signature(texts=tf.constant(ALL_TEXTS[:3]))
    assert set(answers) == {"probabilities"}
    assert answers["probabilities"].shape == (3, 2)
    assert served.module.signatures[SIGNATURE] is served.signature


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


def test_a_checkpoint_of_another_model_is_refused_and_nothing_changes(values, tmp_path):
    folder = CheckpointFolder(tmp_path)
    with pytest.raises(CourseError, match="no whole checkpoint"):
        restore_model(folder, MLP(values))
    folder.save(0, {}, model=MLP(initial_values(dims=(400, 9, 2))))
    model = MLP(values)
    with pytest.raises(CourseError, match="does not fit: its model/hidden_bias"):
        restore_model(folder, model)
    assert all(model.values()[name].tobytes() == value.tobytes() for name, value in values.items())


def test_a_checkpoint_that_a_training_removes_meanwhile_gives_way_to_its_newest(
    values, tmp_path, monkeypatch
):
    folder = CheckpointFolder(tmp_path, keep=1)
    folder.save(1, {}, model=MLP(initial_values(seed=5, dims=DIMS)))
    latest, looks = folder.latest, []

    def removed_after_the_look():
        found = latest()
        looks.append(found)
        if len(looks) == 1:
            CheckpointFolder(tmp_path, keep=1).save(2, {}, model=MLP(values))
        return found

    monkeypatch.setattr(folder, "latest", removed_after_the_look)
    model = MLP(initial_values(seed=1, dims=DIMS))
    assert restore_model(folder, model).step == 2
    assert all(model.values()[name].tobytes() == value.tobytes() for name, value in values.items())


def test_a_checkpoint_whose_data_vanishes_while_it_is_read_gives_way_too(values, tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, {}, model=MLP(values))
    newest = folder.save(2, {}, model=MLP(initial_values(seed=5, dims=DIMS)))

    def vanishing(*_inputs, **_keywords):
        for file in (tmp_path / newest).glob("*.data-*"):
            file.unlink()

    monkeypatch.setattr("lessons.lesson_06_save_and_serve.serving.restoring.require_fit", vanishing)
    model = MLP(initial_values(seed=1, dims=DIMS))
    with pytest.warns(CourseWarning, match="is damaged"):
        assert restore_model(folder, model).step == 1
    assert all(model.values()[name].tobytes() == value.tobytes() for name, value in values.items())


def test_a_server_reads_a_folder_without_touching_what_a_training_is_writing(values, tmp_path):
    CheckpointFolder(tmp_path).save(1, {}, model=MLP(values))
    writing = tmp_path / "unfinished-checkpoint-000002-step-000002"
    writing.mkdir()
    (writing / "variables.index").write_text("half")
    before = sorted(tmp_path.rglob("*"))
    assert restore_model(CheckpointFolder(tmp_path), MLP(initial_values(seed=1, dims=DIMS))).step == 1
    assert sorted(tmp_path.rglob("*")) == before


# --- Bad input


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_that_is_there_is_refused_and_untouched(served, vectorizer, values):
    before = content(served.path)
    with pytest.raises(CourseError, match="is there already"):
        export(MLP(initial_values(seed=7, dims=DIMS)), vectorizer, served.path)
    assert content(served.path) == before


@pytest.mark.parametrize("make", ["mkdir", "touch"])
def test_even_an_empty_folder_or_a_file_is_refused(make, vectorizer, values, tmp_path):
    getattr(tmp_path / "export", make)()
    with pytest.raises(CourseError, match="is there already"):
        export(MLP(values), vectorizer, tmp_path / "export")


def test_an_export_that_appears_meanwhile_is_not_replaced(vectorizer, values, tmp_path, monkeypatch):
    target = tmp_path / "export"
    monkeypatch.setattr(
        "lessons.lesson_06_save_and_serve.serving.exporting.force_to_disk", lambda _folder: target.mkdir()
    )
    with pytest.raises(CourseError, match="is there already"):
        export(MLP(values), vectorizer, target)
    assert list(tmp_path.iterdir()) == [target]
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing_half_written(error, vectorizer, values, tmp_path, monkeypatch):
    def failing(_folder):
        raise error

    monkeypatch.setattr("lessons.lesson_06_save_and_serve.serving.exporting.force_to_disk", failing)
    expected = CourseError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        export(MLP(values), vectorizer, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_folders_above_are_made_and_a_file_above_is_refused(vectorizer, values, tmp_path):
    assert export(MLP(values), vectorizer, tmp_path / "a" / "b" / "1").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="Nothing can be exported"):
        export(MLP(values), vectorizer, tmp_path / "file" / "1")


@pytest.mark.parametrize("path", ["", None, 5])
def test_what_names_no_folder_is_refused(path, vectorizer, values):
    with pytest.raises(CourseError, match="does not name a folder"):
        export(MLP(values), vectorizer, path)


@pytest.mark.parametrize("path", ["exports\0", "exports/\ud800"])
def test_what_no_disk_can_name_is_refused(path, vectorizer, values):
    with pytest.raises(CourseError, match="does not name a folder"):
        export(MLP(values), vectorizer, path)


def test_a_name_that_is_too_long_is_refused_and_makes_no_folder(vectorizer, values, tmp_path):
    with pytest.raises(CourseError, match=r"Nothing can be exported.*too long"):
        export(MLP(values), vectorizer, tmp_path / "a" / "b" / (300 * "x"))
    assert list(tmp_path.iterdir()) == []
    assert export(MLP(values), vectorizer, tmp_path / (250 * "x")).is_dir()


def test_a_folder_that_cannot_be_looked_into_is_refused(vectorizer, values, tmp_path, monkeypatch):
    def unreadable(_path, **_keywords):
        raise PermissionError(errno.EACCES, "Permission denied")

    model = MLP(values)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", unreadable)
        patch.setattr(Path, "exists", unreadable)
        with pytest.raises(CourseError, match="Nothing can be exported"):
            export(model, vectorizer, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_nowhere_is_refused(vectorizer, values, tmp_path):
    (tmp_path / "export").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CourseError, match="is there already"):
        export(MLP(values), vectorizer, tmp_path / "export")


def test_what_fails_removes_the_folders_above_that_it_made(vectorizer, values, tmp_path, monkeypatch):
    def full(_folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("lessons.lesson_06_save_and_serve.serving.exporting.force_to_disk", full)
    (tmp_path / "mine").mkdir()
    with pytest.raises(CourseError, match="No space left"):
        export(MLP(values), vectorizer, tmp_path / "mine" / "a" / "b" / "1")
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def test_an_export_that_stands_is_not_denied_by_what_comes_after(vectorizer, values, tmp_path, monkeypatch):
    def unconfirmed(_folder):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("lessons.lesson_06_save_and_serve.serving.exporting.force_entry_to_disk", unconfirmed)
    with pytest.warns(CourseWarning, match="was written, but not all.*Input/output error"):
        path = export(MLP(values), vectorizer, tmp_path / "export")
    assert load(path)(ALL_TEXTS[:2]).shape == (2, 2)


def test_the_names_of_new_folders_are_forced_to_the_disk_too(vectorizer, values, tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(
        "lessons.lesson_06_save_and_serve.serving.exporting.force_entry_to_disk", forced.append
    )
    export(MLP(values), vectorizer, tmp_path / "a" / "b" / "1")
    assert forced == [tmp_path / "a" / "b", tmp_path / "a", tmp_path]


@pytest.mark.parametrize("named", [True, False])
def test_only_an_error_that_names_the_folder_is_its_fault(named, vectorizer, values, tmp_path, monkeypatch):
    def failing(_module, folder, **_keywords):
        message = f"{folder}; No space left" if named else "OOM when allocating tensor"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setattr(tf.saved_model, "save", failing)
    with pytest.raises(CourseError if named else tf.errors.ResourceExhaustedError):
        export(MLP(values), vectorizer, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_is_the_folders_fault(vectorizer, values):
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("needs /dev/full")
    with pytest.raises(tf.errors.OpError, match="/dev/full"):  # what `_faults_of_the_folder` builds upon
        tf.io.write_file("/dev/full", "full")


def test_a_vocabulary_that_does_not_fit_is_refused(vectorizer, tmp_path):
    model = MLP(initial_values(dims=(300, 8, 2)))
    with pytest.raises(CourseError, match=r"rows of 400 numbers; the model takes the shape \(300,\)"):
        export(model, vectorizer, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], r"\[\] is not a list of texts"),
        ("a fine film", "'a fine film' is not a list"),
        (None, "None is not a list"),
        (5, "5 is not a list"),
        ([1.5], "place 0 of the list stands 1.5"),
        (["fine", None], "place 1 of the list stands None"),
        (["fine", b"bytes"], "place 1"),
        (["\ud800"], "place 0"),
        (np.array([]), "is not a list"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(served, texts, said):
    with pytest.raises(CourseError, match=said):
        served(texts)


def test_arrays_and_tuples_of_texts_are_taken(served):
    expected = served(list(ALL_TEXTS[:3]))
    for texts in (ALL_TEXTS[:3], np.array(ALL_TEXTS[:3])):
        assert served(texts).tobytes() == expected.tobytes()


def test_an_empty_text_has_an_answer(served):
    np.testing.assert_allclose(served([""]).sum(), 1, atol=1e-6)


def damaged(served, folder, change):
    shutil.copytree(served.path, folder)
    change(folder)
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "saved_model.pb").unlink(),
        lambda folder: (folder / "saved_model.pb").write_bytes(b"nonsense"),
        lambda folder: (folder / "variables" / "variables.index").unlink(),
        lambda folder: next(folder.glob("variables/*.data-*")).write_bytes(b""),
    ],
)
def test_a_damaged_export_is_refused(change, served, tmp_path):
    folder = damaged(served, tmp_path / "export", change)
    with pytest.raises(CourseError, match="There is no export of a text classifier"):
        load(folder)


def test_an_export_of_something_else_is_refused(tmp_path):
    with pytest.raises(CourseError, match="There is no export"):
        load(tmp_path / "nothing")

    class Other(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="rows")])
        def __call__(self, rows):
            return {"probabilities": rows}

    other = Other()
    tf.saved_model.save(other, str(tmp_path / "other"), signatures={SIGNATURE: other.__call__})
    with pytest.raises(CourseError, match="its signature takes rows"):
        load(tmp_path / "other")


def test_the_face_has_what_the_lesson_uses():
    assert serving.export is export
    assert serving.TextClassifier is TextClassifier


@pytest.mark.drill
def test_a_fresh_process_that_fails_says_why(tmp_path):
    with pytest.raises(CourseError, match=r"gave no answer: .*SavedModel file does not exist"):
        fresh.ask(tmp_path / "nothing", ["fine"])


def test_of_a_fresh_process_that_fails_the_last_line_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(fresh, "PROGRAM", "import sys; raise OSError('It is not at ' + sys.argv[1])")
    with pytest.raises(CourseError, match=r"gave no answer: OSError: It is not at .*nothing"):
        fresh.ask(tmp_path / "nothing", ["fine"])


def test_a_fresh_process_that_does_not_end_is_stopped(served, monkeypatch):
    monkeypatch.setattr(fresh, "_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(CourseError, match="did not end within its time"):
        fresh.ask(served.path, ["fine"])


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


def test_the_signature_of_rows_says_their_width_and_refuses_others(served):
    assert served.of_rows.structured_input_signature[1]["rows"].shape == (None, DIMS[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,399\], In\[1\]: \[400,8\]"):
        served.of_rows(rows=tf.zeros((2, DIMS[0] - 1)))


def test_every_device_reads_the_whole_of_a_loaded_variable(served, vectorizer, values):
    weight = served.module.model.hidden_weight
    rows = pack(vectorizer(ALL_TEXTS[:8]), data_parallel(8).layout(("batch", "features")))
    read = tf.function(lambda rows: (rows + 0, weight.read_value()))(rows)[1]
    assert all(np.array_equal(each, values["hidden_weight"]) for each in unpack(read))
    assert {(tensor.dtype, tuple(tensor.shape)) for tensor in served.of_rows.captured_inputs} == {
        (tf.resource, ())
    }


@pytest.mark.parametrize("entries", [[UNSHARDED], ["batch"]])
def test_the_signature_of_texts_refuses_every_dtensor_and_stays_usable(entries, served):
    texts = pack(np.array(ALL_TEXTS[:8]), LayoutSpec(entries, data_parallel(8).mesh))
    with pytest.raises(tf.errors.UnimplementedError, match="was expecting a DTensor"):
        served.signature(texts=texts)
    assert served(ALL_TEXTS[:2]).shape == (2, 2)


# --- What one checkpoint can hold


def laid_out(plan, value):
    axes = ("batch", "hidden")
    return dtensor.DVariable(pack(value, plan.layout(axes)))


def whole(variable):
    return to_numpy(variable) if isinstance(variable, dtensor.DVariable) else variable.numpy()


def test_dvariables_and_ordinary_variables_go_into_one_checkpoint(tmp_path):
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    content = {"sharded": laid_out(PLANS["model"], value), "ordinary": tf.Variable(3.0)}
    folder = CheckpointFolder(tmp_path)
    folder.save(1, {}, **content)
    changed = {"sharded": laid_out(PLANS["spatial"], 0 * value), "ordinary": tf.Variable(0.0)}
    plain = {"sharded": tf.Variable(0 * value), "ordinary": tf.Variable(0.0)}
    for restored in (changed, plain):
        folder.restore_latest(**restored)
        assert whole(restored["sharded"]).tobytes() == value.tobytes()
        assert float(restored["ordinary"]) == 3.0


def test_variables_on_two_meshes_are_refused_by_tensorflow_and_before_it(tmp_path):
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    content = {"a": laid_out(PLANS["model"], value), "b": laid_out(PLANS["data"], value)}
    with pytest.raises(tf.errors.UnknownError, match="must have same mesh configuration"):
        tf.train.Checkpoint(**content).write(str(tmp_path / "direct"))
    folder = CheckpointFolder(tmp_path / "folder")
    with pytest.raises(CourseError, match="lie on several meshes: batch 4 × model 2; batch 8"):
        folder.save(1, {}, **content)
    assert folder.names() == ()
    folder.save(1, {}, a=tf.Variable(value), b=tf.Variable(value))
    with pytest.raises(CourseError, match="several meshes"):
        folder.restore_latest(**content)
    for name, variable in content.items():
        own = CheckpointFolder(tmp_path / name)
        own.save(1, {}, variable=variable)
        restored = tf.Variable(0 * value)
        own.restore_latest(variable=restored)
        assert restored.numpy().tobytes() == value.tobytes()
