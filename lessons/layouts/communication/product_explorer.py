"""The product explorer: choose the layouts of two factors, and see what the devices exchange, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from course_lib.explorers.experiment import Experiment
from course_lib.i18n import _, labelled, later
from course_lib.pictures import arranging, shapes
from course_lib.pictures import communication as drawings
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.shapes import Node
from course_lib.pictures.text import devices_text
from course_lib.specs import communication
from course_lib.specs.communication import Communication
from course_lib.specs.explanation import Explanation
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Sharding
from course_lib.widgets import pieces
from course_lib.widgets.controls import Choice, Group, State
from lessons.layouts.mesh_layout_state import as_lists, entry_choice, known_entries, mesh_of

Observe = Callable[[Sharding, Sharding, LayoutSpec | None], Explanation]
_SIZES = ((8,), (4, 2), (2, 4), (2, 2, 2))
_MESHES = tuple(MeshSpec(zip(("batch", "model", "feature"), sizes, strict=False)) for sizes in _SIZES)
_SHAPES = ((16, 24), (24, 40))  # of the factors, as in the lesson
_AIR, _SIZE = 12.0, 12.0


def _on_devices(left: Sharding, right: Sharding, wanted: LayoutSpec | None) -> Explanation:
    from course_lib.devices import graphs

    return graphs.product(left, right, wanted)


class ProductExplorer(Experiment):
    """Lets the reader choose the layouts of two factors, and shows what their product costs.

    Args:
        observe: what runs the product when the button is pressed.
    """

    name = "product"
    title = later("Product explorer")
    example = "ProductExplorer()"
    button = later("Run it on the devices and compare")
    waiting = later("Running it. The first time this starts TensorFlow and takes some seconds.")

    def __init__(self, observe: Observe = _on_devices) -> None:
        mesh = _MESHES[0]
        state = {
            "mesh": as_lists(mesh),
            "shapes": [list(lengths) for lengths in _SHAPES],
            "left": [UNSHARDED, mesh.names[0]],
            "right": [mesh.names[0], UNSHARDED],
            "wanted": None,
        }
        super().__init__(observe, state)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the meshes, every layout, and what reads the product."""
        return [*_factor_groups(state), *_reader_groups(state)]

    def page_controls(self, state: State) -> Sequence[Group]:
        """Returns the same; on a mesh of several dimensions the reader would make too many states."""
        return self.controls(state) if _has_few_states(state) else _factor_groups(state)

    def settled(self, state: State) -> State:
        """Returns the state with entries of its own mesh in every layout."""
        layouts = {
            factor: state[factor] and known_entries(state[factor], state["mesh"])
            for factor in ("left", "right", "wanted")
        }
        return {**state, **layouts}

    def page_settled(self, state: State) -> State:
        """Returns the same without a reader where none is offered."""
        return self.settled(state if _has_few_states(state) else {**state, "wanted": None})

    def result(self, state: State) -> Explanation | None:
        """Returns what real devices exchanged beside the prediction."""
        return self._observe(*_chosen(state)) if self._observe else None

    def verdict(self, result: Explanation) -> str:
        """Returns what was predicted and seen in all, and whether they agree."""
        return "\n".join([*words.both_totals(result), words.verdict(result)])

    def above(self, state: State, result: Explanation | None) -> Sequence[Node]:
        """Returns the costs, the tensors, the steps, and what really ran in their place."""
        predicted = communication.product(*_chosen(state))
        facts = {
            _("Layout of x @ W"): predicted.result.layout,
            _("Collectives"): len(predicted.collectives),
            _("Bytes sent by each device"): words.bytes_text(predicted.bytes_sent),
        }
        rows = _step_rows(predicted) if result is None else drawings.pair_rows(result)
        totals = words.totals(predicted.collectives) if result is None else ""
        panels = pieces.panels([*_tensors(predicted), *map(_row, rows)])
        return [pieces.facts(facts), panels, pieces.spoken("told", totals)]


def _step_rows(communication: Communication) -> list[drawings.Row]:
    """Returns the predicted steps."""
    return [
        drawings.Row(
            words.step_title(at, step),
            drawings.change_drawing(step),
            [drawings.collective_drawing(step.collective)],
            words.collective_text(step.collective),
            [words.reason(step)],
        )
        for at, step in enumerate(communication.steps, start=1)
    ]


