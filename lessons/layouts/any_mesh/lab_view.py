"""What the training lab shows: curves of its runs over each other, how far they differ, what they cost."""

from __future__ import annotations

import base64
import functools
import math
import statistics
from collections.abc import Mapping, Sequence

from course_lib.explorers.stepping import lanes_panel
from course_lib.i18n import _, ngettext
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.curves import STYLES, Panels
from course_lib.pictures.shapes import Node, node
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.step import Event
from course_lib.watch.curves import curves, summary
from course_lib.widgets import pieces
from lessons.layouts.any_mesh.lab_runs import Difference, LabRun, Setting, largest_differences
from lessons.layouts.any_mesh.lab_setting import Subject, described
from lessons.layouts.classifier_step import classifier_step

MOST_RUNS = len(STYLES)
_INT64_BYTES = 8


def curve_panels(runs: Sequence[LabRun]) -> list[Node]:
    """Returns loss and accuracy of the runs over each other, and a line for each run."""
    if not runs:
        return []
    last = max(run.last_step if run.trains else run.step for run in runs)
    panels = _panels(tuple(run.name for run in runs), last)
    panels.show([curves(run.history) for run in runs])
    png = base64.b64encode(panels.png()).decode()
    told = _("; ").join(f"{run.name}: {summary(run.history)}" for run in runs)
    return [
        node("img", src=f"data:image/png;base64,{png}", alt=told, style="max-width: 100%"),
        node("ul", *(_line(run) for run in runs), class_="runs"),
        *(node("p", _difference_told(each), class_="why") for each in largest_differences(runs)),
    ]


@functools.lru_cache(maxsize=1)
def _panels(names: tuple[str, ...], last_step: int) -> Panels:
    """Returns panels that are drawn again and again, since making them takes longer than drawing them."""
    return Panels(names, last_step, ("train",))


def _line(run: LabRun) -> Node:
    words = [setting_told(run.setting), _status(run)]
    if compiled := run.seconds[1:]:  # the first step compiles
        milliseconds = 1000 * statistics.median(compiled)
        words.append(_("{milliseconds} ms a step", milliseconds=f"{milliseconds:.1f}"))
    errors = [node("div", run.error, class_="refusal", role="alert")] if run.error else []
    return node("li", node("span", run.name), node("span", " · ".join(words)), *errors)


def setting_told(setting: Setting) -> str:
    """Returns a training in a line: its plan, its numbers, where it starts."""
    numbers = _(
        "batch {batch_size}, learning rate {learning_rate:g}",
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
    )
    start = [_("from {start}", start=setting.start.at_step)] if setting.start else []
    return " · ".join([described(setting.plan), numbers, *start])


def announced(runs: Sequence[LabRun]) -> str:
    """Returns what is read aloud of the newest run: that it trains, and how it ended, but not each step."""
    if not runs:
        return ""
    newest = runs[-1]
    if newest.trains:
        return _("Run {number} is training.", number=newest.number)
    return _("Run {number}: {status}", number=newest.number, status=_status(newest))


def _status(run: LabRun) -> str:
    values = {"step": run.step, "total_steps": run.last_step}
    return {
        "preparing": _("preparing: the first steps are compiled"),
        "training": _("step {step} of {total_steps}", **values),
        "finished": _("finished after step {step}", **values),
        "stopped": _("stopped after step {step} of {total_steps}", **values),
        "failed": _("failed after step {step}", **values),
    }[run.status]


def _difference_told(difference: Difference) -> str:
    value, quantity, step, (first, second) = difference
    told = {"loss": _("Largest difference in loss"), "accuracy": _("Largest difference in accuracy")}
    where = _(" (step {step}, runs {first} and {second})", step=step, first=first, second=second)
    return _(
        "{quantity} at the same step: {value}{where}.",
        quantity=told[quantity],
        value=f"{value:.2g}",
        where=where if value else "",
    )


def cost_panels(subject: Subject, chosen: Setting | None, runs: Sequence[LabRun]) -> list[Node]:
    """Returns what a device holds, and sends in a step, under the present choice and in each run."""
    settings = {} if chosen is None else {_("this choice"): chosen}
    settings |= {run.name: run.setting for run in runs}
    if not settings:
        return []
    sent = pieces.panel(_("Sent by each device in a step"), _sent(subject, settings))
    held_bytes = pieces.panel(_("Held by each device"), _held(subject, settings))
    predicted = _(
        "Predicted from the layouts: each collective as a ring, before TensorFlow joins small ones."
    )
    lanes = []
    if chosen and chosen.plan:
        events = _events(subject, chosen)
        title = _("A training step under this choice")
        lanes = [lanes_panel(title, chosen.plan.mesh, events, len(events))]
    return [pieces.panels([held_bytes, sent]), node("p", predicted, class_="why"), *lanes]


def held(subject: Subject, setting: Setting) -> dict[str, int]:
    """Returns the bytes that one device holds in a step, by what they are."""
    plan = setting.plan or Plan("one device", MeshSpec([("batch", 1)]), {})
    shardings = plan.shardings(subject.axes, subject.sizes_with(setting.batch_size))
    labels = _INT64_BYTES * math.prod(shardings.pop("y").local_shape)
    rows = shardings.pop("x").bytes_per_device()
    variables = sum(each.bytes_per_device() for each in shardings.values())
    return {
        _("parameters"): variables,
        _("gradients"): variables,
        _("Adam's slots"): 2 * variables,
        _("batch"): rows + labels,
    }


def _held(subject: Subject, settings: Mapping[str, Setting]) -> Node:
    groups: dict[str, list[Bar]] = {}
    for label, setting in settings.items():
        for what, size in held(subject, setting).items():
            figure = ngettext("{size} byte", "{size} bytes", size, size=f"{size:,}")
            groups.setdefault(what, []).append(Bar(label, size, figure))
    return pieces.bars([Bars(what, tuple(bars)) for what, bars in groups.items()])


def _events(subject: Subject, setting: Setting) -> list[Event]:
    """Returns what happens in a training step: nothing is predicted of one device."""
    if setting.plan is None:
        return []
    return classifier_step(setting.plan, subject.sizes_with(setting.batch_size))


def _sent(subject: Subject, settings: Mapping[str, Setting]) -> Node:
    bars = []
    for label, setting in settings.items():
        exchanges = [event.collective for event in _events(subject, setting) if event.collective]
        bytes_sent = float(sum(each.bytes_sent for each in exchanges))
        figures = ngettext(
            "{bytes_sent} bytes in {count} collective",
            "{bytes_sent} bytes in {count} collectives",
            len(exchanges),
            bytes_sent=f"{bytes_sent:,.0f}",
        )
        bars.append(Bar(label, bytes_sent, figures))
    return pieces.bars([Bars(_("all collectives"), tuple(bars))])
