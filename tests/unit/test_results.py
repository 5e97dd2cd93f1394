"""What was measured on the real reviews is whole, good enough, and comes back as it was saved."""

import dataclasses

import pytest

from course_lib import CourseError
from course_lib.measured import results
from course_lib.training.records import EpochRecord, History, StepRecord


def test_three_epochs_on_the_real_reviews_reach_what_the_lesson_says():
    measured = results.load("03_imdb")
    assert measured.how["command"] == "make results"
    assert list(measured.histories) == ["tutorial", "he", "unit", "ours"]
    last = {run: history.epochs[-1] for run, history in measured.histories.items()}
    assert all(epoch.epoch == 3 for epoch in last.values())
    assert last["ours"].test_accuracy >= 0.83
    assert max(last[run].test_accuracy for run in ("tutorial", "he", "unit")) < 0.80
    for history in measured.histories.values():
        assert len(history.steps) == 3 * (25_000 // 64)
    train_losses = [epoch.train_loss for epoch in measured.histories["ours"].epochs]
    assert train_losses == sorted(train_losses, reverse=True)


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    steps = [StepRecord(step, 1, 0.5 / step, 0.25 * step, 64, 0.0) for step in (1, 2)]
    history = History(steps, [EpochRecord(1, 2, 0.4, 0.5, 0.3, 0.75, None)])
    measured = results.Measured("99_test", {"command": "a test"}, {"ours": history})
    results.save(measured, tmp_path)
    monkeypatch.setattr(results, "_FOLDER", tmp_path)
    assert results.names() == ("99_test",)
    assert dataclasses.asdict(results.load("99_test")) == dataclasses.asdict(measured)


def test_unknown_results_are_refused_by_name():
    with pytest.raises(CourseError, match="'04_imdb'") as caught:
        results.load("04_imdb")
    assert "03_imdb" in caught.value.allowed


def test_a_run_without_a_title_shows_its_name():
    assert results.title("unit") == "unit rows"
    assert results.title("one_more") == "one_more"
