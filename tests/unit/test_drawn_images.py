"""The drawn stand-ins, digits and garments: the same everywhere, whole, and fewer are the first of more."""

from __future__ import annotations

import hashlib
import inspect
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.data.digits import GLYPHS, make_digits
from course_lib.data.garments import GARMENTS, make_garments

MAKERS = {"digits": make_digits, "garments": make_garments}
WAYS = {"digits": GLYPHS, "garments": GARMENTS}
# Other digits mean other numbers in lesson 7, other garments in lesson 10: then run `make notebooks` and
# `make results`.
PINNED = {
    "digits": "67056fc069744854ebaabd09297284042df07fdba396342946f5f6d3e2380b2c",
    "garments": "daca89f963d70ef8f4d6c3fcb8355a36c2c98d13cd89ef13dab70f6673431c1b",
}


@pytest.fixture(scope="module", params=list(MAKERS))
def drawn(request):
    """Returns the name of a stand-in, 3,000 of its images and their labels."""
    return request.param, *MAKERS[request.param](3_000, 2026)


def digest(images, labels) -> str:
    return hashlib.sha256(images.tobytes() + labels.astype("<i8").tobytes()).hexdigest()


def test_they_are_pinned_bit_for_bit(drawn):
    name, images, labels = drawn
    assert digest(images, labels) == PINNED[name]


def test_another_process_draws_the_same_without_tensorflow():
    code = f"""
import hashlib, sys
from course_lib.data.digits import make_digits
from course_lib.data.garments import make_garments
{inspect.getsource(digest)}
print(*(digest(*make(3_000, 2026)) for make in (make_digits, make_garments)), "tensorflow" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == [*PINNED.values(), "False"]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@given(fewer=st.integers(0, 20), more=st.integers(20, 30), seed=st.integers(0, 2**32))
@settings(max_examples=5)
def test_fewer_are_the_first_of_more(make, fewer, more, seed):
    few, many = make(fewer, seed), make(more, seed)
    assert all(np.array_equal(one, other[:fewer]) for one, other in zip(few, many, strict=True))


def test_every_class_comes_about_equally_often_in_no_order(drawn):
    _name, _images, labels = drawn
    counts = np.bincount(labels, minlength=10)
    assert len(counts) == 10
    assert (abs(counts - 300) < 4 * 300**0.5).all()
    assert abs(np.mean(labels[1:] == labels[:-1]) - 0.1) < 0.03


def test_images_are_grey_and_all_different(drawn):
    _name, images, _labels = drawn
    assert (images.shape, images.dtype) == ((3_000, 28, 28), np.uint8)
    assert len({image.tobytes() for image in images}) == 3_000


@pytest.mark.parametrize(("name", "least"), [("digits", 2), ("garments", 3)])
def test_every_class_is_drawn_in_several_ways(name, least):
    assert len(WAYS[name]) == 10
    assert all(len(ways) >= least for ways in WAYS[name])
