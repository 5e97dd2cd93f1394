"""What lesson 03 says: its own code, run as a script, held against NumPy and one device.

Only claims about a whole training have bands: it amplifies the last bit.
"""

import ast
import linecache

import numpy as np
import pytest

import course_lib
from course_lib.exercises import checks
from tests.kernels import ROOT
from tests.tf import oracles
from tools.lesson.sources import Course

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

CELLS = {cell.cell_id: cell for cell in Course.here().lesson("03_one_step").cells}
OLD_NAMES = {"W1": "hidden_weight", "b1": "hidden_bias", "W2": "logits_weight", "b2": "logits_bias"}


@pytest.fixture(scope="module")
def lesson():
    """The names that the lesson's cells make; the live run is a list of records."""
    names = {name: getattr(course_lib, name) for name in ("check", "predict", "reveal", "score")}
    for cell_id, cell in CELLS.items():
        if cell.kind == "code" and cell_id != "setup":
            names["course_lib"] = course_lib
            source = cell.source.replace("await live.watch(run, ", "dict(records=list(run), ")
            linecache.cache[cell_id] = len(source), None, source.splitlines(keepends=True), cell_id
            exec(compile(source, cell_id, "exec"), names)
    return names


def numpy_gradients(lesson, start=0):
    wide = {OLD_NAMES[name]: value.astype(np.float64) for name, value in lesson["values"].items()}
    rows = slice(start, start + 64)
    inputs = lesson["train_x"][rows].astype(np.float64)
    loss, gradients, _moments = oracles._numpy_gradients(wide, inputs, lesson["train_y"][rows])
    return loss, {name: gradients[old] for name, old in OLD_NAMES.items()}


def held(tensor):
    return dtensor.unpack(tensor)[0].numpy()


def relative(ours, theirs):
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


def test_a_step_is_that_of_numpy_and_every_device_makes_it(lesson):
    model = lesson["MLP"](lesson["values"], lesson["LAYOUTS"])
    mean_loss, _accuracy = lesson["train_step"](model, *lesson["batch_at"](0), 1e-2)
    loss, gradients = numpy_gradients(lesson)
    assert float(mean_loss) == pytest.approx(loss / 64, abs=1e-6)
    for name, gradient in gradients.items():
        after = [copy.numpy() for copy in dtensor.unpack(getattr(model, name).read_value())]
        assert np.ptp(after, axis=0).max() == 0
        np.testing.assert_allclose(after[0], lesson["values"][name] - 1e-2 * gradient, atol=1e-5)


def test_three_epochs_train_and_without_normalisation_they_do_not(lesson):
    def end(records):
        return np.mean([(record["loss"], record["accuracy"]) for record in records[-20:]], axis=0)

    records = lesson["history"]["records"]
    assert len(records) == 378
    assert 0.9 < records[0]["loss"] < 1.2
    assert end(records)[0] < 0.3
    assert end(records)[1] > 0.85
    plain = lesson["MLP"](lesson["values"], lesson["LAYOUTS"], normalise=False)
    assert end(list(lesson["train"](plain, epochs=1)))[0] > 0.6


def test_rounding_hides_no_mistake_in_the_first_steps_and_in_float64(lesson):
    assert max(lesson["in_float32"][:5]) < 4e-6
    assert max(lesson["in_float64"]) < 4e-9


def test_unlike_number_types_raise_in_a_function(lesson):
    x, y = lesson["batch_at"](0, number_type="float64")
    with pytest.raises(TypeError, match="type float32 that does not match type float64"):
        lesson["train_step"](lesson["probe"], x, y, 1e-2)


def test_the_iterator_of_a_dtensor_dataset_cannot_be_saved(tmp_path, lesson):
    dataset = dtensor.DTensorDataset(
        tf.data.Dataset.range(16),
        mesh=lesson["mesh"],
        layouts=lesson["LAYOUTS"]["y"],
        global_batch_size=8,
        batch_dim="batch",
    )
    batches = iter(dataset)
    assert len(dtensor.unpack(next(batches))[0]) == 1
    with pytest.raises(AttributeError, match="_dataset"):
        tf.train.Checkpoint(batches=batches).save(str(tmp_path / "here"))


def test_gradients_of_parts_add_up_only_where_rows_do_not_see_each_other(lesson):
    assert max(lesson["relative_differences"](lesson["plain"]).values()) < 1e-6
    _loss, whole = numpy_gradients(lesson)
    partial = lesson["partial_gradients"](lesson["probe"])
    sums = {name: held(lesson["all_reduced"](lesson["stacked"](partial, name))) for name in whole}
    off = {name: relative(sums[name], whole[name]) for name in whole}
    assert off == pytest.approx(lesson["normalised"], abs=1e-3)
    assert [round(off[name], 2) for name in whole] == [0.70, 0.86, 0.34, 0.19]
    by_dtensor = lesson["gradients"](lesson["probe"], *lesson["batch_at"](0))
    assert all(relative(held(by_dtensor[name]), whole[name]) < 1e-5 for name in whole)


@pytest.mark.usefixtures("optimized")
def test_normalisation_takes_four_of_the_ten_all_reduces(lesson):
    collectives, batch = lesson["collectives"], lesson["batch_at"](0)
    ten = [each.payload_bytes for each in lesson["step_collectives"]]
    six = [each.payload_bytes for each in collectives(lesson["train_step"], lesson["plain"], *batch, 1e-2)]
    assert sorted(six) == [4, 4, 8, 192, 384, 230400]
    assert sorted(ten) == sorted([*six, 192, 192, 192, 192])
    assert ten[:2] == [192, 192]
    for model, count in (("probe", 4), ("plain", 1)):
        found = collectives(lesson["train_step"], lesson[model], *batch, 1e-2, combine=True)
        assert len(found) == count


def test_weighted_moments_make_padding_harmless(lesson):
    @tf.function
    def losses(model, x, y, weights):
        hidden = tf.nn.relu(x @ model.W1 + model.b1)
        mean, variance = lesson["moments_of_reviews"](hidden, weights)
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, normal @ model.W2 + model.b2)

    weights = np.expand_dims(lesson["weights"], 1).astype("float32")
    weights = lesson["distribute"](weights, lesson["LAYOUTS"]["x"])
    found = np.concatenate(dtensor.unpack(losses(lesson["probe"], *lesson["packed"], weights)))
    np.testing.assert_allclose(found[:20], lesson["alone"], atol=1e-5)
    assert float(lesson["on_eight"]) == pytest.approx(float(lesson["on_one"]), abs=1e-5)
    assert np.abs(lesson["difference"]).max() < 1e-5
    assert abs(lesson["losses"][:20].mean() - np.mean(lesson["alone"])) > 0.1


def test_the_solutions_are_accepted(lesson):
    assert checks.check("03-layouts", lesson["image_layouts"]).passed
    assert checks.check("03-moments", lesson["moments_of_reviews"]).passed
    assert checks.check("03-moments", tf.function(lesson["moments_of_reviews"])).passed


def definitions(source):
    """Returns the code of each function and class, without docstrings."""
    found = {}
    for node in ast.parse(source.replace("dtensor.UNSHARDED", "WHOLE")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                del node.body[0]
            found[node.name] = ast.unparse(node)
    return found


def test_the_plain_program_has_the_code_of_the_lesson():
    code = (cell.source for cell in CELLS.values() if cell.kind == "code" and "await" not in cell.source)
    lesson = definitions("\n".join(code))
    program = definitions((ROOT / "notebooks/plain/03_one_step.py").read_text())
    assert len(program) == 6
    assert program.items() <= lesson.items()
