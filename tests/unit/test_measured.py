"""What was measured is what lessons and pages say of it."""

import pytest

from course_lib.measured.files import load
from tests.course import from_lesson

REVIEWS = from_lesson("save_and_serve.explorer", "REVIEWS")

SCHEMES = ("data", "model", "spatial")


def last_accuracies(name, run="adam"):
    return [seed[-1].test_accuracy for seed in load(name).runs[run].epochs]


def test_on_the_real_reviews_both_changes_are_needed_with_every_seed():
    he, unit, ours = (last_accuracies("coupled_rows-imdb", run) for run in ("he", "unit", "ours"))
    assert [round(value, 2) for value in ours] == [0.86] * 3
    assert (round(min(unit), 2), round(max(unit), 2)) == (0.72, 0.75)
    assert (round(min(he), 2), round(max(he), 2)) == (0.51, 0.59)
    for seed in load("coupled_rows-imdb").runs.unit.epochs:
        rising = [epoch.test_accuracy for epoch in seed]
        assert rising == sorted(rising)


def test_on_the_stand_in_hes_values_decide_with_every_seed():
    tutorial, he, unit, ours = (
        last_accuracies("coupled_rows-stand_in", run) for run in load("coupled_rows-imdb").runs
    )
    assert min(he + ours) >= 0.80
    assert max(tutorial + unit) < 0.64


def test_on_the_real_reviews_the_loss_comes_to_rest_where_the_learning_rate_falls():
    last = {
        name: [[epoch.test_loss for epoch in seed[-3:]] for seed in run.epochs]
        for name, run in load("a_run-imdb").runs.items()
    }
    assert max(max(losses) - min(losses) for losses in last["falling"]) < 0.002
    assert max(max(losses) - min(losses) for losses in last["constant"]) == pytest.approx(0.012, abs=5e-4)
    assert [losses[-1] > losses[-2] for losses in last["constant"]] == [True, True, False]


@pytest.mark.parametrize("source", ["imdb", "stand_in"])
def test_schemes_agree_with_one_device_but_for_late_losses_on_the_real_reviews(source):
    found = load(f"any_mesh-schemes_{source}")
    for scheme in SCHEMES:
        run, continued = found.equal[scheme], found.continued[scheme]
        assert max(run.first.loss, continued.whole.loss) < 1e-6
        assert (run.whole.loss < 1e-6) == (source == "stand_in")
        assert run.losses == found.equal.data.losses
        ours, theirs = run.epochs[0][-1], found.equal.one.epochs[0][-1]
        assert abs(ours.test_accuracy - theirs.test_accuracy) < 0.002


def test_real_digits_and_garments_are_learnt_as_well_as_the_course_promises():
    assert min(last_accuracies("from_scratch-mnist")) >= 0.97
    assert min(last_accuracies("custom_training-fashion")) >= 0.89


@pytest.mark.parametrize("data", ["fashion", "fashion_5000", "stand_in"])
def test_models_that_were_restored_without_a_strategy_answer_the_same(data):
    run = load(f"custom_training-{data}").runs.adam
    for epochs, restored in zip(run.epochs, run.restored, strict=True):
        assert restored.test_accuracy == epochs[-1].test_accuracy
        assert restored.otherwise == 0
        assert restored.largest_difference < 1e-5


def test_the_exports_answer_as_the_model_does_and_call_one_sentence_good():
    found = load("save_and_serve-export")
    assert {round(model.accuracy, 2) for model in found.models.values()} == {0.86}
    assert found.models.restored.otherwise == found.models.shards.otherwise == 0
    assert tuple(found.answers) == REVIEWS
    assert [text for text, good in found.answers.items() if good > 0.5] == [REVIEWS[0]]
