"""What `faster` reads out of recorded times, so that the text and the records cannot part."""

import pytest

from course_lib.measured.files import load
from tests.course import from_lesson

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
