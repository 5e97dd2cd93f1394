"""Exercises that ask for a component for each device: a product of split factors, and a restore by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, Function, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding, numbered_tensor

Array = npt.NDArray[Any]
Parts = list[Array]
Restore = Callable[[Parts, Sharding, Sharding], Any]

_EIGHT = MeshSpec([("batch", 8)])
_FOUR_BY_TWO = MeshSpec([("batch", 4), ("model", 2)])
_CUBE = MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])
_ONE = MeshSpec([("world", 1)])
_TYPE = "float32"  # of every number that is restored here


def _product(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec, *, over: str = "feature") -> Parts:
    """Returns the component of the product on each device; with another sum, what a mistake makes of it."""
    components = [x @ weight for x, weight in zip(x_parts, weight_parts, strict=True)]
    for group in mesh.groups(over) if over in mesh.names else ():
        total = np.sum([components[device_id] for device_id in group], axis=0)
        for device_id in group:
            components[device_id] = total
    return components


def multiplied(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Returns the component of the product on each device."""
    return _product(x_parts, weight_parts, mesh)


def _factors() -> list[Case]:
    random = np.random.default_rng(0)
    cases = []
    for mesh in (_CUBE, MeshSpec([("model", 2), ("feature", 4)]), MeshSpec([("feature", 2), ("batch", 4)])):
        parts = []
        for names, shape in ((("batch", "feature"), (4, 8)), (("feature", "model"), (8, 6))):
            layout = LayoutSpec([name if name in mesh.names else UNSHARDED for name in names], mesh)
            parts.append(layout.of(shape).split(random.integers(-4, 5, shape).astype(np.float32)))
        told = _("the parts of a (4, 8) and an (8, 6) matrix on the mesh {mesh}", mesh=mesh)
        cases.append(Case((*parts, mesh), told=told))
    return cases


@exercise("05-product", right=multiplied)
def product(answer: Function) -> str | None:
    """The components of `x W1` where features and hidden units are split."""
    misconceptions: dict[Function, str] = {
        lambda *inputs: _product(*inputs, over=""): _(
            "These are still partial sums: each device has summed over its own features only. Add those of"
            " the devices that hold the other features of the same reviews."
        ),
        lambda *inputs: [np.sum(_product(*inputs, over=""), axis=0)] * inputs[2].size: _(
            "This adds up over all devices, also those with other reviews or other hidden units."
        ),
        lambda *inputs: _product(*inputs, over="batch"): _(
            "This adds along `batch`: sums of different reviews. Devices that differ along which dimension"
            " hold parts of one sum?"
        ),
    }
    advice = _("Compare with `np.matmul` of the whole matrices: what should this device hold of it?")
    return judge(answer, multiplied, _factors(), misconceptions=misconceptions, advice=advice)


def restored(components: Parts, before: Sharding, after: Sharding) -> Parts:
    """Returns the component of each device of the other mesh."""
    return after.split(before.assemble(components))


def _added(components: Parts, before: Sharding, after: Sharding) -> Parts:
    whole = np.zeros(before.global_shape, _TYPE)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] += component
    return after.split(whole)


def _of_whole(restore: Restore) -> Callable[[Array, LayoutSpec, LayoutSpec], Any]:
    """Returns what a way to restore makes of a whole tensor, cut for the first mesh."""

    def of_whole(whole: Array, before: LayoutSpec, after: LayoutSpec) -> Any:
        held = before.of(whole.shape)
        return restore(held.split(whole), held, after.of(whole.shape))

    return of_whole


def _matrices() -> list[Case]:
    whole = numbered_tensor((8, 8)) / 7  # no shorter type holds the quotients
    layouts = (
        (LayoutSpec(["feature", "model"], _CUBE), LayoutSpec([UNSHARDED, "model"], _FOUR_BY_TWO)),
        (LayoutSpec([UNSHARDED, UNSHARDED], _EIGHT), LayoutSpec(["feature", "model"], _CUBE)),
        (LayoutSpec([UNSHARDED, "model"], _FOUR_BY_TWO), LayoutSpec(["model", "feature"], _CUBE)),
        (LayoutSpec(["model", "batch"], _CUBE), LayoutSpec.replicated(_ONE, 2)),
        (LayoutSpec.replicated(_ONE, 2), LayoutSpec(["batch", UNSHARDED], _EIGHT)),
    )
    told = [
        _(
            "an (8, 8) matrix, from {before} on {mesh} to {after} on {other_mesh}",
            before=before,
            mesh=before.mesh,
            after=after,
            other_mesh=after.mesh,
        )
        for before, after in layouts
    ]
    return [Case((whole, *pair), told=words) for pair, words in zip(layouts, told, strict=True)]


@exercise("05-restore", right=restored, on_devices=True)
def restoring(answer: Restore) -> str | None:
    """What each device of a mesh is given of a tensor that lies on another mesh."""
    types: set[str] = set()

    def run(function: Restore, whole: Array, before: LayoutSpec, after: LayoutSpec) -> Any:
        held, wanted = before.of(whole.shape), after.of(whole.shape)
        with on_devices() as (_tf, dtensor):
            made = function(dtensor.unpack(dtensor.pack(whole, before)), held, wanted)
            parts = made if isinstance(made, (list, tuple, np.ndarray)) else []
            if [np.shape(part) for part in parts] != [wanted.local_shape] * after.mesh.size:
                return made
            types.update(np.asarray(part).dtype.name for part in parts)
            return dtensor.unpack(dtensor.pack_components([np.asarray(part, _TYPE) for part in parts], after))

    misconceptions: dict[Function, str] = {
        _of_whole(lambda components, before, after: [before.assemble(components)] * after.mesh.size): _(
            "This gives every device the whole tensor. Give it what `after.shards` says."
        ),
        _of_whole(_added): _(
            "This counts replicas more than once: devices that hold the same block hold copies of it."
        ),
    }
    hint = judge(
        answer,
        _of_whole(restored),
        _matrices(),
        misconceptions=misconceptions,
        run=run,
        tolerance=0.0,
        advice=_("Look up this device in `after.shards`: which part of the tensor should it hold?"),
    )
    if hint or types <= {_TYPE}:
        return hint
    return _(
        "The numbers are right, but some are of the type `{kind}`. Those that a device held are `{expected}`:"
        " make your arrays with `components[0].dtype`, so that a restored variable keeps its type.",
        kind=min(types - {_TYPE}),
        expected=_TYPE,
    )
