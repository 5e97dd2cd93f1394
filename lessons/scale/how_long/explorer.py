"""The scale-out explorer: choose a network and its devices, and see the best plans, their time and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from course_lib.i18n import _, labelled, later
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import cell
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import marked
from course_lib.specs.machines import Cluster, group_sizes
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from lessons.scale.how_long.cost import MIXED, STAGE, Training
from lessons.scale.how_long.networks import CLUSTERS, transformer
from lessons.scale.how_long.planner import Planned, Ranking, transformer_plans
from lessons.scale.how_long.published import EFFICIENCY

# By billions of parameters: blocks, features and heads. Source: https://arxiv.org/abs/2104.04473, Table 1.
NETWORKS = {"1.7": (24, 2304, 24), "18": (40, 6144, 48), "146": (80, 12288, 96)}
_MEMORY = ("variables", "gradients", "optimizer", "activations")
_KINDS = ("computing", "model", "batch", STAGE, *_MEMORY)
_COLOURS = {**dict(zip(_KINDS, reversed(shapes.PALETTE), strict=True)), "bubble": shapes.EMPTY}
_NUM_SHOWN, _SIZE, _BAR_WIDTH, _BAR_HEIGHT, _FIGURE_WIDTH = 5, 12.0, 280.0, 14.0, 88.0


@cache
def ranking(network: str, cluster: str, devices: int, examples: int) -> Ranking:
    """Returns the plans for a choice."""
    blocks, features, heads = NETWORKS[network]
    architecture = transformer(blocks, sequence=2048, features=features, heads=heads, vocabulary=51200)
    kind = replace(CLUSTERS[cluster], device=replace(CLUSTERS[cluster].device, efficiency=EFFICIENCY))
    return transformer_plans(architecture, devices, examples, kind, replace(MIXED, overlap=True))


def shown(found: Ranking) -> list[Planned]:
    """Returns the best plans, the smallest if none fits; of plans that cost the same the first."""
    plans = found.plans if found.num_fitting else sorted(found.plans, key=lambda each: each.cost.total_bytes)
    different: dict[tuple[float, ...], Planned] = {}
    for each in plans:
        different.setdefault((round(each.cost.seconds, 9), round(each.cost.total_bytes)), each)
    return list(different.values())[:_NUM_SHOWN]


class ScaleOutExplorer(Explorer):
    """Shows the best meshes and plans for a network, a cluster and a batch, by the cost model alone."""

    name = "scale_out"
    title = later("The best plans for many devices")

    def __init__(
        self, network: str = "18", cluster: str = "A100", *, devices: int = 64, examples: int = 512
    ) -> None:
        state = {"network": network, "cluster": cluster, "devices": devices, "examples": examples}
        super().__init__(state)

    def controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the network, the devices and the batch."""
        networks = [(name, _("{billions} billion parameters", billions=name)) for name in NETWORKS]
        return [
            Group(_("Transformer"), [Choice(("network",), networks)]),
            Group(_("Kind of device"), [Choice(("cluster",), [(name, name) for name in CLUSTERS])]),
            Group(_("How many devices"), [numbers(("devices",), (8, 64, 512, 4096))]),
            Group(_("Examples in a batch"), [numbers(("examples",), (512, 2048, 4096))]),
        ]

    def body(self, state: State) -> Sequence[Node]:
        """Returns how many plans fit, the best of them, and how they are to be read."""
        told = _("The figures below as bars")
        cards = [pieces.panel(mesh, pieces.image(bars, told), lines) for mesh, bars, lines in _cards(state)]
        key = pieces.image(_key(), _("The colours of the bars"))
        panels = pieces.panels([*cards, pieces.panel(_("How to read this"), key, _notes())])
        return [pieces.spoken("verdict", "\n".join(_told(state))), panels]


def _told(state: State) -> list[str]:
    """Returns what is trained, how many plans fit into memory, and what keeps the best from being faster."""
    found, cluster = ranking(**state), CLUSTERS[state["cluster"]]
    chosen = _(
        "{network} billion parameters on {devices:,} {cluster}; a batch of {examples:,} examples", **state
    )
    counts = {
        "plans": len(found.plans),
        "fitting": found.num_fitting,
        "memory": cluster.device.memory_bytes / 1e9,
    }
    if not found.num_fitting:
        message = _("None of {plans:,} plans fits into {memory:g} GB. These need the least:", **counts)
        return [chosen, marked(message, agrees=False)]
    binds = {
        "memory": _("Memory keeps it from being faster."),
        "links": _("Exchanges take the largest part of its time."),
        "bubble": _("Waiting for other stages takes the largest part of its time."),
        "computing": _("Computing takes the largest part of its time."),
    }
    fit = _("{fitting:,} of {plans:,} plans fit into {memory:g} GB.", **counts)
    best = _(
        "Plans within 5 % of the fastest: {count}. The fastest uses {percent} % of the peak.",
        percent=round(100 * found.utilisation(found.plans[0])),
        count=len(found.best),
    )
    return [chosen, marked(fit, agrees=True), best, binds[found.binds()]]