def _chosen(state: State) -> tuple[Sharding, Sharding, LayoutSpec | None]:
    """Returns both factors, and the layout that the reader of the product wants, or None."""
    mesh, (first, second) = mesh_of(state), state["shapes"]
    left, right = LayoutSpec(state["left"], mesh).of(first), LayoutSpec(state["right"], mesh).of(second)
    return left, right, None if state["wanted"] is None else LayoutSpec(state["wanted"], mesh)


def _has_few_states(state: State) -> bool:
    return len(state["mesh"]) == 1


def _factor_groups(state: State) -> list[Group]:
    meshes = [(as_lists(mesh), str(mesh)) for mesh in _MESHES]
    (rows, inner), (_inner, columns) = state["shapes"]
    return [
        Group(_("Mesh"), [Choice(("mesh",), meshes)]),
        Group(_("Rows of x: {length}", length=rows), [entry_choice(state, "left", 0)]),
        Group(_("Columns of x: {length}", length=inner), [entry_choice(state, "left", 1)]),
        Group(_("Rows of W: {length}", length=inner), [entry_choice(state, "right", 0)]),
        Group(_("Columns of W: {length}", length=columns), [entry_choice(state, "right", 1)]),
    ]


def _reader_groups(state: State) -> list[Group]:
    wanted = state["wanted"]
    options = [(None, _("as it comes")), (wanted or [UNSHARDED] * 2, _("in a layout of its own"))]
    reader = Group(_("What reads x @ W wants it"), [Choice(("wanted",), options)])
    if wanted is None:
        return [reader]
    return [
        reader,
        Group(_("Rows of x @ W"), [entry_choice(state, "wanted", 0)]),
        Group(_("Columns of x @ W"), [entry_choice(state, "wanted", 1)]),
    ]


def _tensors(predicted: Communication) -> list[Node]:
    """Returns the factors and the product, and what each device holds of them."""
    named = words.tensor_names(predicted)
    devices = range(predicted.result.mesh.size)
    held = [
        labelled(devices_text([at]), ", ".join(f"{name} {_letter(each, at)}" for name, each in named))
        for at in devices
    ]
    tensors = _images(drawings.tensor_drawings(predicted), words.tensor_lines(predicted))
    return [
        pieces.panel(_("Factors and product"), tensors),
        pieces.panel(_("Block of each device"), _images([_device(at, named) for at in devices], held)),
    ]


def _row(row: drawings.Row) -> Node:
    """Returns a step; what really ran stands below what changes."""
    changes = [] if row.change is None else [row.change]
    return pieces.panel(row.title, _images([*changes, *row.exchanges], row.heard), row.why)


def _images(shown: Sequence[Drawing], heard: Sequence[str]) -> Node:
    """Returns drawings that flow like words, each with some air at its right."""
    wide = [replace(each, width=each.width + _AIR) for each in shown]
    return pieces.images(wide, "\n".join(heard))


def _device(device_id: int, named: Sequence[tuple[str, Sharding]]) -> Drawing:
    """Returns a device with its block of each tensor."""
    blocks = arranging.beside([_block(name, sharding, device_id) for name, sharding in named], 8)
    width, height = blocks.width + 16, blocks.height + 30
    edge = cell((0.5, 0.5, width - 1, height - 1), fill="none", radius=6)
    number = shapes.text(8, 15, str(device_id), size=_SIZE, bold=True)
    return Drawing(width, height, (*edge, number, blocks.at(8, 22)))


def _block(name: str, sharding: Sharding, device_id: int) -> Drawing:
    """Returns the block that a device holds of a tensor, as a swatch with its letter."""
    width = max(30.0, arranging.text_width(name, _SIZE) + 4)
    heading = shapes.text(width / 2, 10, name, size=11, anchor="middle", fill=shapes.SOFT_INK)
    label = Line(_letter(sharding, device_id), 5, _SIZE, bold=True)
    swatch = cell((0, 15, width, 22), label, fill=sharding.holdings[device_id])
    return Drawing(width, 38, (heading, *swatch))


def _letter(sharding: Sharding, device_id: int) -> str:
    """Returns the letter of the block that a device holds, small."""
    return sharding.blocks[sharding.holdings[device_id]].label.lower()
