"""The cost model beside what others published: step times, collectives, limits, memory, each with its error.

Rows with what the model lacks are left out: pipelines (six rows of Narayanan et al.) and split sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.cost import MIXED, Cost, Recompute, StepCosts
from course_lib.specs.machines import Cluster, Device, Link, collective_seconds, ring_seconds
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from lessons.scale.how_long.networks import CLUSTERS, classifier, transformer

_BOOK, _PLAYBOOK = "jax-ml.github.io/scaling-book", "huggingface.co/spaces/nanotron/ultrascale-playbook"
_NARAYANAN, _SHOEYBI = "Narayanan et al. 2021, Table 1", "Shoeybi et al. 2019"  # arXiv 2104.04473, 1909.08053
_KORTHIKANTI = "Korthikanti et al. 2022"  # arXiv 2205.05198
_SPLITS = {BATCH: "batch", "heads": "model", "hidden": "model", "vocabulary": "model"}  # of Megatron-LM
# The paper's 39 TFLOP/s are 30 % of the peak; the model meets them where products reach 34.4 % of it.
_V100 = Device("V100", 130e12, 32e9, 0.9e12, _SHOEYBI, efficiency=0.344)
# Of the paper's 300 GB/s half goes each way, of that NCCL counts on 20 / 25; 16 devices share 8 x 100 Gb/s.
_DGX_2H = Cluster(_V100, 16, Link(120e9, 3.4e-6, _SHOEYBI), Link(6.25e9, 14e-6, _SHOEYBI))
_V5P = Device("TPU v5p", 4.59e14, 96e9, 2.8e12, _BOOK)  # whose links send both ways along one axis at once
_POD = Cluster(_V5P, 8960, Link(1.8e11, 1e-6, _BOOK), Link(6.25e9, 14e-6, _BOOK))
_A100, _H100 = CLUSTERS["A100"], CLUSTERS["H100"]
EFFICIENCY = 0.544  # with which the first of the trainings takes its time
FITTED_A100 = replace(_A100, device=replace(_A100.device, efficiency=EFFICIENCY))
_NODES = replace(_H100, inside=Link(450e9, 3.4e-6, _BOOK))


class Row(NamedTuple):
    """A published number and the model's; one that `calibrates` is what the model was fitted to."""

    what: str
    source: str
    published: float
    modelled: float
    unit: str
    calibrates: bool = False

    def __repr__(self) -> str:
        told, modelled = (f"{round(each, 2 - math.floor(math.log10(each))):,g}" for each in self[2:4])
        error = _("calibrated") if self.calibrates else f"{self.error:+.0%}"
        return _(
            "{what}: {told}, modelled {modelled} {unit}, {error} ({source})",
            **{**self._asdict(), "told": told, "modelled": modelled, "error": error},
        )

    @property
    def error(self) -> float:
        """How far the model is above the published number, as a share of that."""
        return self.modelled / self.published - 1


class Megatron(NamedTuple):
    """A training of a transformer with Megatron-LM, in mixed precision."""

    blocks: int
    heads: int
    features: int
    model: int = 1
    data: int = 1
    microbatch: int = 1
    microbatches: int = 1
    sequence: int = 2048

    def flops(self) -> float:
        """Returns what a device multiplies and adds in a step. Source: arXiv 2104.04473, equation 3."""
        others = 1 + self.sequence / (6 * self.features) + 51200 / (16 * self.blocks * self.features)
        tokens = self.microbatch * self.microbatches * self.sequence
        return 96 * tokens * self.blocks * self.features**2 * others / self.model

    def cost(self, cluster: Cluster, *, recompute: Recompute = Recompute.FULL) -> Cost:
        """Returns what a step costs."""
        sizes = {"sequence": self.sequence, "features": self.features, "heads": self.heads}
        costs = StepCosts(transformer(self.blocks, **sizes, vocabulary=51200), _SPLITS)
        mesh = MeshSpec([("batch", self.data), ("model", self.model)])
        training = replace(MIXED, microbatches=self.microbatches, recompute=recompute)
        return costs.cost(mesh, self.data * self.microbatch * self.microbatches, cluster, training)


_FIRST, _FIRST_REACHED = Megatron(24, 24, 2304, 1, 32, 16), 137e12  # and operations a second of each device


def published() -> list[Row]:
    """Returns every comparison, source after source."""
    return [*_megatron(), *_scaling_book(), *_memory()]


