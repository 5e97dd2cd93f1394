"""Examples that are held out: every row once, in one of two parts, the same ones everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.data.examples import Examples

DRAWN = [[0, 3, 8], [1, 2, 6]]  # of ten rows, with the seeds 0 and 1


def numbered(count):
    return Examples(10 * np.arange(count, dtype=np.float32)[:, None], np.arange(count))


@given(st.integers(2, 60), st.data(), st.integers(0, 2**32 - 1))
def test_each_row_is_in_one_part_with_its_label_and_in_its_order(num_rows, data, seed):
    count = data.draw(st.integers(1, num_rows - 1))
    kept, held_out = numbered(num_rows).hold_out(count, seed)
    assert (len(kept), len(held_out)) == (num_rows - count, count)
    assert sorted([*kept.labels, *held_out.labels]) == list(range(num_rows))
    for part in (kept, held_out):
        assert list(part.features[:, 0]) == list(10 * part.labels)
        assert sorted(part.labels) == list(part.labels)


def test_a_seed_draws_the_same_rows_on_every_machine():
    assert [list(numbered(10).hold_out(3, seed)[1].labels) for seed in (0, 1)] == DRAWN


@pytest.mark.parametrize("count", [0, 4, -1, 2.5, True, None, "1"])
def test_a_part_without_rows_is_refused(count):
    with pytest.raises(CourseError, match=r"hold_out\(.*\) is not possible here") as caught:
        numbered(4).hold_out(count)
    assert caught.value.allowed == "whole numbers from 1 to 3"
