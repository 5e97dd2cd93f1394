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


# Times of steps, of which `faster` speaks

pictures = from_lesson("faster", "picture")
TIMES = load("faster-batch_sizes").step_times
PARTS = load("faster-step_parts").step_parts


def test_one_device_is_far_ahead_at_64_reviews_and_behind_at_the_largest_batch():
    behind = [each.eight_devices_seconds / each.one_device_seconds for each in TIMES]
    assert behind[0] > 3
    assert behind[-1] < 0.95
    few, many = TIMES[0].eight_devices_seconds, TIMES[3].eight_devices_seconds
    assert (TIMES[3].batch_size, many < 2 * few) == (512, True)


def test_the_times_owe_nothing_to_the_allocator():
    assert max(max(each.one_device_page_faults, each.eight_devices_page_faults) for each in TIMES) < 500


def test_most_of_a_step_is_spent_on_collectives_and_little_on_what_is_shared():
    for parts in PARTS.values():
        assert parts.collectives > parts.step / 2
        assert parts.reviews < parts.step / 5
        assert parts.loop < parts.single < parts.means


def test_pictures_tell_their_figures():
    assert f"{1e3 * PARTS.data.adam:.2f}" in pictures.parts_picture().text
    assert f"{1e3 * PARTS.data.loop:.2f}" in pictures.gains_picture().text
    assert f"{1e3 * TIMES[0].eight_devices_seconds:.1f}" in pictures.times_picture().alt


def test_the_lines_cross_near_4096_reviews_and_an_estimate_from_far_away_is_wrong():
    assert [each.batch_size for each in TIMES if each.eight_devices_seconds < each.one_device_seconds] == [
        8192,
        16_384,
    ]
    break_even = from_lesson("faster.checks", "_break_even")

    def estimate(*sizes):
        times = [each for each in TIMES if each.batch_size in sizes]
        one = {each.batch_size: each.one_device_seconds for each in times}
        return break_even(one, {each.batch_size: each.eight_devices_seconds for each in times})

    assert estimate(64, 512) == pytest.approx(3800, rel=0.02)
    assert estimate(2048, 4096) == pytest.approx(4700, rel=0.01)


def test_what_the_cures_leave_is_the_bare_step():
    parts = PARTS.data
    bare = parts.dispatch + parts.reviews + parts.adam + parts.collectives
    assert f"{1e3 * bare:.2f}" == f"{1e3 * parts.step:.2f}" == "3.90"
    assert f"{1e3 * parts.collectives:.2f}" == "2.72"
    assert parts.collectives / bare == pytest.approx(0.7, abs=0.02)
    assert parts.dispatch < bare / 10
    assert parts.loop - bare == pytest.approx(0.3e-3, abs=0.05e-3)


def test_what_each_cure_saves_is_what_the_text_says():
    parts = PARTS.data
    gains = [parts.means - parts.single, parts.single - parts.unread, parts.unread - parts.loop]
    assert [f"{1e3 * gain:.1f}" for gain in gains] == ["0.7", "1.7", "1.4"]
    assert [f"{1e3 * each:.1f}" for each in (parts.one_means, parts.loop)] == ["1.7", "4.2"]
    assert [f"{1e3 * (parts.loop - parts.one_loop):.1f}", f"{1e3 * parts.one_loop:.2f}"] == ["3.4", "0.75"]
    told = pictures.gains_picture().text
    assert all(f"{1e3 * parts[part]:.2f}" in told for part in ("means", "unread", "one_means", "one_loop"))
