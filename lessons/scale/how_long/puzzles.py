"""The twelve puzzles: what is laid out in each, what a choice gives for a device, and when it is solved.

What they ask stands on their page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from course_lib.i18n import _
from course_lib.pictures.communication_text import exchange
from course_lib.specs.architecture import Architecture, Exchange
from course_lib.specs.communication import FACTORS, PRODUCT, product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.machines import group_sizes
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Sharding
from course_lib.specs.step import Event, network_step
from lessons.scale.how_long.cost import MIXED, Recompute, StepCosts
from lessons.scale.how_long.networks import CLUSTERS, classifier, transformer

FACTOR_AXES = ("A rows", "A columns", "B rows", "B columns")
_TENSORS = dict(zip((*FACTORS, PRODUCT), ("A", "B", "AB"), strict=True))
LARGE_AXES = ("features", "heads", "hidden", "vocabulary")
NODES_OF_8 = replace(CLUSTERS["A100"], device=replace(CLUSTERS["A100"].device, efficiency=0.5))
TRAINING = replace(MIXED, microbatches=4, recompute=Recompute.FULL)


@dataclass(frozen=True)
class Found:
    """What a choice gives for a device: quantities, the parts of some of these, and a step's exchanges."""

    numbers: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    events: Sequence[Event] = ()


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
        found = _found(
            {name: held[name] for name in network.variables},
            tuple(network.exchanges(plan, batch_size)),
            rows=sum(held[name].bytes_per_device() for name in network.inputs),
            activations=sum(held[each.result].bytes_per_device() for each in network.sums),
        )
        return replace(found, events=network_step(network, plan, batch_size))

    return Task(meshes, {axis: sizes[axis] for axis in axes}, found)


def matrix_product(left: tuple[int, int], right: tuple[int, int], meshes: Sequence[MeshSpec]) -> Task:
    """Returns the product of two matrices of float32, each of which splits its axes in its own way."""

    def found(mesh: MeshSpec, splits: Mapping[str, str]) -> Found:
        names = [splits[axis] for axis in FACTOR_AXES]
        made = product(LayoutSpec(names[:2], mesh).of(left), LayoutSpec(names[2:], mesh).of(right))
        exchanges = [
            Exchange(_TENSORS[at.tensor], at.collective, 1, False) for at in made.steps if at.collective
        ]
        factors = dict(zip("AB", made.operands, strict=True))
        return _found(factors, exchanges, result=made.result.bytes_per_device())

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
        "held": {f"{name} {each.layout}": float(each.bytes_per_device()) for name, each in held.items()},
        "sent": {_named(each): float(each.collective.bytes_sent) for each in exchanges},
    }
    sums = {quantity: sum(values.values()) for quantity, values in parts.items()}
    return Found({**sums, "collectives": len(exchanges), **others}, parts)


def _named(taken: Exchange) -> str:
    tensor = _("gradient of {tensor}", tensor=taken.tensor) if taken.is_gradient else taken.tensor
    return f"{tensor}, {exchange(taken.collective)}"


@dataclass(frozen=True)
class PuzzleSpec:
    """What is laid out, the limit of each quantity, and par: the least of one that a solution has."""

    task: Task
    limits: Mapping[str, float]
    par: tuple[str, float]

    def level(self, numbers: Mapping[str, float]) -> int:
        """Returns how good a choice is: 0 where it is no solution, 1 where it is one, 2 at par."""
        quantity, least = self.par
        is_solution = all(numbers[name] <= limit for name, limit in self.limits.items())
        return is_solution + (is_solution and numbers[quantity] <= least)


def _meshes(names: str, *sizes: tuple[int, ...]) -> list[MeshSpec]:
    return [MeshSpec(zip(names.split(), each, strict=False)) for each in sizes]


def _large(num_blocks: int, features: int, heads: int) -> Architecture:
    return transformer(num_blocks, sequence=2_048, features=features, heads=heads, vocabulary=51_200)


_4X2 = _meshes("x y", (4, 2))
_DEEP_MESHES = _meshes("x y z", (8,), (4, 2), (2, 2, 2))
_64_DEVICES = _meshes("batch model", (32, 2), (16, 4), (8, 8), (4, 16))
_512_DEVICES = [
    *_meshes("batch model", (256, 2), (128, 4), (64, 8), (32, 16)),
    *_meshes("model batch", (2, 256), (4, 128), (8, 64), (16, 32)),
]
_4096_DEVICES = _meshes("batch x y", (512, 4, 2), (256, 8, 2), (256, 4, 4), (256, 2, 8))

_VECTOR = Architecture("", {}, {"v": ("numbers",)}, (), {"numbers": 1_200})
_MATRIX = Architecture("", {}, {"M": ("rows", "columns")}, (), {"rows": 1_250, "columns": 48})
_SMALL, _DEEP = classifier(1_200, 48, 2), classifier(256, 512, 256, 8)
_SMALL_AXES = ("batch", "features", "hidden", "classes")
_PRODUCT = matrix_product((96, 64), (64, 48), _4X2)
_BLOCK = training_step(
    transformer(sequence=16, features=32, heads=4, vocabulary=64, hidden=128),
    32,
    _4X2,
    *("batch", "features", "heads", "hidden", "vocabulary"),
)

PUZZLES = (
    PuzzleSpec(training_step(_VECTOR, 1, _4X2, "numbers"), {"held": 2_400}, ("held", 1_200)),
    PuzzleSpec(training_step(_MATRIX, 1, _4X2, "rows", "columns"), {"held": 60_000}, ("held", 30_000)),
    PuzzleSpec(_PRODUCT, {"collectives": 0, "held": 20_000}, ("held", 12_288)),
    PuzzleSpec(_PRODUCT, {"held": 8_000, "result": 9_216, "sent": 14_000}, ("sent", 4_608)),
    PuzzleSpec(
        training_step(_SMALL, 32, _4X2, *_SMALL_AXES), {"held": 40_000, "sent": 5_000}, ("sent", 1_920)
    ),
    PuzzleSpec(
        training_step(_SMALL, 4_096, _4X2, *_SMALL_AXES),
        {"held": 120_000, "rows": 10_000_000, "sent": 250_000},
        ("sent", 82_332),
    ),
    PuzzleSpec(
        training_step(_DEEP, 64, _DEEP_MESHES, "batch", "hidden", "hidden_2"),
        {"held": 300_000, "sent": 120_000},
        ("sent", 83_968),
    ),
    PuzzleSpec(_BLOCK, {"held": 44_000, "sent": 150_000}, ("sent", 130_822)),
    PuzzleSpec(_BLOCK, {"held": 20_000, "activations": 700_000, "sent": 600_000}, ("sent", 318_340)),
    PuzzleSpec(
        large_step(_large(32, 4_096, 32), 256, _64_DEVICES), {"memory": 80e9, "seconds": 4}, ("seconds", 3.56)
    ),
    PuzzleSpec(
        large_step(_large(40, 6_144, 48), 1_024, _512_DEVICES),
        {"memory": 80e9, "nodes": 1, "seconds": 6},
        ("seconds", 5.16),
    ),
    PuzzleSpec(
        large_step(_large(64, 8_192, 64), 4_096, _4096_DEVICES),
        {"memory": 80e9, "seconds": 11},
        ("seconds", 9.31),
    ),
)
