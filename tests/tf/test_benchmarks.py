"""What benchmarks write, measured in small; each runs whole in `make results`, by hand."""

import numpy as np
import pytest

from benchmarks import garments, schemes
from benchmarks.results import MEASUREMENTS
from course_lib.data.examples import Examples
from course_lib.data.imdb import VectorizedReviews
from course_lib.measured.files import names


def test_each_file_has_its_measurement():
    tables = {"keras_layouts-support", "strategies-support"}  # tools.cases
    assert {*names()} == {*MEASUREMENTS} | tables


@pytest.mark.drill_all
def test_garments_are_trained_on_from_each_seed_and_restored_without_a_strategy(monkeypatch):
    monkeypatch.setattr(garments, "SEEDS", (0, 1))
    found = garments.measure("built-in", 140, 33, num_replicas=2, epochs=2)
    assert found["how"]["data"] == "built-in, 140 + 33"
    run = found["runs"]["adam"]
    assert (run.steps_per_epoch, len(run.losses)) == (2, 4)
    assert run.epochs[0][0].train_loss != run.epochs[1][0].train_loss
    for epochs, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == pytest.approx(epochs[-1].test_accuracy)
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-6


@pytest.mark.drill_all
def test_schemes_are_compared_step_by_step_and_continue_one_checkpoint():
    random = np.random.default_rng(0)
    features = random.standard_normal((320, 1200), np.float32) / np.float32(35)
    examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
    compared = schemes.Schemes(VectorizedReviews(examples, examples))
    equal, continued = compared.from_equal_values(epochs=1), compared.from_a_checkpoint()
    for runs, last_step in ((equal, 5), (continued, 10)):
        assert list(runs) == ["one", "data", "model", "spatial"]
        assert [run.epochs[0][0].step for run in runs.values()] == [last_step] * 4
        for scheme in list(runs)[1:]:
            assert len(runs[scheme].losses) == 5
            assert 0 < runs[scheme].whole.loss < 1e-5  # at this rate rounding grows later
