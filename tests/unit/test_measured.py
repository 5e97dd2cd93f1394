"""What was measured on the real data: whole, as the lessons and pages say, and shown as it was recorded."""

import numpy as np
import pytest

from benchmarks.histories import run_of
from course_lib import i18n
from course_lib.measured import files, machine, step_parts, trainings
from course_lib.measured.files import Record, load
from course_lib.training.records import EpochRecord, History, StepRecord
from tests.course import from_lesson

BATCH_SIZES = from_lesson("a_run.explorer", "BATCH_SIZES")
REVIEWS = from_lesson("save_and_serve.explorer", "REVIEWS")

SCHEMES = ["one", "data", "model", "spatial"]
SOURCES = {"imdb": 25_000, "stand_in": 8_100}


def last_accuracies(name, run):
    return [seed[-1].test_accuracy for seed in load(name).runs[run].epochs]


# What the records hold


@pytest.mark.parametrize(
    ("name", "data", "num_examples", "batch_size", "epochs"),
    [
        ("a_run-imdb", "imdb_reviews/plain_text 1.0.0, 25000 + 25000", 24_960, 64, 3),  # whole batches only
        ("a_run-stand_in", "built-in, 8100 + 2000", 8_064, 64, 3),
        ("from_scratch-mnist", "mnist 3.0.1, 60000 + 10000", 59_904, 128, 3),
        ("from_scratch-mnist_5000", "mnist 3.0.1, 5000 + 5000", 4_992, 128, 3),
        ("from_scratch-stand_in", "built-in, 5000 + 5000", 4_992, 128, 3),
        ("custom_training-fashion", "fashion_mnist 3.0.1, 60000 + 10000", 60_000, 128, 10),
        ("custom_training-fashion_5000", "fashion_mnist 3.0.1, 5000 + 1000", 5_000, 256, 3),
        ("custom_training-stand_in", "built-in, 5000 + 1000", 5_000, 256, 3),
    ],
)
def test_trainings_are_whole_and_count_every_example(name, data, num_examples, batch_size, epochs):
    found = load(name)
    assert (found.how.command, found.how.data) == ("make results", data)
    for run in found.runs.values():
        assert [[epoch.epoch for epoch in seed] for seed in run.epochs] == [[*range(1, epochs + 1)]] * 3
        history = trainings.history(run)
        for epoch in history.epochs:
            steps = [step for step in history.steps if step.epoch == epoch.epoch]
            sizes = [step.examples for step in steps]
            assert sum(sizes) == num_examples
            assert set(sizes[:-1]) == {batch_size}
            loss = np.dot(sizes, [step.loss for step in steps]) / num_examples
            assert loss == pytest.approx(epoch.train_loss, abs=1e-4)


@pytest.mark.parametrize(("source", "num_examples"), SOURCES.items())
def test_every_scheme_is_whole_agrees_at_first_and_learns_as_well(source, num_examples):
    found, per_epoch = load(f"splitting_the_model-schemes_{source}"), num_examples // 64
    assert list(found.equal) == list(found.continued) == SCHEMES
    for runs, first_step, num_epochs in ((found.equal, 1, 3), (found.continued, per_epoch + 1, 1)):
        for run in runs.values():
            steps = trainings.history(run).steps
            wanted = range(first_step, first_step + num_epochs * per_epoch)
            assert [step.step for step in steps] == list(wanted)
            assert [steps[0].epoch, run.epochs[0][0].epoch] == [1 + (first_step > 1)] * 2
        for scheme in SCHEMES[1:]:
            first = runs[scheme].first
            assert first.loss < 1e-4
            assert first.accuracy <= 1 / 64
            assert first.weights < 1e-3
            apart = runs[scheme].epochs[0][-1].test_accuracy - runs["one"].epochs[0][-1].test_accuracy
            assert abs(apart) < 0.02


# What lessons and pages say of them


def test_on_the_real_reviews_both_changes_are_needed_with_every_seed():
    assert [round(value, 2) for value in last_accuracies("a_run-imdb", "ours")] == [0.86] * 3
    assert [round(value, 2) for value in last_accuracies("a_run-imdb", "unit")] == [0.74] * 3
    he = last_accuracies("a_run-imdb", "he")
    assert (round(min(he), 2), round(max(he), 2)) == (0.51, 0.69)
    assert max(last_accuracies("a_run-imdb", "tutorial")) < 0.70
    for seed in load("a_run-imdb").runs.unit.epochs:
        rising = [epoch.test_accuracy for epoch in seed]
        assert rising == sorted(rising)


def test_on_the_stand_in_hes_values_decide_with_every_seed():
    assert min(last_accuracies("a_run-stand_in", "he") + last_accuracies("a_run-stand_in", "ours")) > 0.85
    assert (
        max(last_accuracies("a_run-stand_in", "tutorial") + last_accuracies("a_run-stand_in", "unit")) < 0.62
    )


@pytest.mark.parametrize("source", SOURCES)
def test_from_equal_values_runs_part_in_the_first_epoch_and_from_a_checkpoint_they_do_not(source):
    found = load(f"splitting_the_model-schemes_{source}")
    parted = [
        next(
            at for at, gap in enumerate(np.abs(np.subtract(run.losses, found.equal.one.losses))) if gap > 1e-3
        )
        for scheme, run in found.equal.items()
        if scheme != "one"
    ]
    assert max(parted) < SOURCES[source] // 64
    assert max(parted) - min(parted) <= 3
    assert max(found.continued[scheme].whole.loss for scheme in SCHEMES[1:]) < 1e-4


