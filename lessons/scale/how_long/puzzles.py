"""The twelve puzzles: what is laid out in each, and when it is solved. What they ask stands on their page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.specs.architecture import Architecture
from course_lib.specs.mesh import MeshSpec
from lessons.scale.how_long.networks import classifier, transformer
from lessons.scale.how_long.puzzle_rules import Task, large_step, matrix_product, training_step


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
