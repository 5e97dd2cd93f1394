"""The model of cost beside what others published: trainings, collectives, limits, each with its error.

The trainings and their settings are in `published.csv`; docs/decisions/published-trainings.md says how they
were chosen.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from course_lib.i18n import _
from course_lib.specs.architecture import Zero
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from lessons.scale.cost import MIXED, STAGE, Cost, Recompute, StepCosts
from lessons.scale.machines import Cluster, Device, Link, collective_seconds, ring_seconds
from lessons.scale.networks import CLUSTERS, classifier, transformer
from lessons.scale.planner import TENSOR_PARALLEL

_BOOK, _PLAYBOOK = "jax-ml.github.io/scaling-book", "huggingface.co/spaces/nanotron/ultrascale-playbook"
_V5P = Device("TPU v5p", 4.59e14, 96e9, 2.8e12, _BOOK)  # whose links send both ways along one axis at once
_POD = Cluster(_V5P, 8960, Link(1.8e11, 1e-6, _BOOK), Link(6.25e9, 14e-6, _BOOK))
_A100, _H100 = CLUSTERS["A100"], CLUSTERS["H100"]
_NODES = replace(_H100, inside=Link(450e9, 3.4e-6, _BOOK))
EFFICIENCY = 0.568  # with which the first of the published trainings takes its time


class Row(NamedTuple):
    """A published number and the model's."""

    what: str
    source: str
    published: float
    modeled: float
    unit: str

    def __repr__(self) -> str:
        told, modeled, error = self.figures
        return _(
            "{what}: {told}, modeled {modeled} {unit}, {error} ({source})",
            **{**self._asdict(), "told": told, "modeled": modeled, "error": error},
        )

    @property
    def figures(self) -> tuple[str, str, str]:
        """The published number, the model's, and the error, as they are shown."""
        told, modeled = (f"{round(each, 2 - math.floor(math.log10(each))):,g}" for each in self[2:4])
        return told, modeled, f"{round(100 * self.error):+} %".replace("+0", "0").replace("-", "−")

    @property
    def error(self) -> float:
        """How far the model is above the published number, as a share of that."""
        return self.modeled / self.published - 1


class Published(NamedTuple):
    """A training that was published.

    Attributes:
        row: the seconds of its step, and the model's.
        settings: what `published.csv` has of it.
        cost: what the model has of a step.
    """

    row: Row
    settings: dict[str, str]
    cost: Cost


@cache
def trainings() -> list[Published]:
    """Returns the published trainings; the first is the one that `EFFICIENCY` is fitted to."""
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        return [_published(settings) for settings in csv.DictReader(file)]


def _published(settings: dict[str, str]) -> Published:
    names = ("sequence", "features", "heads", "vocabulary", "hidden")
    blocks, devices, tensor, stages, chunks, microbatch, batch = (
        int(settings[name])
        for name in ("blocks", "devices", "tensor", "stages", "chunks", "microbatch", "batch")
    )
    network = transformer(
        blocks,
        **{name: int(settings[name]) for name in names},
        dropout=settings["dropout"] == "1",
        fused_attention=settings["fused_attention"] == "1",
    )
    data = devices // tensor // stages
    training = replace(
        MIXED,
        microbatches=batch // data // microbatch,
        recompute=Recompute(settings["recompute"]),
        sequence_parallel=settings["sequence_parallel"] == "1",
        zero=Zero(int(settings["zero"])),
        chunks=chunks,
        overlap=settings["overlap"] == "1",
    )
    kind, _space, _memory = settings["device"].partition(" ")
    cluster = CLUSTERS[kind]
    between = replace(cluster.between, bytes_per_second=1e9 * float(settings["between"]))
    device = replace(cluster.device, efficiency=EFFICIENCY)
    mesh = MeshSpec([(STAGE, stages), (BATCH, data), ("model", tensor)])
    costs = StepCosts(network, {BATCH: BATCH, **TENSOR_PARALLEL})
    cost = costs.cost(mesh, batch, replace(cluster, device=device, between=between), training)
    what = f"{settings['name']}, {devices:,} {settings['device']}"
    row = Row(what, settings["source"], float(settings["seconds"]), cost.seconds, "s")
    return Published(row, settings, cost)


