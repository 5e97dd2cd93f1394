"""Exercise 05-restore: the components of a tensor on one mesh become those on another, by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding, numbered_tensor
from lessons.lesson_05_model_and_spatial.judging_components import judge_components

Array = npt.NDArray[Any]
Parts = list[Array]
Restore = Callable[[Parts, Sharding, Sharding], Any]

_EIGHT = MeshSpec([("batch", 8)])
_FOUR_BY_TWO = MeshSpec([("batch", 4), ("model", 2)])
_CUBE = MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])
_ONE = MeshSpec([("world", 1)])
_TYPE = "float32"  # of every number that is packed here
_LAYOUTS = (
    (LayoutSpec(["feature", "model"], _CUBE), LayoutSpec([UNSHARDED, "model"], _FOUR_BY_TWO)),
    (LayoutSpec([UNSHARDED, UNSHARDED], _EIGHT), LayoutSpec(["feature", "model"], _CUBE)),
    (LayoutSpec([UNSHARDED, "model"], _FOUR_BY_TWO), LayoutSpec(["model", "feature"], _CUBE)),
    (LayoutSpec(["model", "batch"], _CUBE), LayoutSpec.replicated(_ONE, 2)),
    (LayoutSpec.replicated(_ONE, 2), LayoutSpec(["batch", UNSHARDED], _EIGHT)),
)


def through_the_whole(components: Parts, before: Sharding, after: Sharding) -> Parts:
    """Returns the component of each device of the other mesh."""
    whole = np.empty(before.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] = component
    return [whole[after.shards[device_id]] for device_id in range(after.mesh.size)]


def piece_by_piece(components: Parts, before: Sharding, after: Sharding) -> Parts:
    """Copies for each device only what it lacks, from whoever holds it: no device holds the whole."""
    return [_gathered(index, components, before, after.local_shape) for index in after.shards.values()]


def _gathered(
    index: tuple[slice, ...], components: Parts, before: Sharding, local_shape: tuple[int, ...]
) -> Array:
    made = np.empty(local_shape, components[0].dtype)
    for device_id, held in before.shards.items():
        starts = [max(ours.start, theirs.start) for ours, theirs in zip(index, held, strict=True)]
        stops = [min(ours.stop, theirs.stop) for ours, theirs in zip(index, held, strict=True)]
        if all(start < stop for start, stop in zip(starts, stops, strict=True)):
            made[_shifted(starts, stops, index)] = components[device_id][_shifted(starts, stops, held)]
    return made


def _shifted(starts: list[int], stops: list[int], index: tuple[slice, ...]) -> tuple[slice, ...]:
    return tuple(
        slice(start - part.start, stop - part.start)
        for start, stop, part in zip(starts, stops, index, strict=True)
    )


def _in_numpys_own_type(components: Parts, before: Sharding, after: Sharding) -> Parts:
    """Forgets the type: what `np.zeros` makes is float64."""
    whole = np.zeros(before.global_shape)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] = component
    return after.split(whole)


def _rounded_to(kind: str) -> Restore:
    """Returns what copies rightly, but through a type that does not hold every float32."""

    def rounded(components: Parts, before: Sharding, after: Sharding) -> Parts:
        parts = through_the_whole(components, before, after)
        return [part.astype(kind).astype(part.dtype) for part in parts]

    return rounded


def _as_they_are(components: Parts, before: Sharding, after: Sharding) -> Parts:
    return list(components)


def _whole_everywhere(components: Parts, before: Sharding, after: Sharding) -> Parts:
    return [before.assemble(components)] * after.mesh.size


def _adding(components: Parts, before: Sharding, after: Sharding) -> Parts:
    whole = np.zeros(before.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] += component
    return after.split(whole)


def _each_block_once(components: Parts, before: Sharding, after: Sharding) -> Parts:
    whole = before.assemble(components)
    return [whole[block.index] for block in after.blocks]


def _first_component_only(components: Parts, before: Sharding, after: Sharding) -> Parts:
    whole = np.zeros(before.global_shape, components[0].dtype)
    whole[before.shards[0]] = components[0]
    return after.split(whole)


def _whole(components: Parts, before: Sharding, after: Sharding) -> Array:
    return before.assemble(components)


def after_restoring(restore: Restore) -> Callable[..., Any]:
    """Returns what a way to restore makes of a whole tensor, cut for the first mesh."""

    def of_whole(whole: Array, before: LayoutSpec, after: LayoutSpec) -> Any:
        held = before.of(whole.shape)
        return restore(held.split(whole), held, after.of(whole.shape))

    return of_whole


def expected(whole: Array, before: LayoutSpec, after: LayoutSpec) -> Parts:
    """Returns the components of the whole tensor under the other layout."""
    return after.of(whole.shape).split(whole)


def run(restore: Restore, whole: Array, before: LayoutSpec, after: LayoutSpec) -> Any:
    """Returns what the devices of the other mesh really hold of what a reader's function makes."""
    with on_devices() as (_tf, dtensor):
        held = dtensor.unpack(dtensor.pack(whole, before))
        made = restore(held, before.of(whole.shape), after.of(whole.shape))
        if not _fits(made, after.of(whole.shape)) or _types(made) != {_TYPE}:
            return made
        return dtensor.unpack(dtensor.pack_components(made, after))


