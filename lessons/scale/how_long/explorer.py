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
from course_lib.specs.cost import MIXED
from course_lib.specs.machines import Cluster, group_sizes
from course_lib.specs.plan import BATCH, Plan
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from lessons.scale.how_long.networks import CLUSTERS, transformer
from lessons.scale.how_long.planner import MODEL_DIMS, Planned, planned
from lessons.scale.how_long.published import EFFICIENCY

# By billions of parameters: blocks, features and heads. Source: https://arxiv.org/abs/2104.04473, Table 1.
NETWORKS = {"1.7": (24, 2304, 24), "18": (40, 6144, 48), "146": (80, 12288, 96)}
FIRST = {"network": "18", "cluster": "A100", "devices": 64, "examples": 512, "microbatches": 8}
DIMS = ("batch", *MODEL_DIMS)
_KINDS = ("computing", *DIMS, "variables", "gradients", "optimizer", "activations")
_COLOURS = dict(zip(_KINDS, reversed(shapes.PALETTE), strict=True))
_NUM_SHOWN, _SIZE, _BAR_WIDTH, _BAR_HEIGHT, _FIGURE_WIDTH = 5, 12.0, 280.0, 14.0, 88.0


@cache
def ranking(
    network: str, cluster: str, devices: int, examples: int, microbatches: int
) -> tuple[int, int, tuple[Planned, ...]]:
    """Returns how many plans there are, how many fit into memory, and the best: the smallest if none fits."""
    blocks, features, heads = NETWORKS[network]
    architecture = transformer(blocks, sequence=2048, features=features, heads=heads, vocabulary=51200)
    kind = replace(CLUSTERS[cluster], device=replace(CLUSTERS[cluster].device, efficiency=EFFICIENCY))
    training = replace(MIXED, recompute=True, microbatches=microbatches)
    plans = planned(architecture, devices, examples, kind, training)
    num_fitting = sum(each.cost.total_bytes <= kind.device.memory_bytes for each in plans)
    if not num_fitting:
        plans.sort(key=lambda each: each.cost.total_bytes)
    different: dict[str, Planned] = {}  # within a node it is all the same which dimension is x and which y
    for each in plans:
        different.setdefault(f"{each.cost.seconds:.9g} {each.cost.total_bytes:.9g}", each)
    return len(plans), num_fitting, tuple(different.values())[:_NUM_SHOWN]


