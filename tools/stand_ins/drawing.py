"""Drawn pictures of 28 by 28 pixels: smooth lines with a pen of some width, or filled, in integers alone.

A `Glyph` says where lines run; a `Hand` how each picture differs from it. Many pictures of a glyph are drawn
at a time. No number is rounded by a processor, so that they are the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from string import ascii_letters
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.stand_ins.chance import Integers, around_zero, words, words_below

Images = npt.NDArray[np.uint8]  # `[pictures, 28, 28]`
Table = npt.NDArray[Any]  # of images and their labels

SIDE, WHITE = 28, 255
ROW = np.dtype([("image", "u1", (SIDE, SIDE)), ("label", "u1")])
_PIXEL = 16  # places in a pixel, along either axis
_UNIT = 16  # places in a unit of a glyph
_STEP_UNITS = 3  # a line has a point at least every three units: 0.6 pixels
_WEIGHT_BITS, _SCALE_BITS = 12, 16
_ONE = 1 << _SCALE_BITS
_PIXELS_A_UNIT = _ONE * _PIXEL // (5 * _UNIT)  # a unit is a fifth of a pixel
_FAR = 127  # places; ink ends long before, and the square of the distance still fits in int16
_SOFT_EDGE = 8  # places: over so much at either side of its edge, a line fades
_FIXED_WORDS = 7  # of a picture: before those of its points
_ROWS_A_PIXEL = 4  # what is filled is measured along so many lines across each row of pixels


@dataclass(frozen=True)
class Hand:
    """How far pictures of one glyph may differ: each draws its own numbers, small ones likelier.

    Attributes:
        width_percent: how much wider or narrower than the glyph.
        height_percent: how much higher or lower.
        slant_percent: how much of a height the upper end leans to the right, beside `upright_percent`.
        turn_percent: how much of a width the right end sinks.
        shift_pixels: how far from the middle, along either axis.
        wobble_units: how far each point of a line from its place.
        upright_percent: the slant of all pictures alike.
        pen_places: the least and the greatest half width of the pen, in sixteenths of a pixel.
    """

    width_percent: int
    height_percent: int
    slant_percent: int
    turn_percent: int
    shift_pixels: int
    wobble_units: int
    upright_percent: int
    pen_places: tuple[int, int]


@dataclass(frozen=True)
class Glyph:
    """Lines through points in a box of 60 by 100 units, the first axis to the right, the second down.

    Attributes:
        text: the points, such as "32,0 30,50 28,100", then a bar and the lines, such as "abc de": through
            which points each runs, in the order of the letters, small ones before capital ones. A line that
            ends where it began is closed, without a corner there.
        middle: the middle of the box, in case it is another one.
    """

    text: str
    middle: tuple[int, int] = (30, 50)

    @cached_property
    def points(self) -> Integers:
        """The places of the points from the middle of the box, in units, `[points, 2]`."""
        points = [[int(place) for place in pair.split(",")] for pair in self.text.split("|")[0].split()]
        return np.array(points, np.int64) - self.middle

    @cached_property
    def weights(self) -> Integers:
        """What each point adds to each place of the lines, in parts of 4096, `[places, points]`.

        Lines are splines through their points. Source: Catmull and Rom 1974, "A class of local interpolating
        splines"; the tangent at a point is half of the way between its neighbours.
        """
        lines = self.text.split("|")[1].split()
        return np.concatenate([weights for line in lines for weights in self._spline(line)])

    def _spline(self, line: str) -> Iterator[Integers]:
        through = [ascii_letters.index(letter) for letter in line]
        closed = through[0] == through[-1]
        before, after = (through[-2], through[1]) if closed else (through[0], through[-1])
        padded = [before, *through, after]
        for at, (start, end) in enumerate(pairwise(through)):
            length = int(np.abs(self.points[start] - self.points[end]).max())
            yield self._piece((padded[at], start, end, padded[at + 3]), -(-length // _STEP_UNITS))

    def _piece(self, points: Sequence[int], num_steps: int) -> Integers:
        """Returns the weights of the places from the second to the third of four points."""
        step, whole = np.arange(num_steps + 1), num_steps**3
        first, second, third = step * num_steps**2, step**2 * num_steps, step**3
        spline = (
            -first + 2 * second - third,
            2 * whole - 5 * second + 3 * third,
            first + 4 * second - 3 * third,
            third - second,
        )
        weights = np.zeros((num_steps + 1, len(self.points)), np.int64)
        for point, weight in zip(points, spline, strict=True):
            weights[:, point] += (weight << _WEIGHT_BITS) // (2 * whole)
        return weights


def num_words(glyphs: Sequence[Glyph]) -> int:
    """Returns how many random words a picture of any of the glyphs takes."""
    return _FIXED_WORDS + 2 * max(len(glyph.points) for glyph in glyphs)


def labelled_images(
    classes: Sequence[Sequence[Callable[[Integers], Images]]], num_words: int, count: int, seed: int
) -> Table:
    """Returns images of random classes with their labels; of one seed, fewer are the first of more.

    Args:
        classes: for each class the ways to draw it, each a function of random words, `[pictures, num_words]`.
        num_words: how many of them a picture takes.
        count: how many images.
        seed: of the random words.
    """
    drawn = words(count, 2 + num_words, random.Random(seed))
    table = np.empty(count, ROW)
    table["label"] = labels = words_below(len(classes), drawn[:, 0])
    for label, ways in enumerate(classes):
        way = words_below(len(ways), drawn[:, 1])
        for number, draw_way in enumerate(ways):
            chosen = (labels == label) & (way == number)
            table["image"][chosen] = draw_way(drawn[chosen, 2:])
    return table


def draw(glyph: Glyph, hand: Hand, drawn: Integers) -> Images:
    """Returns pictures of a glyph, ink 255 on paper 0, of random words `[pictures, num_words(...)]`."""
    least, greatest = hand.pen_places
    pens = least + words_below(greatest - least + 1, drawn[:, 6])
    return np.moveaxis(_ink(_squares(*_places(glyph, hand, drawn)), pens), -1, 0)


def fill(glyph: Glyph, hand: Hand, drawn: Integers) -> Images:
    """Returns pictures of what the lines of a glyph enclose, 255 inside and 0 outside.

    The lines, one after the other, run once around all that is filled; the pen of the hand is not used.
    """
    return np.moveaxis(_covered(*_places(glyph, hand, drawn)), -1, 0)


def _places(glyph: Glyph, hand: Hand, drawn: Integers) -> tuple[Integers, Integers]:
    """Returns where the lines run, along either axis, `[places, pictures]`, in sixteenths of a pixel."""
    wobble = around_zero(hand.wobble_units * _UNIT, drawn[:, _FIXED_WORDS:]).T
    count = len(glyph.points)
    x, y = (
        _halved(
            glyph.weights @ (glyph.points[:, axis, None] * _UNIT + wobble[axis * count : (axis + 1) * count]),
            _WEIGHT_BITS,
        )
        for axis in (0, 1)
    )
    percents = hand.width_percent, hand.height_percent, hand.slant_percent, hand.turn_percent
    wide, high, slant, turn = (
        around_zero(percent * _ONE, drawn[:, at]) // 100 for at, percent in enumerate(percents)
    )
    slant = slant + hand.upright_percent * _ONE // 100
    x, y = x + _halved(x * wide, _SCALE_BITS), y + _halved(y * high, _SCALE_BITS)
    x = x - _halved(y * slant, _SCALE_BITS)
    y = y + _halved(x * turn, _SCALE_BITS)
    middle, shift = _PIXEL * SIDE // 2, hand.shift_pixels * _PIXEL
    to_right, down = (middle + around_zero(shift, drawn[:, at]) for at in (4, 5))
    x, y = (_halved(place * _PIXELS_A_UNIT, _SCALE_BITS) for place in (x, y))
    return to_right + x, down + y


def _halved(numbers: Integers, times: int) -> Integers:
    """Returns numbers divided by 2 so many times, rounded."""
    return numbers + (1 << times - 1) >> times


def _squares(x: Integers, y: Integers) -> npt.NDArray[np.int16]:
    """Returns the square of each pixel's distance to the nearest place, `[28, 28, pictures]`."""
    pixels = (np.arange(SIDE) * _PIXEL + _PIXEL // 2)[:, None]
    nearest = np.full((SIDE, SIDE, x.shape[1]), 2 * _FAR * _FAR, np.int16)
    both = np.empty_like(nearest)
    for across, down in zip(x, y, strict=True):
        columns, rows = (
            np.square(np.clip(places - pixels, -_FAR, _FAR).astype(np.int16)) for places in (across, down)
        )
        np.add(rows[:, None], columns[None], out=both)
        np.minimum(nearest, both, out=nearest)
    return nearest


def _ink(squares: npt.NDArray[np.int16], pens: Integers) -> Images:
    """Returns how black each pixel is, 0 to 255: it fades over the edge of the pen."""
    inner, outer = (pens - _SOFT_EDGE) ** 2, (pens + _SOFT_EDGE) ** 2
    return np.clip(255 * (outer - squares) // (outer - inner), 0, 255).astype(np.uint8)


def _covered(x: Integers, y: Integers) -> Images:
    """Returns how much of each pixel lies inside the line through the places, 0 to 255, `[28, 28, pictures]`.

    Along each of a few lines across a row of pixels, every crossing covers what is to the right of it, with
    the sign of its direction: what is covered once stays.
    """
    lines, across, signs, pictures = _crossings(x, y)
    column, places = across // _PIXEL, across % _PIXEL
    added = np.zeros((SIDE * _ROWS_A_PIXEL, SIDE + 1, x.shape[1]), np.int64)
    np.add.at(added, (lines, column, pictures), signs * (_PIXEL - places))
    np.add.at(added, (lines, column + 1, pictures), signs * places)
    inside = np.minimum(np.abs(added[:, :SIDE].cumsum(axis=1)), _PIXEL)
    covered: Integers = inside.reshape(SIDE, _ROWS_A_PIXEL, SIDE, -1).sum(axis=1)
    return (covered * WHITE // (_PIXEL * _ROWS_A_PIXEL)).astype(np.uint8)


def _crossings(x: Integers, y: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Returns which lines are crossed, where, with which sign, and in which pictures."""
    step = _PIXEL // _ROWS_A_PIXEL
    levels = np.arange(SIDE * _ROWS_A_PIXEL) * step + step // 2
    above = y[None] <= levels[:, None, None]
    lines, edges, pictures = np.nonzero(above != np.roll(above, -1, axis=1))
    start, end = (edges, pictures), ((edges + 1) % len(y), pictures)
    down = y[end] - y[start]
    across = x[start] + (levels[lines] - y[start]) * (x[end] - x[start]) // down
    return lines, np.clip(across, 0, SIDE * _PIXEL - 1), np.sign(down), pictures