def others() -> list[Row]:
    """Returns what else is compared: collectives that were measured, and what others calculated."""
    return [*_collectives(), *_limits(), *_memory()]


def _collectives() -> Iterator[Row]:
    gather, measured, summed = _("all-gather, calculated"), _("all-gather"), _("all-reduce")
    v5e, nvlink, inside = Link(4.5e10, 1e-6, _BOOK), _NODES.inside, _H100.inside
    for name, page, devices, numbers, link, told in (
        (gather, "sharding", 4, 2048 * 8192, v5e, 560),
        (measured, "sharding", 4, 2048 * 8192, v5e, 680),
        (measured, "sharding", 4, 256 * 256, v5e, 8),
        (gather, "gpus", 8, 4096 * 65536, nvlink, 1040),
        (measured, "gpus", 8, 4096 * 65536, inside, 1500),
        (summed, "gpus", 8, 8192 * 3584, inside, 2 * 7 / 8 * 2 * 8192 * 3584 / 150e3),  # at 150 GB/s
    ):
        kind = Kind.ALL_REDUCE if name == summed else Kind.ALL_GATHER
        size, device = 2 * numbers, "TPU v5e" if link == v5e else "H100"
        microseconds = 1e6 * ring_seconds(kind, devices, size, link)
        what = _("{what}, {count} {device}, {size:,} B", what=name, count=devices, device=device, size=size)
        yield Row(what, f"{_BOOK}/{page}", told, microseconds, "µs")
    for nodes, bandwidth in ((1, 436.0), (8, 99.6), (64, 32.9)):  # GB/s, taken for those on the bus
        mesh = MeshSpec([("batch", 8 * nodes)])
        told = 2 * (mesh.size - 1) / mesh.size * 256e6 / bandwidth / 1e3
        collective = Collective(Kind.ALL_REDUCE, mesh, ("batch",), 256_000_000)
        what = _("all-reduce of 256 MB, {count} H100", count=mesh.size)
        yield Row(what, _PLAYBOOK, told, 1e6 * collective_seconds(collective, _H100), "µs")


def _limits() -> Iterator[Row]:
    tokens, costs = 8192, StepCosts(classifier(8192, 32768, 8192), {BATCH: "batch"})
    examples = (_POD, 16, "training", 2550), (_NODES, 8, "gpus", 2200), (_NODES, 256, "gpus", 2475)
    for cluster, devices, page, told in examples:  # the way back takes two thirds of the computing
        cost = costs.cost(MeshSpec([("batch", devices)]), tokens * devices, cluster, MIXED)
        even = tokens * cost.communication_seconds["batch"] / (2 / 3 * cost.compute_seconds)
        name = cluster.device.name
        what = _("break-even batch of {count} {device}, calculated", count=devices, device=name)
        yield Row(what, f"{_BOOK}/{page}", told, even, _("tokens per device"))
    for hidden, most in ((28672, 11), (49152, 19)):  # that add up in less than the way forward computes
        costs = StepCosts(classifier(8192, hidden, 8192), {"hidden": "model"})
        found = [costs.cost(MeshSpec([("model", devices)]), tokens, _POD, MIXED) for devices in range(1, 99)]
        worth = [each for each in found if each.communication_seconds["model"] < each.compute_seconds / 3]
        what = _("most TPU v5p that share {count:,} hidden units, calculated", count=hidden)
        yield Row(what, f"{_BOOK}/training", most, len(worth), _("devices"))


def _memory() -> Iterator[Row]:
    """Yields what a device holds, by the declared network: of the state, and of a block's activations."""
    mesh, costs = MeshSpec([(BATCH, 1)]), StepCosts(classifier(8192, 32768, 8192), {BATCH: BATCH})
    *state, _activations = costs.cost(mesh, 1, _A100, MIXED).memory_bytes.values()
    yield Row(
        _("state of 70 billion parameters, calculated"), _PLAYBOOK, 1120, 70 * 2 * sum(state) / state[0], "GB"
    )
