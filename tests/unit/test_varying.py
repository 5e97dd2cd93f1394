"""`about`: how a number that varies is shown, and what is said outside of its band; doctests have more."""

import math

import numpy as np

from course_lib import about, i18n


def test_the_ends_belong_to_the_band_and_what_lies_outside_says_so_in_the_readers_language():
    assert [about(value, 0.30, 0.42) for value in (0.30, np.float32(0.4))] == ["≈ 0.30", "≈ 0.40"]
    assert about(0.3, 0.305, 168) == "≈ 0.30 ✗ (outside 0.305 to 168)"
    assert about(math.nan, 0, 1) == "≈ nan ✗ (outside 0.0 to 1.0)"
    i18n.set_language("ja")
    assert about(0.51, 0.30, 0.42) == "≈ 0.51 ✗（0.30～0.42の範囲外）"
