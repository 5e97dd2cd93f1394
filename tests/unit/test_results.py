"""What was measured on the real reviews is whole, good enough, and comes back as it was saved."""

import dataclasses

import numpy as np
import pytest

from course_lib import CourseError, i18n
from course_lib.measured import results
from course_lib.training.records import EpochRecord, History, StepRecord


def last_accuracies(measured, run):
    return [seed[-1].test_accuracy for seed in measured.runs[run].epochs]


def test_what_the_lesson_says_of_the_real_reviews_holds_for_every_seed():
    measured = results.load("04_imdb")
    assert measured.how["command"] == "make results"
    assert list(measured.runs) == ["tutorial", "he", "unit", "ours"]
    assert [round(value, 2) for value in last_accuracies(measured, "ours")] == [0.86] * 3
    assert [round(value, 2) for value in last_accuracies(measured, "unit")] == [0.74] * 3
    raw = last_accuracies(measured, "tutorial") + last_accuracies(measured, "he")
    assert max(raw) < 0.70
    he = last_accuracies(measured, "he")
    assert (round(min(he), 2), round(max(he), 2)) == (0.51, 0.69)
    for seed in measured.runs["unit"].epochs:
        rising = [epoch.test_accuracy for epoch in seed]
        assert rising == sorted(rising)


def test_what_the_page_on_initial_values_says_of_the_stand_in_holds_for_every_seed():
    measured = results.load("04_stand_in")
    assert measured.how["data"] == "built-in, 8100 + 2000"
    assert min(last_accuracies(measured, "he") + last_accuracies(measured, "ours")) > 0.85
    assert max(last_accuracies(measured, "tutorial") + last_accuracies(measured, "unit")) < 0.62


