"""Puzzles about layouts: which mesh dimension splits which axis of some tensors, or of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.communication_text import exchange
from course_lib.specs.architecture import Architecture, Exchange
from course_lib.specs.communication import FACTORS, PRODUCT, product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Sharding
from course_lib.specs.step import Event, Phase, gradient_of
from lessons.scale.cost import MIXED, Recompute, StepCosts
from lessons.scale.machines import Cluster, collective_seconds, group_sizes
from lessons.scale.networks import network_step
from lessons.scale.puzzles.tasks import Choice, CutTensor, Found, Question, Task, costs, one_copy, spent

FACTOR_AXES = ("A rows", "A columns", "B rows", "B columns")
_TENSORS = dict(zip((*FACTORS, PRODUCT), ("A", "B", "AB"), strict=True))
LARGE_AXES = ("features", "heads", "hidden", "vocabulary")
_SMALL = 2_000_000  # bytes in float32 of what is not worth a look where others have gigabytes
IN_PARTS = replace(MIXED, microbatches=4, recompute=Recompute.FULL)


@dataclass(frozen=True)
class LayoutTask(Task):
    """Axes to split, on one of several meshes; a mesh dimension `batch` is for the batch."""

    meshes: Sequence[MeshSpec]
    axes: Mapping[str, int]
    laid_out: Callable[[MeshSpec, Mapping[str, str]], Found] = field(repr=False)

    def questions(self, choice: Choice) -> list[Question]:
        """Returns the meshes, and for each axis what may split it."""
        meshes = [(at, str(mesh)) for at, mesh in enumerate(self.meshes)]
        names = self.meshes[choice.get("mesh", 0)].names
        options = [(name, name) for name in (UNSHARDED, *names) if name != BATCH]
        axes = (Question(axis, f"`{axis}`: {length:,}", options) for axis, length in self.axes.items())
        return [Question("mesh", _("Mesh"), meshes), *axes]

    def found(self, choice: Choice) -> Found:
        """Returns what the choice gives."""
        return self.laid_out(self.meshes[choice["mesh"]], {axis: choice[axis] for axis in self.axes})


def training_step(
    network: Architecture, batch_size: int, meshes: Sequence[MeshSpec], *axes: str
) -> LayoutTask:
    """Returns a step of a network in float32; tensors alone are variables of one without sums."""
    sizes = {**network.sizes, BATCH: batch_size}

    def laid_out(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        shown = _in_words(network)
        _require_legal(shown.tensors, sizes, mesh, splits)
        plan = Plan(str(mesh), mesh, splits)
        held = plan.shardings(shown.tensors, sizes)
        exchanges = tuple(shown.exchanges(plan, batch_size))
        given = {shown.into_block: shown.tensors[shown.into_block]} if shown.into_block else shown.inputs
        return Found(
            {
                "variables" if network.sums else "held": sum(
                    held[name].bytes_per_device() for name in network.variables
                ),
                **_sent(exchanges),
                "rows": sum(held[name].bytes_per_device() for name in network.inputs),
                "activations": sum(held[each.result].bytes_per_device() for each in shown.sums),
            },
            {"sent": _parts(exchanges)},
            mesh,
            range(mesh.size),
            tensors=cut_tensors({**given, **network.variables}, held),
            events=network_step(shown, plan, batch_size),
        )

    return LayoutTask(meshes, {axis: sizes[axis] for axis in axes}, laid_out)


def matrix_product(left: tuple[int, int], right: tuple[int, int], meshes: Sequence[MeshSpec]) -> LayoutTask:
    """Returns the product of two matrices of float32, each of which splits its axes in its own way."""

    def laid_out(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        sizes = dict(zip(FACTOR_AXES, (*left, *right), strict=True))
        _require_legal({"A": FACTOR_AXES[:2], "B": FACTOR_AXES[2:]}, sizes, mesh, splits)
        names = [splits[axis] for axis in FACTOR_AXES]
        made = product(LayoutSpec(names[:2], mesh).of(left), LayoutSpec(names[2:], mesh).of(right))
        steps = [(_TENSORS[step.tensor], step) for step in made.steps if step.collective]
        exchanges = [Exchange(name, at.collective, 1, False) for name, at in steps if at.collective]
        axes = FACTOR_AXES[:2], FACTOR_AXES[2:], (FACTOR_AXES[0], FACTOR_AXES[3])
        shardings = (*made.operands, made.result)
        return Found(
            {
                "held": sum(each.bytes_per_device() for each in made.operands),
                **_sent(exchanges),
                "result": made.result.bytes_per_device(),
            },
            {"sent": _parts(exchanges)},
            mesh,
            range(mesh.size),
            tensors=[*map(CutTensor, _TENSORS.values(), axes, shardings)],
            events=[Event(Phase.FORWARD, name, at.source, at.sharding, at.collective) for name, at in steps],
        )

    return LayoutTask(meshes, dict(zip(FACTOR_AXES, (*left, *right), strict=True)), laid_out)


def large_step(
    network: Architecture, batch_size: int, meshes: Sequence[MeshSpec], cluster: Cluster
) -> LayoutTask:
    """Returns a step by the cost model; mesh dimension `batch` splits the batch."""
    sizes = {**network.sizes, BATCH: batch_size // IN_PARTS.microbatches}

    def laid_out(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        splits = {BATCH: BATCH, **splits}
        shown = _in_words(network)
        _require_legal(shown.tensors, sizes, mesh, splits)
        plan = Plan(str(mesh), mesh, splits)
        cost = StepCosts(network, plan.splits).cost(mesh, batch_size, cluster, IN_PARTS)
        dims = tuple(name for name in mesh.names if name != BATCH)
        nodes = group_sizes(mesh, dims, cluster.devices_per_node)[1]
        copy = MeshSpec((name, 1 if name == BATCH else size) for name, size in mesh.dims)
        held = Plan(str(copy), copy, plan.splits).shardings(network.variables, sizes)
        events = [*_in_copy(network_step(shown, plan, sizes[BATCH]))]
        return Found(
            {**costs(cost), "nodes": nodes},
            {"memory": cost.memory_bytes, "seconds": spent(cost)},
            copy,
            one_copy(mesh),
            cluster.devices_per_node,
            cut_tensors({name: axes for name, axes in network.variables.items() if len(axes) > 1}, held),
            [_on(copy, event) for event in events],
            [_spent(event, cluster) for event in events],
        )

    return LayoutTask(meshes, {axis: sizes[axis] for axis in LARGE_AXES}, laid_out)


def cut_tensors(tensors: Mapping[str, Axes], held: Mapping[str, Sharding]) -> list[CutTensor]:
    """Returns how tensors are cut, those with the same axes together."""
    alike: dict[Axes, list[str]] = {}
    for name, axes in tensors.items():
        alike.setdefault(axes, []).append(name)
    return [CutTensor(", ".join(names), axes, held[names[0]], len(names)) for axes, names in alike.items()]


def _in_words(network: Architecture) -> Architecture:
    """Returns the network with words for what it makes, of which some have the names of mesh dimensions."""
    words = {
        "x": _("block input"),
        "squares_1": _("mean squares 1"),
        "normed_1": _("attention input"),
        "all_keys": _("keys"),
        "mixed": _("weighted values"),
        "attention half": _("attention output"),
        "x_2": _("sum after attention"),
        "squares_2": _("mean squares 2"),
        "normed_2": _("dense input"),
        "units": _("hidden units"),
        "active": _("active units"),
        "dense half": _("dense output"),
        "x_3": _("block output"),
    }

    def named(tensor: str) -> str:
        return words.get(tensor, tensor)

    sums = tuple(
        replace(each, result=named(each.result), operands=tuple(map(named, each.operands)))
        for each in network.sums
    )
    return replace(network, sums=sums, into_block=named(network.into_block))


def _require_legal(
    tensors: Mapping[str, Axes], sizes: Mapping[str, int], mesh: MeshSpec, splits: Mapping[str, str]
) -> None:
    """Checks a choice, and names the tensor that it cannot split.

    Raises:
        CourseError: one mesh dimension would split two axes of a tensor, or does not divide one.
    """
    for tensor, axes in tensors.items():
        taken: dict[str, str] = {}
        split = {axis: splits[axis] for axis in axes if splits.get(axis, UNSHARDED) != UNSHARDED}
        for axis, name in split.items():
            told = {"name": name, "axis": axis, "tensor": tensor}
            if name in taken:
                problem = _(
                    "{name} would split two axes of {tensor}: {other} and {axis}.", other=taken[name], **told
                )
                cure = _("Split {axis} by another mesh dimension, or leave it whole.", axis=axis)
                raise CourseError(problem, cure=cure)
            taken[name] = axis
            length, parts = sizes[axis], mesh.dim_size(name)
            if length % parts:
                problem = _(
                    "{name} would split {axis} of {tensor}, but {length:,} is not divisible by {parts}.",
                    length=length,
                    parts=parts,
                    **told,
                )
                cure = _("Split {axis} by another mesh dimension, or leave it whole.", axis=axis)
                raise CourseError(problem, cure=cure)


def _in_copy(events: Sequence[Event]) -> Iterator[Event]:
    """Yields the larger exchanges within one copy of the network, in numbers of two bytes."""
    for event in events:
        collective = event.collective
        if collective and collective.mesh_dims != (BATCH,) and collective.payload_bytes >= _SMALL:
            taken = replace(collective, payload_bytes=collective.payload_bytes // 2)
            yield replace(event, collective=taken)


def _on(copy: MeshSpec, event: Event) -> Event:
    """Returns the same exchange among the devices of a copy alone."""
    source, result = (
        LayoutSpec(each.layout.sharding_specs, copy).of(each.global_shape)
        for each in (event.source, event.result)
    )
    taken = replace(event.collective, mesh=copy) if event.collective else None
    return replace(event, source=source, result=result, collective=taken)


def _spent(event: Event, cluster: Cluster) -> tuple[float, bool]:
    """Returns the seconds that an exchange takes, and whether it goes from node to node."""
    collective = event.collective
    if collective is None:
        return 0.0, False
    between = group_sizes(collective.mesh, collective.mesh_dims, cluster.devices_per_node)[1]
    return collective_seconds(collective, cluster), between > 1


def _sent(exchanges: Sequence[Exchange]) -> dict[str, float]:
    total = sum(float(each.collective.bytes_sent) for each in exchanges)
    return {"sent": total, "collectives": len(exchanges)}


def _parts(exchanges: Sequence[Exchange]) -> dict[str, float]:
    return {_named(each): float(each.collective.bytes_sent) for each in exchanges}


def _named(taken: Exchange) -> str:
    tensor = gradient_of(taken.tensor) if taken.is_gradient else taken.tensor
    return f"{tensor}, {exchange(taken.collective)}"