def _cards(state: State) -> Iterator[tuple[str, Drawing, list[str]]]:
    """Yields for each of the best plans its mesh, its bars, and its figures in words."""
    best, cluster = shown(ranking(**state)), CLUSTERS[state["cluster"]]
    limit, longest = cluster.device.memory_bytes, max(each.cost.seconds for each in best)
    largest = max(limit, *(each.cost.total_bytes for each in best))
    for number, each in enumerate(best, start=1):
        cost, mesh = each.cost, each.plan.mesh
        time, memory = _time(cost.seconds), marked(_size(cost.total_bytes), agrees=cost.total_bytes <= limit)
        exchanges = {name: cost.communication_seconds.get(name, 0.0) for name in ("model", "batch", STAGE)}
        seconds = {"computing": cost.compute_seconds, **exchanges, "bubble": cost.bubble_seconds}
        bars = [_bar(seconds, longest, time), _bar(cost.memory_bytes, largest, memory, limit)]
        words, of_limit = _words(), _("{size} of {limit:g} GB", size=memory, limit=limit / 1e9)
        times = [f"{words[kind]} {_time(value)}" for kind, value in seconds.items() if value]
        sizes = [f"{words[kind]} {_size(value)}" for kind, value in cost.memory_bytes.items()]
        lines = [_how(each.training, mesh), _listed(time, times), _listed(of_limit, sizes)]
        dims = _dims(mesh, cluster)
        told = " × ".join(f"{dims[name]} {size}" for name, size in mesh.dims if size > 1)
        yield f"{number}. {told}", arranging.stacked(bars, 6), lines


def _dims(mesh: MeshSpec, cluster: Cluster) -> dict[str, str]:
    """Returns the mesh dimensions by their names; an arrow marks those that go from node to node."""
    groups = {name: group_sizes(mesh, (name,), cluster.devices_per_node) for name in mesh.names}
    return {name: f"{name} ↗" if between > 1 else name for name, (_inside, between) in groups.items()}


def _how(training: Training, mesh: MeshSpec) -> str:
    """Returns how a step is taken."""
    told = [_("microbatches: {count}", count=training.microbatches)]
    if training.chunks > 1:
        told.append(_("chunks of a stage: {count}", count=training.chunks))
    if mesh.dim_size(BATCH) > 1:
        told.append(f"ZeRO-{training.zero.value}" if training.zero else _("no ZeRO"))
    again = {"none": _("nothing"), "selective": _("scores and shares"), "full": _("blocks")}
    told.append(_("computed again: {what}", what=again[training.recompute]))
    return _("; ").join(told)


def _listed(total: str, parts: Sequence[str]) -> str:
    return labelled(total, _(", ").join(parts))


def _words() -> dict[str, str]:
    """Returns what the parts of the bars are called, in the order of `_KINDS`."""
    over = [_("over {dimension}", dimension=name) for name in ("model", "batch")]
    names = (_("variables"), _("gradients"), _("optimizer"), _("activations"))
    words = dict(zip(_KINDS, (_("computing"), *over, _("between stages"), *names), strict=True))
    return {**words, "bubble": _("waiting")}


def _time(seconds: float) -> str:
    return f"{_three_digits(seconds)} s" if seconds >= 1 else f"{_three_digits(1e3 * seconds)} ms"


def _size(num_bytes: float) -> str:
    return f"{_three_digits(num_bytes / 1e9)} GB"


def _three_digits(value: float) -> str:
    """Returns three digits that count, at most two of them after the point.

    >>> _three_digits(13.9437), _three_digits(4289.97), _three_digits(0.00421)
    ('13.9', '4,290', '0.00')
    """
    return f"{value:,.{min(max(2 - math.floor(math.log10(value)), 0), 2)}f}"


def _bar(parts: Mapping[str, float], full: float, figure: str, limit: float = 0.0) -> Drawing:
    """Returns a bar of coloured parts, its figure beside it, and a line where the limit lies."""
    scale, x, rectangles = _BAR_WIDTH / full, 0.0, []
    for kind, value in parts.items():
        rectangles.append(node("rect", x=x, width=scale * value, height=_BAR_HEIGHT, fill=_COLOURS[kind]))
        x += scale * value
    if limit:
        rectangles.append(node("rect", x=scale * limit - 1, y=-2, width=2, height=_BAR_HEIGHT + 4))
    told = shapes.text(_BAR_WIDTH + 8, 12, figure, size=_SIZE)
    bar = node("g", *rectangles, stroke=shapes.INK, stroke_width=0.75)
    return Drawing(_BAR_WIDTH + 8 + _FIGURE_WIDTH, _BAR_HEIGHT, (bar, told))


def _key() -> Drawing:
    """Returns what each colour stands for."""
    entries = []
    for kind, told in _words().items():
        nodes = *cell((0, 0, 16, 14), fill=_COLOURS[kind]), shapes.text(22, 12, told, size=_SIZE)
        entries.append(Drawing(24 + arranging.text_width(told, _SIZE), _BAR_HEIGHT, nodes))
    return arranging.flowing(entries, 8, _BAR_WIDTH + _FIGURE_WIDTH)


def _notes() -> list[str]:
    """Returns how the cards are to be read, and what their figures are worth."""
    return [
        _("Upper bar: the time of a step. Lower bar: the memory of a device, with a line where it is full."),
        _("↗ leaves the node: its collectives go between nodes."),
        _("Examples of 2,048 tokens; mixed precision."),
        _("Model splits heads, hidden units, vocabulary, and else the sequence; stage splits the blocks."),
        _("A stage in chunks has blocks from several places of the network, and waits less."),
        _(
            "Modelled, not measured: products reach {percent} % of the peak; exchanges over batch hide"
            " behind computing.",
            percent=round(100 * EFFICIENCY),
        ),
    ]
