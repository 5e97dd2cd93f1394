"""A plan with stages as pictures: who has which blocks, what a device keeps of its part, the schedule."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell, shade
from course_lib.pictures.shapes import Node, node
from course_lib.specs.architecture import Zero
from course_lib.specs.collectives import Kind
from course_lib.specs.plan import BATCH
from lessons.scale.cost import STAGE, Recompute
from lessons.scale.pipeline import Pass, passes
from lessons.scale.plan_bars import MEMORY
from lessons.scale.puzzles.bars import WIDTH, held_bar
from lessons.scale.puzzles.quantities import COLOURS, kind_names
from lessons.scale.puzzles.tasks import Setting
from lessons.scale.puzzles.trainings import MODEL

_BAND, _LANE, _SIZE, _NARROW = 44.0, 15.0, 11.0, 8.0
_FORWARD, _BACKWARD, _GATHERED, _ADDED = *shapes.PALETTE[:2], "#5B4FD1", shapes.ALARM


def blocks_drawing(setting: Setting) -> Drawing:
    """Returns the network from first to last in the colours of its stages, cut along `model`."""
    stages, chunks, cuts = setting.mesh.dim_size(STAGE), setting.training.chunks, setting.mesh.dim_size(MODEL)
    width, nodes = WIDTH / (stages * chunks), list[Node]()
    for at in range(stages * chunks):
        place, is_wide = (at * width, 0.0, width, _BAND), width > _NARROW
        label = [Line(str(at % stages), 4, min(_SIZE, width * 0.7), bold=True, halo=True)] if is_wide else []
        nodes += cell(place, *label, fill=shade(at % stages), stroke_width=1 if is_wide else 0.3)
    lines = "".join(f"M0 {shapes.number(_BAND * at / cuts)}h{WIDTH:g}" for at in range(1, cuts))
    return Drawing(WIDTH, _BAND, (*nodes, node("path", d=lines, stroke=shapes.INK, stroke_width=0.6)))


def blocks_lines(setting: Setting) -> list[str]:
    """Returns how many blocks a stage has, who shares them, and how many replicas there are."""
    stages, blocks, chunks = setting.mesh.dim_size(STAGE), setting.network.num_blocks, setting.training.chunks
    told = [_("Blocks: {blocks}, on each stage {share}.", blocks=blocks, share=blocks // stages)]
    if chunks > 1:
        told.append(_("Chunks of a stage, apart from each other: {chunks}.", chunks=chunks))
    cuts, replicas = setting.mesh.dim_size(MODEL), setting.mesh.dim_size(BATCH)
    examples = setting.batch_size // replicas
    micro = examples // setting.training.microbatches
    return [
        *told,
        _("Devices that share a block: {count}.", count=cuts),
        _("Replicas: {replicas}. Examples of each: {examples}.", replicas=replicas, examples=examples),
        _("Examples of a micro-batch: {micro}.", micro=micro),
    ]


def state_drawing(setting: Setting) -> tuple[Drawing, list[str]]:
    """Returns what a device keeps of the state of its part of the network, and the same in words."""
    cost, training, zero = setting.cost, setting.training, setting.training.zero
    copies = setting.mesh.dim_size(BATCH)
    widths = training.element_bytes, training.element_bytes, training.state_bytes
    words, lines, drawings = kind_names(), [], []
    for level, kind, each in zip((3, 2, 1), MEMORY, widths, strict=False):
        share = 1 / copies if zero >= level else 1.0
        held = f"{cost.memory_bytes[kind] / 1e9:.1f} GB"
        told = _("{kind}: {held}, all", kind=words[kind], held=held)
        if zero >= level:
            told = _("{kind}: {held}, one part in {copies}", kind=words[kind], held=held, copies=copies)
            if kind == "variables":
                told = _("{told}, and two whole blocks", told=told)
        drawings.append(held_bar(share, told, WIDTH * each / max(widths), COLOURS[kind]))
        lines.append(told)
    return arranging.stacked(drawings, 2), lines


def schedule_drawing(setting: Setting) -> Drawing:
    """Returns the lanes of a step: a lane a stage, blue forward, orange backward, empty while it waits."""
    stages, training = setting.mesh.dim_size(STAGE), setting.training
    done = passes(stages, training.microbatches, training.chunks, backward=3 if _recomputed(setting) else 2)
    end = max(lane[-1].end for lane in done)
    names = [str(stage) for stage in range(stages)]
    left = max(text_width(name, _SIZE) for name in names) + 6
    scale = (WIDTH - left) / end
    nodes: list[Node] = []
    for stage, name in enumerate(names):
        y = _LANE * stage
        nodes.append(shapes.text(0, y + 10, name, size=_SIZE, bold=True))
        nodes.append(
            shapes.rectangle(
                left, y + 1, WIDTH - left, 11, fill=shapes.EMPTY, stroke=shapes.LINE, stroke_width=0.5
            )
        )
    drawn = (*nodes, *_strokes(done, left, scale), *_marks(done[0], setting, (left, _LANE * stages), scale))
    return Drawing(WIDTH, _LANE * (stages + 1), drawn)


def _strokes(done: list[list[Pass]], left: float, scale: float) -> Iterator[Node]:
    """Yields the passes as dashed lines: those that follow each other evenly are one line."""
    lines: dict[tuple[bool, float, float], str] = defaultdict(str)
    for stage, lane in enumerate(done):
        for is_forward in (True, False):
            of_way = [each for each in lane if each.is_forward is is_forward]
            for first, last, step in _even(of_way):
                y = shapes.number(_LANE * stage + 6.5)
                start, end = (shapes.number(left + scale * x) for x in (first.start, last.end))
                lines[is_forward, first.end - first.start, step] += f"M{start} {y}H{end}"
    for (is_forward, length, step), path in lines.items():
        dash = max(scale * length - min(0.6, 0.2 * scale * length), 0.3)
        yield node(
            "path",
            d=path,
            stroke=_FORWARD if is_forward else _BACKWARD,
            stroke_width=10,
            stroke_dasharray=f"{round(dash, 3):g} {round(scale * step - dash, 3):g}",
        )


def _marks(lane: list[Pass], setting: Setting, place: tuple[float, float], scale: float) -> Iterator[Node]:
    """Yields marks where a stage exchanges over `batch`: above what it gathers, below what it adds up."""
    if setting.mesh.dim_size(BATCH) == 1:
        return
    zero, (left, y) = setting.training.zero, place
    added = [each.end for each in lane if not each.is_forward] if zero >= Zero.GRADIENTS else [lane[-1].end]
    gathered = [each.start for each in lane] if zero is Zero.VARIABLES else [0.0]
    yield shapes.text(0, y + 11, "⇄", size=_SIZE)
    for times, top, fill in ((gathered if zero else [], y, _GATHERED), (added, y + 7, _ADDED)):
        ends = (min(left + scale * time, WIDTH - 1) for time in times)
        path = "".join(f"M{shapes.number(x)} {shapes.number(top)}v6" for x in ends)
        if path:
            yield node("path", d=path, stroke=fill, stroke_width=2)


def _even(lane: list[Pass]) -> Iterator[tuple[Pass, Pass, float]]:
    """Yields runs of passes that begin at equal distances: the first one, the last one, and the distance."""
    at = 0
    while at < len(lane):
        length = lane[at].end - lane[at].start
        step = lane[at + 1].start - lane[at].start if at + 1 < len(lane) else length
        end = at
        while end + 1 < len(lane) and math.isclose(lane[end + 1].start - lane[end].start, step):
            end += 1
        yield lane[at], lane[end], step
        at = end + 1


def _recomputed(setting: Setting) -> bool:
    """Returns whether the backward pass begins with the block's whole forward pass."""
    return setting.training.recompute is Recompute.FULL


