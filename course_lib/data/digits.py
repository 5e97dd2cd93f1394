"""Drawn digits, a stand-in for the handwritten ones of MNIST: made here, bit for bit the same everywhere.

Each digit is written in two to four ways, and each picture of one leans, stretches, shifts and wobbles in its
own way. So pixels alone say less than shapes: a linear model stays behind one with hidden layers
(tests/tf/test_images.py). The stand-in replaces no measurement on real digits, and the lessons say so.
"""

from __future__ import annotations

import random
from itertools import chain

import numpy as np
import numpy.typing as npt

from course_lib.data.chance import words, words_below
from course_lib.data.drawing import Glyph, Hand, draw, num_words
from course_lib.data.images import SIZE
from course_lib.specs.image_grid import Images

HAND = Hand(
    width_percent=30,
    height_percent=15,
    slant_percent=35,
    turn_percent=18,
    shift_pixels=4,
    wobble_units=9,
    upright_percent=12,
    pen_places=(14, 27),
)

# For each digit the ways in which it is written.
GLYPHS = tuple(
    tuple(Glyph(text) for text in ways)
    for ways in (
        (
            "30,0 12,12 4,36 4,64 12,90 30,100 48,90 56,64 56,36 48,12|abcdefghija",
            "40,2 16,10 4,40 8,80 28,100 50,84 56,44 46,10 24,4|abcdefghi",
        ),
        (
            "31,0 30,50 29,100|abc",
            "14,22 34,0 34,50 33,100|ab bcd",
            "14,20 32,0 32,50 32,100 14,100 50,100|ab bcd ef",
        ),
        (
            "6,24 16,5 36,0 54,14 52,36 34,62 4,98 31,97 58,98|abcdefg ghi",
            "6,22 20,3 42,2 54,20 46,46 22,80 4,96 8,82 24,86 40,98 60,92|abcdefghijk",
            "8,16 28,0 52,14 48,40 28,70 10,98 56,96|abcdef fg",
        ),
        (
            "8,10 30,0 52,14 46,38 26,46 50,56 56,78 34,100 4,90|abcde efghi",
            "6,2 52,2 26,42 50,52 56,76 34,100 4,90|ab bc cdefg",
            "6,14 26,0 50,10 50,32 32,46 52,58 52,86 26,100 4,84|abcdefghi",
        ),
        (
            "14,4 4,58 30,59 58,58 42,30 40,65 38,100|ab bcd efg",
            "44,0 2,66 31,66 60,66 44,50 44,100|ab bcd aef",
            "10,4 8,40 22,56 52,48 54,4 50,56 46,100|abcd efg",
        ),
        (
            "54,2 14,2 10,42 34,38 56,60 48,90 24,100 2,90|ab bc cdefgh",
            "52,4 18,6 8,46 30,38 52,50 52,80 30,98 6,92|ab bc cdefgh",
        ),
        (
            "48,4 26,16 8,48 6,78 24,100 48,90 54,68 36,52 12,66|abcdefghi",
            "36,0 16,36 4,72 16,98 42,96 52,76 40,58 18,62 6,80|abcdefghi",
        ),
        (
            "4,4 56,4 40,50 24,100|ab bcd",
            "4,4 56,4 40,50 24,100 18,52 56,52|ab bcd ef",
            "4,16 6,3 56,2 36,46 26,100|abc cde",
        ),
        (
            "46,10 28,0 10,12 14,34 32,48 52,66 50,90 30,100 8,90 8,66 28,48 48,30|abcdefghijkla",
            "30,0 46,12 44,36 30,46 14,36 14,12 54,60 52,88 30,100 8,88 6,60|abcdefa dghijkd",
        ),
        (
            "52,14 34,0 10,10 8,36 28,48 50,34 49,60 44,100|abcdefa agh",
            "52,14 34,0 10,10 8,36 28,48 50,34 52,52 46,84 28,100 8,92|abcdefa aghij",
        ),
    )
)
_WORDS = 2 + num_words(tuple(chain.from_iterable(GLYPHS)))  # the digit, its way, and what it takes to draw it


def make_digits(count: int, seed: int) -> tuple[Images, npt.NDArray[np.int64]]:
    """Returns drawn digits and what they are; of one seed, fewer are the first of more.

    Args:
        count: how many.
        seed: of the random numbers.

    Returns:
        `[count, 28, 28]`, ink 255 on paper 0, and `[count]`, 0 to 9.
    """
    drawn = words(count, _WORDS, random.Random(seed))
    labels = words_below(len(GLYPHS), drawn[:, 0])
    images = np.empty((count, *SIZE), np.uint8)
    for digit, ways in enumerate(GLYPHS):
        way = words_below(len(ways), drawn[:, 1])
        for number, glyph in enumerate(ways):
            chosen = (labels == digit) & (way == number)
            images[chosen] = draw(glyph, HAND, drawn[chosen, 2:])
    return images, labels
