"""What `one_step` says and does not show: its own cells, held against NumPy.

The whole training has bands: it amplifies the last bit.
"""

import linecache

import numpy as np
import pytest

import course_lib
from tests.course import COURSE
from tests.tf import oracles

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TRAINS = ("load", "layouts", "distribute", "values", "model", "train-step", "first-run", "batch")


@pytest.fixture(scope="module")
def lesson():
    """The names that the cells up to the first training make; the live run is a list of records."""
    cells = {cell.cell_id: cell.source for cell in COURSE.lesson("one_step").cells}
    names = {"course_lib": course_lib}
    for cell_id in TRAINS:
        source = cells[cell_id].replace("await live(run, ", "dict(records=list(run), ")
        linecache.cache[cell_id] = len(source), None, source.splitlines(keepends=True), cell_id
        exec(compile(source, cell_id, "exec"), names)
    return names


def test_a_step_is_that_of_numpy_and_every_device_makes_it(lesson):
    values = {name: value.astype(np.float64) for name, value in lesson["values"].items()}
    rows, labels = lesson["train_x"][:64].astype(np.float64), lesson["train_y"][:64]
    loss, gradients, _moments = oracles.numpy_gradients(values, rows, labels)
    model = lesson["MLP"](lesson["values"], lesson["LAYOUTS"])
    mean_loss, _accuracy = lesson["train_step"](model, *lesson["batch_at"](0), 1e-2)
    assert float(mean_loss) == pytest.approx(loss / 64, abs=1e-6)
    for name, gradient in gradients.items():
        after = [copy.numpy() for copy in dtensor.unpack(getattr(model, name).read_value())]
        assert np.ptp(after, axis=0).max() == 0
        expected = lesson["values"][name] - 1e-2 * gradient
        np.testing.assert_allclose(after[0], expected, atol=1e-5)


def test_three_epochs_train(lesson):
    records = lesson["history"]["records"]
    last = np.mean([(record["loss"], record["accuracy"]) for record in records[-20:]], axis=0)
    assert len(records) == 378
    assert 0.9 < records[0]["loss"] < 1.2
    assert last[0] < 0.3
    assert last[1] > 0.85


@pytest.mark.usefixtures("optimized")
def test_normalisation_takes_four_of_the_ten_all_reduces(lesson):
    def payloads(model):
        found = lesson["collectives"](lesson["train_step"], model, *lesson["batch_at"](0), 1e-2)
        return sorted(each.payload_bytes for each in found)

    plain = lesson["MLP"](lesson["values"], lesson["LAYOUTS"], normalise=False)
    assert payloads(plain) == [4, 4, 8, 192, 384, 230_400]
    assert payloads(lesson["probe"]) == [4, 4, 8, *[192] * 5, 384, 230_400]


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
