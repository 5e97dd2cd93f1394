"""Drawn digits, the stand-in for the handwritten ones of MNIST.

Each digit is written in two to four ways, and each picture of one leans, stretches, shifts and wobbles in its
own way. So pixels alone say less than shapes: a linear model stays behind one with hidden layers.
"""

from __future__ import annotations

import tomllib
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tools.stand_ins.drawing import Glyph, draw, labelled_images, num_words


def make_digits(count: int, seed: int) -> npt.NDArray[Any]:
    """Returns drawn digits, ink 255 on paper 0, and what they are, 0 to 9; fewer are the first of more."""
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    glyphs = [[Glyph(way) for way in ways] for ways in read["ways"]]
    pens = [[partial(draw, glyph, read["hand"]) for glyph in ways] for ways in glyphs]
    return labelled_images(pens, num_words(list(chain(*glyphs))), count, seed)
