"""Judging distributed code on real devices, where a mistake must not end the process.

What would end it is met before, by reading the code. TensorFlow itself stays as it is.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

# One collective that fails aborts every later one of the process, whatever computes it, and they do not all
# name the reason: so once one did, every error of TensorFlow's is taken for a consequence.
_SIGNS_OF_AN_ABORT = (
    "Collective ops is aborted by",
    "BufRendezvous",
    "Restart your program to reset",
    "Function was cancelled before it was started",
)
_collectives = {"aborted": False}
_NEW_AXIS = re.compile(r"[\w\])]\[[^\[\]]*(?:\bNone\b|newaxis)[^\[\]]*\]")  # an index, and no list


@contextlib.contextmanager
def on_devices() -> Iterator[tuple[Any, Any]]:
    """Starts TensorFlow; what an exercise gives `judge` as `run` calls the reader's function in the block.

    Yields:
        The modules `tensorflow` and `course_lib.devices.dtensor`.

    Raises:
        CourseError: a failed exchange between devices has made all later ones impossible.
    """
    from course_lib.devices import dtensor

    tf = start_tensorflow()
    try:
        yield tf, dtensor
    except tf.errors.OpError as error:
        _collectives["aborted"] |= any(sign in str(error) for sign in _SIGNS_OF_AN_ABORT)
        if not _collectives["aborted"]:
            raise
        raise CourseError(
            _("The devices can no longer send each other data, because one such exchange failed before."),
            allowed=_("until the kernel is restarted, only what each device computes by itself"),
            cure=_(
                "Restart the kernel and run the cells again from the first: after one failure TensorFlow"
                " refuses every later exchange between devices."
            ),
        ) from error


def guarded(layout: Any) -> Any:
    """Returns a real layout, of which `num_shards` raises an error for what is none of its axes.

    TensorFlow would end the process at a wrong number.
    """
    num_shards, axes = layout.num_shards, range(len(layout.sharding_specs))

    def checked(axis: int) -> Any:
        if axis not in axes:
            raise IndexError(
                _("{given!r} is no axis of this layout. Its axes: {axes}.", given=axis, axes=[*axes])
            )
        return num_shards(axis)

    layout.num_shards = checked
    return layout


def refuse_new_axis(function: Any) -> None:
    """Checks that a reader's function adds no axis in square brackets, which is unsafe on a DTensor.

    Raises:
        CourseError: it does.
    """
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):  # there is none to read
        return
    if _NEW_AXIS.search(re.sub("#.*", "", source)):
        raise CourseError(
            _("A new axis in square brackets, such as `x[:, None]`, can end the process on a DTensor."),
            allowed=_("slices without None or tf.newaxis"),
            cure=_("Write tf.expand_dims(x, axis) or tf.reshape(x, shape)."),
        )
