"""What benchmarks write; each runs in `make bench`, weekly."""

import numpy as np
import pytest

from benchmarks import results, schemes
from course_lib.data.examples import Examples
from course_lib.data.imdb import VectorizedReviews, load_imdb
from course_lib.measured import files


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    return tmp_path


def test_what_exports_answer_is_written_with_how_it_was_measured(monkeypatch):
    reviews, found = load_imdb("built-in"), {"models": {}, "answers": {"a review": 0.5}}
    monkeypatch.setattr(results.data, "load_imdb", lambda _source: reviews)
    monkeypatch.setattr(results.exports, "measure", lambda _reviews: found)
    written = results.MEASUREMENTS["save_and_serve-export"]()
    assert written["how"]["data"] == "built-in, 8100 + 2000"
    assert written["how"]["plan"] == "spatial_parallel()"
    assert written["answers"] == found["answers"]


@pytest.mark.drill_all
def test_garments_are_trained_on_from_each_seed_and_restored_without_a_strategy(monkeypatch, folder):
    monkeypatch.setattr(results, "SEEDS", (0, 1))
    files.save("99_test", results.trained_on_garments("built-in", 140, 33, num_replicas=2, epochs=2))
    found = files.load("99_test")
    assert found.how.data == "built-in, 140 + 33"
    assert (found.how.strategy, found.how.batch_size) == ("MirroredStrategy, 2 replicas", "64 × 2")
    assert found.how.seeds == "0, 1"
    run = found.runs.adam
    assert (run.batch_size, run.last_batch_size, len(run.losses)) == (128, 12, 4)
    assert run.epochs[0][0].train_loss != run.epochs[1][0].train_loss
    for epochs, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == pytest.approx(epochs[-1].test_accuracy)
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-6


@pytest.mark.drill_all
def test_schemes_are_compared_step_by_step_and_continue_one_checkpoint():
    random = np.random.default_rng(0)
    features = random.standard_normal((1_280, 1200), np.float32) / np.float32(35)
    examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
    reviews = VectorizedReviews(examples, examples)
    equal = schemes.from_equal_values(reviews, epochs=1)
    continued = schemes.from_a_checkpoint(reviews, epochs=2)
    for runs in (equal, continued):
        assert list(runs) == ["one", "data", "model", "spatial"]
        for scheme, run in runs.items():
            assert ("first" in run) == (scheme != "one")
            if scheme != "one":
                assert run.first == run.whole  # of 20 steps the first 20 are all
                assert 0 < run.first.loss < 1e-5
    assert [epoch.step for epoch in equal["model"].epochs[0]] == [20]
    assert [epoch.step for epoch in continued["model"].epochs[0]] == [40]
    assert len(continued["model"].losses) == 20
