"""Drawn garments, the stand-in for the pictures of Fashion-MNIST.

Each class has several cuts, and each picture of one is wide or narrow, long or short, dark or light, plain or
striped in its own way. Some are hard to tell apart, as in the real set: a shirt from a T-shirt, a pullover or
a coat, a sneaker from a sandal or an ankle boot.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from string import ascii_letters, ascii_uppercase

import numpy as np
import numpy.typing as npt

from tools.stand_ins.chance import Integers, words_below
from tools.stand_ins.drawing import (
    SIDE,
    WHITE,
    Glyph,
    Hand,
    Images,
    Table,
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


@dataclass(frozen=True)
class Garment:
    """What a garment is made of: a cut of garments.toml.

    Attributes:
        text: the points, then after a bar each the lines of the fabric, the trim, the straps and the seams.
        hand: how far pictures of it may differ.
        straps_hand: the same for its straps, which are wider.
    """

    text: str
    hand: Hand
    straps_hand: Hand

    @cached_property
    def glyphs(self) -> tuple[Glyph | None, ...]:
        """The fabric, the trim, the straps and the seams; None for what the garment has none of."""
        points, *parts = self.text.split("|")
        pairs = [pair.split(",") for pair in points.split()]
        mirrored = [f"{2 * MIDDLE[0] - int(across)},{down}" for across, down in pairs]
        letters = str.maketrans(ascii_uppercase[: len(pairs)], ascii_letters[len(pairs) :][: len(pairs)])
        both = " ".join([points, *mirrored])
        return tuple(Glyph(f"{both}|{part.translate(letters)}", MIDDLE) if part else None for part in parts)

    def draw(self, drawn: Integers) -> Images:
        """Returns pictures of the garment, bright on 0, of random words."""
        looks, drawn = drawn[:, :_LOOK_WORDS], drawn[:, _LOOK_WORDS:]
        shade, trim_shade = (_DARKEST + words_below(WHITE + 1 - _DARKEST, looks[:, at]) for at in (0, 1))
        fabric, trim, straps, seams = self.glyphs
        images = np.zeros((len(drawn), SIDE, SIDE), np.int64)
        if fabric:
            _paint(images, fill(fabric, self.hand, drawn), shade)
        if trim:
            _paint(images, fill(trim, self.hand, drawn), trim_shade)
        striped = _stripes(words_below(_STRIPE_KINDS, looks[:, 2]), looks[:, 3])
        images[striped] = images[striped] * _STRIPE_PERCENT // 100
        if straps:
            _paint(images, draw(straps, self.straps_hand, drawn), shade)
        if seams:
            dark_on_light = np.where(shade < _DARK_FABRIC, shade * 2, shade * _SEAM_PERCENT // 100)
            _paint(images, draw(seams, self.hand, drawn), dark_on_light)
        return images.astype(np.uint8)


def make_garments(count: int, seed: int) -> Table:
    """Returns drawn garments and their classes, in the order of Fashion-MNIST."""
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    hand = Hand(**read["hand"])
    straps_hand = replace(hand, pen_places=read["straps_pen_places"])
    garments = [[Garment(text, hand, straps_hand) for text in cuts] for cuts in read["cuts"].values()]
    glyphs = [glyph for garment in chain(*garments) for glyph in garment.glyphs if glyph]
    ways = [[garment.draw for garment in ways] for ways in garments]
    return labelled_images(ways, _LOOK_WORDS + num_words(glyphs), count, seed)


def _stripes(kinds: Integers, drawn: Integers) -> npt.NDArray[np.bool_]:
    """Returns where stripes run: kind 0 has them across, kind 1 upright, and all others have none."""
    width = 2 + words_below(3, drawn)
    start = (drawn & 0xFF)[:, None]
    dark = (np.arange(SIDE) + start) // width[:, None] % 2 == 1
    stripes = np.zeros((len(kinds), SIDE, SIDE), np.bool_)
    stripes[kinds == 0] = dark[kinds == 0, :, None]
    stripes[kinds == 1] = dark[kinds == 1, None, :]
    return stripes


def _paint(images: Integers, covered: Images, shades: Integers) -> None:
    """Paints shades over pictures, as far as each pixel is covered."""
    images += (shades[:, None, None] - images) * covered // WHITE
