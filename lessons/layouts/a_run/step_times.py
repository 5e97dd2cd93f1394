"""Times of training steps for a reader who watches: never measured beside a training that runs."""

from __future__ import annotations

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.training.records import StepTimes
from course_lib.watch import trains_now


def measure(batch_size: int) -> StepTimes:
    """Returns how long a step of the sentiment model takes on one device and on eight. It takes seconds.

    Args:
        batch_size: the number of rows in the global batch, a multiple of 8.

    Raises:
        CourseError: a training is being watched, the batch cannot be split, or there are fewer devices.
    """
    if trains_now.anything():
        raise CourseError(
            _("A training is running: it would share the cores with what is measured."),
            allowed=_("measuring while no training runs"),
            cure=_("Wait until it ends, or press its Stop button. Then measure again."),
        )
    from course_lib.training.step_times import step_times  # with TensorFlow

    return step_times(batch_size)
