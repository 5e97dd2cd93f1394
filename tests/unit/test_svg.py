"""The palette, for readers with every kind of colour vision, and the small pieces of SVG."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib.pictures import arranging, shapes

# Linear RGB to what a reader without one kind of cones sees. Source: Machado, Oliveira and Fernandes, "A
# Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, table for severity 1.0.
VISIONS = {
    "usual": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
RGB_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear_rgb(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = RGB_TO_XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """Returns the contrast ratio of WCAG 2."""
    dark, light = sorted((RGB_TO_XYZ @ linear_rgb(colour))[1] for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
def test_every_two_colours_differ_for_every_reader(vision):
    seen = [lab(np.array(VISIONS[vision]) @ linear_rgb(colour)) for colour in shapes.PALETTE]
    distances = [np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)]
    assert min(distances) > 18  # a difference of 2.3 is just noticeable side by side


def test_text_reads_well_on_every_colour():
    assert (
        min(contrast(shapes.INK, colour) for colour in (*shapes.PALETTE, shapes.PANEL, shapes.EMPTY)) >= 4.5
    )
    assert min(contrast(colour, shapes.PANEL) for colour in (shapes.SOFT_INK, shapes.ALARM)) >= 4.5


def test_text_is_escaped_and_wide_characters_count_double():
    drawing = arranging.lines_of_text(["a < b & c"], size=10, max_width=500)
    document = ElementTree.fromstring(shapes.markup(arranging.document(drawing, '<"&">')))
    assert "".join(document.itertext()) == '<"&">a < b & c'
    assert arranging.text_width("装置", 10) == 20


@pytest.mark.parametrize("max_width", range(40, 110, 10))
@pytest.mark.parametrize(
    "content", ["one two three four five", "値（変数）を、「送る」。次も送る。", "各デバイスが持つ。"]
)
def test_long_lines_are_broken_lose_nothing_and_begin_with_no_closing_mark(content, max_width):
    drawing = arranging.lines_of_text([content], size=10, max_width=max_width)
    lines = ["".join(text[2:]) for text in drawing.nodes]
    assert "".join(lines) == content
    assert all(arranging.text_width(line.rstrip(), 10) <= max_width for line in lines)
    assert [line[0] for line in lines if line[0] in "、。）」"] == []
