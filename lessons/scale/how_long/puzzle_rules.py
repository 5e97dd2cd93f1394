"""What a choice of a puzzle gives: the bytes and the collectives, or the time and the memory, of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from course_lib.i18n import _
from course_lib.pictures.communication_text import exchange
from course_lib.specs.architecture import Architecture, Exchange
from course_lib.specs.communication import product
from course_lib.specs.cost import MIXED, Recompute, StepCosts
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.machines import group_sizes
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Sharding
from lessons.scale.how_long.networks import CLUSTERS

FACTOR_AXES = ("A rows", "A columns", "B rows", "B columns")
LARGE_AXES = ("features", "heads", "hidden", "vocabulary")
NODES_OF_8 = replace(CLUSTERS["A100"], device=replace(CLUSTERS["A100"].device, efficiency=0.5))
TRAINING = replace(MIXED, microbatches=4, recompute=Recompute.FULL)


@dataclass(frozen=True)
class Found:
    """What a choice gives for a device: quantities, and of what some of these are the sum."""

    numbers: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Task:
    """The meshes, the axes with their lengths, and what a choice gives; illegal ones raise a CourseError."""

    meshes: Sequence[MeshSpec]
    axes: Mapping[str, int]
    found: Callable[[MeshSpec, Mapping[str, str]], Found]

    def options(self, mesh: MeshSpec) -> Axes:
        """Returns what an axis may be split by; a mesh dimension `batch` is for the batch."""
        return (UNSHARDED, *(name for name in mesh.names if name != BATCH))


def training_step(network: Architecture, batch_size: int, meshes: Sequence[MeshSpec], *axes: str) -> Task:
    """Returns a step of a network in float32; tensors alone are variables of one without sums."""
    sizes = {**network.sizes, BATCH: batch_size}

    def found(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        plan = Plan(_("yours"), mesh, splits)
        held = plan.shardings(network.tensors, sizes)
        return _found(
            {name: held[name] for name in network.variables},
            tuple(network.exchanges(plan, batch_size)),
            rows=_bytes(held[name] for name in network.inputs),
            activations=_bytes(held[each.result] for each in network.sums),
        )

    return Task(meshes, {axis: sizes[axis] for axis in axes}, found)


def matrix_product(left: tuple[int, int], right: tuple[int, int], meshes: Sequence[MeshSpec]) -> Task:
    """Returns the product of two matrices of float32, each of which splits its axes in its own way."""

    def found(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        names = [splits[axis] for axis in FACTOR_AXES]
        made = product(LayoutSpec(names[:2], mesh).of(left), LayoutSpec(names[2:], mesh).of(right))
        exchanges = [Exchange(at.tensor, at.collective, 1, False) for at in made.steps if at.collective]
        factors = dict(zip("AB", made.operands, strict=True))
        return _found(factors, exchanges, result=_bytes([made.result]))

    return Task(meshes, dict(zip(FACTOR_AXES, (*left, *right), strict=True)), found)


def large_step(network: Architecture, batch_size: int, meshes: Sequence[MeshSpec]) -> Task:
    """Returns a step by the cost model, on nodes of eight; mesh dimension `batch` splits the batch."""
    sizes = {**network.sizes, BATCH: batch_size // TRAINING.microbatches}

    def found(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        plan = Plan(_("yours"), mesh, {BATCH: BATCH, **splits})
        plan.shardings(network.tensors, sizes)  # or raises why it is illegal
        cost = StepCosts(network, plan.splits).cost(mesh, batch_size, NODES_OF_8, TRAINING)
        dims = tuple(name for name in mesh.names if name != BATCH)
        nodes = group_sizes(mesh, dims, NODES_OF_8.devices_per_node)[1]
        seconds = {_("computing"): cost.compute_seconds}
        for over, taken in cost.communication_seconds.items():
            seconds[_("all-reduce over {dims}", dims=over)] = taken
        words = {"variables": _("variables"), "gradients": _("gradients"), "optimizer": _("optimizer")}
        words["activations"] = _("activations")
        memory = {words[kind]: size for kind, size in cost.memory_bytes.items()}
        # Totals are rounded as they are shown, so that no choice fails by what nobody sees.
        numbers = {"memory": round(cost.total_bytes, -8), "seconds": round(cost.seconds, 2), "nodes": nodes}
        return Found(numbers, {"memory": memory, "seconds": seconds})

    return Task(meshes, {axis: sizes[axis] for axis in LARGE_AXES}, found)


def _found(held: Mapping[str, Sharding], exchanges: Sequence[Exchange], **others: float) -> Found:
    parts = {
        "held": {f"{name} {each.layout}": float(_bytes([each])) for name, each in held.items()},
        "sent": {_named(each): float(each.collective.bytes_sent) for each in exchanges},
    }
    sums = {quantity: sum(values.values()) for quantity, values in parts.items()}
    return Found({**sums, "collectives": len(exchanges), **others}, parts)


def _named(taken: Exchange) -> str:
    tensor = _("gradient of {tensor}", tensor=taken.tensor) if taken.is_gradient else taken.tensor
    return f"{tensor}, {exchange(taken.collective)}"


def _bytes(held: Iterable[Sharding]) -> int:
    return sum(each.bytes_per_device(4) for each in held)
