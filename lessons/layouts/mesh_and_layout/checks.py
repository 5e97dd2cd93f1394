"""The exercises of this lesson that only code can check: a function, and what the explorer shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import guarded, on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding, numbered_tensor

Cut = Callable[[Array, Any], Any]

_NUM_CASES = 30
_TRAP = LayoutSpec(["model", UNSHARDED], MeshSpec([("batch", 4), ("model", 2)]))  # of the lesson's packer
_EXPLORED = MeshSpec([("x", 2), ("y", 4)])
_UNTOUCHED = LayoutSpec(["x", UNSHARDED], _EXPLORED).of((8, 6))


def _cut(whole: Array, layout: LayoutSpec) -> dict[str, Any]:
    return _named(layout.of(whole.shape).split(whole))


def _named(parts: Sequence[Any]) -> dict[str, Any]:
    return {f"parts[{at}]": part for at, part in enumerate(parts)}  # so that a hint tells one alone


@exercise("mesh_and_layout-cut", right=_cut)
def cut(answer: Cut) -> str | None:
    """A function that cuts an array into the parts of a layout."""

    def on_a_mesh(function: Cut, whole: Array, layout: LayoutSpec) -> Any:
        with on_devices() as (_tf, dtensor):
            parts = function(whole, guarded(dtensor.to_layout(layout)))
        if not isinstance(parts, list):
            raise CourseError(_("Return the parts in a list, not yet packed: `pack` takes only a list."))
        if any(getattr(part, "dtype", None) != whole.dtype for part in parts):
            raise CourseError(_("Keep the dtype of the array: unlike dtypes can crash TensorFlow."))
        if len(parts) != layout.mesh.size:
            raise CourseError(_("Give every device a part, also where several hold the same one."))
        return _named(parts)

    by_mesh_shape = _(
        "This counts the parts by the shape of the mesh. But the layout need not split the first axis along"
        " the first mesh dimension: ask `layout.num_shards(axis)`."
    )
    random = np.random.default_rng(0)
    given = [(numbered_tensor((8, 4)) + 0.5, _TRAP), (np.arange(8), LayoutSpec(["model"], _TRAP.mesh))]
    given += [_random_sharding(random) for _case in range(_NUM_CASES)]
    cases = [Case(each, told=_told(*each)) for each in given]
    wrong = {_cut_by_mesh_shape: by_mesh_shape}
    advice = _("Draw what each device should hold: `show(layout, shape)`.")
    return judge(answer, _cut, cases, misconceptions=wrong, run=on_a_mesh, advice=advice)


def _told(whole: Array, layout: LayoutSpec) -> str:
    names = {"shape": whole.shape, "layout": layout, "mesh": layout.mesh}
    return _("an array of shape {shape} under {layout} on the mesh {mesh}", **names)


def _cut_by_mesh_shape(whole: Array, layout: LayoutSpec) -> dict[str, Any]:
    components = []
    for device_id in range(layout.mesh.size):
        part = whole
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != UNSHARDED:
                parts = np.split(part, layout.mesh.sizes[axis], axis=axis)
                part = parts[layout.mesh.coords(device_id)[dim]]
        components.append(part)
    return _named(components)


def _random_sharding(random: np.random.Generator) -> tuple[Array, LayoutSpec]:
    sizes = [(8,), (5,), (4, 2), (2, 4), (3, 2), (2, 3), (1, 4), (2, 2, 2), (2, 1, 3)]
    mesh = MeshSpec(zip("xyz", sizes[random.integers(len(sizes))], strict=False))
    num_axes = int(random.integers(1, 4))
    entries = random.permutation([*mesh.names, *[UNSHARDED] * num_axes])[:num_axes].tolist()
    layout = LayoutSpec(entries, mesh)
    lengths = [layout.num_shards(axis) * int(random.integers(1, 3)) for axis in range(num_axes)]
    return numbered_tensor(lengths) + 0.5, layout


@exercise(
    "mesh_and_layout-explore-one-copy",
    right=LayoutSpec(["y", "x"], _EXPLORED).of((8, 6)),
    unanswered=_UNTOUCHED,
)
def one_copy(chosen: Sharding) -> str | None:
    """A choice in which each element is held once."""
    if chosen.global_shape != (8, 6) or chosen.mesh.size != 8:
        return _("Give the tensor in the explorer the shape (8, 6), and its mesh 8 devices.")
    if chosen.copies != 1:
        return ngettext(
            "Now {count} device holds each element. Mesh dimensions that cut no axis make copies.",
            "Now {count} devices hold each element. Mesh dimensions that cut no axis make copies.",
            chosen.copies,
        )
    return None