def test_every_run_is_whole():
    for run in results.load("04_imdb").runs.values():
        assert len(run.curves.steps) == 3 * (25_000 // 64)
        assert [[epoch.epoch for epoch in seed] for seed in run.epochs] == [[1, 2, 3]] * 3
        assert tuple(run.curves.epochs) == run.epochs[0]


DIGITS = {
    "07_mnist": ("mnist 3.0.1, 60000 + 10000", 60_000),
    "07_mnist_5000": ("mnist 3.0.1, 5000 + 5000", 5_000),
    "07_stand_in": ("built-in, 5000 + 5000", 5_000),
}


@pytest.mark.parametrize("name", DIGITS)
def test_runs_on_digits_are_whole_and_train_on_every_example(name):
    data, num_examples = DIGITS[name]
    measured = results.load(name)
    run = measured.runs["adam"]
    assert (measured.how["command"], measured.how["data"]) == ("make results", data)
    assert [[epoch.epoch for epoch in seed] for seed in run.epochs] == [[1, 2, 3]] * 3
    for epoch in run.curves.epochs:
        sizes = [step.examples for step in run.curves.steps if step.epoch == epoch.epoch]
        losses = [step.loss for step in run.curves.steps if step.epoch == epoch.epoch]
        hits = [step.accuracy for step in run.curves.steps if step.epoch == epoch.epoch]
        assert sum(sizes) == num_examples
        assert sizes[:-1] == [128] * (num_examples // 128)
        assert epoch.train_loss == pytest.approx(np.dot(sizes, losses) / num_examples, abs=1e-4)
        assert epoch.train_accuracy == pytest.approx(np.dot(sizes, hits) / num_examples, abs=1e-4)


def test_what_is_said_of_the_digits_holds_for_every_seed():
    assert min(last_accuracies(results.load("07_mnist"), "adam")) >= 0.97


FASHION = {
    "10_fashion": ("fashion_mnist 3.0.1, 60000 + 10000", 60_000, 10_000, 10, 128),
    "10_fashion_5000": ("fashion_mnist 3.0.1, 5000 + 1000", 5_000, 1_000, 3, 256),
    "10_stand_in": ("built-in, 5000 + 1000", 5_000, 1_000, 3, 256),
}


@pytest.mark.parametrize("name", FASHION)
def test_runs_on_garments_are_whole_and_answer_the_same_without_a_strategy(name):
    data, num_train, num_test, epochs, batch_size = FASHION[name]
    measured = results.load(name)
    run, seeds = measured.runs["adam"], measured.how["seeds"].split(", ")
    assert (measured.how["command"], measured.how["data"]) == ("make results", data)
    assert {"tensorflow", "keras", "python", "strategy", "optimizer"} < set(measured.how)
    assert [[epoch.epoch for epoch in seed] for seed in run.epochs] == [[*range(1, epochs + 1)]] * len(seeds)
    for epoch in run.curves.epochs:
        sizes = [step.examples for step in run.curves.steps if step.epoch == epoch.epoch]
        losses = [step.loss for step in run.curves.steps if step.epoch == epoch.epoch]
        assert sum(sizes) == num_train
        assert sizes[:-1] == [batch_size] * (num_train // batch_size)
        assert epoch.train_loss == pytest.approx(np.dot(sizes, losses) / num_train, abs=1e-4)
    for epochs_of_seed, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == epochs_of_seed[-1].test_accuracy
        assert (restored.test_accuracy * num_test) % 1 == pytest.approx(0, abs=1e-6)
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-5


def test_the_real_garments_are_learnt_as_well_as_the_course_promises():
    assert min(last_accuracies(results.load("10_fashion"), "adam")) >= 0.89


def measured_from(*accuracies_of_seeds):
    steps = [StepRecord(step, 1, 0.5 / step, 0.25 * step, 64, 0.0) for step in (1, 2)]
    seeds = tuple(
        tuple(EpochRecord(at, 2 * at, 0.4, 0.5, 0.3, value, None) for at, value in enumerate(values, start=1))
        for values in accuracies_of_seeds
    )
    run = results.SeededRun(History(steps, list(seeds[0])), seeds)
    return results.Measured("99_test", {"command": "a test"}, {"ours": run})


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    measured = measured_from([0.75, 0.5], [0.25, 1.0])
    results.save(measured, tmp_path)
    monkeypatch.setattr(results, "_FOLDER", tmp_path)
    assert results.names() == ("99_test",)
    assert dataclasses.asdict(results.load("99_test")) == dataclasses.asdict(measured)


def test_a_smaller_last_batch_is_saved_too(tmp_path, monkeypatch):
    sizes = [4, 4, 2, 4, 4, 2]
    steps = [StepRecord(at, 1 + at // 4, 0.5, 0.5, size, 0.0) for at, size in enumerate(sizes, start=1)]
    epochs = tuple(EpochRecord(at, 3 * at, 0.5, 0.5, 0.5, 0.5, None) for at in (1, 2))
    run = results.SeededRun(History(steps, list(epochs)), (epochs,))
    results.save(results.Measured("99_test", {}, {"adam": run}), tmp_path)
    monkeypatch.setattr(results, "_FOLDER", tmp_path)
    assert results.load("99_test").runs["adam"].curves.steps == steps


RESTORED = [results.Restored(0.5, 0, 0.0), results.Restored(0.875, 1200, 2.5e-7)]


def with_restored():
    runs = [
        dataclasses.replace(measured_from([0.25, each.test_accuracy]).runs["ours"], restored=(each,))
        for each in RESTORED
    ]
    return results.Measured("99_test", {}, {"adam": results.together(runs)})


def test_seeds_that_were_measured_apart_are_put_together_and_saved(tmp_path, monkeypatch):
    measured = with_restored()
    run = measured.runs["adam"]
    assert [seed[-1].test_accuracy for seed in run.epochs] == [0.5, 0.875]
    assert run.restored == tuple(RESTORED)
    assert run.curves.epochs == list(run.epochs[0])
    results.save(measured, tmp_path)
    monkeypatch.setattr(results, "_FOLDER", tmp_path)
    assert dataclasses.asdict(results.load("99_test")) == dataclasses.asdict(measured)


def test_restored_models_stand_below_the_trained_ones():
    assert results.restored_table(with_restored()) == (
        "Test accuracies at the end, the lowest and the highest over the seeds\n"
        "0.500–0.875   trained under the strategy\n"
        "0.500–0.875   restored without one (answered otherwise: 1,200; largest difference: 2e-07)"
    )


def test_there_may_be_no_results(tmp_path, monkeypatch):
    for folder in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(results, "_FOLDER", folder)
        assert results.names() == ()


def test_the_spread_is_the_least_and_the_greatest_of_each_epoch():
    run = measured_from([0.75, 0.5], [0.25, 1.0], [0.5, 0.5]).runs["ours"]
    assert run.spread("test_accuracy") == ((0.25, 0.75), (0.5, 1.0))
    assert run.spread("train_loss") == ((0.4, 0.4), (0.4, 0.4))


def test_the_table_has_the_spread_after_each_epoch():
    runs = {
        **measured_from([0.75, 0.5], [0.25, 1.0]).runs,
        "adam": measured_from([0.9, 0.95], [0.9, 0.96]).runs["ours"],
    }
    assert results.table(results.Measured("99_test", {}, runs)) == (
        "Test accuracies, the lowest and the highest over the seeds\n"
        "    epoch 1      epoch 2\n"
        "0.250–0.750  0.500–1.000   unit rows, He's initial values\n"
        "0.900–0.900  0.950–0.960   Adam"
    )


def test_japanese_columns_of_the_table_line_up():
    i18n.set_language("ja")
    runs = measured_from([0.75, 0.5], [0.25, 1.0]).runs
    _title, head, row = results.table(results.Measured("99_test", {}, runs)).splitlines()
    assert head == "  エポック1    エポック2"
    assert row.startswith("0.250–0.750  0.500–1.000   ")


def test_unknown_results_are_refused_by_name():
    with pytest.raises(CourseError, match="'05_imdb'") as caught:
        results.load("05_imdb")
    assert "04_imdb" in caught.value.allowed


def test_a_run_without_a_title_shows_its_name():
    assert results.title("unit") == "unit rows"
    assert results.title("one_more") == "one_more"
