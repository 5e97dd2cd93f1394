"""Loss scaling in words and as a picture: what each replica returns, and what the sum over them comes to."""

from __future__ import annotations

import math

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.cells import colour
from course_lib.pictures.text import form_value, table
from lessons.strategies.custom_training.loss_scaling import FULL, GLOBAL, KERAS, REPLICA, TWICE, LossScaling

_SIZE, _CELL, _CELL_HEIGHT, _BETWEEN = 12.0, 34.0, 26.0, 12.0


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


def part_lines(scaling: LossScaling) -> list[str]:
    """Returns what each replica returns, a line a replica."""
    return table((replica_text(at), _calculation(scaling, at)) for at in range(scaling.num_replicas))


def parts_drawing(scaling: LossScaling) -> Drawing:
    """Returns each replica with the losses of its examples, and what it returns."""
    left = max(text_width(replica_text(at), _SIZE) for at in range(scaling.num_replicas)) + _BETWEEN
    most = max(map(len, scaling.losses))
    return arranging.stacked([_part(scaling, at, left, most) for at in range(scaling.num_replicas)], 6)


def _part(scaling: LossScaling, replica: int, left: float, most: int) -> Drawing:
    middle = _CELL_HEIGHT / 2 + 4
    nodes = [shapes.text(0, middle, replica_text(replica))]
    for at, loss in enumerate(scaling.losses[replica]):
        x, fill = left + at * _CELL, colour(replica)
        nodes += [
            shapes.rectangle(x, 0, _CELL, _CELL_HEIGHT, fill=fill, stroke=shapes.SOFT_INK),
            shapes.text(x + _CELL / 2, middle, str(loss), anchor="middle"),
        ]
    if not scaling.losses[replica]:
        nodes.append(shapes.rectangle(left, 0, _CELL, _CELL_HEIGHT, fill="none", dashes="3 3"))
    told, end = _calculation(scaling, replica), left + most * _CELL + _BETWEEN
    nodes.append(shapes.text(end, middle, told))
    return Drawing(end + text_width(told, _SIZE), _CELL_HEIGHT, tuple(nodes))


def replica_text(replica: int) -> str:
    """Returns the name of a replica."""
    return _("replica {number}", number=replica)


def _calculation(scaling: LossScaling, replica: int) -> str:
    """Returns how a replica comes to what it returns, such as `(2 + 3) / 2 / 2 = 1.25`."""
    losses, report = scaling.losses[replica], _number(scaling.reports[replica])
    divisors = scaling.divisors(len(losses))
    if 0 in divisors:
        return _("mean over no example = {value}", value=report)
    added = " + ".join(map(str, losses)) or "0"
    divided = "".join(f" / {divisor}" for divisor in divisors)
    return f"({added}){divided} = {report}" if len(losses) > 1 else f"{added}{divided} = {report}"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else form_value(float(value))


def results(scaling: LossScaling) -> list[Bars]:
    """Returns loss and gradient: what is right, then what comes of the division, marked where it is wrong."""
    mean, total = _("true mean"), _("sum of the replicas")
    loss = {mean: scaling.mean, total: scaling.total, _("Mean metric"): scaling.metric}
    gradient = {mean: scaling.true_gradient, total: scaling.gradient}
    return [_group(_("Loss"), loss), _group(_("Gradient"), gradient)]


def _group(heading: str, values: dict[str, float]) -> Bars:
    right = next(iter(values.values()))
    bars = [
        Bar(
            name,
            0.0 if math.isnan(value) else value,
            _number(value) if math.isclose(value, right) else f"{_number(value)} ✗",
        )
        for name, value in values.items()
    ]
    return Bars(heading, tuple(bars))


def sentences(scaling: LossScaling) -> list[str]:
    """Returns whether loss and gradient are right, and what a metric makes of what the replicas return."""
    total, mean, metric = map(_number, (scaling.total, scaling.mean, scaling.metric))
    if math.isnan(scaling.total):
        loss = _("The sum is NaN: a replica without an example returned the mean over nothing.")
    elif math.isclose(scaling.total, scaling.mean):
        loss = _("The sum of the replicas is the true mean, {mean}.", mean=mean)
    else:
        loss = _("The sum of the replicas is {total}, not the true mean, {mean}.", total=total, mean=mean)
    if not math.isclose(scaling.gradient, scaling.true_gradient):
        wrong = _(
            "The gradient is {found}, {times} times the right one, {right}.",
            found=_number(scaling.gradient),
            times=_number(scaling.gradient / scaling.true_gradient),
            right=_number(scaling.true_gradient),
        )
        return [f"✗ {loss}", wrong]
    right = _("The gradient is right.")
    if not math.isclose(scaling.total, scaling.mean):
        return [f"✗ {loss}", right]
    about_metric = _(
        "A `Mean` metric over what the replicas return shows {metric}, too small by the number of"
        " replicas: give it the losses of the examples.",
        metric=metric,
    )
    return [f"✓ {loss}", right, about_metric]
