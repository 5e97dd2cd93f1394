"""The exercises and predictions of lesson 03."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.exercises import lesson_03_mean, lesson_03_step  # noqa: F401 - each registers an exercise
from course_lib.exercises.checks import exercise, same
from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

_MESH, _OTHER_MESH = MeshSpec([("batch", 8)]), MeshSpec([("x", 8)])
_AXES = {"images": 3, "labels": 1, "losses": 1, "gradient": 2, "mean_loss": 0}
_WEIGHTS = 784 * 700 + 700 * 10
_GRADIENT_BYTES = 4 * (_WEIGHTS + 700 + 10)


@prediction("03-world", right=64)
def world() -> Question:
    """How many rows a device computes when nothing is split."""
    return Question(
        _(
            "Eight devices form the mesh `world`, and every layout is unsharded."
            " A batch of 64 reviews goes in. How many of its rows does each device compute?"
        ),
        [
            Option(64, _("Unsharded means replicated: every device has all rows, and does all the work.")),
            Option(
                8,
                _(
                    "That would take a layout that splits the batch axis. Eight devices alone split nothing:"
                    " the layout here leaves every axis whole, so each device has all 64 rows."
                ),
            ),
            Option(
                512,
                _(
                    "So many rows are computed by all devices together, each of the 64 eight times over."
                    " One device computes 64."
                ),
            ),
            Option(
                1,
                _("A mesh dimension splits only what a layout gives to it, and here it is given nothing."),
            ),
        ],
        field=True,
        otherwise=_(
            "Ask of the layout [unsharded, unsharded] what a device holds: the whole tensor, 64 rows."
        ),
    )


@prediction("03-copies", right=0.0)
def copies() -> Question:
    """How far the copies of a weight are apart after 20 steps."""
    return Question(
        _(
            "In each of the 20 steps a device got 8 reviews that no other device got."
            " How far apart are the eight copies of the hidden weight now, at most?"
        ),
        [
            Option(
                0.0,
                _(
                    "They began equal and were all changed by the same numbers, so they are equal to the last"
                    " bit."
                ),
                label=_("0: equal to the last bit"),
            ),
            Option(
                1e-7,
                _(
                    "Rounding would separate them if each device added up on its own."
                    " But all receive the same total, and then do the same subtraction."
                ),
                label=_("about 1e-7: equal up to rounding"),
            ),
            Option(
                0.01,
                _(
                    "They would drift apart if each device applied the gradient of its own reviews."
                    " It applies the sum over all of them."
                ),
                label=_("about 0.01: each learnt from other reviews"),
            ),
            Option(
                1.0,
                _(
                    "The eight copies are of one variable with a replicated layout:"
                    " TensorFlow keeps replicas equal."
                ),
                label=_("about 1: they are eight different models"),
            ),
        ],
    )


@prediction("03-coupled", right=0.77, fits=lambda measured: 0.1 < measured < 2)
def coupled() -> Question:
    """Whether gradients of parts add up with batch normalisation."""
    return Question(
        _(
            "Now with batch normalisation: the gradients of the eight parts are again computed one by one on"
            " one device, and added. By how much does the sum differ from the gradient that DTensor gives for"
            " the batch on eight devices?"
        ),
        [
            Option(
                0.0,
                _(
                    "So it was without normalisation, where the loss is a sum over rows that know nothing of"
                    " each other. The moments of a batch depend on all its rows."
                ),
                label=_("only by rounding, as before"),
            ),
            Option(
                0.01,
                _(
                    "The moments of 8 rows are rough estimates of those of 64, and the model is normalised by"
                    " them in every unit: the gradients differ by far more."
                ),
                label=_("by about a hundredth of it"),
            ),
            Option(
                0.77,
                _("Eight batches of 8 rows, each normalised for itself, are another computation."),
                label=_("by more than a tenth of it"),
            ),
            Option(
                7.0,
                _(
                    "That would hold if one of the two took a mean where the other takes a sum."
                    " Both sum: without normalisation they agreed."
                ),
                label=_("it is eight times as large"),
            ),
        ],
    )


_MEANS = {"all 64": 0.595, "20 by 64": 0.148, "20 by 20": 0.474, "right": 0.428}


def _none_is_near(means: dict[str, float]) -> bool:
    return all(abs(mean / means["right"] - 1) > 0.01 for name, mean in means.items() if name != "right")


@prediction("03-padding", right=_MEANS, fits=_none_is_near)
def padding() -> Question:
    """Which mean over a padded batch equals the mean over its reviews."""
    return Question(
        _(
            "The 20 reviews are padded to 64 rows, and the eight devices give 64 losses."
            " Which mean equals, to 1 %, the mean loss of the 20 reviews alone on one device?"
        ),
        [
            Option(
                "all 64",
                _("This counts 44 rows that are no reviews."),
                label=_("the mean of all 64 losses"),
            ),
            Option(
                "20 by 64",
                _("This leaves the padding out of the sum and still divides by it: too small by 64 / 20."),
                label=_("the sum of the 20 losses by 64"),
            ),
            Option(
                "20 by 20",
                _(
                    "Each review counts once, as it should. But its loss is another one: the padding took"
                    " part in the mean and variance by which every row is normalised."
                ),
                label=_("the sum of the 20 losses by 20"),
            ),
            Option(
                _MEANS,
                _("Even the 20 losses themselves have changed: normalisation saw 44 rows of zeros."),
                label=_("none of them"),
            ),
        ],
    )


@prediction("03-alone", right=1)
def alone() -> Question:
    """How many answers three reviews get, each in a batch of its own."""
    return Question(
        _("Three different reviews, each alone in its batch. How many different pairs of logits come back?"),
        [
            Option(
                3,
                _(
                    "So it should be. But with one row the mean of a column is that row's value,"
                    " and the difference of the two is zero whatever the review says."
                ),
            ),
            Option(
                2,
                _("There are two classes, but logits are not rounded to them. All three pairs are equal."),
            ),
            Option(1, _("Every review becomes zeros, and only the bias of the last layer is left.")),
            Option(
                0,
                _(
                    "The variance of one value is 0, and dividing by its root would give no numbers;"
                    " a small constant is added to it to prevent that."
                ),
                label=_("0: the logits are not numbers"),
            ),
        ],
    )


def _layouts(**changed: Sequence[str]) -> dict[str, LayoutSpec]:
    right: dict[str, Sequence[str]] = {
        "images": ["batch", UNSHARDED, UNSHARDED],
        "labels": ["batch"],
        "losses": ["batch"],
        "gradient": [UNSHARDED, UNSHARDED],
        "mean_loss": [],
    }
    return {name: LayoutSpec(entries, _MESH) for name, entries in {**right, **changed}.items()}


@exercise(
    "03-layouts",
    right=_layouts(),
    wrong=[
        (_layouts(images=[UNSHARDED, "batch", UNSHARDED]), "first axis"),
        (_layouts(images=[UNSHARDED] * 3), "first axis"),
        (_layouts(images=["batch", UNSHARDED]), "3 axes"),
        (_layouts(labels=[UNSHARDED]), "like the images"),
        (_layouts(losses=[UNSHARDED]), "its own images"),
        (_layouts(gradient=["batch", UNSHARDED]), "whole weight"),
        (_layouts(gradient=[UNSHARDED, "batch"]), "whole weight"),
        (_layouts(mean_loss=["batch"]), "0 axes"),
        ({"images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], _MESH)}, "labels"),
        (
            {name: LayoutSpec.replicated(_OTHER_MESH, num) for name, num in _AXES.items()},
            "plan.mesh",
        ),
    ],
)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of a data-parallel step on images."""
    for name, num_axes in _AXES.items():
        hint = _layout_hint(name, answer.get(name), num_axes)
        if hint is not None:
            return hint
    if answer["images"].sharding_specs != ("batch", UNSHARDED, UNSHARDED):
        return _("The examples lie along the first axis of the images; split only that.")
    if answer["labels"].sharding_specs != ("batch",):
        return _("The labels are split like the images that they belong to.")
    if answer["losses"].sharding_specs != ("batch",):
        return _("Each device computes the losses of its own images, and nobody asked for the others' there.")
    if answer["gradient"].sharded_dims:
        return _("A gradient is laid out as its variable, and each device holds the whole weight.")
    return None


