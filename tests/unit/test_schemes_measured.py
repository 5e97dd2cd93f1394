"""The schemes beside one device: what was measured is whole, agrees, and comes back as it was saved."""

import re

import pytest

from course_lib import CourseError
from course_lib.measured import schemes
from course_lib.measured.schemes import Difference, SchemeRun, SchemesMeasured
from course_lib.training.records import EpochRecord, History, StepRecord

SCHEMES = ["one", "data", "model", "spatial"]


@pytest.mark.parametrize("source", schemes.SOURCES)
def test_every_run_is_whole(source):
    measured = schemes.load(source)
    assert measured.how["command"] == "make results"
    assert list(measured.equal) == list(measured.continued) == SCHEMES
    steps_per_epoch = {"imdb": 25_000 // 64, "stand_in": 8_100 // 64}[source]
    for run in measured.equal.values():
        assert [step.step for step in run.history.steps] == list(range(1, 3 * steps_per_epoch + 1))
        assert [epoch.epoch for epoch in run.history.epochs] == [1, 2, 3]
    for run in measured.continued.values():
        first = steps_per_epoch + 1
        assert [step.step for step in run.history.steps] == list(range(first, first + steps_per_epoch))
        assert {step.epoch for step in run.history.steps} == {2}
        assert [(epoch.epoch, epoch.step) for epoch in run.history.epochs] == [(2, 2 * steps_per_epoch)]


@pytest.mark.parametrize("source", schemes.SOURCES)
def test_the_first_steps_agree_and_every_scheme_learns_as_well(source):
    measured = schemes.load(source)
    for runs in (measured.equal, measured.continued):
        one = runs["one"].history.epochs[-1].test_accuracy
        for scheme in SCHEMES[1:]:
            first = runs[scheme].first
            assert first.loss < 1e-4
            assert first.accuracy <= 1 / 64
            assert first.weights < 1e-3
            assert abs(runs[scheme].history.epochs[-1].test_accuracy - one) < 0.02


@pytest.mark.parametrize("source", schemes.SOURCES)
def test_what_the_page_says_of_where_runs_part_holds(source):
    measured = schemes.load(source)
    parted = [first_apart(measured.equal, scheme) for scheme in SCHEMES[1:]]
    assert max(parted) < measured.equal["one"].history.epochs[0].step
    assert max(parted) - min(parted) <= 3
    assert max(measured.continued[scheme].whole.loss for scheme in SCHEMES[1:]) < 1e-4


def first_apart(runs, scheme):
    """Returns the first step whose losses differ by more than a thousandth."""
    pairs = zip(runs[scheme].history.steps, runs["one"].history.steps, strict=True)
    return next(ours.step for ours, theirs in pairs if abs(ours.loss - theirs.loss) > 1e-3)


def measured_from(*losses):
    steps = [StepRecord(at, 2, loss, 0.5, 64, 0.0) for at, loss in enumerate(losses, start=len(losses) + 1)]
    history = History(steps, [EpochRecord(2, 2 * len(losses), 0.5, 0.25, 0.5, 0.75, None)])
    compared = SchemeRun(history, Difference(1e-7, 0.0, 2e-6), Difference(0.25, 0.0625, 1.5))
    runs = {"one": SchemeRun(history), "data": compared}
    return SchemesMeasured({"command": "a test"}, runs, runs)


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    measured = measured_from(0.75, 0.5, 0.25)
    schemes.save(measured, "imdb", tmp_path)
    monkeypatch.setattr(schemes, "_FOLDER", tmp_path)
    assert schemes.sources() == ("imdb",)
    assert schemes.load("imdb") == measured


def test_the_differences_are_told_for_the_first_steps_and_for_all():
    assert schemes.differences(measured_from(0.75, 0.5, 0.25).equal) == (
        "Largest differences from one device: loss of a step, accuracy of a step, weights\n"
        "  1.0e-07   0.0000   2.0e-06   data parallel, the first 20 steps\n"
        "  2.5e-01   0.0625   1.5e+00   data parallel, all 3 steps"
    )


def test_the_picture_names_every_run():
    assert repr(schemes.picture(measured_from(0.5).equal)) == (
        "Picture: loss and accuracy, step by step, of one device, data parallel."
    )


def run_with(losses):
    return SchemeRun(
        History([StepRecord(at, 1, loss, 0.5, 64, 0.0) for at, loss in enumerate(losses, start=1)])
    )


def test_the_picture_of_distances_says_where_a_loss_leaves_that_of_one_device_and_how_far():
    near, apart = [0.5] * 19 + [0.50025], [0.5] * 10 + [0.4375, 0.625] + [0.5] * 8
    runs = {"one": run_with([0.5] * 20), "data": run_with(near), "model": run_with(apart)}
    figure = schemes.loss_differences(runs)
    assert repr(figure) == (
        "Distance of the loss from one device: the largest in 10 steps\n"
        "data parallel: at most 0.00025, in step 20\n"
        "model parallel: above 0.001 first in step 11; at most 0.12, in step 12"
    )
    lines = re.findall(r'<path d="(M[^"]*L[^"]*)"', figure.svg)
    assert [line.count("L") for line in lines] == [1, 1]  # a point for each ten steps
    assert [float(line.split()[-1]) for line in lines] == sorted(
        (float(line.split()[-1]) for line in lines), reverse=True
    )  # the scheme that is farther stands higher: y grows downwards


def test_what_was_not_measured_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(schemes, "_FOLDER", tmp_path)
    assert schemes.sources() == ()
    with pytest.raises(CourseError, match="'mnist'"):
        schemes.load("mnist")