def schedule_lines(setting: Setting) -> list[str]:
    """Returns how to read the lanes, and how often the replicas exchange."""
    waiting = f"{100 * setting.cost.bubble_seconds / setting.cost.seconds:.1f}"
    told = [
        _("A row is a stage. Blue: forward. Orange: backward, three times as long with the recomputation.")
        if _recomputed(setting)
        else _("A row is a stage. Blue: forward. Orange: backward, drawn twice as long."),
        _("Empty: it waits, for {percent} % of the step.", percent=waiting),
    ]
    if setting.mesh.dim_size(BATCH) == 1:
        return told
    collectives = _(", ").join(_over_batch(setting))
    return [
        *told,
        _(
            "⇄ Stage 0 over batch: {collectives}. Upper marks gather, lower ones add.",
            collectives=collectives,
        ),
    ]


def _over_batch(setting: Setting) -> list[str]:
    """Returns how often replicas add up gradients and gather variables."""
    many, zero = setting.training.microbatches, setting.training.zero
    if zero is Zero.NOTHING:
        counts = {Kind.ALL_REDUCE: 1}
    elif zero is Zero.VARIABLES:
        counts = {Kind.ALL_GATHER: 2 * many, Kind.REDUCE_SCATTER: many}
    else:
        counts = {Kind.REDUCE_SCATTER: many if zero is Zero.GRADIENTS else 1, Kind.ALL_GATHER: 1}
    return [f"{count} × {kind}" for kind, count in counts.items()]
