"""Exercise 05-product: the product of a split batch and a split weight, device by device."""

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
from course_lib.specs.mesh import MeshSpec
from lessons.lesson_05_model_and_spatial.judging_components import judge_components

Array = npt.NDArray[Any]
Parts = list[Array]
Product = Callable[[Parts, Parts, MeshSpec], Any]

_MESHES = (
    MeshSpec([("batch", 2), ("feature", 2), ("model", 2)]),
    MeshSpec([("model", 2), ("feature", 4)]),
    MeshSpec([("feature", 2), ("batch", 4)]),
)


def summed_over_feature(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Returns the component of the product on each device."""
    components = _partial(x_parts, weight_parts)
    for group in mesh.groups("feature"):
        total = sum(components[device_id] for device_id in group)
        for device_id in group:
            components[device_id] = total
    return components


def _partial(x_parts: Parts, weight_parts: Parts) -> list[Any]:
    return [x @ weight for x, weight in zip(x_parts, weight_parts, strict=True)]


def _not_summed(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    return _partial(x_parts, weight_parts)


def _summed_over_all(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    return [sum(_partial(x_parts, weight_parts))] * mesh.size


def _summed_over(dim: str, *, even_if_absent: bool) -> Product:
    """Returns what adds along another dimension, and on a mesh without it raises or adds nothing."""

    def product(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
        components = _partial(x_parts, weight_parts)
        for group in mesh.groups(dim) if even_if_absent or dim in mesh.names else ():
            total = sum(components[device_id] for device_id in group)
            for device_id in group:
                components[device_id] = total
        return components

    return product


_over_batch, _over_model = (_summed_over(dim, even_if_absent=True) for dim in ("batch", "model"))
_over_batch_if_any, _over_model_if_any = (
    _summed_over(dim, even_if_absent=False) for dim in ("batch", "model")
)


def _mean_over_feature(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    size = mesh.dim_size("feature")
    return [part / size for part in summed_over_feature(x_parts, weight_parts, mesh)]


def _first_of_a_group(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Gives the sum to the first device of each group only."""
    components = _partial(x_parts, weight_parts)
    for group in mesh.groups("feature"):
        components[group[0]] = sum(components[device_id] for device_id in group)
    return components


def _one_after_the_other(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Overwrites the partial sums of a group while the others of it still add them."""
    components = _partial(x_parts, weight_parts)
    for group in mesh.groups("feature"):
        for device_id in group:
            components[device_id] = sum(components[other] for other in group)
    return components


def _by_group(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Gives one sum for each group."""
    partial = _partial(x_parts, weight_parts)
    return [sum(partial[device_id] for device_id in group) for group in mesh.groups("feature")]


def after(product: Product) -> Callable[..., Any]:
    """Returns what a way to multiply makes of whole matrices, cut for a mesh."""

    def of_whole(x: Array, weight: Array, mesh: MeshSpec) -> Any:
        x_parts, weight_parts = (
            _layout(names, mesh).of(each.shape).split(each) for names, each in _operands(x, weight)
        )
        return product(x_parts, weight_parts, mesh)

    return of_whole


def expected(x: Array, weight: Array, mesh: MeshSpec) -> Parts:
    """Returns the components of the product of the whole matrices."""
    whole = x @ weight
    return _layout(("batch", "model"), mesh).of(whole.shape).split(whole)


def run(product: Product, x: Array, weight: Array, mesh: MeshSpec) -> Any:
    """Returns what a reader's function makes of the components of real DTensors."""
    with on_devices() as (_tf, dtensor):
        x_parts, weight_parts = (
            dtensor.unpack(dtensor.pack(each, _layout(names, mesh))) for names, each in _operands(x, weight)
        )
        return product(x_parts, weight_parts, mesh)


def _operands(x: Array, weight: Array) -> tuple[tuple[tuple[str, str], Array], ...]:
    return (("batch", "feature"), x), (("feature", "model"), weight)


def _layout(names: Sequence[str], mesh: MeshSpec) -> LayoutSpec:
    """Returns the layout with these dimensions, those that the mesh has."""
    return LayoutSpec([name if name in mesh.names else "unsharded" for name in names], mesh)


def _cases() -> list[Case]:
    random = np.random.default_rng(0)
    cases = []
    for mesh in _MESHES:
        x = random.integers(-4, 5, (4, 8)).astype(np.float32)
        weight = random.integers(-4, 5, (8, 6)).astype(np.float32)
        told = _("the parts of a (4, 8) and an (8, 6) matrix on the mesh {mesh}", mesh=mesh)
        cases.append(Case((x, weight, mesh), told=told))
    return cases


@exercise(
    "05-product",
    right=summed_over_feature,
    also=[
        lambda x_parts, weight_parts, mesh: np.array(summed_over_feature(x_parts, weight_parts, mesh)),
    ],
    wrong=[
        (_not_summed, "still partial sums"),
        (_summed_over_all, "over all devices"),
        (_over_batch, "along `batch`"),
        (_over_batch_if_any, "along `batch`"),
        (_over_model, "along `model`"),
        (_over_model_if_any, "along `model`"),
        (_mean_over_feature, "the mean"),
        (_first_of_a_group, "first device of each group only"),
        (_one_after_the_other, "have been overwritten"),
        (_by_group, "one for each device"),
        (lambda x_parts, weight_parts, mesh: x_parts @ weight_parts, "fails for"),
        (lambda x_parts, weight_parts, mesh: None, "return"),
        (lambda x_parts, weight_parts, mesh: x_parts, "`np.matmul`"),
        (lambda *inputs: dict(enumerate(summed_over_feature(*inputs))), "type `dict`. Return a list"),
        (lambda *inputs: iter(summed_over_feature(*inputs)), "Return a list"),
        (
            lambda *inputs: summed_over_feature(*inputs)[:-1],
            "7 components. It needs one for each device: 8",
        ),
        (0.5, "function"),
    ],
    on_devices=True,
)
def product(answer: Product) -> str | None:
    """The components of `x W1` where features and hidden units are split."""
    along_batch = _(
        "This adds along `batch`: sums of different reviews. Devices that differ along which dimension"
        " hold parts of one sum?"
    )
    along_model = _(
        "This adds along `model`: sums of different hidden units. Devices that differ along which"
        " dimension hold parts of one sum?"
    )
    misconceptions: dict[Callable[..., Any], str] = {
        after(_not_summed): _(
            "These are still partial sums: each device has summed over its own features only. Add those of"
            " the devices that hold the other features of the same reviews."
        ),
        after(_summed_over_all): _(
            "This adds up over all devices, also those with other reviews or other hidden units."
        ),
        after(_over_batch): along_batch,
        after(_over_batch_if_any): along_batch,
        after(_over_model): along_model,
        after(_over_model_if_any): along_model,
        after(_mean_over_feature): _("This is the mean of the partial sums. A product sums: do not divide."),
        after(_first_of_a_group): _(
            "The sum is with the first device of each group only. An all-reduce gives it to everyone."
        ),
        after(_one_after_the_other): _(
            "Some partial sums have been overwritten before they were added for the other devices. Compute"
            " the sum of a group once, then hand it out."
        ),
        after(_by_group): _("This is one sum for each group. Return a list with one for each device."),
    }
    advice = _("Compare with `np.matmul` of the whole matrices: what should this device hold of it?")
    return judge_components(
        answer,
        expected,
        _cases(),
        num_devices=lambda _x, _weight, mesh: mesh.size,
        misconceptions=misconceptions,
        run=run,
        advice=advice,
    )
