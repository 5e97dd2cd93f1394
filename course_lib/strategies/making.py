"""Mirrored strategies on the course's devices, of which a notebook may have as many as it likes."""

from __future__ import annotations

import gc
from typing import Any

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _
from course_lib.runtime import device_kind, num_devices, start_tensorflow
from course_lib.strategies.devices import require_devices

tf = start_tensorflow()

_known: list[Any] = []  # who may use collectives, also when nobody else keeps it


def mirrored(num_replicas: int | None = None) -> Any:
    """Returns a MirroredStrategy on the first devices that `setup` was given, all of them by default.

    One of the devices adds up what the others send it, so that any number of strategies can live in one
    notebook: see `require_alone`.

    Raises:
        CourseError: a number of replicas for which there are no devices.
    """
    replicas = whole_number(
        num_devices() if num_replicas is None else num_replicas,
        _("{count!r} replicas cannot be had.", count=num_replicas),
        least=1,
        most=num_devices(),
        cure=_("Ask for fewer replicas, or setup for more devices."),
    )
    devices = require_devices(f"{device_kind()}:{device_id}" for device_id in range(replicas))
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def require_alone(strategy: Any) -> Any:
    """Returns the strategy, of which it is known that its collectives meet no other strategy's.

    A MirroredStrategy on CPUs, or on GPUs, that was given no `cross_device_ops` sends by collectives. A
    second one numbers its own from the start again, also where the first is no longer used: they meet under
    one number, and fail, or wait for ever.

    Raises:
        CourseError: another strategy uses collectives.
    """
    others = (each for each in gc.get_objects() if type(each) is tf.distribute.MirroredStrategy)
    if _uses_collectives(strategy) and any(
        _uses_collectives(other) for other in others if other is not strategy
    ):
        raise CourseError(
            _("A second MirroredStrategy would exchange data by collectives, as another one does already."),
            allowed=_("one such strategy in a process, and any number with cross_device_ops of another kind"),
            cure=_(
                "Use the first strategy again, or write {example}.",
                example="cross_device_ops=tf.distribute.ReductionToOneDevice()",
            ),
        )
    _known.append(strategy)
    return strategy


def _uses_collectives(strategy: Any) -> bool:
    """Whether it is what MirroredStrategy makes of no `cross_device_ops`, on more than one device."""
    chosen = getattr(strategy.extended, "_cross_device_ops", None)
    return type(chosen).__name__ == "CollectiveAllReduce" and strategy.num_replicas_in_sync > 1
