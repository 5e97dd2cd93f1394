"""Exercises that ask for a component for each device: a product of split factors, and a restore by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, Function, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, ngettext
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


def _judged(
    answer: Function,
    reference: Function,
    cases: Sequence[Case],
    *,
    misconceptions: Mapping[Function, str],
    advice: str,
    run: Function = lambda function, *inputs: function(*inputs),
) -> str | None:
    """Returns what `judge` does of numbers to the last bit, but first what is wrong with a list's form."""
    forms: list[str | None] = []

    def noting(function: Function, *inputs: Any) -> Any:
        made = run(function, *inputs)
        forms.append(_hint_on_form(made, len(reference(*inputs))))
        return made

    hint = judge(
        answer, reference, cases, misconceptions=misconceptions, run=noting, tolerance=0.0, advice=advice
    )
    return next(filter(None, forms), hint)


def _hint_on_form(made: Any, num_devices: int) -> str | None:
    """Returns how to give back components where this is no list with one for each device."""
    if made is None:  # `judge` has a hint for that
        return None
    if not isinstance(made, Sequence) and getattr(made, "ndim", 0) == 0:
        return _(
            "Your function returns a value of the type `{kind}`. Return a list: its element `d` is what"
            " device `d` holds.",
            kind=type(made).__name__,
        )
    if len(made) != num_devices:
        return ngettext(
            "Your list has {count} component. It needs one for each device: {num_devices}.",
            "Your list has {count} components. It needs one for each device: {num_devices}.",
            len(made),
            num_devices=num_devices,
        )
    return None


def _product(
    x_parts: Parts, weight_parts: Parts, mesh: MeshSpec, *, over: str = "feature", mean: bool = False
) -> Parts:
    """Returns the component of the product on each device; with another sum, what a mistake makes of it."""
    components = [x @ weight for x, weight in zip(x_parts, weight_parts, strict=True)]
    for group in mesh.groups(over) if over in mesh.names else ():
        total = np.sum([components[device_id] for device_id in group], axis=0)
        for device_id in group:
            components[device_id] = total / len(group) if mean else total
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
        lambda x_parts, weight_parts, mesh: [x @ w for x, w in zip(x_parts, weight_parts, strict=True)]: _(
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
        lambda *inputs: _product(*inputs, mean=True): _(
            "This is the mean of the partial sums. A product sums: do not divide."
        ),
    }
    advice = _("Compare with `np.matmul` of the whole matrices: what should this device hold of it?")
    return _judged(answer, multiplied, _factors(), misconceptions=misconceptions, advice=advice)


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
        with on_devices() as (_tf, dtensor):
            shardings = before.of(whole.shape), after.of(whole.shape)
            made = function(dtensor.unpack(dtensor.pack(whole, before)), *shardings)
            if not _can_be_packed(made, shardings[1]):
                return made
            types.update(np.asarray(part).dtype.name for part in made)
            return dtensor.unpack(dtensor.pack_components([np.asarray(part, _TYPE) for part in made], after))

    misconceptions: dict[Function, str] = {
        _of_whole(lambda components, before, after: [before.assemble(components)] * after.mesh.size): _(
            "This gives every device the whole tensor. Give it what `after.shards` says."
        ),
        _of_whole(_added): _(
            "This counts replicas more than once: devices that hold the same block hold copies of it."
        ),
    }
    advice = _("Look up this device in `after.shards`: which part of the tensor should it hold?")
    hint = _judged(
        answer, _of_whole(restored), _matrices(), misconceptions=misconceptions, advice=advice, run=run
    )
    return hint or _hint_on_types(types - {_TYPE})


def _can_be_packed(made: Any, after: Sharding) -> bool:
    if made is None or _hint_on_form(made, after.mesh.size):
        return False
    return all(np.shape(part) == after.local_shape for part in made)


def _hint_on_types(others: set[str]) -> str | None:
    if not others:
        return None
    return _(
        "The numbers are right, but some are of the type `{kind}`. Those that a device held are `{expected}`:"
        " make your arrays with `components[0].dtype`, so that a restored variable keeps its type.",
        kind=min(others),
        expected=_TYPE,
    )
