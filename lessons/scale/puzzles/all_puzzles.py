"""The sixteen puzzles: what is chosen, the limit of each quantity, and par. What they ask: on their page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from course_lib.specs.architecture import Architecture
from course_lib.specs.mesh import MeshSpec
from lessons.scale.cost import MIXED, STAGE, Recompute
from lessons.scale.machines import Cluster
from lessons.scale.networks import CLUSTERS, classifier, transformer
from lessons.scale.published import EFFICIENCY
from lessons.scale.puzzles.layouts import large_step, matrix_product, training_step
from lessons.scale.puzzles.tasks import Choice, Task
from lessons.scale.puzzles.trainings import MODEL, TrainingTask


@dataclass(frozen=True)
class PuzzleSpec:
    """What is laid out, the limit of each quantity, and par: the least of one that a solution has.

    What is chosen at first is the first option where `first` says nothing else.
    """

    task: Task
    limits: Mapping[str, float]
    par: tuple[str, float]
    first: Choice = field(default_factory=dict)

    def level(self, numbers: Mapping[str, float]) -> int:
        """Returns how good a choice is: 0 where it is no solution, 1 where it is one, 2 at par."""
        quantity, least = self.par
        is_solution = all(numbers[name] <= limit for name, limit in self.limits.items())
        return is_solution + (is_solution and numbers[quantity] <= least)


def _meshes(names: str, *sizes: tuple[int, ...]) -> list[MeshSpec]:
    return [MeshSpec(zip(names.split(), each, strict=False)) for each in sizes]


def _large(num_blocks: int, features: int, heads: int, *, dropout: bool = False) -> Architecture:
    sizes = {"sequence": 2_048, "features": features, "heads": heads, "vocabulary": 51_200}
    return transformer(num_blocks, **sizes, dropout=dropout)


def _nodes(name: str) -> Cluster:
    kind = CLUSTERS[name]
    return replace(kind, device=replace(kind.device, efficiency=EFFICIENCY))


_A100S, _H100S = _nodes("A100"), _nodes("H100")
_SLOW = replace(_H100S, between=replace(_H100S.between, bytes_per_second=12.5e9))
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
        training_step(_SMALL, 32, _4X2, *_SMALL_AXES), {"variables": 40_000, "sent": 5_000}, ("sent", 1_920)
    ),
    PuzzleSpec(
        training_step(_SMALL, 4_096, _4X2, *_SMALL_AXES),
        {"variables": 120_000, "rows": 10_000_000, "sent": 250_000},
        ("sent", 82_332),
    ),
    PuzzleSpec(
        training_step(_DEEP, 64, _DEEP_MESHES, "batch", "hidden", "hidden_2"),
        {"variables": 300_000, "sent": 120_000},
        ("sent", 83_968),
    ),
    PuzzleSpec(_BLOCK, {"variables": 44_000, "sent": 150_000}, ("sent", 130_822)),
    PuzzleSpec(_BLOCK, {"variables": 20_000, "activations": 700_000, "sent": 600_000}, ("sent", 318_340)),
    PuzzleSpec(
        large_step(_large(32, 4_096, 32), 256, _64_DEVICES, _A100S),
        {"memory": 80e9, "seconds": 3.8},
        ("seconds", 3.2),
    ),
    PuzzleSpec(
        large_step(_large(40, 6_144, 48), 1_024, _512_DEVICES, _A100S),
        {"memory": 60e9, "nodes": 1, "seconds": 9},
        ("seconds", 5.26),
        {"mesh": 5},  # where devices along `model` are far from each other
    ),
    PuzzleSpec(
        large_step(_large(64, 8_192, 64), 4_096, _4096_DEVICES, _A100S),
        {"memory": 80e9, "seconds": 11},
        ("seconds", 8.61),
    ),
    PuzzleSpec(
        TrainingTask(
            _large(48, 8_192, 64),
            512,
            64,
            _A100S,
            {STAGE: (1, 2, 4, 8), "microbatches": (4, 8, 16, 32, 64)},
            {MODEL: 8, "chunks": 1, "zero": 0},
        ),
        {"memory": 40e9, "waiting": 10},
        ("waiting", 4.5),
    ),
    PuzzleSpec(
        TrainingTask(
            _large(40, 6_144, 48),
            512,
            64,
            _A100S,
            {MODEL: (1, 2, 4, 8), "zero": (0, 1, 2, 3), "microbatches": (1, 2, 4, 8)},
            {STAGE: 1, "chunks": 1},
        ),
        {"memory": 40e9, "exchanged": 1.2},
        ("exchanged", 0.86),
    ),
    PuzzleSpec(
        TrainingTask(
            _large(80, 12_288, 96, dropout=True),
            2_304,
            1_536,
            _A100S,
            {
                MODEL: (2, 4, 8, 16),
                STAGE: (2, 4, 8, 16),
                "microbatches": (12, 24, 48, 96),
                "chunks": (1, 2, 5),
            },
            {"zero": 0},
            replace(MIXED, recompute=Recompute.FULL),  # as `published.csv` has this training
        ),
        {"memory": 80e9, "seconds": 28.5},
        ("seconds", 25.9),
        {MODEL: 8},
    ),
    PuzzleSpec(
        TrainingTask(
            _large(48, 7_680, 64),
            512,
            64,
            _SLOW,
            {
                MODEL: (1, 2, 4, 8),
                STAGE: (1, 2, 4),
                "zero": (0, 1, 3),
                "recompute": ("none", "selective", "full"),
                "microbatches": (4, 8, 32),
            },
            {"chunks": 1},
            replace(MIXED, overlap=True, sequence_parallel=True),
        ),
        {"memory": 80e9, "seconds": 8.5},
        ("seconds", 8.09),
    ),
)