def _fits(made: object, after: Sharding) -> bool:
    """Returns whether something can be packed: a component of the right shape for each device."""
    if not isinstance(made, Sequence) and not isinstance(made, np.ndarray):
        return False
    return len(made) == after.mesh.size and all(np.shape(part) == after.local_shape for part in made)


def _types(made: Sequence[Any] | Array) -> set[str]:
    """Returns the types of the numbers in components that fit."""
    return {np.asarray(part).dtype.name for part in made}


def _cases() -> list[Case]:
    whole = numbered_tensor((8, 8)) / 7  # no shorter type holds the quotients
    return [
        Case(
            (whole, before, after),
            told=_(
                "an (8, 8) matrix, from {before} on {mesh} to {after} on {other_mesh}",
                before=before,
                mesh=before.mesh,
                after=after,
                other_mesh=after.mesh,
            ),
        )
        for before, after in _LAYOUTS
    ]


@exercise(
    "05-restore",
    right=through_the_whole,
    also=[
        piece_by_piece,
        lambda components, before, after: np.array(through_the_whole(components, before, after)),
        lambda components, before, after: after.split(before.assemble(components)),
    ],
    wrong=[
        (_as_they_are, "what it held before"),
        (_whole_everywhere, "every device the whole"),
        (_adding, "counts replicas"),
        (_each_block_once, "Give every device"),
        (_first_component_only, "first component only"),
        (_whole, "Cut it for"),
        (_in_numpys_own_type, "of the type `float64`"),
        (_rounded_to("float16"), "have been rounded"),
        (
            lambda *inputs: [part.astype("float16") for part in through_the_whole(*inputs)],
            "have been rounded",
        ),
        (lambda *inputs: [part.astype(int) for part in through_the_whole(*inputs)], "have been rounded"),
        (
            lambda *inputs: [*through_the_whole(*inputs)[:-1], _in_numpys_own_type(*inputs)[-1]],
            "of the type `float64`",
        ),
        (lambda components, before, after: components[after.mesh.size], "fails for"),
        (lambda components, before, after: None, "return"),
        (lambda *inputs: [2 * part for part in through_the_whole(*inputs)], "`after.shards`"),
        (lambda *inputs: dict(enumerate(through_the_whole(*inputs))), "type `dict`. Return a list"),
        (lambda *inputs: iter(through_the_whole(*inputs)), "Return a list"),
        (lambda *inputs: through_the_whole(*inputs)[:-1], "components. It needs one for each device"),
        ([[0, 1], [2, 3]], "function"),
    ],
    on_devices=True,
)
def restoring(answer: Restore) -> str | None:
    """What each device of a mesh is given of a tensor that lies on another mesh."""
    rounded = _(
        "These numbers have been rounded on the way. Make your arrays with `components[0].dtype`, so that no"
        " bit is lost."
    )
    misconceptions: dict[Callable[..., Any], str] = {
        after_restoring(_rounded_to("float16")): rounded,
        after_restoring(_rounded_to("int64")): rounded,
        after_restoring(_as_they_are): _("Each device is given what it held before, under the old layout."),
        after_restoring(_whole_everywhere): _(
            "This gives every device the whole tensor. Give it what `after.shards` says."
        ),
        after_restoring(_adding): _(
            "This counts replicas more than once: devices that hold the same block hold copies of it."
        ),
        after_restoring(_each_block_once): _(
            "Give every device its component, also where two devices get the same block."
        ),
        after_restoring(_first_component_only): _(
            "This takes the first component only. The others hold the rest of the tensor."
        ),
        after_restoring(_whole): _("This is the whole tensor. Cut it for the devices of the other mesh."),
    }
    advice = _("Look up this device in `after.shards`: which part of the tensor should it hold?")
    types: set[str] = set()

    def noting_types(function: Restore, whole: Array, before: LayoutSpec, after: LayoutSpec) -> Any:
        made = run(function, whole, before, after)
        if _fits(made, after.of(whole.shape)):
            types.update(_types(made))
        return made

    hint = judge_components(
        answer,
        expected,
        _cases(),
        num_devices=lambda _whole, _before, after: after.mesh.size,
        misconceptions=misconceptions,
        run=noting_types,
        tolerance=0.0,
        advice=advice,
    )
    return hint or _hint_on_types(types - {_TYPE})


def _hint_on_types(others: set[str]) -> str | None:
    if not others:
        return None
    return _(
        "The numbers are right, but some are of the type `{kind}`. Those that a device held are `{expected}`:"
        " make your arrays with `components[0].dtype`, so that a restored variable keeps its type.",
        kind=min(others),
        expected=_TYPE,
    )
