"""What the training lab shows: curves of its runs over each other, how far they differ, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_lib.code.choices import FRAMEWORKS, sections_of
from course_lib.i18n import _, ngettext
from course_lib.models.variables import ELEMENT_BYTES
from course_lib.pictures import arranging
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.communication_text import collective_lines
from course_lib.pictures.curves import QUANTITIES
from course_lib.pictures.shapes import Node, node
from course_lib.specs.plan import BATCH, Plan, replicated
from course_lib.specs.step_communication import StepCommunication
from course_lib.watch.curves import SMOOTHING_STEPS, curves, summary
from course_lib.widgets import pieces
from course_lib.widgets.listings import listings
from lessons.layouts.splitting_the_model.lab_runs import Difference, LabRun, largest_differences
from lessons.layouts.splitting_the_model.lab_setting import Setting, Subject, described
from lessons.layouts.splitting_the_model.overlay import STYLES, overlay_drawing, swatch

_LABEL_BYTES = 8  # int64


def curve_panels(runs: Sequence[LabRun]) -> list[Node]:
    """Returns loss and accuracy of the runs over each other, and a line of the legend for each run."""
    if not runs:
        return []
    told = _("; ").join(f"{run.number}: {summary(run.history)}" for run in runs)
    overlaid = {_style(run): curves(run.history) for run in runs}
    last = max(run.total_steps if run.trains else run.step for run in runs)
    drawn = {quantity: overlay_drawing(overlaid, quantity, last) for quantity in QUANTITIES}
    shown = [
        pieces.panel(_("Loss per example"), pieces.image(drawn["loss"], told)),
        pieces.panel(_("Accuracy"), pieces.image(drawn["accuracy"], told)),
    ]
    lines = ngettext(
        "Lines: training, {count} step. Rings: held out.",
        "Lines: training, mean of {count} steps. Rings: held out.",
        SMOOTHING_STEPS,
    )
    return [
        pieces.panels(shown),
        node("p", lines, class_="why"),
        node("ul", *(_legend(run) for run in runs), class_="runs"),
        *(node("p", _difference_told(each), class_="why") for each in largest_differences(runs)),
    ]


def _style(run: LabRun) -> int:
    return (run.number - 1) % len(STYLES)


def _legend(run: LabRun) -> Node:
    words = [f"{run.number}", setting_told(run.setting), _status(run)]
    if (seconds := run.step_seconds) is not None:
        words.append(_("{milliseconds} ms a step", milliseconds=f"{1000 * seconds:.1f}"))
    errors = [node("div", run.error, class_="refusal", role="alert")] if run.error else []
    line = arranging.part_of_a_page(swatch(_style(run)), aria_hidden="true")
    return node("li", node("div", line, class_="flow"), node("span", " · ".join(words)), *errors)


def setting_told(setting: Setting) -> str:
    """Returns a training in a line: its plan, its numbers, where it starts."""
    numbers = _(
        "batch {batch_size}, learning rate {learning_rate:g}",
        batch_size=setting.batch_size,
        learning_rate=setting.learning_rate,
    )
    start = [_("from {start}", start=setting.start)] if setting.start else []
    return " · ".join([described(setting.plan), numbers, *start])


def announced(runs: Sequence[LabRun]) -> str:
    """Returns what is read aloud of the newest run: that it trains, and how it ended, but not each step."""
    if not runs:
        return ""
    newest = runs[-1]
    if newest.trains and not newest.stop.is_set():
        return _("Run {number} is training.", number=newest.number)
    return _("Run {number}: {status}", number=newest.number, status=_status(newest))


def _status(run: LabRun) -> str:
    values = {"step": run.step, "total_steps": run.total_steps}
    if run.trains and run.stop.is_set():
        return _("stopping")
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
    settings |= {_("run {number}", number=run.number): run.setting for run in runs}
    if not settings:
        return []
    sent = pieces.panel(_("Sent by each device in a step"), _sent(subject, settings))
    held_bytes = pieces.panel(_("Held by each device"), _held(subject, settings))
    predicted = _(
        "Predicted from the layouts: each collective as a ring, before TensorFlow joins small ones."
    )
    return [
        pieces.panels([held_bytes, sent]),
        node("p", predicted, class_="why"),
        *([] if chosen is None else [_exchanges(subject, chosen)]),
    ]


def held(subject: Subject, plan: Plan | None, batch_size: int) -> dict[str, int]:
    """Returns the bytes that one device holds under a plan, by what they are; alone, if there is none."""
    plan, spec, sizes = plan or replicated(1), subject.spec, {**subject.sizes, BATCH: batch_size}
    variables = spec.bytes_on_a_device(sizes, plan)
    batch = plan.shardings({"inputs": spec.inputs, "labels": spec.labels}, sizes)
    return {
        _("parameters"): sum(variables.values()),
        _("gradients"): sum(variables[name] for name, each in spec.variables.items() if each.trainable),
        _("batch"): batch["inputs"].bytes_per_device(ELEMENT_BYTES)
        + batch["labels"].bytes_per_device(_LABEL_BYTES),
    }


def _held(subject: Subject, settings: Mapping[str, Setting]) -> Node:
    costs = {label: held(subject, each.plan, each.batch_size) for label, each in settings.items()}
    groups = [
        Bars(what, tuple(Bar(label, cost[what], _bytes(cost[what])) for label, cost in costs.items()))
        for what in next(iter(costs.values()))
    ]
    return _picture(groups)


def _step_communication(subject: Subject, setting: Setting) -> StepCommunication:
    """Returns what the devices exchange in a training step: nothing where there is one."""
    if setting.plan is None:
        return StepCommunication(())
    return subject.spec.step_collectives(setting.plan, {**subject.sizes, BATCH: setting.batch_size})


def _sent(subject: Subject, settings: Mapping[str, Setting]) -> Node:
    bars = []
    for label, setting in settings.items():
        step = _step_communication(subject, setting)
        figures = ngettext(
            "{bytes_sent} bytes in {count} collective",
            "{bytes_sent} bytes in {count} collectives",
            len(step.collectives),
            bytes_sent=f"{step.bytes_sent:,.0f}",
        )
        bars.append(Bar(label, step.bytes_sent, figures))
    return _picture([Bars(_("all collectives"), tuple(bars))])


def _picture(groups: Sequence[Bars]) -> Node:
    return pieces.image(bars_drawing(groups), "\n".join(bar_lines(groups)))


def _bytes(size: int) -> str:
    return ngettext("{size} byte", "{size} bytes", size, size=f"{size:,}")


def _exchanges(subject: Subject, setting: Setting) -> Node:
    """Returns the collectives of a step under the present choice, one a line, to unfold."""
    lines = [
        _(
            "{tensor}: {exchange}",
            tensor=each.tensor,
            exchange=_(", ").join(collective_lines(each.collective)),
        )
        for each in _step_communication(subject, setting).exchanges
    ]
    items = [node("li", line) for line in lines or [_("no collectives")]]
    return pieces.panel(_("Collectives of a step under this choice"), node("ol", *items, class_="exchanges"))


def code(plan: Plan | None) -> list[Node]:
    """Returns the code of a plan, to copy; nothing for one device."""
    if plan is None:
        return []
    programs = {name: sections_of(plan, name) for name in FRAMEWORKS}
    return [listings(_("The code of this choice"), programs)]
