"""Drawn garments, the stand-in for the pictures of Fashion-MNIST.

Each class has several cuts, and each picture of one is wide or narrow, long or short, dark or light, plain or
striped in its own way. Some are hard to tell apart, as in the real set: a shirt from a T-shirt, a pullover or
a coat, a sneaker from a sandal or an ankle boot.
"""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path
from string import ascii_letters, ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.stand_ins.drawing import (
    SIDE,
    WHITE,
    Glyph,
    Hand,
    Integers,
    below,
    draw,
    fill,
    labelled_images,
    num_words,
)

MIDDLE = 60, 60
_DARKEST = 60  # the shades of fabrics start here: darker ones would hardly be seen
_SEAM_PERCENT = 45  # of the fabric's shade; on dark fabric seams are lighter instead
_DARK_FABRIC = 120
_STRIPE_PERCENT = 65
_STRIPE_KINDS = 8  # of which two are stripes, and all others none
_LOOK_WORDS = 4  # of a picture: the shades of fabric and trim, the kind of stripes and their place


class Garment:
    """What a garment is made of: a cut of garments.toml.

    Attributes:
        glyphs: the fabric, the trim, the straps and the seams; None for what the garment has none of.
    """

    def __init__(self, text: str, hand: Hand, straps_hand: Hand) -> None:
        """Reads a cut.

        Args:
            text: the points, then after a bar each the lines of the fabric, the trim, the straps and the
                seams. A capital letter is the mirror image of its point.
            hand: how far pictures of it may differ.
            straps_hand: the same for its straps, which are wider.
        """
        points, *parts = text.split("|")
        pairs = [pair.split(",") for pair in points.split()]
        mirrored = [f"{2 * MIDDLE[0] - int(across)},{down}" for across, down in pairs]
        letters = str.maketrans(ascii_uppercase[: len(pairs)], ascii_letters[len(pairs) :][: len(pairs)])
        both = " ".join([points, *mirrored])
        self.glyphs = [Glyph(f"{both}|{part.translate(letters)}", MIDDLE) if part else None for part in parts]
        self._hand, self._straps_hand = hand, straps_hand

    def draw(self, drawn: Integers) -> Integers:
        """Returns a picture of the garment, bright on 0, of random words."""
        looks, drawn = drawn[:_LOOK_WORDS], drawn[_LOOK_WORDS:]
        shade, trim_shade = (_DARKEST + below(WHITE + 1 - _DARKEST, word) for word in looks[:2])
        fabric, trim, straps, seams = self.glyphs
        image = np.zeros((SIDE, SIDE), np.int64)
        if fabric:
            _paint(image, fill(fabric, self._hand, drawn), shade)
        if trim:
            _paint(image, fill(trim, self._hand, drawn), trim_shade)
        _stripe(image, below(_STRIPE_KINDS, looks[2]), looks[3])
        if straps:
            _paint(image, draw(straps, self._straps_hand, drawn), shade)
        if seams:
            seam_shade = shade * 2 if shade < _DARK_FABRIC else shade * _SEAM_PERCENT // 100
            _paint(image, draw(seams, self._hand, drawn), seam_shade)
        return image


def make_garments(count: int, seed: int) -> npt.NDArray[Any]:
    """Returns drawn garments and their classes, in the order of Fashion-MNIST."""
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    hands = read["hand"], {**read["hand"], "pen_places": read["straps_pen_places"]}
    garments = [[Garment(text, *hands) for text in cuts] for cuts in read["cuts"].values()]
    glyphs = [glyph for garment in chain(*garments) for glyph in garment.glyphs if glyph]
    ways = [[garment.draw for garment in cuts] for cuts in garments]
    return labelled_images(ways, _LOOK_WORDS + num_words(glyphs), count, seed)


def _stripe(image: Integers, kind: int, word: int) -> None:
    """Darkens stripes: kind 0 has them across, kind 1 upright, and all others have none."""
    dark = (np.arange(SIDE) + (word & 0xFF)) // (2 + below(3, word)) % 2 == 1
    if kind <= 1:
        place = dark if kind == 0 else (slice(None), dark)
        image[place] = image[place] * _STRIPE_PERCENT // 100


def _paint(image: Integers, covered: Integers, shade: int) -> None:
    """Paints a shade over a picture, as far as each pixel is covered."""
    image += (shade - image) * covered // WHITE
