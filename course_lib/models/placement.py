"""Where a model's tensors lie: on a mesh as a plan says, or whole on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.devices.dtensor import create_mesh, pack, to_layout, to_numpy
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import BATCH, Plan

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

Array = npt.NDArray[Any]


class OneDevice:
    """Whole tensors and plain variables on one device: the reference without DTensor.

    Attributes:
        batch_shards: into how many parts a batch is split.
    """

    batch_shards = 1

    def variable(self, value: Array, axes: Sequence[str], *, name: str, trainable: bool) -> Any:
        """Returns a new plain variable that holds `value`, `[*axes] global`."""
        del axes
        return tf.Variable(value, trainable=trainable, name=name)

    def send(self, array: Array, axes: Sequence[str]) -> Any:
        """Returns an array of the host, `[*axes] global`, as a plain tensor."""
        del axes
        return tf.constant(array)

    def fetch(self, tensor: Any) -> Array:
        """Returns a tensor's or a variable's value."""
        return np.asarray(tensor.numpy())

    def lay_out(self, tensor: Any, axes: Sequence[str]) -> Any:
        """Returns the tensor as it is."""
        del axes
        return tensor


class OnMesh:
    """DTensors, each laid out as a plan says of its axes.

    Attributes:
        plan: the mesh, and which of its dimensions splits which axis.
    """

    def __init__(self, plan: Plan) -> None:
        """Takes a plan whose mesh fits on the configured devices; raises a `CourseError` otherwise."""
        self.plan = plan
        self._mesh = create_mesh(plan.mesh)

    @property
    def batch_shards(self) -> int:
        """Into how many parts the mesh splits a batch."""
        return self.plan.num_shards(BATCH)

    def variable(self, value: Array, axes: Sequence[str], *, name: str, trainable: bool) -> Any:
        """Returns a new DVariable that holds `value`, `[*axes] global`."""
        return dtensor.DVariable(self.send(value, axes), trainable=trainable, name=name)

    def send(self, array: Array, axes: Sequence[str]) -> Any:
        """Returns an array of the host, `[*axes] global`, each device having been sent its own component."""
        return pack(array, self.plan.layout(axes), self._mesh)

    def fetch(self, tensor: Any) -> Array:
        """Returns the whole tensor, put together from the components."""
        return to_numpy(tensor)

    def lay_out(self, tensor: Any, axes: Sequence[str]) -> Any:
        """Returns the DTensor split along these axes; of two that share a mesh dimension, along the first.

        Two axes of the tensor may be split at most, before and after: then TensorFlow's relayout is right,
        and moves less than one through the unsharded layout.
        """
        names = [self.plan.splits.get(axis, UNSHARDED) for axis in axes]
        entries = [UNSHARDED if name in names[:at] else name for at, name in enumerate(names)]
        return dtensor.relayout(tensor, to_layout(LayoutSpec(entries, self.plan.mesh), self._mesh))


Placement = OneDevice | OnMesh
