"""Devices by their names, refused where they do not exist: TensorFlow takes CPU:0 in their place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from course_lib.runtime import KINDS, start_tensorflow

tf = start_tensorflow()

_KINDS = (*KINDS, "TPU")


def physical_devices(kind: str) -> list[Any]:
    """Returns the devices of a kind that this machine has.

    Raises:
        CourseError: no such kind, such as "gpu": TensorFlow would answer that there is none of them.
    """
    one_of(
        kind,
        _KINDS,
        _("There is no kind of device {kind!r}.", kind=kind),
        cure=_("Write it in upper case: of others, TensorFlow says that there are none, in silence."),
    )
    return list(tf.config.list_physical_devices(kind))


def require_devices(devices: Iterable[str]) -> tuple[str, ...]:
    """Returns the full names of devices, each of which exists.

    Raises:
        CourseError: no device, one that does not exist or is named twice, or a text in place of a list. A
            strategy accepts those that do not exist, and computes on CPU:0 in their place.
    """
    if isinstance(devices, str):
        raise CourseError(
            _("{devices!r} is one text, not a list of devices.", devices=devices),
            allowed=_("a list with the name of each device"),
            cure=_("Write for example {example}.", example=[devices]),
        )
    names = [_full_name(device) for device in devices]
    if not names or len(set(names)) < len(names):
        raise CourseError(
            _(
                "The devices {devices} are no devices of a strategy.",
                devices=", ".join(map(_short, names)) or "[]",
            ),
            allowed=_("one device or more, each named once"),
            cure=_("Name each device once, such as {example}.", example='["CPU:0", "CPU:1"]'),
        )
    return tuple(names)


def require_real_devices(strategy: Any) -> None:
    """Checks that the devices of a strategy exist: those that compute, and those with its variables.

    Raises:
        CourseError: one does not; the strategy computes on CPU:0 in its place.
    """
    extended = strategy.extended
    try:
        devices = (*extended.worker_devices, *extended.parameter_devices)
    except RuntimeError:  # the default strategy has no devices of its own
        return
    for device in devices:
        _full_name(device)


def _full_name(device: object) -> str:
    names = [_canonical(each.name) for each in tf.config.list_logical_devices()]
    if isinstance(device, str):
        wanted = _canonical(device)
        if wanted and wanted in names:
            return wanted
    raise CourseError(
        _("There is no device {device}.", device=_short(device) if isinstance(device, str) else repr(device)),
        allowed=_(", ").join(_short(name) for name in names if name),
        cure=_(
            "Name a device that exists, or ask setup for more: in its place a strategy would compute on"
            " CPU:0, in silence."
        ),
    )


def _canonical(device: str) -> str | None:
    try:
        spec = tf.DeviceSpec.from_string(_with_slash(device))
    except ValueError:
        return None
    if spec.device_type is None:
        return None
    local = tf.DeviceSpec(job="localhost", replica=0, task=0, device_type="CPU", device_index=0)
    return str(local.make_merged_spec(spec).to_string())


def _with_slash(device: str) -> str:
    return device if device.startswith("/") else f"/{device}"


def _short(device: str) -> str:
    """Returns the name as it is written by hand.

    >>> _short("/job:localhost/replica:0/task:0/device:CPU:1")
    'CPU:1'
    """
    return device.rpartition("/device:")[2]
