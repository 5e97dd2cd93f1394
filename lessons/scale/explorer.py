"""The scale-out explorer: choose network, devices and techniques, and see the best plans, time and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_lib.i18n import _, labelled, later
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import marked
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH
from course_lib.widgets import controls, pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Group, Slider, State, Switch, numbers
from lessons.scale.best_plans import NETWORKS, TECHNIQUES, Best, Choice, best_plans
from lessons.scale.cost import STAGE, Training
from lessons.scale.machines import Cluster, group_sizes
from lessons.scale.networks import CLUSTERS
from lessons.scale.plan_bars import HEIGHT, KINDS, WIDTH, colour_key, parts_bar, size_text, time_text, words
from lessons.scale.planner import Planned
from lessons.scale.published import EFFICIENCY
from lessons.scale.scaling_curve import scaling_drawing, scaling_lines

_DEVICES, _EXAMPLES, _LINKS = (8, 64, 512, 4096), (512, 1024, 2048, 4096), (0.25, 0.5, 1.0, 2.0, 4.0)
_PAGE_DEVICES, _PAGE_EXAMPLES, _PAGE_LINKS = (64, 512, 4096), (512, 1024, 4096), (0.25, 1.0, 4.0)
_ON_A_PAGE = 3  # plans
_FIGURE_WIDTH, _LINE = 96, 20


class ScaleOutExplorer(Explorer):
    """Shows the best meshes and plans for a network, a cluster and a batch, by the cost model alone.

    Args:
        network: its billions of parameters.
        cluster: the kind of device.
        devices: how many there are.
        examples: in a batch.
        everything: whether all techniques are switched on at first; else there are tensor and data
            parallelism alone.
    """

    name = "scale_out"
    title = later("The best plans for many devices")

    def __init__(
        self,
        network: str = "18",
        cluster: str = "A100",
        *,
        devices: int = 64,
        examples: int = 512,
        everything: bool = False,
    ) -> None:
        state = {"network": network, "cluster": cluster, "devices": devices, "examples": examples}
        super().__init__({**state, "links": 1.0, **dict.fromkeys(TECHNIQUES, everything)})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the network, the devices, the batch, the techniques and the links."""
        return _controls(state, _DEVICES, _EXAMPLES, _LINKS)

    def body(self, state: State) -> Sequence[Node]:
        """Returns how many plans fit, the time on more or fewer devices, and the best plans."""
        return _body(state)

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the same with fewer numbers."""
        return _controls(state, _PAGE_DEVICES, _PAGE_EXAMPLES, _PAGE_LINKS)

    def page_settled(self, state: State) -> State:
        """Returns the state with the nearest numbers that a page offers."""
        offered = {"devices": _PAGE_DEVICES, "examples": _PAGE_EXAMPLES, "links": _PAGE_LINKS}
        return {**state, **{name: _nearest(state[name], values) for name, values in offered.items()}}

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the same with fewer plans, and with a link to what they are worth."""
        return _body(state, _ON_A_PAGE, is_page=True)

    def page_part(self, state: State) -> str:
        """Returns the network and the kind of device, of which each has a table of its own."""
        return f"-{state['network']}-{state['cluster'].replace(' ', '-')}"


class TensorAndDataExplorer(ScaleOutExplorer):
    """Shows the best plan alone, with tensor and data parallelism and nothing else to choose from."""

    name = "tensor_and_data"

    def controls(self, state: State) -> Sequence[Group]:
        """Returns what there is to choose but the techniques."""
        return _without_techniques(super().controls(state))

    def body(self, state: State) -> Sequence[Node]:
        """Returns the curve and the best plan."""
        return _body(state, 1)

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the same with fewer numbers."""
        return _without_techniques(super().page_controls(state))

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the same as a notebook shows, and a link to what the times are worth."""
        return _body(state, 1, is_page=True)


def _without_techniques(groups: Sequence[Group]) -> list[Group]:
    return [group for group in groups if not any(isinstance(each, Switch) for each in group.controls)]


def _nearest(value: float, offered: Sequence[float]) -> float:
    return value if value in offered else min(offered, key=lambda each: abs(each - value))


def _controls(
    state: State, devices: Sequence[int], examples: Sequence[int], links: Sequence[float]
) -> Sequence[Group]:
    networks = [(name, _("{billions} billion parameters", billions=name)) for name in NETWORKS]
    rate = CLUSTERS[state["cluster"]].between.bytes_per_second / 1e9
    rates = [(each, _("{rate:g} GB/s (× {factor:g})", rate=each * rate, factor=each)) for each in links]
    techniques = [Switch((path,), name, state[path]) for path, name in _techniques().items()]
    between = _("Links between nodes")
    return [
        Group(_("Transformer"), [controls.Choice(("network",), networks)]),
        Group(_("Kind of device"), [controls.Choice(("cluster",), [(name, name) for name in CLUSTERS])]),
        Group(_("How many devices"), [numbers(("devices",), devices)]),
        Group(_("Examples in a batch"), [numbers(("examples",), examples)]),
        Group(_("Allowed"), techniques),
        Group(between, [Slider(("links",), between, rates)]),
    ]


