"""Drawn garments, a stand-in for the pictures of Fashion-MNIST: made here, bit for bit the same everywhere.

Each class has several cuts, and each picture of one is wide or narrow, long or short, dark or light, plain or
striped in its own way. Some are hard to tell apart, as in the real set: a shirt from a T-shirt, a pullover or
a coat, a sneaker from a sandal or an ankle boot. The stand-in replaces no measurement on real garments, and
the lessons say so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from string import ascii_letters, ascii_uppercase

import numpy as np
import numpy.typing as npt

from course_lib.data.chance import words, words_below
from course_lib.data.cuts import CUTS, MIDDLE
from course_lib.data.drawing import Glyph, Hand, Integers, draw, fill, num_words
from course_lib.data.images import SIZE
from course_lib.specs.image_grid import WHITE, Images

HAND = Hand(
    width_percent=24,
    height_percent=14,
    slant_percent=8,
    turn_percent=6,
    shift_pixels=2,
    wobble_units=7,
    upright_percent=0,
    pen_places=(9, 13),
)
_STRAPS = replace(HAND, pen_places=(14, 20))
_DARKEST = 60  # the shades of fabrics start here: darker ones would hardly be seen
_SEAM_PERCENT = 45  # of the fabric's shade; on dark fabric seams are lighter instead
_DARK_FABRIC = 120
_STRIPE_PERCENT = 65
_STRIPE_KINDS = 8  # of which two are stripes, and all others none


@dataclass(frozen=True)
class Garment:
    """What a garment is made of, in a box of 120 by 120 units, five of them in a pixel.

    Attributes:
        text: the points, as a `Glyph` has them, then after a bar each the lines around the fabric, those
            around the trim, the straps, and the seams. A capital letter is the mirror image of its point,
            left for right.
    """

    text: str

    @cached_property
    def glyphs(self) -> tuple[Glyph | None, ...]:
        """The fabric, the trim, the straps and the seams; None for what the garment has none of."""
        points, *parts = self.text.split("|")
        pairs = [pair.split(",") for pair in points.split()]
        mirrored = [f"{2 * MIDDLE[0] - int(across)},{down}" for across, down in pairs]
        letters = str.maketrans(ascii_uppercase[: len(pairs)], ascii_letters[len(pairs) :][: len(pairs)])
        both = " ".join([points, *mirrored])
        return tuple(Glyph(f"{both}|{part.translate(letters)}", MIDDLE) if part else None for part in parts)

    def draw(self, looks: Looks, drawn: Integers) -> Images:
        """Returns pictures of the garment, `[pictures, 28, 28]`, of so many looks and random words."""
        fabric, trim, straps, seams = self.glyphs
        images = np.zeros((len(drawn), *SIZE), np.int64)
        if fabric:
            _paint(images, fill(fabric, HAND, drawn), looks.fabric)
        if trim:
            _paint(images, fill(trim, HAND, drawn), looks.trim)
        _darken(images, looks.stripes)
        if straps:
            _paint(images, draw(straps, _STRAPS, drawn), looks.fabric)
        if seams:
            _paint(images, draw(seams, HAND, drawn), looks.seams)
        return images.astype(np.uint8)


@dataclass(frozen=True)
class Looks:
    """How dark or light garments are, 0 to 255 each.

    Attributes:
        fabric: the shades of their fabrics, `[pictures]`.
        trim: the shades of their trims, `[pictures]`.
        stripes: where stripes darken them, `[pictures, 28, 28]`.
    """

    fabric: Integers
    trim: Integers
    stripes: npt.NDArray[np.bool_]

    @property
    def seams(self) -> Integers:
        """The shades of their seams: dark on light fabric and light on dark."""
        return np.where(self.fabric < _DARK_FABRIC, self.fabric * 2, self.fabric * _SEAM_PERCENT // 100)

    def take(self, rows: npt.NDArray[np.bool_]) -> Looks:
        """Returns the looks of some of the pictures."""
        return Looks(self.fabric[rows], self.trim[rows], self.stripes[rows])


GARMENTS = tuple(tuple(Garment(text) for text in cuts) for cuts in CUTS)
_LOOK_WORDS = (
    6  # of a picture: its class, its cut, the shades of fabric and trim, the kind of stripes and their place
)
_WORDS = _LOOK_WORDS + num_words([glyph for garment in chain(*GARMENTS) for glyph in garment.glyphs if glyph])


def make_garments(count: int, seed: int) -> tuple[Images, npt.NDArray[np.int64]]:
    """Returns drawn garments and what they are; of one seed, fewer are the first of more.

    Args:
        count: how many.
        seed: of the random numbers.

    Returns:
        `[count, 28, 28]`, bright on 0, and `[count]`, 0 to 9: the class, in the order of Fashion-MNIST.
    """
    drawn = words(count, _WORDS, random.Random(seed))
    labels = words_below(len(GARMENTS), drawn[:, 0])
    looks = _looks(drawn)
    images = np.empty((count, *SIZE), np.uint8)
    for label, cuts in enumerate(GARMENTS):
        cut = words_below(len(cuts), drawn[:, 1])
        for number, garment in enumerate(cuts):
            chosen = (labels == label) & (cut == number)
            images[chosen] = garment.draw(looks.take(chosen), drawn[chosen, _LOOK_WORDS:])
    return images, labels


def _looks(drawn: Integers) -> Looks:
    fabric, trim = (_DARKEST + words_below(WHITE + 1 - _DARKEST, drawn[:, at]) for at in (2, 3))
    return Looks(fabric, trim, _stripes(words_below(_STRIPE_KINDS, drawn[:, 4]), drawn[:, 5]))


def _stripes(kinds: Integers, drawn: Integers) -> npt.NDArray[np.bool_]:
    """Returns where stripes run: kind 0 has them across, kind 1 upright, and all others have none."""
    width = 2 + words_below(3, drawn)
    start = (drawn & 0xFF)[:, None]
    dark = (np.arange(SIZE[0]) + start) // width[:, None] % 2 == 1
    stripes = np.zeros((len(kinds), *SIZE), np.bool_)
    stripes[kinds == 0] = dark[kinds == 0, :, None]
    stripes[kinds == 1] = dark[kinds == 1, None, :]
    return stripes


def _paint(images: Integers, covered: Images, shades: Integers) -> None:
    """Paints shades over pictures, as far as each pixel is covered."""
    images += (shades[:, None, None] - images) * covered // WHITE


def _darken(images: Integers, where: npt.NDArray[np.bool_]) -> None:
    images[where] = images[where] * _STRIPE_PERCENT // 100
