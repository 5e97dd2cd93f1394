"""Classes: their names, and class numbers that fit them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _


def to_names(given: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of classes, in the order of their numbers.

    Raises:
        CourseError: no list of texts, an empty one, or a name that occurs twice.
    """
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    wrong = not names or not all(isinstance(name, str) and name for name in names)
    if wrong or len(set(names)) != len(names):
        raise CourseError(
            _("{given!r} are not the names of classes.", given=given),
            allowed=_("a list of texts, each with one letter at least and all different"),
            cure=_('Give one name for each class, for example ["shirt", "coat"].'),
        )
    return tuple(map(str, names))


def to_numbers(given: npt.ArrayLike, num_classes: int) -> npt.NDArray[np.int64]:
    """Returns class numbers, `[examples]`.

    Args:
        given: whole numbers from 0 to `num_classes - 1`, in one axis.
        num_classes: how many classes there are.

    Raises:
        CourseError: another shape, or what is no class number.
    """
    try:
        array = np.asarray(given)
    except ValueError:  # rows of unlike lengths
        array = np.zeros((0, 0))
    if array.ndim != 1:
        raise CourseError(
            _("Class numbers of the shape {shape} cannot be used.", shape=array.shape),
            allowed=_("one axis with a number for each example"),
            cure=_("Of logits take the greatest first: logits.argmax(axis=1)."),
        )
    wrong = array if array.dtype.kind not in "iu" else array[(array < 0) | (array >= num_classes)]
    if len(wrong):
        raise CourseError(
            _("{value!r} is not the number of a class.", value=wrong[0].item()),
            allowed=_("whole numbers from {least} to {most}", least=0, most=num_classes - 1),
            cure=_("Give the number of a class. Where classes have names, give a name for every class."),
        )
    return array.astype(np.int64)
