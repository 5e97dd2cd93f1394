"""The schedule of a pipeline as a picture: which stage works when, and when it is idle."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _, labelled, ngettext
from course_lib.pictures import shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node
from lessons.scale.pipeline import Pass, passes

_SLOT, _HEIGHT, _LANE, _SIZE, _WIDTH = 17.0, 22.0, 26.0, 12.0, 640.0
_FORWARD, _BACKWARD = shapes.PALETTE[:2]
_MOST_STAGES, _MOST_MICROBATCHES = 16, 32


def schedule(stages: int, microbatches: int, chunks: int = 1, *, count_in_flight: bool = False) -> Figure:
    """Returns a picture of a step: a lane a stage, a column a slot, and the slots in which a stage is idle.

    A slot is the forward pass of a micro-batch through one part of the network. A backward pass takes two.
    Slots of stages with several chunks are narrower, so that pictures have one scale of time.

    Args:
        stages: how many devices follow each other, at most 16.
        microbatches: of a step, at most 32.
        chunks: how many parts of the network each stage has; more than one for an interleaved schedule.
        count_in_flight: whether a lane more says of how many micro-batches stage 0 keeps activations.

    Raises:
        CourseError: another number, or chunks with micro-batches that are no multiple of the stages.
    """
    _checked(stages, microbatches, chunks)
    done = passes(stages, microbatches, chunks)
    slots, names = round(max(lane[-1].end for lane in done)), _names(stages)
    verdict = ngettext(
        "Each stage is idle in {count} of {slots} slots.",
        "Each stage is idle in {count} of {slots} slots.",
        slots - 3 * microbatches * chunks,
        slots=slots,
    )
    lines = [labelled(name, _told(lane, slots, stages)) for name, lane in zip(names, done, strict=True)]
    title, says = _title(stages, microbatches, chunks), _says(chunks)
    lanes = [_lane(lane, slots, stages, chunks) for lane in done]
    if count_in_flight:
        counts = _in_flight(done[0], slots)
        name = _("in flight at stage {number}", number=0)
        names, lanes = [name, *names], [_counts(counts, chunks), *lanes]
        lines.insert(0, labelled(name, " ".join(map(str, counts))))
    one_chunk = 3 * (microbatches + stages - 1) * _SLOT  # so wide that both pictures shrink alike
    drawn = [_named_lanes(names, lanes, one_chunk)]
    return headed(title, drawn, [*says, *lines, verdict], width=_WIDTH, says=says, verdict=verdict)


def _names(stages: int) -> list[str]:
    return [_("stage {number}", number=stage) for stage in range(stages)]


def _named_lanes(names: Sequence[str], lanes: Sequence[Drawing], width: float) -> Drawing:
    """Returns the lanes under each other behind their names."""
    left = max(text_width(name, _SIZE) for name in names) + 10
    nodes: list[Node] = []
    for stage, (name, lane) in enumerate(zip(names, lanes, strict=True)):
        nodes.append(shapes.text(0, stage * _LANE + _HEIGHT / 2 + 4, name, size=_SIZE))
        nodes.append(lane.at(left, stage * _LANE))
    return Drawing(left + width, (len(lanes) - 1) * _LANE + _HEIGHT, tuple(nodes))


def _checked(stages: int, microbatches: int, chunks: int) -> None:
    cure = _("Write for example schedule(4, 8), or schedule(4, 8, chunks=2).")
    for count, most, problem in (
        (stages, _MOST_STAGES, _("{value!r} is no number of stages.", value=stages)),
        (microbatches, _MOST_MICROBATCHES, _("{value!r} is no number of micro-batches.", value=microbatches)),
        (chunks, _MOST_STAGES, _("{value!r} is no number of chunks.", value=chunks)),
    ):
        whole_number(count, problem, least=1, most=most, cure=cure)
    if chunks > 1 and microbatches % stages:
        problem = _(
            "{microbatches} micro-batches are no multiple of {stages} stages.",
            microbatches=microbatches,
            stages=stages,
        )
        raise CourseError(problem, cure=cure)


def _lane(lane: list[Pass], slots: int, stages: int, chunks: int) -> Drawing:
    """Returns the passes of a stage, and an empty slot wherever it is idle."""
    width, nodes, busy = _SLOT / chunks, list[Node](), set[int]()
    for each in lane:
        start, length = round(each.start), round(each.end - each.start)
        busy |= {*range(start, start + length)}
        number = str(each.microbatch + 1)
        size = min(11.0, 1.5 * length * width / (len(number) + 0.4))
        fill = _shade(_FORWARD if each.is_forward else _BACKWARD, each.part // stages, chunks)
        place = start * width, 0.0, length * width, _HEIGHT
        nodes += cell(place, Line(number, down=0.35 * size, size=size), fill=fill)
    for slot in sorted({*range(slots)} - busy):
        place = slot * width + 0.5, 0.5, width - 1, _HEIGHT - 1
        nodes += cell(place, fill="none", class_="idle", stroke_width=0.75, dashes="2 2")
    return Drawing(slots * width, _HEIGHT, tuple(nodes))


def _in_flight(lane: list[Pass], slots: int) -> list[int]:
    """Returns how many passes have gone forward and not come back, in each slot.

    >>> _in_flight(passes(2, 2)[0], 9)
    [1, 2, 2, 2, 2, 2, 1, 1, 1]
    """
    counts = []
    for slot in range(slots):
        begun = sum(each.is_forward and each.start <= slot for each in lane)
        counts.append(begun - sum(not each.is_forward and each.end <= slot for each in lane))
    return counts


def _counts(counts: list[int], chunks: int) -> Drawing:
    width = _SLOT / chunks
    nodes = [
        shapes.text((slot + 0.5) * width, _HEIGHT / 2 + 4, str(count), size=11, anchor="middle")
        for slot, count in enumerate(counts)
    ]
    return Drawing(len(counts) * width, _HEIGHT, tuple(nodes))


def _shade(colour: str, chunk: int, chunks: int) -> str:
    """Returns the colour of a pass: the further along the network, the lighter."""
    strength = 1 - 0.7 * chunk / chunks
    channels = (255 - strength * (255 - int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(channel):02X}" for channel in channels)


def _told(lane: list[Pass], slots: int, stages: int) -> str:
    """Returns the slots of a stage in order: F1 goes forward, B1 backward, and -3 is idle for three slots.

    >>> _told(passes(2, 2)[1], 9, 2)
    '-1 F1 B1 F2 B2 -2'
    """
    words, now = [], 0
    for each in lane:
        if each.start > now:
            words.append(f"-{each.start - now:.0f}")
        chunk = f"/{each.part // stages + 1}" if each.part >= stages else ""
        words.append(f"{'F' if each.is_forward else 'B'}{each.microbatch + 1}{chunk}")
        now = round(each.end)
    return " ".join([*words, *([f"-{slots - now}"] if now < slots else [])])


def _title(stages: int, microbatches: int, chunks: int) -> str:
    counts = {"stages": stages, "microbatches": microbatches, "chunks": chunks}
    if chunks == 1:
        return _("1F1B (stages: {stages}, micro-batches: {microbatches})", **counts)
    return _(
        "Interleaved (stages: {stages}, chunks of each: {chunks}, micro-batches: {microbatches})", **counts
    )


def _says(chunks: int) -> list[str]:
    told = [
        _("Numbers are micro-batches. F, blue: forward, one slot. B, orange: backward, two slots."),
        _("Dashed, or a minus with how many: the stage is idle."),
    ]
    if chunks > 1:
        told.insert(1, _("Lighter, or /2: the second chunk, and so on. A slot is one chunk's forward pass."))
    return told
