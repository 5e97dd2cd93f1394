"""Real components: what the devices hold in fact, and whether that is what the layout predicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.sharding import Sharding

Array = npt.NDArray[Any]


class Components(DrawsItself):
    """The real components of a tensor, one a device. It draws itself.

    Attributes:
        sharding: what was predicted.
        whole: the whole tensor, `[...] global`.
        components: what the devices hold, `[...] local` each, in the order of the devices.

    Raises:
        CourseError: the tensor has another shape.
    """

    def __init__(self, sharding: Sharding, whole: npt.ArrayLike, components: Sequence[npt.ArrayLike]) -> None:
        self.sharding, self.whole = sharding, np.asarray(whole)
        self.components: tuple[Array, ...] = tuple(map(np.asarray, components))
        sharding.require_shape(self.whole)

    @cached_property
    def holdings(self) -> tuple[int | None, ...]:
        """For each device the number of the block that its component equals, or None for no block.

        Where several blocks have equal values, the one that the device is to hold wins.
        """
        parts = [self.whole[block.index] for block in self.sharding.blocks]
        return tuple(
            next((at for at in (expected, *range(len(parts))) if _same(parts[at], component)), None)
            for expected, component in zip(self.sharding.holdings, self.components, strict=True)
        )

    @classmethod
    def of(cls, layout: LayoutSpec, components: Sequence[npt.ArrayLike]) -> Self:
        """Returns the components of a tensor with a layout, whose whole is put together from them.

        A replica whose values differ from those of the first device with the same block is a stranger.

        Args:
            layout: that of the tensor.
            components: `[...] local` each, one a device, in the order of the devices.

        Raises:
            CourseError: they have several shapes, as those of `tf.where` may.
        """
        shapes = {np.shape(component) for component in components}
        if len(shapes) > 1:
            raise CourseError(
                _("The components have several shapes: {shapes}.", shapes=sorted(shapes)),
                allowed=_("components of one shape"),
                cure=_("Give every device a component of the same shape."),
            )
        (local_shape,) = shapes
        sharding = layout.of([length * layout.num_shards(axis) for axis, length in enumerate(local_shape)])
        whole = np.empty(sharding.global_shape, np.asarray(components[0]).dtype)
        for block in sharding.blocks:
            whole[block.index] = components[block.devices[0]]
        return cls(sharding, whole, components)

    def __repr__(self) -> str:
        labels = [block.label for block in self.sharding.blocks]
        held = " ".join("?" if block is None else labels[block] for block in self.holdings)
        return f"<{type(self).__name__} of {self.sharding!r}: {held}>"


class Comparison(Components):
    """The real components beside the prediction. It draws itself."""

    @cached_property
    def wrong_devices(self) -> tuple[int, ...]:
        """The devices whose component is not the predicted block."""
        pairs = zip(self.holdings, self.sharding.holdings, strict=True)
        return tuple(device_id for device_id, (held, expected) in enumerate(pairs) if held != expected)

    @property
    def agrees(self) -> bool:
        """Whether every component is the predicted one."""
        return not self.wrong_devices

    @property
    def sentence(self) -> str:
        """The same in words, with the devices that differ."""
        count = len(self.components)
        if self.agrees:
            return ngettext(
                "The {count} real component equals the prediction.",
                "All {count} real components equal the prediction.",
                count,
            )
        return ngettext(
            "{count} of {size} real components differs from the prediction: device {devices}.",
            "{count} of {size} real components differ from the prediction: devices {devices}.",
            len(self.wrong_devices),
            size=count,
            devices=", ".join(map(str, self.wrong_devices)),
        )


def _same(first: Array, second: Array) -> bool:
    """Whether two arrays have one shape and equal values; NaN equals NaN."""
    numeric = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    return np.array_equal(first, second, equal_nan=numeric)