def _techniques() -> dict[str, str]:
    names = _("stages"), _("ZeRO"), _("overlap"), _("recomputation")
    return dict(zip(TECHNIQUES, names, strict=True))


def _body(state: State, most: int | None = None, *, is_page: bool = False) -> Sequence[Node]:
    """Returns what is said of the best plan, the curve, and at most so many plans."""
    choice = _choice(state)
    found = best_plans(choice)
    best, cluster = found[state["devices"]], choice.machines()
    lines = _told(state, best, cluster)
    verdict = [each for line in lines for each in (node("span", line), "\n")][:-1]
    return [
        node("p", *verdict, class_="verdict", role="status"),
        pieces.panels(
            [
                _curve({size: _fastest(each) for size, each in found.items()}, state["devices"]),
                *_cards(best.plans[:most], cluster, state),
                pieces.panel(_("How to read this"), _key(state), [*_notes(state), _worth(is_page)]),
            ]
        ),
    ]


def _choice(state: State) -> Choice:
    return Choice(**{name: value for name, value in state.items() if name != "devices"})


def _fastest(best: Best) -> float | None:
    return best.plans[0].cost.seconds if best.num_fitting else None


def _told(state: State, best: Best, cluster: Cluster) -> list[str]:
    """Returns what is trained, how many plans fit into memory, and what keeps the best from being faster."""
    chosen = _(
        "{network} billion parameters on {devices:,} {cluster}; a batch of {examples:,} examples", **state
    )
    counts = {
        "plans": best.num_plans,
        "fitting": best.num_fitting,
        "memory": cluster.device.memory_bytes / 1e9,
    }
    parallelism = _("tensor parallelism"), _("data parallelism")
    unused = [name for path, name in _techniques().items() if not state[path]]
    allowed = _(
        "Allowed: {techniques}; links between nodes: {rate:g} GB/s",
        techniques=_(", ").join(
            [*parallelism, *(name for path, name in _techniques().items() if state[path])]
        ),
        rate=cluster.between.bytes_per_second / 1e9,
    )
    limits = [chosen, allowed]
    if unused:
        everything = _choice({**state, **dict.fromkeys(TECHNIQUES, True)})
        fastest = _fastest(best_plans(everything)[state["devices"]])
        limits.append(
            _(
                "Not allowed: {techniques}. With all four the fastest plan takes {time}.",
                techniques=_(", ").join(unused),
                time=time_text(fastest),
            )
            if fastest
            else _(
                "Not allowed: {techniques}. With all four no plan fits either.",
                techniques=_(", ").join(unused),
            )
        )
    if not best.num_fitting:
        message = _("None of {plans:,} plans fits into {memory:g} GB. These need the least:", **counts)
        return [*limits, marked(message, agrees=False)]
    binds = {
        "memory": _("There are faster plans, but they don't fit into memory."),
        "links": _("Communication takes the largest part of its time."),
        "bubble": _("Waiting for other stages takes the largest part of its time."),
        "computing": _("Computing takes the largest part of its time."),
    }
    fit = _("{fitting:,} of {plans:,} plans fit into {memory:g} GB.", **counts)
    told = _(
        "The fastest plan uses {percent} % of the devices' peak. Plans at most 5 % slower: {count}.",
        percent=round(100 * best.utilisation),
        count=best.num_best - 1,
    )
    return [*limits, marked(fit, agrees=True), told, binds[best.binds]]


def _curve(times: dict[int, float | None], chosen: int) -> Node:
    image = pieces.image(scaling_drawing(times, chosen), "\n".join(scaling_lines(times)))
    return pieces.panel(_("The time of a step, by the number of devices"), image)


