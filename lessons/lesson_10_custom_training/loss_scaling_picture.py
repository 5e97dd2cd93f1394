"""Loss scaling in words and as a picture: what each replica returns, and what the sum over them comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import colour
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.shapes import Node, number
from course_lib.pictures.text import form_value
from lessons.lesson_10_custom_training.loss_scaling import FULL, GLOBAL, KERAS, REPLICA, TWICE, LossScaling

Rows = list[tuple[str, float]]

_LEAST_WIDTH, _SIZE = 440.0, 12.0
_CELL, _CELL_HEIGHT, _CELL_GAP = 34.0, 26.0, 3.0
_ARROWS, _ARROW_HEIGHT, _HEAD, _BETWEEN = 200.0, 20.0, 8.0, 12.0


@draw.register
def _loss_scaling_figure(scaling: LossScaling) -> Figure:
    replicas = ngettext("{count} replica", "{count} replicas", scaling.num_replicas)
    examples = ngettext("{count} example", "{count} examples", scaling.num_examples)
    title = _("Loss of {examples} on {replicas}", examples=examples, replicas=replicas)
    says = _plain(sentences(scaling))
    told = _("Divided by: {divisor}", divisor=division_text(scaling.division))
    parts = [parts_drawing(scaling), *result_drawings(scaling)]
    width = max(_LEAST_WIDTH, *(part.width for part in parts))
    fill = shapes.INK if says[0].startswith("✓") else shapes.ALARM
    drawings = [
        arranging.lines_of_text([title], size=14, max_width=width),
        arranging.lines_of_text([told], size=_SIZE, max_width=width, fill=shapes.SOFT_INK),
        *parts,
        arranging.lines_of_text(says, size=13, max_width=width, fill=fill),
    ]
    return framed(title, drawings, [told, "", *lines(scaling), "", *says])


def lines(scaling: LossScaling) -> list[str]:
    """Returns what each replica returns, and the losses and gradients that come of it."""
    shown = [_("Each replica returns")]
    for at in range(scaling.num_replicas):
        shown.append(f"  {replica_text(at)}  {calculation(scaling, at)}")
    for heading, rows in results(scaling).items():
        shown += ["", heading]
        shown += [f"  {number_text(value):>6}  {_plain([name])[0]}" for name, value in rows]
    return shown


def parts_drawing(scaling: LossScaling) -> Drawing:
    """Returns each replica with the losses of its examples, and what it returns."""
    names = [replica_text(at) for at in range(scaling.num_replicas)]
    left = max(text_width(name, _SIZE) for name in names) + _BETWEEN
    most = max(map(len, scaling.losses))
    return arranging.stacked([_part(scaling, at, left, most) for at in range(scaling.num_replicas)], 6)


def result_drawings(scaling: LossScaling) -> list[Drawing]:
    """Returns arrows as long as the losses, and as the gradients: the right one first."""
    return [arranging.titled(heading, _arrows(rows)) for heading, rows in results(scaling).items()]


def _part(scaling: LossScaling, replica: int, left: float, most: int) -> Drawing:
    nodes, middle = [shapes.text(0, _CELL_HEIGHT / 2 + 4, replica_text(replica))], _CELL_HEIGHT / 2 + 4
    step = _CELL + _CELL_GAP
    for at, loss in enumerate(scaling.losses[replica]):
        x = left + at * step
        face = shapes.rectangle(x, 0, _CELL, _CELL_HEIGHT, fill=colour(replica), stroke=shapes.SOFT_INK)
        value = shapes.text(x + _CELL / 2, middle, number_text(loss), anchor="middle")
        nodes += [face, value]
    if not scaling.losses[replica]:
        nodes.append(shapes.rectangle(left, 0, _CELL, _CELL_HEIGHT, fill="none", dashes="3 3"))
    told, end = calculation(scaling, replica), left + most * step + _BETWEEN
    wrong = math.isnan(scaling.reports[replica])
    nodes.append(shapes.text(end, middle, told, fill=shapes.ALARM if wrong else shapes.INK))
    return Drawing(end + text_width(told, _SIZE), _CELL_HEIGHT, tuple(nodes))


def _arrows(rows: Sequence[tuple[str, float]]) -> Drawing:
    """Returns an arrow for each value on one scale, those below zero to the left; none for NaN."""
    values = [value for _name, value in rows if not math.isnan(value)]
    lowest, highest = min(0.0, *values), max(0.0, *values)
    scale = _ARROWS / ((highest - lowest) or 1.0)
    names = _plain([name for name, _value in rows])
    zero = max(text_width(name, _SIZE) for name in names) + _BETWEEN - lowest * scale
    end, nodes, right = zero + highest * scale + _BETWEEN, list[Node](), rows[0][1]
    for at, (name, (_name, value)) in enumerate(zip(names, rows, strict=True)):
        y, same = at * _ARROW_HEIGHT + _ARROW_HEIGHT / 2, math.isclose(value, right, rel_tol=1e-9)
        fill = shapes.INK if same else shapes.ALARM
        nodes += [shapes.text(0, y + 4, name), shapes.text(end, y + 4, number_text(value), fill=fill)]
        nodes += _arrow(zero, y, 0.0 if math.isnan(value) else value * scale, fill)
    width = end + max(text_width(number_text(value), _SIZE) for _name, value in rows)
    return Drawing(width, len(rows) * _ARROW_HEIGHT, tuple(nodes))


def _arrow(zero: float, y: float, length: float, fill: str) -> list[Node]:
    """Returns an arrow from zero; a dot where there is no length for one."""
    if abs(length) < _HEAD:
        return [shapes.node("circle", cx=zero, cy=y, r=3, fill=fill)]
    back = math.copysign(_HEAD, length)
    shaft = f"M{number(zero)} {number(y)}H{number(zero + length - back)}"
    head = f"M{number(zero + length - back)} {number(y - 5)}v10l{number(back)} -5z"
    return [
        shapes.node("path", d=shaft, stroke=fill, stroke_width=3),
        shapes.node("path", d=head, fill=fill),
    ]


def _plain(texts: Sequence[str]) -> list[str]:
    """Returns texts without the backticks, which only pages turn into code."""
    return [text.replace("`", "") for text in texts]


def division_text(division: str) -> str:
    """Returns what a division divides by."""
    return {
        GLOBAL: _("examples of this global batch"),
        FULL: _("batch size"),
        REPLICA: _("the replica's own examples"),
        KERAS: _("own examples and replicas (default of Keras 3)"),
        TWICE: _("own examples, replicas, and replicas again"),
    }[division]


def code(scaling: LossScaling) -> str:
    """Returns what a replica evaluates; `loss` is a loss of Keras with its default reduction."""
    average = "tf.nn.compute_average_loss(losses, global_batch_size={})"
    return {
        GLOBAL: average.format(scaling.num_examples),
        FULL: average.format(scaling.batch_size),
        REPLICA: "tf.reduce_mean(losses)",
        KERAS: "loss(labels, outputs)",
        TWICE: f"loss(labels, outputs) / {scaling.num_replicas}",
    }[scaling.division]


def replica_text(replica: int) -> str:
    """Returns the name of a replica."""
    return _("replica {number}", number=replica)


def calculation(scaling: LossScaling, replica: int) -> str:
    """Returns how a replica comes to what it returns, such as `(2 + 3) / 2 / 2 = 1.25`."""
    divisors = scaling.divisors(len(scaling.losses[replica]))
    if 0 in divisors:
        return _("mean over no example = {value}", value=number_text(scaling.reports[replica]))
    losses = " + ".join(map(number_text, scaling.losses[replica])) or "0"
    added = f"({losses})" if len(scaling.losses[replica]) > 1 else losses
    divided = "".join(f" / {divisor}" for divisor in divisors)
    return f"{added}{divided} = {number_text(scaling.reports[replica])}"


def number_text(value: float) -> str:
    """Returns a number with four digits.

    >>> number_text(2 / 3), number_text(7.0), number_text(float("nan"))
    ('0.6667', '7', 'NaN')
    """
    return "NaN" if math.isnan(value) else form_value(float(value))


def results(scaling: LossScaling) -> dict[str, Rows]:
    """Returns loss and gradient: what is right, and what comes of the division, with their names."""
    loss = [
        (_("true mean"), scaling.mean),
        (_("sum of the replicas"), scaling.total),
        (_("`Mean` metric"), scaling.metric),
    ]
    gradient = [(_("true mean"), scaling.true_gradient), (_("sum of the replicas"), scaling.gradient)]
    return {_("Loss"): loss, _("Gradient"): gradient}


def sentences(scaling: LossScaling) -> list[str]:
    """Returns whether loss and gradient are right, and what a metric makes of what the replicas return."""
    verdict = [_loss_sentence(scaling), _gradient_sentence(scaling)]
    mark = "✓ " if scaling.loss_is_right and scaling.gradient_is_right else "✗ "
    if scaling.loss_is_right and scaling.num_replicas > 1:
        about_metric = _(
            "A `Mean` metric over what the replicas return shows {metric}, too small by the number of"
            " replicas: give it the losses of the examples.",
            metric=number_text(scaling.metric),
        )
        verdict.append(about_metric)
    return [mark + verdict[0], *verdict[1:]]


def _loss_sentence(scaling: LossScaling) -> str:
    total, mean = number_text(scaling.total), number_text(scaling.mean)
    if math.isnan(scaling.total):
        return _("The sum is NaN: a replica without an example returned the mean over nothing.")
    if scaling.loss_is_right:
        return _("The sum of the replicas is the true mean, {mean}.", mean=mean)
    return _("The sum of the replicas is {total}, not the true mean, {mean}.", total=total, mean=mean)


def _gradient_sentence(scaling: LossScaling) -> str:
    if scaling.gradient_is_right:
        return _("The gradient is right.")
    return _(
        "The gradient is {found}, {times} times the right one, {right}.",
        found=number_text(scaling.gradient),
        times=number_text(scaling.gradient / scaling.true_gradient),
        right=number_text(scaling.true_gradient),
    )
