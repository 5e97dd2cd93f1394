"""Loss scaling in words: what each replica returns, what the sum comes to, and why it is right or wrong."""

from __future__ import annotations

import math

from course_lib.i18n import _, ngettext
from course_lib.pictures.text import form_value
from lessons.lesson_10_custom_training.loss_scaling import FULL, GLOBAL, KERAS, REPLICA, TWICE, LossScaling


def title(scaling: LossScaling) -> str:
    """Returns how many replicas and examples there are, and what is divided by."""
    replicas = ngettext("{count} replica", "{count} replicas", scaling.num_replicas)
    examples = ngettext("{count} example", "{count} examples", scaling.num_examples)
    return _("Loss of {examples} on {replicas}", examples=examples, replicas=replicas)


def division_text(division: str) -> str:
    """Returns what a division divides by."""
    return {
        GLOBAL: _("examples of this global batch"),
        FULL: _("batch size"),
        REPLICA: _("the replica's own examples"),
        KERAS: _("own examples and replicas (default of Keras 3)"),
        TWICE: _("own examples, replicas, and replicas again"),
    }[division]


def divided_text(scaling: LossScaling) -> str:
    """Returns that the losses are divided, and by what."""
    return _("Divided by: {divisor}", divisor=division_text(scaling.division))


def code(scaling: LossScaling) -> str:
    """Returns the expression that a replica evaluates; `loss` is a loss of Keras with its default reduction.

    >>> code(LossScaling([[2, 3], [4, 5]]))
    'tf.nn.compute_average_loss(losses, global_batch_size=4)'
    """
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
    """Returns how a replica comes to what it returns.

    >>> calculation(LossScaling([[2, 3], [4, 5]], division="keras"), 0)
    '(2 + 3) / 2 / 2 = 1.25'
    """
    divisors = scaling.divisors(replica)
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


def loss_rows(scaling: LossScaling) -> list[tuple[str, float]]:
    """Returns the right loss and what comes of the division, with their names."""
    return [
        (_("true mean"), scaling.mean),
        (_("sum of the replicas"), scaling.total),
        (_("`Mean` metric"), scaling.metric),
    ]


def gradient_rows(scaling: LossScaling) -> list[tuple[str, float]]:
    """Returns the right gradient and what comes of the division, with their names; none if not known."""
    if scaling.gradients is None:
        return []
    return [(_("true mean"), scaling.true_gradient), (_("sum of the replicas"), scaling.gradient)]


def sentences(scaling: LossScaling) -> list[str]:
    """Returns whether loss and gradient are right, and what a metric makes of what the replicas return."""
    told = [_loss_sentence(scaling)]
    if scaling.gradients is not None:
        told.append(_gradient_sentence(scaling))
    if _close(scaling.total, scaling.mean) and scaling.num_replicas > 1:
        told.append(_metric_sentence(scaling))
    return told


def _loss_sentence(scaling: LossScaling) -> str:
    total, mean = number_text(scaling.total), number_text(scaling.mean)
    if math.isnan(scaling.total):
        return _("The sum is NaN: a replica without an example returned the mean over nothing.")
    if _close(scaling.total, scaling.mean):
        return _("The sum of the replicas is the true mean, {mean}.", mean=mean)
    return _("The sum of the replicas is {total}, not the true mean, {mean}.", total=total, mean=mean)


def _gradient_sentence(scaling: LossScaling) -> str:
    found, right = scaling.gradient, scaling.true_gradient
    if _close(found, right):
        return _("The gradient is right.")
    if not right:
        return _("The gradient is {found} where it should be 0.", found=number_text(found))
    times = found / right
    return _(
        "The gradient is {found}, {times} times the right one, {right}.",
        found=number_text(found),
        times=number_text(times),
        right=number_text(right),
    )


def _metric_sentence(scaling: LossScaling) -> str:
    return _(
        "A `Mean` metric over what the replicas return shows {metric}, too small by the number of replicas:"
        " give it the losses of the examples.",
        metric=number_text(scaling.metric),
    )


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
