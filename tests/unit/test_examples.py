"""Examples that are held out: every row once, in one of two parts, the same ones everywhere."""

import numpy as np

from course_lib.data.examples import Examples

TEN = Examples(10 * np.arange(10, dtype=np.float32)[:, None], np.arange(10))


def test_the_same_rows_are_drawn_on_every_machine_and_the_others_kept():
    kept, held_out = TEN.hold_out(3)
    assert held_out.labels.tolist() == [0, 3, 8]
    assert kept.labels.tolist() == [1, 2, 4, 5, 6, 7, 9]
    for part in (kept, held_out):
        assert part.features[:, 0].tolist() == (10 * part.labels).tolist()
