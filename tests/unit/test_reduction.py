"""Reductions: sums, copies and their comparison, in numbers and as a picture."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import MeshSpec
from course_lib.pictures import shapes
from tests.course import from_lesson
from tests.drawn import elements, tree

Reduction = from_lesson("one_step.reduction", "Reduction")

TWO, EIGHT = MeshSpec([("batch", 2)]), MeshSpec([("batch", 8)])


@pytest.mark.parametrize(
    ("copies", "digits", "is_right", "says"),
    [
        ([0.3, 0.3], 1, True, "are equal to the last bit. They equal the sum to within 0.05."),
        ([0.3, 0.301], 1, True, "are not equal to the last bit. They equal the sum to within 0.05."),
        ([0.3, 0.301], 3, False, "They are not the sum: the largest difference is 0.001."),
        ([0.7, 0.7], 1, False, "are equal to the last bit. They are not the sum"),
    ],
)
def test_copies_are_compared_to_the_bit_and_with_the_sum_in_the_digits_shown(copies, digits, is_right, says):
    reduction = Reduction(TWO, "batch", [0.1, 0.2], copies, digits)
    assert says in reduction.picture().text.splitlines()[-1]
    assert reduction.is_right is is_right


def test_each_device_has_stripes_of_its_own_and_none_has_the_colour_of_the_sum():
    reduction = Reduction(EIGHT, "batch", np.arange(16.0).reshape(8, 2), [[56.0, 64.0]] * 8)
    for class_ in ("partial", "copy"):
        devices = [group.get("data-device") for group in elements(reduction, "g", class_)]
        assert devices == list("01234567")
    stripes = elements(reduction, "path", "stripes")
    assert len({(path.get("stroke"), path.get("d")) for path in stripes}) == 8
    assert shapes.PALETTE[0] not in {path.get("stroke") for path in stripes}
    assert float(tree(reduction).get("width")) < 760
