"""Every benchmark runs and prints its rows; how fast it is says `make bench`, by hand and weekly.

Those that start several processes or kernels are for `make drill`: other tests hold what they measure.
"""

import dataclasses
import json
import sys

import numpy as np
import pytest

from benchmarks import (
    data,
    digits,
    explorer,
    garments,
    live,
    parts,
    replicas,
    results,
    rows,
    schemes,
    strategy_tutorial,
    sweep,
    training,
    worker,
)
from course_lib import strategies
from course_lib.data import mnist
from course_lib.data.examples import Examples
from course_lib.data.images import ImageSet
from course_lib.data.imdb import VectorizedReviews, load_imdb
from course_lib.measured import export
from course_lib.measured import results as measured
from course_lib.models.fashion import convolutional
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.mesh import MeshSpec
from course_lib.training.records import StepRecord
from course_lib.training.run import TrainingRun
from course_lib.training.settings import Settings


@pytest.mark.parametrize(
    ("measure", "num_rows"),
    [
        pytest.param(lambda: explorer._rows("a start", [explorer._start_seconds()], 1.0), 2, id="explorer"),
        pytest.param(lambda: training.measure(repeats=1, num_steps=2, schemes=("data",)), 2, id="training"),
        pytest.param(
            lambda: [data._measure_source(data.BUILT_IN, repeats=1)], 1, id="data", marks=pytest.mark.drill
        ),
        pytest.param(
            lambda: sweep.measure(repeats=1, batch_sizes=(64,)), 3, id="sweep", marks=pytest.mark.drill
        ),
        pytest.param(
            lambda: live.measure(repeats=1, epochs=1, schemes=("data",), num_examples=640, warm_up=0),
            4,
            id="live",
            marks=pytest.mark.drill,
        ),
        pytest.param(
            lambda: replicas.measure(
                repeats=1, iterated=(8,), split=(8,), counts=(2,), models=("small model",)
            ),
            5,
            id="replicas",
            marks=pytest.mark.drill,
        ),
        pytest.param(
            lambda: parts.rows(parts.measure(repeats=1, calls=1, schemes=("spatial",))),
            6,
            id="parts",
            marks=pytest.mark.drill,
        ),
    ],
)
def test_a_benchmark_runs_and_prints_its_rows(measure, num_rows, monkeypatch):
    monkeypatch.setattr(training, "jax_python", lambda: None)  # where JAX is, there are two rows more
    lines = rows.table(measure()).splitlines()
    assert len(lines) == 1 + num_rows
    assert all(" ms" in line for line in lines[1:])


def test_a_worker_answers_each_question_and_ends_with_the_block():
    double = "import sys\nfor line in sys.stdin: print(2 * float(line), flush=True)"
    with worker.worker([sys.executable, "-c", double]) as ask:
        assert [ask("1.5"), ask("4")] == [3.0, 8.0]


def test_collectives_that_are_measured_alone_are_all_reduces():
    gathered = Collective(Kind.ALL_GATHER, MeshSpec([("batch", 8)]), ("batch",), 64)
    with pytest.raises(RuntimeError, match="all-gather"):
        parts.summands(gathered, (16,))


def test_what_exports_answer_is_written_with_how_it_was_measured(monkeypatch, tmp_path):
    found, reviews = export.load(), load_imdb("built-in")
    monkeypatch.setattr(results.data, "load_imdb", lambda _source: reviews)
    monkeypatch.setattr(results.exports, "measure", lambda _reviews, how: dataclasses.replace(found, how=how))
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    written = json.loads(results.exported_model().read_text(encoding="utf-8"))
    assert written["how"]["data"] == "built-in, 8100 + 2000"
    assert written["how"]["plan"] == "spatial_parallel()"
    assert written["answers"] == found.answers


def test_garments_are_trained_on_from_each_seed_and_restored_without_a_strategy(monkeypatch, tmp_path):
    sizes = {"filters": (2, 4), "hidden": 8}
    monkeypatch.setattr(garments, "convolutional", lambda *given: convolutional(*given, **sizes))
    monkeypatch.setattr(results, "SEEDS", (0, 1))
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    path = results.trained_garments("99_test", "built-in", 140, 33, num_replicas=2, epochs=2)
    monkeypatch.setattr(measured, "_FOLDER", tmp_path)
    found = measured.load(path.stem)
    assert found.how["data"] == "built-in, 140 + 33"
    assert (found.how["strategy"], found.how["batch_size"]) == ("strategies.mirrored(2)", "64 × 2")
    assert found.how["seeds"] == "0, 1"
    run = found.runs["adam"]
    assert [step.examples for step in run.curves.steps] == [128, 12] * 2
    assert run.epochs[0][0].train_loss != run.epochs[1][0].train_loss
    for epochs, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == pytest.approx(epochs[-1].test_accuracy)
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-6


def test_a_restored_model_that_answers_otherwise_is_noticed():
    trained = np.array([[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]])
    other = np.array([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]])
    assert garments._compared(0.5, trained, other) == measured.Restored(0.5, 1, 0.25)


def test_the_tutorials_loop_under_a_strategy_trains_as_the_courses_does():
    """With one batch an epoch, which shuffling does not change."""
    two, images = strategies.mirrored(2), replicas.random_images(16)
    theirs = strategy_tutorial.training(two, replicas.small(two), images, 16)
    run = TrainingRun(replicas._trainer(two, replicas.small), images, settings=Settings(3, 16))
    expected = [record.loss for record in run if isinstance(record, StepRecord)]
    assert expected[0] > expected[2]
    assert [theirs() for _epoch in range(3)] == pytest.approx(expected, abs=1e-5)


@pytest.mark.drill
def test_digits_are_trained_on_from_each_seed_and_none_is_left_out():
    images = mnist.load("built-in", num_train=200, num_test=1).train
    run = digits.seeded_run(ImageSet("built-in", images, images.take(slice(60))), epochs=1, seeds=(0, 1))
    assert [step.examples for step in run.curves.steps] == [128, 72]
    (first,), (second,) = run.epochs
    assert first == run.curves.epochs[0]
    assert first.train_loss != second.train_loss


@pytest.mark.drill_all
def test_schemes_are_compared_step_by_step_and_continue_one_checkpoint():
    random = np.random.default_rng(0)
    features = random.standard_normal((640, 1200), np.float32) / np.float32(35)
    examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
    reviews = VectorizedReviews(examples, examples, vectorizer=None)
    equal = schemes.from_equal_values(reviews, epochs=2)
    continued = schemes.from_a_checkpoint(reviews, epochs=3)
    for runs in (equal, continued):
        assert list(runs) == ["one", "data", "model", "spatial"]
        for scheme, run in runs.items():
            assert (run.first is None) == (scheme == "one")
            if run.first is not None:
                assert run.first == run.whole  # of 20 steps the first 20 are all
                assert 0 < run.first.loss < 1e-5
    assert [step.step for step in equal["model"].history.steps] == list(range(1, 21))
    assert [step.step for step in continued["model"].history.steps] == list(range(11, 31))
