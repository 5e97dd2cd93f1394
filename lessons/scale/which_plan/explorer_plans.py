"""Where the time of a step goes under four plans of the explorer for 4,096 H100s."""

from __future__ import annotations

from dataclasses import replace

from course_lib.i18n import _
from course_lib.measured.tables import Table
from course_lib.specs.plan import BATCH
from lessons.scale.best_plans import NETWORKS, Choice
from lessons.scale.cost import MIXED, STAGE
from lessons.scale.explorer import recomputed
from lessons.scale.networks import transformer
from lessons.scale.plan_bars import words
from lessons.scale.planner import Planned, Ranking, transformer_plans

_NETWORK, _DEVICES = "146", 4096
# Examples, and what a plan must be: its mesh or its ZeRO; nothing for the fastest of all
_PLANS: tuple[tuple[int, dict[str, int]], ...] = (
    (512, {}),
    (4096, {STAGE: 8, BATCH: 64, "model": 8, "zero": 1}),
    (4096, {STAGE: 8, BATCH: 128, "model": 4, "zero": 1}),
    (4096, {}),
)


def four_plans() -> Table:
    """Returns the winner with 512 examples, what becomes of it with 4,096, a cautious plan, the winner."""
    columns = [_column(examples, _fastest(_ranking(examples), wanted)) for examples, wanted in _PLANS]
    names = list(columns[0])
    numbers = tuple(str(number) for number, _column_of in enumerate(columns, start=1))
    return Table(numbers, {name: tuple(column[name] for column in columns) for name in names})


def _ranking(examples: int) -> Ranking:
    allowed = dict.fromkeys(("stages", "zero", "overlap", "recompute"), True)
    machines = Choice(_NETWORK, "H100", examples, 1.0, **allowed).machines()
    blocks, features, heads = NETWORKS[_NETWORK]
    network = transformer(blocks, sequence=2048, features=features, heads=heads, vocabulary=51200)
    return transformer_plans(network, _DEVICES, examples, machines, replace(MIXED, overlap=True))


def _fastest(ranking: Ranking, wanted: dict[str, int]) -> tuple[Planned, float]:
    """Returns the fastest plan that has all that is wanted, and which share of the peak it uses."""
    for at in range(ranking.num_fitting):
        planned = ranking.plans[at]
        has = {**dict(planned.plan.mesh.dims), "zero": planned.training.zero.value}
        if wanted.items() <= has.items():
            return planned, ranking.utilisation(planned)
    raise LookupError(f"no plan fits that has {wanted}")


def _column(examples: int, found: tuple[Planned, float]) -> dict[str, str]:
    """Returns the figures of a plan by their names, in the words of the explorer."""
    (planned, of_peak), told = found, words()
    cost, sizes = planned.cost, dict(planned.plan.mesh.dims)
    parts = {
        told["computing"]: cost.compute_seconds,
        told["batch"]: cost.communication_seconds[BATCH],
        told["model"]: cost.communication_seconds["model"],
        told["stage"]: cost.communication_seconds[STAGE],
        told["bubble"]: cost.bubble_seconds,
    }
    return {
        _("Examples in a batch"): f"{examples:,}",
        **{name: str(sizes[name]) for name in (STAGE, BATCH, "model")},
        _("Micro-batches"): str(planned.training.microbatches),
        _("ZeRO"): str(planned.training.zero.value),
        _("Recomputed"): recomputed()[planned.training.recompute],
        _("memory"): f"{cost.total_bytes / 1e9:.0f} GB",
        _("the time of a step"): f"{cost.seconds:.2f} s",
        **{name: f"{100 * seconds / cost.seconds:.0f} %" for name, seconds in parts.items()},
        _("of the devices' peak"): f"{100 * of_peak:.0f} %",
    }