class ScaleOutExplorer(Explorer):
    """Shows the best meshes and plans for a network, a cluster and a batch, by the cost model alone."""

    name = "scale_out"
    title = later("The best plans for many devices")

    def __init__(self) -> None:
        super().__init__(FIRST)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the network, the devices and the batch."""
        examples = Group(_("Examples in a batch"), [numbers(("examples",), (512, 4096))])
        return [*self.page_controls(state), examples]

    def page_controls(self, state: State) -> Sequence[Group]:  # noqa: ARG002 - always the same
        """Returns the same for one batch: the table of a page is to be small."""
        networks = [(name, _("{billions} billion parameters", billions=name)) for name in NETWORKS]
        return [
            Group(_("Transformer"), [Choice(("network",), networks)]),
            Group(_("Kind of device"), [Choice(("cluster",), [(name, name) for name in CLUSTERS])]),
            Group(_("How many devices"), [numbers(("devices",), (8, 64, 512, 4096))]),
            Group(_("Microbatches"), [numbers(("microbatches",), (1, 8, 64))]),
        ]

    def page_settled(self, state: State) -> State:
        """Returns the state with the batch of a page."""
        return {**state, "examples": FIRST["examples"]}

    def body(self, state: State) -> Sequence[Node]:
        """Returns how many plans fit, the best of them, and how they are to be read."""
        told = _("The figures below as bars")
        cards = [pieces.panel(mesh, pieces.image(bars, told), lines) for mesh, bars, lines in _cards(state)]
        key = pieces.image(_key(), _("The colours of the bars"))
        panels = pieces.panels([*cards, pieces.panel(_("How to read this"), key, _notes())])
        return [pieces.spoken("verdict", "\n".join(_told(state))), panels]


def _told(state: State) -> list[str]:
    """Returns what is trained, and how many plans fit into memory."""
    num_plans, num_fitting, _best = ranking(**state)
    chosen = _(
        "{network} billion parameters on {devices:,} {cluster}; "
        "a batch of {examples:,}, microbatches: {microbatches}",
        **state,
    )
    counts = {
        "plans": num_plans,
        "fitting": num_fitting,
        "memory": CLUSTERS[state["cluster"]].device.memory_bytes / 1e9,
    }
    if num_fitting:
        message = _("{fitting:,} of {plans:,} plans fit into {memory:g} GB. The fastest of them:", **counts)
    else:
        message = _("None of {plans:,} plans fits into {memory:g} GB. These need the least:", **counts)
    return [chosen, marked(message, agrees=num_fitting > 0)]


def _cards(state: State) -> Iterator[tuple[str, Drawing, list[str]]]:
    """Yields for each of the best plans its mesh, its bars, and its figures in words."""
    best, cluster = ranking(**state)[2], CLUSTERS[state["cluster"]]
    limit, longest = cluster.device.memory_bytes, max(each.cost.seconds for each in best)
    largest = max(limit, *(each.cost.total_bytes for each in best))
    for number, (plan, cost) in enumerate(((each.plan, each.cost) for each in best), start=1):
        dims = _dims(plan, cluster)
        mesh = " × ".join(f"{dims[name]} {size}" for name, size in plan.mesh.dims)
        time, memory = _time(cost.seconds), marked(_size(cost.total_bytes), agrees=cost.total_bytes <= limit)
        seconds = {"computing": cost.compute_seconds, **dict(sorted(cost.communication_seconds.items()))}
        bars = [_bar(seconds, longest, time), _bar(cost.memory_bytes, largest, memory, limit)]
        words, of_limit = _words(dims), _("{size} of {limit:g} GB", size=memory, limit=limit / 1e9)
        times = [f"{words[kind]} {_time(value)}" for kind, value in seconds.items()]
        sizes = [f"{words[kind]} {_size(value)}" for kind, value in cost.memory_bytes.items()]
        lines = [_splits(plan, dims), _listed(time, times), _listed(of_limit, sizes)]
        yield f"{number}. {mesh}", arranging.stacked(bars, 6), lines


def _dims(plan: Plan, cluster: Cluster) -> dict[str, str]:
    """Returns the mesh dimensions by their names; an arrow marks those that go from node to node."""
    groups = {name: group_sizes(plan.mesh, (name,), cluster.devices_per_node) for name in plan.mesh.names}
    return {name: f"{name} ↗" if between > 1 else name for name, (_inside, between) in groups.items()}


def _splits(plan: Plan, dims: Mapping[str, str]) -> str:
    """Returns which axes each mesh dimension splits."""
    words = {BATCH: _("examples"), "features": _("features"), "vocabulary": _("vocabulary")}
    words |= {"heads": _("heads"), "hidden": _("hidden units")}
    axes = {name: [words[axis] for axis, by in plan.splits.items() if by == name] for name in dims}
    told = (_("{name} splits {axes}", name=dims[name], axes=_(", ").join(axes[name])) for name in dims)
    return _("; ").join(told)


def _listed(total: str, parts: Sequence[str]) -> str:
    return labelled(total, _(", ").join(parts))


def _words(dims: Mapping[str, str]) -> dict[str, str]:
    """Returns what the parts of the bars are called, in the order of `_KINDS`."""
    names = (_("variables"), _("gradients"), _("optimizer"), _("activations"))
    over = [_("over {dimension}", dimension=dims.get(name, name)) for name in DIMS]
    return dict(zip(_KINDS, (_("computing"), *over, *names), strict=True))


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
    for kind, told in _words({}).items():
        nodes = *cell((0, 0, 16, 14), fill=_COLOURS[kind]), shapes.text(22, 12, told, size=_SIZE)
        entries.append(Drawing(24 + arranging.text_width(told, _SIZE), _BAR_HEIGHT, nodes))
    return arranging.flowing(entries, 8, _BAR_WIDTH + _FIGURE_WIDTH)


def _notes() -> list[str]:
    """Returns how the cards are to be read, and what their figures are worth."""
    return [
        _("Upper bar: the time of a step. Lower bar: the memory of a device, with a line where it is full."),
        _("↗ leaves the node: its collectives go between nodes."),
        _("Examples of 2,048 tokens; mixed precision; blocks are computed again on the way back."),
        _(
            "Modelled, not measured: products reach {percent} % of the peak; computing and exchange never"
            " overlap.",
            percent=round(100 * EFFICIENCY),
        ),
    ]