def _cards(plans: Sequence[Planned], cluster: Cluster, state: State) -> Iterator[Node]:
    """Yields for each plan its mesh, its bars, and its figures in words."""
    limit = cluster.device.memory_bytes
    longest = max(each.cost.seconds for each in plans)
    largest = max(limit, *(each.cost.total_bytes for each in plans))
    for number, each in enumerate(plans, start=1):
        cost, mesh = each.cost, each.plan.mesh
        time = time_text(cost.seconds)
        memory = marked(size_text(cost.total_bytes), agrees=cost.total_bytes <= limit)
        exchanges = {name: cost.communication_seconds.get(name, 0.0) for name in ("model", "batch", STAGE)}
        seconds = {"computing": cost.compute_seconds, **exchanges, "bubble": cost.bubble_seconds}
        bars = parts_bar(seconds, longest), parts_bar(cost.memory_bytes, largest, limit)
        of_limit = _("{size} of {limit:g} GB", size=memory, limit=limit / 1e9)
        times = [f"{words()[kind]} {time_text(value)}" for kind, value in seconds.items() if value]
        sizes = [f"{words()[kind]} {size_text(value)}" for kind, value in cost.memory_bytes.items()]
        lines = [_how(each.training, mesh, state), _listed(time, times), _listed(of_limit, sizes)]
        dims = _dims(mesh, cluster)
        split = " × ".join(f"{dims[name]} {size}" for name, size in mesh.dims if size > 1)
        image = pieces.image(_bars(bars, (time, memory)), _("The figures below as bars"))
        yield pieces.panel(f"{number}. {split}", image, lines)


def _bars(bars: tuple[Drawing, Drawing], figures: tuple[str, str]) -> Drawing:
    """Returns two bars under each other, each with its figure beside it."""
    (upper, lower), (time, memory) = bars, figures
    told = shapes.text(WIDTH + 8, 12, time), shapes.text(WIDTH + 8, 12 + _LINE, memory)
    return Drawing(WIDTH + _FIGURE_WIDTH, _LINE + HEIGHT, (*upper.nodes, lower.at(0, _LINE), *told))


def _dims(mesh: MeshSpec, cluster: Cluster) -> dict[str, str]:
    """Returns the mesh dimensions by their names; an arrow marks those that go from node to node."""
    groups = {name: group_sizes(mesh, (name,), cluster.devices_per_node) for name in mesh.names}
    return {name: f"{name} ↗" if between > 1 else name for name, (_inside, between) in groups.items()}


def _how(training: Training, mesh: MeshSpec, state: State) -> Node:
    """Returns how a step is taken."""
    count = training.microbatches
    size = state["examples"] // mesh.dim_size(BATCH) // count
    told = [_("micro-batches: {count}", count=count), _("examples in each: {size}", size=size)]
    if training.chunks > 1:
        told.append(_("chunks of a stage: {count}", count=training.chunks))
    if state["zero"] and mesh.dim_size(BATCH) > 1:
        told.append(f"ZeRO-{training.zero.value}" if training.zero else _("no ZeRO"))
    if state["recompute"]:
        told.append(_("recomputed: {what}", what=recomputed()[training.recompute]))
    return node("span", _("; ").join(told))


def recomputed() -> dict[str, str]:
    """Returns what the ways to recompute are called, by their values."""
    return {"none": _("nothing"), "selective": _("attention"), "full": _("blocks")}


def _listed(total: str, parts: Sequence[str]) -> Node:
    """Returns a figure and its parts, each a node, of which a page's table has equal ones once."""
    separated = [each for part in parts for each in (node("span", part), _(", "))][:-1]
    return node("span", labelled(total, ""), *separated)


def _key(state: State) -> Node:
    """Returns what the colours of the bars stand for."""
    kinds = [kind for kind in (*KINDS, "bubble") if state["stages"] or kind not in (STAGE, "bubble")]
    return pieces.image(colour_key(kinds, WIDTH + _FIGURE_WIDTH), _("The colors of the bars"))


def _notes(state: State) -> list[str]:
    """Returns how curve and cards are to be read, and what their figures are worth."""
    notes = [
        _("Curve: the fastest plan that fits; ✗ where none does. Dashed: twice as fast on twice as many."),
        _("Upper bar: the time of a step. Lower bar: the memory of a device, with a line where it is full."),
        _("↗ leaves the node: its collectives go between nodes."),
        _("Examples of 2,048 tokens; mixed precision."),
        _(
            "The devices along model split the heads, the hidden units and the vocabulary."
            " What has none of these they split along the sequence."
        ),
    ]
    if state["stages"]:
        notes += [
            _("The devices along stage split the blocks of the network."),
            _(
                "A stage with several chunks (virtual stages) has blocks from several places of the network,"
                " and waits less."
            ),
        ]
    if state["overlap"]:
        notes.append(_("Overlap: communication over batch is hidden behind computing."))
    peak = _(
        "Modeled, not measured: matrix products are taken to reach {percent} % of the peak.",
        percent=round(100 * EFFICIENCY),
    )
    return [*notes, peak]


def _worth(is_page: bool) -> Node:
    """Returns what the times are worth, with a link where there is a page to go to."""
    title = _("How good is the model?")
    shown = node("a", title, href="how_good.html") if is_page else node("cite", title)
    warning = _("Times may be off by up to a third. Plans that differ by less may be in the wrong order.")
    return node("span", warning, " ", shown)
