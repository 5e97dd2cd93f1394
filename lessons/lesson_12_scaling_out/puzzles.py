"""The twelve puzzles: what is given and asked, and when one is solved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.specs.architecture import Architecture
from course_lib.specs.mesh import MeshSpec
from lessons.lesson_12_scaling_out.networks import classifier, transformer
from lessons.lesson_12_scaling_out.puzzle_rules import Task, large_step, matrix_product, training_step


@dataclass(frozen=True)
class Goal:
    """When a puzzle is solved: the limit of each quantity; and par, the least of one that a solution has."""

    most: Mapping[str, float]
    par: tuple[str, float]

    def level(self, numbers: Mapping[str, float]) -> int:
        """Returns how good a choice is: 0 where it is no solution, 1 where it is one, 2 at par."""
        quantity, least = self.par
        is_solution = all(numbers[name] <= limit for name, limit in self.most.items())
        return is_solution + (is_solution and numbers[quantity] <= least)


@dataclass(frozen=True)
class PuzzleSpec:
    """What a puzzle says, what is laid out in it, and its goal."""

    title: str
    text: str
    hint: str
    task: Task
    goal: Goal


def puzzles() -> list[PuzzleSpec]:
    """Returns all puzzles in the reader's language, the easy ones first."""
    return [*_matrices(), *_classifiers(), *_transformers(), *_clusters()]


def _meshes(names: str, *sizes: tuple[int, ...]) -> list[MeshSpec]:
    return [MeshSpec(zip(names.split(), each, strict=False)) for each in sizes]


_4X2 = _meshes("x y", (4, 2))


def _matrices() -> Iterator[PuzzleSpec]:
    vector = Architecture("", {}, {"v": ("numbers",)}, (), {"numbers": 1_200})
    matrix = Architecture("", {}, {"M": ("rows", "columns")}, (), {"rows": 1_250, "columns": 48})
    yield PuzzleSpec(
        _("A vector"),
        _("Split a vector of 1,200 numbers so that no device holds more than 2,400 bytes."),
        _("A number of float32 takes 4 bytes. How many numbers may a device hold?"),
        training_step(vector, 1, _4X2, "numbers"),
        Goal({"held": 2_400}, ("held", 1_200)),
    )
    yield PuzzleSpec(
        _("A matrix"),
        _("Split a matrix of 1,250 rows and 48 columns so that no device holds more than 60,000 bytes."),
        _("The size of a mesh dimension must divide the length of the axis that it splits."),
        training_step(matrix, 1, _4X2, "rows", "columns"),
        Goal({"held": 60_000}, ("held", 30_000)),
    )
    task = matrix_product((96, 64), (64, 48), _4X2)
    yield PuzzleSpec(
        _("A product without a collective"),
        _("Lay out A, 96 by 64, and B, 64 by 48: A @ B sends nothing, a device holds at most 20,000 bytes."),
        _("Over which axis does A @ B add up? And can one mesh dimension split both axes of a result?"),
        task,
        Goal({"collectives": 0, "held": 20_000}, ("held", 12_288)),
    )
    yield PuzzleSpec(
        _("A product in little memory"),
        _(
            "The same factors, A of 96 by 64 and B of 64 by 48. Before the product a device may hold 8,000"
            " bytes of them, afterwards at most half of AB, which has 18,432 bytes. It may send 14,000 bytes."
        ),
        _("A device gathers a part of a factor, or adds up partial sums of AB. Which is smaller?"),
        task,
        Goal({"held": 8_000, "result": 9_216, "sent": 14_000}, ("sent", 4_608)),
    )