def _megatron() -> Iterator[Row]:
    small = (1.7, _FIRST, _FIRST_REACHED), (3.6, Megatron(30, 32, 3072, 2, 32, 16), 138e12)
    large = (
        (7.5, Megatron(36, 32, 4096, 4, 32, 16), 142e12),
        (18.4, Megatron(40, 48, 6144, 8, 32, 8, 4), 135e12),
    )
    rows = [(size, run, run.flops() / reached, _NARAYANAN) for size, run, reached in (*small, *large)]
    rows.append((22, Megatron(48, 64, 6144, 8, 1, 4), 1.42, f"{_KORTHIKANTI}, Table 5"))
    for size, run, seconds, source in rows:
        what = _("step of {size} billion parameters, {count} A100", size=size, count=run.model * run.data)
        yield Row(what, source, seconds, run.cost(FITTED_A100).seconds, "s", run is _FIRST)
    sizes = (40, 16, 1536, 1), (54, 20, 1920, 2), (64, 24, 2304, 4), (72, 32, 3072, 8)
    one, *_others = runs = [Megatron(*each, microbatch=8, sequence=1024) for each in sizes]
    for data, percents in ((1, (100, 95, 82, 77)), (64, (96, 83, 79, 74))):
        for run, percent in zip((each._replace(data=data) for each in runs), percents, strict=True):
            reached = 100 * run.flops() / run.cost(_DGX_2H).seconds / 39e12
            what = _("weak scaling, {count} V100", count=run.model * data)
            yield Row(what, f"{_SHOEYBI}, Figure 5", percent, reached, "%", run == one)
    for model, told in ((2, 1.64), (4, 2.34), (8, 2.98)):
        faster = one.cost(_DGX_2H).seconds / one._replace(model=model).cost(_DGX_2H).seconds
        yield Row(_("speed-up, {count} V100", count=model), f"{_SHOEYBI}, Table 8", told, faster, "×")


def _scaling_book() -> Iterator[Row]:
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
    tokens, costs = 8192, StepCosts(classifier(8192, 32768, 8192), {BATCH: "batch"})
    examples = (_POD, 16, "training", 2550), (_NODES, 8, "gpus", 2200), (_NODES, 256, "gpus", 2475)
    for cluster, devices, page, told in examples:  # the way back takes two thirds of the computing
        cost = costs.cost(MeshSpec([("batch", devices)]), tokens * devices, cluster, MIXED)
        critical = tokens * cost.communication_seconds["batch"] / (2 / 3 * cost.compute_seconds)
        what = _("critical batch of {count} {device}, calculated", count=devices, device=cluster.device.name)
        yield Row(what, f"{_BOOK}/{page}", told, critical, _("tokens per device"))
    for hidden, most in ((28672, 11), (49152, 19)):  # that add up in less than the way forward computes
        costs = StepCosts(classifier(8192, hidden, 8192), {"hidden": "model"})
        found = [costs.cost(MeshSpec([("model", devices)]), tokens, _POD, MIXED) for devices in range(1, 99)]
        worth = [each for each in found if each.communication_seconds["model"] < each.compute_seconds / 3]
        what = _("most TPU v5p that share {count:,} hidden units, calculated", count=hidden)
        yield Row(what, f"{_BOOK}/training", most, len(worth), _("devices"))


def _memory() -> Iterator[Row]:
    *state, _activations = Megatron(1, 32, 4096).cost(_A100).memory_bytes.values()
    yield Row(
        _("state of 70 billion parameters, calculated"), _PLAYBOOK, 1120, 70 * 2 * sum(state) / state[0], "GB"
    )
    whole, parts, again = _("one device"), _("8 devices"), _("8 devices, recomputed")
    for name, model, told in ((whole, 1, 34 + 5 * 64 / 3), (parts, 8, 10 + 3 + 5 * 8 / 3), (again, 8, 2)):
        runs = [Megatron(blocks, 64, 6144, model, microbatch=4) for blocks in (2, 3)]
        two, three = (each.cost(_A100, recompute=Recompute.FULL if name == again else Recompute.NONE).memory_bytes["activations"] for each in runs)
        what = _("activations of a layer, {devices}, calculated", devices=name)
        yield Row(what, f"{_KORTHIKANTI}, Table 2", told * 4 * 2048 * 6144 / 1e9, (three - two) / 1e9, "GB")
