"""Loss scaling in words: what each replica returns, what the sum comes to, and why it is right or wrong."""

from __future__ import annotations

import math

from course_lib.i18n import _, ngettext
from course_lib.pictures.text import form_value
from lessons.lesson_10_custom_training.loss_scaling import FULL, GLOBAL, KERAS, REPLICA, TWICE, LossScaling

Rows = list[tuple[str, float]]


def title(scaling: LossScaling) -> str:
    """Returns how many replicas and examples there are."""
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
