"""Drawn pictures of 28 by 28 pixels: smooth lines with a pen of some width, or filled, in integers alone.

A `Glyph` says where lines run; a hand, a table of digits.toml or garments.toml, how far a picture may differ
from it. No number is rounded by a processor, so that pictures are the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from string import ascii_letters
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Hand = Mapping[str, Any]

SIDE, WHITE = 28, 255
_PIXEL = 16  # places in a pixel, along either axis
_UNIT = 16  # places in a unit of a glyph
_STEP_UNITS = 3  # a line has a point at least every three units: 0.6 pixels
_WEIGHT_BITS, _SCALE_BITS = 12, 16
_ONE = 1 << _SCALE_BITS
_PIXELS_A_UNIT = _ONE * _PIXEL // (5 * _UNIT)  # a unit is a fifth of a pixel
_SOFT_EDGE = 8  # places: over so much at either side of its edge, a line fades
_FIXED_WORDS = 7  # of a picture: before those of its points
_ROWS_A_PIXEL = 4  # what is filled is measured along so many lines across each row of pixels


class Glyph:
    """Lines through points in a box of 60 by 100 units, the first axis to the right, the second down.

    Attributes:
        points: the places of the points from the middle of the box, in units, `[points, 2]`.
        weights: what each point adds to each place of the lines, in parts of 4096, `[places, points]`.
    """

    def __init__(self, text: str, middle: tuple[int, int] = (30, 50)) -> None:
        """Reads a glyph.

        Args:
            text: the points, such as "32,0 30,50 28,100", then a bar and the lines, such as "abc de":
                through which points each runs, in the order of the letters, small ones before capital ones.
                A line that ends where it began is closed, without a corner there.
            middle: the middle of the box, in case it is another one.
        """
        points, lines = text.split("|")
        self.points = np.array([pair.split(",") for pair in points.split()]).astype(np.int64) - middle
        self.weights = np.concatenate([piece for line in lines.split() for piece in self._spline(line)])

    def _spline(self, line: str) -> Iterator[Integers]:
        """Yields the weights of the places between each two points of a line.

        Lines are splines through their points. Source: Catmull and Rom 1974, "A class of local interpolating
        splines"; the tangent at a point is half of the way between its neighbours.
        """
        through = [ascii_letters.index(letter) for letter in line]
        closed = through[0] == through[-1]
        before, after = (through[-2], through[1]) if closed else (through[0], through[-1])
        padded = [before, *through, after]
        for at, (start, end) in enumerate(pairwise(through)):
            num_steps = -(-int(np.abs(self.points[start] - self.points[end]).max()) // _STEP_UNITS)
            step, whole = np.arange(num_steps + 1), num_steps**3
            first, second, third = step * num_steps**2, step**2 * num_steps, step**3
            parts = (
                -first + 2 * second - third,
                2 * whole - 5 * second + 3 * third,
                first + 4 * second - 3 * third,
                third - second,
            )
            weights = np.zeros((num_steps + 1, len(self.points)), np.int64)
            for point, part in zip(padded[at : at + 4], parts, strict=True):
                weights[:, point] += (part << _WEIGHT_BITS) // (2 * whole)
            yield weights


def num_words(glyphs: Sequence[Glyph]) -> int:
    """Returns how many random words a picture of any of the glyphs takes."""
    return _FIXED_WORDS + 2 * max(len(glyph.points) for glyph in glyphs)


def labelled_images(
    classes: Sequence[Sequence[Callable[[Integers], Integers]]], num_words: int, count: int, seed: int
) -> npt.NDArray[Any]:
    """Returns images of random classes with their labels; of one seed, fewer are the first of more.

    Args:
        classes: for each class the ways to draw it, each a function of random words, `[num_words]`.
        num_words: how many of them a picture takes.
        count: how many images.
        seed: of the random words.
    """
    source = random.Random(seed)
    table = np.empty(count, [("image", "u1", (SIDE, SIDE)), ("label", "u1")])
    for row in table:
        drawn = np.frombuffer(source.randbytes(4 * (2 + num_words)), "<u4").astype(np.int64)
        row["label"] = label = below(len(classes), drawn[0])
        draw_way = classes[label][below(len(classes[label]), drawn[1])]
        row["image"] = draw_way(drawn[2:])
    return table


def below(bound: int, word: int) -> int:
    """Returns a whole number from 0 to `bound - 1` made of a random word; all are equally likely."""
    return int(word) * bound >> 32


def draw(glyph: Glyph, hand: Hand, drawn: Integers) -> Integers:
    """Returns a picture of a glyph, `[28, 28]`, ink 255 on paper 0, of random words: its lines, with a pen.

    Ink follows from the square of a pixel's distance to the nearest place: it fades over the edge of the pen.
    """
    least, greatest = hand["pen_places"]
    pen = least + below(greatest - least + 1, drawn[6])
    pixels = np.arange(SIDE) * _PIXEL + _PIXEL // 2
    columns, rows = (np.square(places[:, None] - pixels) for places in _places(glyph, hand, drawn))
    squares = (rows[:, :, None] + columns[:, None]).min(axis=0)
    inner, outer = (pen - _SOFT_EDGE) ** 2, (pen + _SOFT_EDGE) ** 2
    ink: Integers = np.clip(WHITE * (outer - squares) // (outer - inner), 0, WHITE)
    return ink


def fill(glyph: Glyph, hand: Hand, drawn: Integers) -> Integers:
    """Returns a picture of what the lines of a glyph enclose, 255 inside and 0 outside.

    The lines, one after the other, run once around all that is filled; the pen of the hand is not used.
    Along each of a few lines across a row of pixels, every crossing covers what is to the right of it, with
    the sign of its direction: what is covered once stays.
    """
    x, y = _places(glyph, hand, drawn)
    step = _PIXEL // _ROWS_A_PIXEL
    levels = np.arange(SIDE * _ROWS_A_PIXEL) * step + step // 2
    above = y <= levels[:, None]
    lines, start = np.nonzero(above != np.roll(above, -1, axis=1))
    end = (start + 1) % len(y)
    down = y[end] - y[start]
    across = x[start] + (levels[lines] - y[start]) * (x[end] - x[start]) // down
    column, places = np.divmod(np.clip(across, 0, SIDE * _PIXEL - 1), _PIXEL)
    added = np.zeros((SIDE * _ROWS_A_PIXEL, SIDE + 1), np.int64)
    np.add.at(added, (lines, column), np.sign(down) * (_PIXEL - places))
    np.add.at(added, (lines, column + 1), np.sign(down) * places)
    inside = np.minimum(np.abs(added[:, :SIDE].cumsum(axis=1)), _PIXEL)
    covered: Integers = inside.reshape(SIDE, _ROWS_A_PIXEL, SIDE).sum(axis=1)
    return covered * WHITE // (_PIXEL * _ROWS_A_PIXEL)


def _places(glyph: Glyph, hand: Hand, drawn: Integers) -> tuple[Integers, Integers]:
    """Returns where the lines run, along either axis, `[places]`, in sixteenths of a pixel."""
    count = len(glyph.points)
    wobble = around_zero(hand["wobble_units"] * _UNIT, drawn[_FIXED_WORDS:][: 2 * count])
    points = glyph.points * _UNIT + wobble.reshape(2, count).T
    x, y = _halved(glyph.weights @ points, _WEIGHT_BITS).T
    percents = ("width_percent", "height_percent", "slant_percent", "turn_percent")
    wide, high, slant, turn = (
        around_zero(np.array([hand[name] for name in percents]) * _ONE, drawn[:4]) // 100
    )
    slant = slant + hand["upright_percent"] * _ONE // 100
    x, y = x + _halved(x * wide, _SCALE_BITS), y + _halved(y * high, _SCALE_BITS)
    x = x - _halved(y * slant, _SCALE_BITS)
    y = y + _halved(x * turn, _SCALE_BITS)
    to_right, down = _PIXEL * SIDE // 2 + around_zero(hand["shift_pixels"] * _PIXEL, drawn[4:6])
    x, y = (_halved(place * _PIXELS_A_UNIT, _SCALE_BITS) for place in (x, y))
    return to_right + x, down + y


def around_zero(spread: int | Integers, drawn: Integers) -> Integers:
    """Returns whole numbers from `-spread` to `spread` made of random words; small ones are likelier.

    Each is the sum of two even draws, one of either half of the word: its density is a triangle.
    """
    triangle: Integers = np.multiply((drawn & 0xFFFF) + (drawn >> 16) - 0xFFFF, spread) // 0xFFFF
    return triangle


def _halved(numbers: Integers, times: int) -> Integers:
    """Returns numbers divided by 2 so many times, rounded."""
    return numbers + (1 << times - 1) >> times
