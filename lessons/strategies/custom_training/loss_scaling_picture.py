"""Loss scaling in words and as a picture: what each replica returns, and what the sum over them comes to."""

from __future__ import annotations

import math

from course_lib.i18n import _
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.text import form_value
from lessons.strategies.boxes import Box, Line, Scheme
from lessons.strategies.custom_training.loss_scaling import FULL, GLOBAL, KERAS, REPLICA, TWICE, LossScaling


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


def scheme_of(scaling: LossScaling) -> Scheme:
    """Returns each replica with what it makes of the losses of its examples."""
    names = [_("replica {number}", number=at) for at in range(scaling.num_replicas)]
    boxes = [Box(name, (Line(_calculation(scaling, at), at),)) for at, name in enumerate(names)]
    return [boxes[at : at + 2] for at in range(0, len(boxes), 2)]


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
