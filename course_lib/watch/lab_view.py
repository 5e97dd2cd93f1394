"""What the training lab shows: curves of its runs over each other, how far they differ, what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.code.choices import FRAMEWORKS, sections_of
from course_lib.i18n import _
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.curves import QUANTITIES
from course_lib.pictures.overlay import Overlaid, overlay_drawing, swatch
from course_lib.pictures.shapes import Node, node
from course_lib.specs.plan import Plan
from course_lib.watch.curves import SMOOTHING_STEPS, curves, summary
from course_lib.watch.lab_costs import held
from course_lib.watch.lab_plan import described
from course_lib.watch.lab_runs import Difference, LabRun, Status, largest_differences
from course_lib.watch.lab_setting import Setting, Subject
from course_lib.widgets import pieces
from course_lib.widgets.listings import listings


def curve_panels(runs: Sequence[LabRun], style_of: dict[int, int]) -> list[Node]:
    """Returns loss and accuracy of the runs over each other, and a line of the legend for each run."""
    if not runs:
        return []
    overlaid = [Overlaid(style_of[run.number], curves(run.history)) for run in runs]
    last = max(max(run.total_steps, run.step) for run in runs)
    titles = {"loss": _("Loss per example"), "accuracy": _("Accuracy")}
    told = _("; ").join(f"{run.number}: {summary(run.history)}" for run in runs)
    drawn = [
        pieces.panel(
            titles[quantity], pieces.image(overlay_drawing(overlaid, quantity, last, _("step")), told)
        )
        for quantity in QUANTITIES
    ]
    lines = _("Lines: training, mean of {steps} steps. Circles: held out.", steps=SMOOTHING_STEPS)
    return [
        pieces.panels(drawn),
        node("p", lines, class_="why"),
        node("ul", *(_legend(run, style_of[run.number]) for run in runs), class_="runs"),
        *(node("p", _difference_told(each), class_="why") for each in largest_differences(runs)),
    ]


def _legend(run: LabRun, style: int) -> Node:
    words = [f"{run.number}", setting_told(run.setting), _status(run)]
    seconds = None if run.status is Status.RECORDED else run.step_seconds
    if seconds is not None:
        words.append(_("{milliseconds} ms a step", milliseconds=f"{1000 * seconds:.1f}"))
    errors = [node("div", run.error, class_="refusal", role="alert")] if run.error else []
    return node("li", pieces.image(swatch(style), ""), node("span", " · ".join(words)), *errors)


def setting_told(setting: Setting) -> str:
    """Returns a training in a line: its plan, its numbers, where it starts."""
    numbers = _(
        "batch {batch_size}, learning rate {learning_rate:g}",
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
    )
    start = [_("from {start}", start=setting.start)] if setting.start else []
    return " · ".join([described(setting.plan), numbers, *start])


def _status(run: LabRun) -> str:
    values = {"step": run.step, "total_steps": run.total_steps}
    return {
        Status.PREPARING: _("preparing: the first steps are compiled"),
        Status.TRAINING: _("step {step} of {total_steps}", **values),
        Status.FINISHED: _("finished after step {step}", **values),
        Status.STOPPED: _("stopped after step {step} of {total_steps}", **values),
        Status.FAILED: _("failed after step {step}", **values),
        Status.RECORDED: _("recorded earlier"),
    }[run.status]


def _difference_told(difference: Difference) -> str:
    told = {"loss": _("Largest difference in loss"), "accuracy": _("Largest difference in accuracy")}
    first, second = difference.runs
    where = _(" (step {step}, runs {first} and {second})", step=difference.step, first=first, second=second)
    return _(
        "{quantity} at the same step: {value}{where}.",
        quantity=told[difference.quantity],
        value=f"{difference.value:.2g}",
        where=where if difference.value else "",
    )


def bytes_panel(subject: Subject, settings: dict[str, Setting]) -> Node:
    """Returns the bytes that a device holds in each of some trainings, by their headings."""
    groups = [_bars(heading, subject, setting) for heading, setting in settings.items()]
    picture = pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))
    return pieces.panel(_("Bytes on each device"), picture)


def _bars(heading: str, subject: Subject, setting: Setting) -> Bars:
    bytes_held = held(subject, setting.plan, setting.batch_size)
    named = {
        _("parameters"): bytes_held.parameters,
        _("gradients"): bytes_held.gradients,
        _("optimizer"): bytes_held.optimizer,
        _("batch"): bytes_held.batch,
    }
    return Bars(heading, tuple(Bar(name, value, f"{value:,}") for name, value in named.items()))


def code(plan: Plan | None) -> list[Node]:
    """Returns the code of a plan, to copy; nothing for one device."""
    if plan is None:
        return []
    programs = {name: sections_of(plan, name) for name in FRAMEWORKS}
    return [listings(_("The code of this choice"), programs)]