def test_real_digits_and_garments_are_learnt_as_well_as_the_course_promises():
    assert min(last_accuracies("from_scratch-mnist", "adam")) >= 0.97
    assert min(last_accuracies("custom_training-fashion", "adam")) >= 0.89


@pytest.mark.parametrize(
    "name", ["custom_training-fashion", "custom_training-fashion_5000", "custom_training-stand_in"]
)
def test_models_that_were_restored_without_a_strategy_answer_the_same(name):
    run = load(name).runs.adam
    for epochs, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == epochs[-1].test_accuracy
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-5


def test_eight_devices_have_a_fixed_cost_that_large_batches_pay_for():
    found = load("a_run-batch_sizes")
    times = found.step_times
    assert (found.machine.cores, found.machine.threads) == (2, 1)
    assert tuple(each.batch_size for each in times) == BATCH_SIZES
    eight = [each.eight_devices_seconds for each in times if each.batch_size <= 512]
    assert max(eight) < 1.25 * min(eight)
    speedups = [each.one_device_seconds / each.eight_devices_seconds for each in times]
    assert speedups[0] < 0.5
    assert speedups[-1] > 1


def test_the_exports_answer_as_the_model_does_and_call_one_sentence_good():
    found = load("save_and_serve-export")
    assert list(found.models) == ["trained", "restored", "shards"]
    assert {round(model.accuracy, 2) for model in found.models.values()} == {0.86}
    assert found.models.restored.otherwise == found.models.shards.otherwise == 0
    assert tuple(found.answers) == REVIEWS
    assert [text for text, good in found.answers.items() if good > 0.5] == [REVIEWS[0]]


# The loader


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    sizes = [4, 4, 2, 4, 4, 2]
    steps = [StepRecord(at, 2 + at // 10, 0.5, 0.25, size, 0.0) for at, size in enumerate(sizes, start=4)]
    epochs = [EpochRecord(at, 3 * at, 0.5, 0.5, 0.5, 0.5, None) for at in (2, 3)]
    content = {"how": {"command": "a test"}, "runs": {"adam": run_of([History(steps, epochs)], restored=[])}}
    files.save("a_run-test", content)
    assert files.names() == ("a_run-test",)
    assert load("a_run-test") == content
    history = trainings.history(load("a_run-test").runs.adam)
    assert [step.examples for step in history.steps] == sizes
    assert [step.step for step in history.steps] == [4, 5, 6, 7, 8, 9]
    assert history.epochs == epochs


# What is shown


def run_with(*accuracies_of_seeds, **further):
    steps = [StepRecord(step, 1, 0.5 / step, 0.25 * step, 64, 0.0) for step in (1, 2)]
    seeds = [
        [EpochRecord(at, 2 * at, 0.4, 0.5, 0.3, value, None) for at, value in enumerate(values, start=1)]
        for values in accuracies_of_seeds
    ]
    return run_of([History(steps, epochs) for epochs in seeds], **further)


def test_the_accuracies_have_the_spread_after_each_epoch():
    runs = {"ours": run_with([0.75, 0.5], [0.25, 1.0]), "adam": run_with([0.9, 0.95], [0.9, 0.96])}
    assert trainings.accuracies(runs) == (
        "Test accuracies, the lowest and the highest over the seeds\n"
        "    epoch 1      epoch 2\n"
        "0.250–0.750  0.500–1.000   unit rows, He's initial values\n"
        "0.900–0.900  0.950–0.960   Adam"
    )
    i18n.set_language("ja")
    assert trainings.accuracies(runs).splitlines()[1] == "  エポック1    エポック2"


def test_restored_models_stand_below_the_trained_ones():
    restored = [
        Record(test_accuracy=0.5, otherwise=0, largest_difference=0.0),
        Record(test_accuracy=0.875, otherwise=1200, largest_difference=2.5e-7),
    ]
    assert trainings.restored({"adam": run_with([0.25, 0.5], [0.25, 0.875], restored=restored)}) == (
        "Test accuracies at the end, the lowest and the highest over the seeds\n"
        "0.500–0.875   trained under the strategy\n"
        "0.500–0.875   restored without one (answered otherwise: 1,200; largest difference: 2e-07)"
    )


def test_exports_stand_below_their_model():
    export = Record(accuracy=0.86, otherwise=1200, largest_difference=3.5e-7)
    assert trainings.exports({"trained": Record(accuracy=0.861), "shards": export}) == (
        "Accuracy, reviews answered otherwise, largest difference of a probability\n"
        "0.861                     trained, on its mesh\n"
        "0.860   1,200    3.5e-07  exported straight from its shards"
    )


def test_the_picture_of_parts_sets_them_beside_the_whole():
    parts = Record(loop=0.005, packing=0.0003, tiny=0.0005, share=0.0012, exchanges=0.0020)
    assert repr(step_parts.figure({"data": parts})) == (
        "What a training step takes\n"
        "data parallel, mesh 8: packing on the host 0.30 ms, dispatch 0.50 ms, arithmetic 0.70 ms,"
        " collectives 2.00 ms, step of the loop 5.00 ms"
    )


@pytest.mark.parametrize(
    ("cores", "threads", "operations", "sentences"),
    [
        (2, 1, 2, "2 cores. Each operation uses 1 thread. 2 operations run at a time."),
        (1, 0, 0, "1 core. TensorFlow chooses how many threads an operation uses. TensorFlow chooses"),
    ],
)
def test_a_machine_is_told_in_sentences(cores, threads, operations, sentences):
    here = Record(cores=cores, threads=threads, operations=operations, tensorflow="2.21.0")
    assert machine.sentences(here).startswith(f"TensorFlow 2.21.0 on {sentences}")
