"""Devices by their names, refused where they do not exist: TensorFlow takes CPU:0 in their place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.runtime import KINDS, start_tensorflow

tf = start_tensorflow()


def physical_devices(kind: str) -> list[Any]:
    """Returns the devices of a kind that this machine has.

    Raises:
        CourseError: no such kind, such as "gpu": TensorFlow would answer that there is none of them.
    """
    one_of(
        kind,
        (*KINDS, "TPU"),
        _("There is no kind of device {kind!r}.", kind=kind),
        cure=_("Write it in upper case: of others, TensorFlow says that there are none, in silence."),
    )
    return list(tf.config.list_physical_devices(kind))


def require_devices(devices: Iterable[str]) -> tuple[str, ...]:
    """Returns the full names of devices, each of which exists.

    Raises:
        CourseError: one does not exist. A strategy accepts it, and computes on CPU:0 in its place.
    """
    existing = {_short(device.name): device.name for device in tf.config.list_logical_devices()}
    wanted = [_short(device) for device in devices]
    for device in wanted:
        if device not in existing:
            raise CourseError(
                _("There is no device {device}.", device=device),
                allowed=_(", ").join(existing),
                cure=_(
                    "Name a device that exists, or ask setup for more: in its place a strategy would compute"
                    " on CPU:0, in silence."
                ),
            )
    return tuple(existing[device] for device in wanted)


def _short(device: str) -> str:
    """Returns the name as it is written by hand.

    >>> [_short(name) for name in ("/job:localhost/replica:0/task:0/device:CPU:1", "/gpu:0", "CPU:2")]
    ['CPU:1', 'GPU:0', 'CPU:2']
    """
    return device.upper().rpartition("DEVICE:")[2].removeprefix("/")
