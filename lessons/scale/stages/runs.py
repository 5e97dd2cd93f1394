"""Ten training runs that were published, with what a planner needs of each."""

from __future__ import annotations

from typing import NamedTuple

from lessons.scale.published import trainings


class PublishedRun(NamedTuple):
    """A training run of Narayanan et al. 2021, Table 1.

    Attributes:
        name: how many parameters the network has.
        blocks: of the network.
        width: the numbers of a token between two blocks.
        heads: of the attention.
        tensor: the size of tensor parallelism.
        stages: of the pipeline.
        chunks: of each stage.
        examples: of a micro-batch on each device.
        data: the number of data-parallel replicas.
        microbatches: of a step, on each replica.
        overlap: whether gradients were exchanged during the backward pass.
        seconds: of a step, as published.
    """

    name: str
    blocks: int
    width: int
    heads: int
    tensor: int
    stages: int
    chunks: int
    examples: int
    data: int
    microbatches: int
    overlap: bool
    seconds: float


def ten_runs() -> list[PublishedRun]:
    """Returns the runs, the smallest network first."""
    return [_run(each.settings, each.row.published) for each in trainings()[:10]]


def _run(settings: dict[str, str], seconds: float) -> PublishedRun:
    tensor, stages, examples = (int(settings[name]) for name in ("tensor", "stages", "microbatch"))
    data = int(settings["devices"]) // tensor // stages
    return PublishedRun(
        name=settings["name"],
        blocks=int(settings["blocks"]),
        width=int(settings["features"]),
        heads=int(settings["heads"]),
        tensor=tensor,
        stages=stages,
        chunks=int(settings["chunks"]),
        examples=examples,
        data=data,
        microbatches=int(settings["batch"]) // data // examples,
        overlap=settings["overlap"] == "1",
        seconds=seconds,
    )
