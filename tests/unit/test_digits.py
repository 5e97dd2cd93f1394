"""Drawn digits: their glyphs, and the pen. What they share with garments: test_drawn_images.py."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.data.chance import around_zero, words, words_below
from course_lib.data.digits import GLYPHS, HAND, make_digits
from course_lib.data.drawing import Glyph, Hand, draw, num_words

STILL = Hand(0, 0, 0, 0, 0, 0, 0, (16, 16))


@pytest.fixture(scope="module")
def digits():
    return make_digits(3_000, 2026)


def still(text: str) -> np.ndarray:
    """Returns the one picture of a glyph that is drawn without differences."""
    glyph = Glyph(text)
    return draw(glyph, STILL, np.zeros((1, num_words([glyph])), np.int64))[0].astype(int)


def test_pictures_have_paper_ink_and_soft_edges(digits):
    images, _labels = digits
    assert (images.max(axis=(1, 2)) == 255).all()
    assert (np.median(images, axis=(1, 2)) == 0).all()
    assert 0.03 < np.mean((images > 0) & (images < 255)) < 0.25
    assert (images.sum(axis=(1, 2)) > 20 * 255).all()  # nothing has left the picture


@pytest.mark.parametrize("glyph", [glyph for ways in GLYPHS for glyph in ways], ids=lambda glyph: glyph.text)
def test_the_lines_of_a_glyph_use_all_of_its_points_and_stay_in_the_box(glyph):
    points, lines = glyph.text.split("|")
    assert set(lines) - {" "} == {chr(ord("a") + at) for at in range(len(points.split()))}
    assert (abs(glyph.points) <= (30, 50)).all()


# --- The pen


def test_a_line_is_as_wide_as_the_pen_and_as_long_as_it_says():
    """Eight pixels in the middle, between rows 13 and 14; the pen reaches one pixel, and fades over one."""
    image = still("10,50 50,50|ab")
    assert (image[13:15, 10:18] > 240).all()  # places are 0.6 pixels apart: between them a line is thinner
    middle = image[:, 14].tolist()
    assert middle == middle[::-1]
    assert [value > 0 for value in middle] == [row in range(13, 15) for row in range(28)]
    across = image[13].tolist()
    assert across == across[::-1]
    assert [value > 0 for value in across] == [column in range(9, 19) for column in range(28)]


def test_lines_go_through_their_points():
    image = still("0,0 60,50 0,100 30,20|abcd")
    for x, y in ((0, 0), (60, 50), (0, 100), (30, 20)):
        column, row = 14 + (x - 30) / 5, 14 + (y - 50) / 5
        near = image[int(row - 1) : int(row + 1), int(column - 1) : int(column + 1)]
        assert near.max() == 255


def test_a_closed_line_has_no_gap_and_no_corner():
    """A ring of eight points: about as far from the middle everywhere, and ink in every direction."""
    ring = still("30,30 44,36 50,50 44,64 30,70 16,64 10,50 16,36|abcdefgha")
    rows, columns = np.nonzero(ring > 128)
    distances = np.hypot(rows + 0.5 - 14, columns + 0.5 - 14)
    half_black = ((24**2 + 8**2) / 2) ** 0.5 / 16  # pixels from the line: the square is halfway to the rim
    assert abs(distances - 4).max() < half_black + 0.1
    angles = np.sort(np.arctan2(rows - 13.5, columns - 13.5))
    assert np.diff(angles, append=angles[0] + 2 * np.pi).max() < 0.5


def test_a_hand_that_leans_moves_the_upper_end_to_the_right_and_the_lower_one_to_the_left():
    glyph, leaning = Glyph("30,0 30,100|ab"), Hand(0, 0, 0, 0, 0, 0, 40, (16, 16))
    even = np.full((1, num_words([glyph])), 2**31 - 1)  # halves of a word that add up to nearly nothing
    image = draw(glyph, leaning, even)[0].astype(int)
    middle = [(row * np.arange(28)).sum() / max(row.sum(), 1) for row in image]
    assert middle[5] - middle[22] == pytest.approx(0.4 * 17, abs=0.5)


def test_a_shift_moves_a_picture_whole():
    glyph, shifting = Glyph("20,30 40,70|ab"), Hand(0, 0, 0, 0, 3, 0, 0, (16, 16))
    drawn = np.full((1, num_words([glyph])), 0xFFFF)  # 0 in the middle of the triangle
    there = draw(glyph, shifting, drawn)[0]
    drawn[0, 4] = 0xFFFFFFFF  # the greatest: 3 pixels to the right
    assert np.array_equal(draw(glyph, shifting, drawn)[0][:, 3:], there[:, :-3])


# --- Chance


def test_words_come_in_the_order_of_the_generator():
    one, other = random.Random(5), random.Random(5)
    assert words(2, 3, one).reshape(-1).tolist() == [other.getrandbits(32) for _word in range(6)]


@given(bound=st.integers(1, 10_000), word=st.integers(0, 2**32 - 1))
def test_words_below_a_bound_are_in_their_range(bound, word):
    assert 0 <= words_below(bound, np.array([word]))[0] < bound
    assert words_below(bound, np.array([0, 2**32 - 1])).tolist() == [0, bound - 1]


@given(spread=st.integers(0, 2**20), word=st.integers(0, 2**32 - 1))
def test_words_around_zero_reach_the_spread_at_both_sides(spread, word):
    assert abs(around_zero(spread, np.array([word]))[0]) <= spread
    assert around_zero(spread, np.array([0, 0xFFFF, 2**32 - 1])).tolist() == [-spread, 0, spread]


def test_a_hand_draws_within_its_bounds():
    assert HAND.pen_places[0] > 8  # wider than its soft edge, so that the middle of a line is black