def _layout_hint(name: str, layout: object, num_axes: int) -> str | None:
    if not isinstance(layout, LayoutSpec):
        return _("The dictionary needs a LayoutSpec for {name!r}.", name=name)
    if layout.num_axes != num_axes:
        return ngettext(
            "The tensor {name!r} has {count} axis.",
            "The tensor {name!r} has {count} axes.",
            num_axes,
            name=name,
        )
    return None if layout.mesh == _MESH else _("Use plan.mesh, with its one dimension batch of 8.")


@exercise(
    "03-gradient-bytes",
    right=(_GRADIENT_BYTES, _GRADIENT_BYTES),
    wrong=[
        ((_GRADIENT_BYTES, 8 * _GRADIENT_BYTES), "does not depend on the batch"),
        ((_GRADIENT_BYTES // 8, _GRADIENT_BYTES // 8), "not split"),
        ((_GRADIENT_BYTES // 4, _GRADIENT_BYTES // 4), "elements"),
        ((4 * _WEIGHTS, 4 * _WEIGHTS), "biases"),
        ((8 * _GRADIENT_BYTES, 8 * _GRADIENT_BYTES), "all eight"),
        ((128 * _GRADIENT_BYTES, 1024 * _GRADIENT_BYTES), "summed over the rows"),
        ((7, 7), "each weight and each bias"),
    ],
)
def gradient_bytes(answer: Sequence[float]) -> str | None:
    """The bytes of all gradients, for two sizes of the batch."""
    if len(answer) != 2:
        return _("Give two numbers: the bytes with a batch of 128, and with one of 1,024.")
    hints = {
        _GRADIENT_BYTES // 8: _("The variables are not split, so neither are their gradients."),
        _GRADIENT_BYTES // 4: _("That is the number of elements. How many bytes does a float32 take?"),
        4 * _WEIGHTS: _("Those are the two weights. The biases have gradients too."),
        8 * _GRADIENT_BYTES: _("That is what all eight devices bring together. How much does one?"),
        128 * _GRADIENT_BYTES: _("A device brings one gradient, already summed over the rows that it has."),
    }
    for wrong, hint in hints.items():
        if same(answer[0], wrong):
            return hint
    if not same(answer[0], _GRADIENT_BYTES):
        return _("Count the elements of each weight and each bias. An element takes 4 bytes.")
    if not same(answer[1], answer[0]):
        return _("A gradient has the shape of its variable. That does not depend on the batch.")
    return None
