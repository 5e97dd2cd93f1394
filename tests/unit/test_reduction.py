"""Reductions: sums, copies and their comparison, in numbers, in words and as pictures."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import CourseError, MeshSpec
from course_lib.pictures import shapes
from tests.course import from_lesson
from tests.drawn import SVG, elements, tree

Reduction = from_lesson("one_step.reduction", "Reduction")

TWO, EIGHT = MeshSpec([("batch", 2)]), MeshSpec([("batch", 8)])


def test_copies_of_something_else_have_a_letter_and_a_colour_of_their_own():
    reduction = Reduction(TWO, "batch", [0.1, 0.2], [0.7, 0.7], digits=1)
    assert reduction.holdings == (1, 1)
    assert reduction.sentence == (
        "The 2 copies are equal to the last bit. They are not the sum: the largest difference is 0.4."
    )
    text = reduction.picture().text
    assert "  A  devices 0, 1  0.3\n" in text
    assert "  device 1  B  0.7\n" in text
    fills = [next(copy.iter(f"{SVG}rect")).get("fill") for copy in elements(reduction, "g", "copy")]
    assert fills == [shapes.PALETTE[1]] * 2
    assert any(text.text.startswith("✗ The 2 copies") for text in elements(reduction, "text"))


def test_a_copy_may_differ_from_the_sum_in_digits_that_are_not_shown():
    near, far = ([1.0 + difference] * 2 for difference in (0.0004, 0.0006))
    assert Reduction(TWO, "batch", [0.25, 0.75], near).wrong_devices == ()
    assert Reduction(TWO, "batch", [0.25, 0.75], far).wrong_devices == (0, 1)
    assert Reduction(TWO, "batch", [0.25, 0.75], far, digits=2).wrong_devices == ()


def test_the_sum_is_added_in_float64():
    tiny = np.float32(2.0**-30)
    assert Reduction(TWO, "batch", [np.float32(1), tiny], [1.0, 1.0]).total == 1 + 2.0**-30


def test_a_sound_picture_shows_each_device_striped_and_solid():
    partials = np.random.default_rng(0).integers(-9, 9, (8, 2, 3))
    reduction = Reduction(EIGHT, "batch", partials, [partials.sum(axis=0)] * 8)
    assert reduction.wrong_devices == ()
    assert reduction.copies_are_equal
    for class_ in ("partial", "copy"):
        devices = [group.get("data-device") for group in elements(reduction, "g", class_)]
        assert devices == list("01234567")
    assert len(elements(reduction, "path", "stripes")) == 8
    assert len(elements(reduction, "g", "sum")) == 1
    assert float(tree(reduction).get("width")) < 760


def test_eight_partial_sums_look_different_and_none_has_the_colour_of_the_sum():
    reduction = Reduction(EIGHT, "batch", np.arange(8.0), [28.0] * 8)
    stripes = elements(reduction, "path", "stripes")
    assert len({(path.get("stroke"), path.get("d")) for path in stripes}) == 8
    assert shapes.PALETTE[0] not in {path.get("stroke") for path in stripes}


def test_a_mesh_dimension_that_does_not_exist_is_refused():
    with pytest.raises(CourseError, match="no dimension 'data'"):
        Reduction(TWO, "data", [1, 2], [3, 3])