def _classifiers() -> Iterator[PuzzleSpec]:
    small, deep = classifier(1_200, 48, 2), classifier(256, 512, 256, 8)
    axes = ("batch", "features", "hidden", "classes")
    yield PuzzleSpec(
        _("Two weights"),
        _(
            "A classifier has weights W1, 1,200 by 48, and W2, 48 by 2, and their biases. Split them so that"
            " no device holds more than 40,000 bytes, and a step on 32 rows sends at most 5,000 bytes."
        ),
        _("W1 has nearly all of the bytes. What is added up when its rows are split? Among how many?"),
        training_step(small, 32, _4X2, *axes),
        Goal({"held": 40_000, "sent": 5_000}, ("sent", 1_920)),
    )
    yield PuzzleSpec(
        _("A large batch"),
        _(
            "The same classifier, with 4,096 rows in a step. A device may hold 120,000 bytes of variables and"
            " 10,000,000 bytes of the input rows, and send 250,000 bytes."
        ),
        _("The gradients on a device have as many bytes as its variables, however large the batch is."),
        training_step(small, 4_096, _4X2, *axes),
        Goal({"held": 120_000, "rows": 10_000_000, "sent": 250_000}, ("sent", 82_332)),
    )
    yield PuzzleSpec(
        _("Three layers"),
        _(
            "A classifier of 256 features has layers of 512, 256 and 8 units, and trains on 64 rows. Choose"
            " the mesh, too. A device may hold 300,000 bytes of variables and send 120,000 bytes."
        ),
        _("W2 has the axes `hidden` and `hidden_2`. Partial sums have the size of a device's result."),
        training_step(deep, 64, _meshes("x y z", (8,), (4, 2), (2, 2, 2)), "batch", "hidden", "hidden_2"),
        Goal({"held": 300_000, "sent": 120_000}, ("sent", 83_968)),
    )


def _transformers() -> Iterator[PuzzleSpec]:
    network = transformer(sequence=16, features=32, heads=4, vocabulary=64, hidden=128)
    task = training_step(network, 32, _4X2, "batch", "features", "heads", "hidden", "vocabulary")
    yield PuzzleSpec(
        _("A transformer block"),
        _(
            "A transformer with one block trains on 32 sequences of 16 tokens. A device may hold 44,000"
            " bytes of variables and send 150,000 bytes."
        ),
        _("One mesh dimension can split several axes, as long as no tensor has two of them."),
        task,
        Goal({"held": 44_000, "sent": 150_000}, ("sent", 130_822)),
    )
    yield PuzzleSpec(
        _("The block in little memory"),
        _(
            "The transformer of puzzle 8, and as many sequences. A device may hold 20,000 bytes of variables"
            " and 700,000 bytes of activations, and send 600,000 bytes."
        ),
        _("`embedding` and `head` have a fourth of the bytes. Which axes do they have?"),
        task,
        Goal({"held": 20_000, "activations": 700_000, "sent": 600_000}, ("sent", 318_340)),
    )


def _clusters() -> Iterator[PuzzleSpec]:
    either_order = [
        *_meshes("batch model", (256, 2), (128, 4), (64, 8), (32, 16)),
        *_meshes("model batch", (2, 256), (4, 128), (8, 64), (16, 32)),
    ]
    yield PuzzleSpec(
        _("64 devices"),
        _(
            "A transformer with 32 blocks, 7 billion parameters, trains on 256 sequences a step. A device has"
            " 80 GB, and a step may take 4 s."
        ),
        _("What `model` does not split stands on every device, with its gradient and optimizer state."),
        large_step(
            _transformer(32, 4_096, 32), 256, _meshes("batch model", (32, 2), (16, 4), (8, 8), (4, 16))
        ),
        Goal({"memory": 80e9, "seconds": 4}, ("seconds", 3.66)),
    )
    yield PuzzleSpec(
        _("512 devices"),
        _(
            "40 blocks, 18.7 billion parameters, 1,024 sequences a step. A device has 80 GB, a step may"
            " take 6 s, and no group along `model`, which splits the network, may leave its node."
        ),
        _("Devices are numbered row by row: those along the last mesh dimension are neighbours."),
        large_step(_transformer(40, 6_144, 48), 1_024, either_order),
        Goal({"memory": 80e9, "nodes": 1, "seconds": 6}, ("seconds", 5.27)),
    )
    yield PuzzleSpec(
        _("4,096 devices"),
        _(
            "64 blocks, 52 billion parameters, 4,096 sequences a step. A device has 80 GB, and a step may"
            " take 11 s. A node is too small for a copy of all that a network keeps: `x` or `y`, which split"
            " the network, has to leave it."
        ),
        _("Devices along `y` are neighbours. Which axes take the smaller collectives over slow links?"),
        large_step(
            _transformer(64, 8_192, 64),
            4_096,
            _meshes("batch x y", (512, 4, 2), (256, 8, 2), (256, 4, 4), (256, 2, 8)),
        ),
        Goal({"memory": 80e9, "seconds": 11}, ("seconds", 9.46)),
    )


def _transformer(num_blocks: int, features: int, heads: int) -> Architecture:
    return transformer(num_blocks, sequence=2_048, features=features, heads=heads, vocabulary=51_200)
