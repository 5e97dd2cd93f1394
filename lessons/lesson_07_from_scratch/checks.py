"""The exercises of lesson 07 on means and sizes; importing it registers the others and the predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge, with_lists_or_arrays
from course_lib.i18n import _
from lessons.lesson_07_from_scratch import checks_adam as lesson_07_adam  # noqa: F401 - each registers what it holds
from lessons.lesson_07_from_scratch import checks_momentum as lesson_07_momentum  # noqa: F401 - each registers what it holds

Losses = Sequence[float]
Counts = Sequence[int]


def _epoch_mean(losses: Losses, examples: Counts) -> float:
    return float(np.average(losses, weights=examples))


def _mean_of_means(losses: Losses, examples: Counts) -> float:
    return float(np.mean(losses))


def _as_if_full(losses: Losses, examples: Counts) -> float:
    return float(np.dot(losses, examples) / (len(examples) * max(examples)))


def _without_the_last(losses: Losses, examples: Counts) -> float:
    return _epoch_mean(losses[:-1], examples[:-1])


def _sum_by_examples(losses: Losses, examples: Counts) -> float:
    return float(np.sum(losses) / np.sum(examples))


def _only_the_last_smaller(losses: Losses, examples: Counts) -> float:
    full = float(np.sum(losses[:-1])) * examples[0]
    return (full + losses[-1] * examples[-1]) / float(np.sum(examples))


def _weighted_sum(losses: Losses, examples: Counts) -> float:
    return float(np.dot(losses, examples))


def _weighted_sum_by_batches(losses: Losses, examples: Counts) -> float:
    return float(np.dot(losses, examples) / len(examples))


def _batches(random: np.random.Generator) -> tuple[Losses, Counts]:
    """Returns the mean losses of an epoch's batches and how many examples each had.

    In most epochs only the last batch is smaller; in the others every one may be.
    """
    count, size = int(random.integers(2, 6)), int(random.choice([8, 16, 128]))
    smaller = random.integers(1, size // 2, count).tolist()
    sizes = smaller if random.random() < 0.2 else [size] * (count - 1) + smaller[-1:]
    return (random.integers(1, 40, count) / 4).tolist(), sizes


@exercise(
    "07-epoch-mean",
    right=_epoch_mean,
    also=[
        lambda losses, examples: (
            sum(loss * count for loss, count in zip(losses, examples, strict=True)) / sum(examples)
        ),
        lambda losses, examples: (losses @ examples) / examples.sum(),
        lambda losses, examples: np.float32(np.dot(losses, examples) / np.sum(examples)),
        lambda losses, examples: np.repeat(losses, examples).mean(),
    ],
    wrong=[
        (_mean_of_means, "as heavily"),
        (_as_if_full, "as if every batch"),
        (_without_the_last, "left out"),
        (_only_the_last_smaller, "Weight each"),
        (_sum_by_examples, "mean of its batch"),
        (_weighted_sum, "a sum over the examples"),
        (_weighted_sum_by_batches, "number of batches"),
        (lambda losses, examples: None, "return"),
        (1.5, "function"),
    ],
)
def epoch_mean(answer: Callable[..., Any]) -> str | None:
    """The mean loss of an epoch whose last batch is smaller."""
    return judge(
        answer,
        _epoch_mean,
        drawn(_batches),
        misconceptions={
            _mean_of_means: _("Here the small last batch counts as heavily as a full one."),
            _as_if_full: _("This divides as if every batch were full. How many examples were there?"),
            _without_the_last: _("The last batch is left out here. Its examples count like the others."),
            _only_the_last_smaller: _(
                "This is right where only the last batch is smaller. Weight each loss by its own number."
            ),
            _sum_by_examples: _(
                "Each loss is the mean of its batch. Make a sum over the batch of it before you add."
            ),
            _weighted_sum: _("That is a sum over the examples. Divide it by how many there are."),
            _weighted_sum_by_batches: _(
                "The sum over the examples is divided by the number of batches. Divide by that of examples."
            ),
        },
        run=with_lists_or_arrays,
    )


def _num_parameters(sizes: Counts) -> int:
    return int(sum(inputs * outputs + outputs for inputs, outputs in pairwise(sizes)))


def _without_biases(sizes: Counts) -> int:
    return int(sum(inputs * outputs for inputs, outputs in pairwise(sizes)))


def _biases_of_inputs(sizes: Counts) -> int:
    return int(sum(inputs * outputs + inputs for inputs, outputs in pairwise(sizes)))


def _bias_for_every_size(sizes: Counts) -> int:
    return int(_without_biases(sizes) + sum(sizes))


def _one_bias_a_layer(sizes: Counts) -> int:
    return int(_without_biases(sizes) + len(sizes) - 1)


def _without_the_last_layer(sizes: Counts) -> int:
    return _num_parameters(sizes[:-1])


def _product(sizes: Counts) -> int:
    return int(np.prod(np.asarray(sizes, np.int64)))


def _bytes(sizes: Counts) -> int:
    return 4 * _num_parameters(sizes)


def _sizes(random: np.random.Generator) -> tuple[Counts]:
    return (random.integers(2, 10, int(random.integers(2, 6))).tolist(),)


@exercise(
    "07-parameters",
    right=_num_parameters,
    also=[
        lambda sizes: sum((sizes[at] + 1) * sizes[at + 1] for at in range(len(sizes) - 1)),
        lambda sizes: float(np.dot(np.add(sizes[:-1], 1), sizes[1:])),
    ],
    wrong=[
        (_without_biases, "biases too"),
        (_biases_of_inputs, "for each of its outputs"),
        (_bias_for_every_size, "inputs of the network have no bias"),
        (_one_bias_a_layer, "one number each"),
        (_without_the_last_layer, "last layer"),
        (_product, "layer by layer"),
        (_bytes, "bytes"),
        (lambda sizes: None, "return"),
        (905, "function"),
    ],
)
def parameters(answer: Callable[..., Any]) -> str | None:
    """The number of parameters of a stack of dense layers."""
    return judge(
        answer,
        _num_parameters,
        drawn(_sizes),
        misconceptions={
            _without_biases: _("Those are the weights. A layer has biases too."),
            _biases_of_inputs: _("A layer has a bias for each of its outputs, not of its inputs."),
            _bias_for_every_size: _("The inputs of the network have no bias."),
            _one_bias_a_layer: _("The outputs of a layer have one number each as their bias."),
            _without_the_last_layer: _("The last layer, which gives the logits, is left out."),
            _product: _("Count layer by layer, and add."),
            _bytes: _("Those are the bytes in float32. How many numbers are there?"),
        },
    )
