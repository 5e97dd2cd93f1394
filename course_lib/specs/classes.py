"""Class numbers that fit the number of classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _


def to_numbers(given: npt.ArrayLike, num_classes: int) -> npt.NDArray[np.int64]:
    """Returns class numbers, `[examples]`.

    Args:
        given: whole numbers from 0 to `num_classes - 1`, in one axis.
        num_classes: how many classes there are.

    Raises:
        CourseError: what is no class number.
    """
    array = np.asarray(given)
    wrong = array if array.dtype.kind not in "iu" else array[(array < 0) | (array >= num_classes)]
    if len(wrong):
        raise CourseError(
            _("{value!r} is not the number of a class.", value=wrong[0].item()),
            allowed=_("whole numbers from {least} to {most}", least=0, most=num_classes - 1),
            cure=_("Give the number of a class. Where classes have names, give a name for every class."),
        )
    return array.astype(np.int64)
