"""The table of choices of the mesh and layout explorer: every number and every text that it can show.

The explorer's JavaScript only picks from this table and draws. The table is small because the choices
share what they have in common: how a tensor is cut, and which device holds which block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _, language
from course_lib.pictures import svg
from course_lib.pictures.figures import axis_text
from course_lib.pictures.text import join_sentences
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import block_label, blocks_of, predicted_holdings

ELEMENT_BYTES = 4  # float32
GLOBAL_SHAPES = ((24,), (12,), (8, 6), (6, 4), (5, 8), (4, 6, 8))
MESHES = tuple(
    MeshSpec(zip("xyz", sizes, strict=False))
    for sizes in [(8,), (2, 4), (4, 2), (2, 2, 2), (6,), (2, 3), (3, 2), (3, 2, 1)]
)


class _Shared:
    """A list in which each value stands once; `add` returns the place of a value."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def add(self, value: Any) -> int:
        place = self._places.setdefault(repr(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return place


def explorer_table() -> dict[str, Any]:
    """Returns all that the explorer can show, in the reader's language, as plain JSON values.

    `choices[mesh][tensor]["x,unsharded"]` is `[cut, holding]`, two places in the lists of these names, or for
    an illegal choice one place in `reasons`.
    """
    cuts, holdings, reasons = _Shared(), _Shared(), _Shared()
    choices = [
        [_choices_for(mesh, shape, cuts, holdings, reasons) for shape in GLOBAL_SHAPES] for mesh in MESHES
    ]
    return {
        "language": language(),
        "texts": _texts(),
        "palette": list(svg.PALETTE),
        "labels": [block_label(number) for number in range(max(mesh.size for mesh in MESHES))],
        "unsharded": UNSHARDED,
        "meshes": [_mesh_entry(mesh) for mesh in MESHES],
        "tensors": [_tensor_entry(shape) for shape in GLOBAL_SHAPES],
        "cuts": cuts.values,
        "holdings": holdings.values,
        "reasons": reasons.values,
        "choices": choices,
    }


def _choices_for(
    mesh: MeshSpec, global_shape: Sequence[int], cuts: _Shared, holdings: _Shared, reasons: _Shared
) -> dict[str, list[int] | int]:
    entries: dict[str, list[int] | int] = {}
    for specs in itertools.product([UNSHARDED, *mesh.names], repeat=len(global_shape)):
        try:
            layout = LayoutSpec(specs, mesh)
            cut = cuts.add(_cut_entry(layout, global_shape))
        except CourseError as error:
            entries[",".join(specs)] = reasons.add(str(error))
        else:
            held = predicted_holdings(blocks_of(layout, global_shape))
            entry = {"blocks": list(held), "copies": layout.replicas}
            entries[",".join(specs)] = [cut, holdings.add(entry)]
    return entries


def _cut_entry(layout: LayoutSpec, global_shape: Sequence[int]) -> dict[str, Any]:
    blocks, local_shape = blocks_of(layout, global_shape), layout.local_shape(global_shape)
    return {
        "blocks": [[[part.start, part.stop] for part in block.index] for block in blocks],
        "index": [block.index_text for block in blocks],
        "local_shape": str(local_shape),
        "num_bytes": ELEMENT_BYTES * math.prod(local_shape),
    }


def _mesh_entry(mesh: MeshSpec) -> dict[str, Any]:
    coords = [mesh.coords(device_id) for device_id in range(mesh.size)]
    return {
        "name": str(mesh),
        "dims": [list(dim) for dim in mesh.dims],
        "devices": mesh.size,
        "coords": [", ".join(f"{name}={place}" for name, place in at.items()) for at in coords],
    }


def _tensor_entry(global_shape: Sequence[int]) -> dict[str, Any]:
    return {
        "name": str(tuple(global_shape)),
        "shape": list(global_shape),
        "axes": [axis_text(axis, length) for axis, length in enumerate(global_shape)],
    }


def _texts() -> dict[str, str]:
    # The places in braces are filled in by the explorer, so here they stand for themselves.
    holds = _(
        "Device {device} at {coords} holds block {block}, {index}.",
        device="{device}",
        coords="{coords}",
        block="{block}",
        index="{index}",
    )
    replicas = _("The same block is on devices: {devices}.", devices="{devices}")
    return {
        "title": _("Mesh and layout explorer"),
        "devices": _("Devices"),
        "mesh": _("Mesh"),
        "tensor": _("Tensor"),
        "prediction": _("Prediction"),
        "reality": _("Reality"),
        "local_shape": _("Local shape"),
        "num_bytes": _("Bytes on each device"),
        "copies": _("Copies of each element"),
        "illegal": _("This choice is not possible."),
        "device": _(
            "Device {device}, {coords}, block {block}", device="{device}", coords="{coords}", block="{block}"
        ),
        "replicas": join_sentences([holds, replicas]),
        "alone": join_sentences([holds, _("No other device holds this block.")]),
        "button": _("Make the real DTensor and compare"),
        "waiting": _(
            "Making the real DTensor. The first time this starts TensorFlow and takes some seconds."
        ),
        "no_kernel": _("The button needs a running notebook: open this lesson in Jupyter or Colab."),
    }
