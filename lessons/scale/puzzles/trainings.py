"""Puzzles about whole trainings: stages, micro-batches, ZeRO and recomputation, by the cost model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.architecture import Architecture, Zero
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from lessons.scale.cost import MIXED, STAGE, Recompute, StepCosts, Training
from lessons.scale.machines import Cluster
from lessons.scale.planner import TENSOR_PARALLEL
from lessons.scale.puzzles.tasks import (
    Choice,
    Found,
    Question,
    Setting,
    Task,
    costs,
    exchanged,
    one_copy,
    spent,
)

MODEL = "model"
_RECOMPUTED = replace(MIXED, recompute=Recompute.FULL, sequence_parallel=True)


@dataclass(frozen=True)
class TrainingTask(Task):
    """A training to plan: heads, hidden units and vocabulary split over `model`, blocks over `stage`.

    Attributes:
        network: a transformer.
        batch_size: the examples of a step.
        num_devices: all are used.
        cluster: what they are.
        offers: for each question what can be chosen; what is no question is as in `given`.
        given: what cannot be chosen.
        training: what holds for each choice.
    """

    network: Architecture
    batch_size: int
    num_devices: int
    cluster: Cluster
    offers: Mapping[str, Sequence[Any]]
    given: Mapping[str, Any]
    training: Training = _RECOMPUTED

    def questions(self, choice: Choice) -> list[Question]:  # noqa: ARG002 - always the same
        """Returns what there is to choose."""
        headings, words = _headings(), _words()
        return [
            Question(name, headings[name], [(each, words.get((name, each), str(each))) for each in values])
            for name, values in self.offers.items()
        ]

    def found(self, choice: Choice) -> Found:
        """Returns what the choice gives."""
        chosen = {**self.given, **choice}
        replicas = self.num_devices // chosen[MODEL] // chosen[STAGE]
        mesh = MeshSpec([(STAGE, chosen[STAGE]), (BATCH, replicas), (MODEL, chosen[MODEL])])
        training = self._training(chosen, replicas)
        cost = _costs(self.network).cost(mesh, self.batch_size, self.cluster, training)
        setting = Setting(self.network, self.batch_size, mesh, training, cost)
        return Found(
            costs(cost),
            {"memory": cost.memory_bytes, "seconds": spent(cost), "exchanged": exchanged(cost)},
            mesh,
            one_copy(mesh),
            self.cluster.devices_per_node,
            setting=setting,
        )

    def _training(self, chosen: Choice, replicas: int) -> Training:
        """Returns how a step is taken.

        Raises:
            CourseError: it cannot be taken so.
        """
        examples, blocks = self.batch_size // replicas, self.network.num_blocks
        stages, microbatches, chunks = chosen[STAGE], chosen["microbatches"], chosen["chunks"]
        if examples % microbatches:
            problem = _(
                "The examples of a replica, {examples}, do not divide into {microbatches} micro-batches.",
                microbatches=microbatches,
                examples=examples,
            )
            raise CourseError(problem, allowed=_("numbers that divide {examples}", examples=examples))
        if chunks > 1 and (stages == 1 or microbatches % stages):
            problem = _(
                "Micro-batches: {microbatches}, stages: {stages}.", microbatches=microbatches, stages=stages
            )
            allowed = _("with several chunks: two stages or more, and a multiple of as many micro-batches")
            raise CourseError(problem, allowed=allowed)
        if blocks % (stages * chunks):
            problem = _(
                "{count} chunks, on all stages together, cannot have equally many of {blocks} blocks.",
                count=stages * chunks,
                blocks=blocks,
            )
            raise CourseError(problem, allowed=_("numbers that divide {blocks}", blocks=blocks))
        return replace(
            self.training,
            microbatches=microbatches,
            chunks=chunks,
            zero=Zero(chosen["zero"]),
            recompute=Recompute(chosen.get("recompute", self.training.recompute)),
            sequence_parallel=self.training.sequence_parallel and chosen[MODEL] > 1,
        )


@cache
def _costs(network: Architecture) -> StepCosts:
    return StepCosts(network, {BATCH: BATCH, **TENSOR_PARALLEL})


def _headings() -> dict[str, str]:
    return {
        MODEL: _("Tensor parallelism (`model`)"),
        STAGE: _("Pipeline stages (`stage`)"),
        "microbatches": _("Micro-batches"),
        "chunks": _("Chunks of a stage"),
        "zero": _("ZeRO: what `batch` splits"),
        "recompute": _("Recomputed"),
    }


def _words() -> dict[tuple[str, Any], str]:
    """Returns what is shown of the values that are no plain numbers."""
    return {
        ("zero", Zero.NOTHING): _("nothing"),
        ("zero", Zero.STATE): "ZeRO-1",
        ("zero", Zero.GRADIENTS): "ZeRO-2",
        ("zero", Zero.VARIABLES): "ZeRO-3 (FSDP)",
        ("recompute", Recompute.NONE): _("nothing"),
        ("recompute", Recompute.SELECTIVE): _("attention scores"),
        ("recompute", Recompute.FULL): _("whole blocks"),
    }
