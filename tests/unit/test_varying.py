"""`about`: how a number that varies is shown, what is said outside of its band, and what it refuses."""

import math

import numpy as np
import pytest

from course_lib import CourseError, about, i18n

ANYWHERE = (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.3, 2, "≈ 0.30"),
        (0.3571, 2, "≈ 0.36"),
        (0.3571, 4, "≈ 0.3571"),
        (1.96, 2, "≈ 2.0"),
        (9.96, 2, "≈ 10"),
        (168.3, 2, "≈ 168"),
        (12345.6, 2, "≈ 12346"),
        (0, 2, "≈ 0.0"),
        (1.23e-7, 2, "≈ 1.2e-07"),
        (np.float32(0.3), 2, "≈ 0.30"),
    ],
)
def test_a_number_is_shown_plainly(value, digits, shown):
    assert about(value, *ANYWHERE, digits=digits) == shown


def test_the_ends_belong_to_the_band_and_what_lies_outside_says_so_in_the_readers_language():
    assert [about(value, 0.30, 0.42) for value in (0.30, 0.42)] == ["≈ 0.30", "≈ 0.42"]
    assert about(0.51, 0.30, 0.42) == "≈ 0.51 ✗ (outside 0.30 to 0.42)"
    assert about(0.3, 0.305, 168) == "≈ 0.30 ✗ (outside 0.305 to 168)"
    assert about(math.nan, 0, 1) == "≈ nan ✗ (outside 0.0 to 1.0)"
    assert about(math.inf, 0, 1) == "≈ inf ✗ (outside 0.0 to 1.0)"
    i18n.set_language("ja")
    assert about(0.51, 0.30, 0.42) == "≈ 0.51 ✗（0.30～0.42の範囲外）"


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        (("a lot", 0, 1), {}, "'a lot' is no number"),
        ((np.zeros(3), 0, 1), {}, "is no number"),
        ((0.5, 1, 1), {}, "no number between 1 and 1"),
        ((0.5, math.nan, 1), {}, "no number between nan and 1"),
        ((0.5, 0, 1), {"digits": 0}, "with 0 digits"),
    ],
)
def test_what_is_no_number_or_no_band_is_refused(arguments, options, problem):
    with pytest.raises(CourseError, match=problem):
        about(*arguments, **options)
