"""What was measured on the real reviews is whole, good enough, and comes back as it was saved."""

import dataclasses

import pytest

from course_lib import CourseError
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


def test_there_may_be_no_results(tmp_path, monkeypatch):
    for folder in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(results, "_FOLDER", folder)
        assert results.names() == ()


def test_the_spread_is_the_least_and_the_greatest_of_each_epoch():
    run = measured_from([0.75, 0.5], [0.25, 1.0], [0.5, 0.5]).runs["ours"]
    assert run.spread("test_accuracy") == ((0.25, 0.75), (0.5, 1.0))
    assert run.spread("train_loss") == ((0.4, 0.4), (0.4, 0.4))


def test_unknown_results_are_refused_by_name():
    with pytest.raises(CourseError, match="'05_imdb'") as caught:
        results.load("05_imdb")
    assert "04_imdb" in caught.value.allowed


def test_a_run_without_a_title_shows_its_name():
    assert results.title("unit") == "unit rows"
    assert results.title("one_more") == "one_more"
