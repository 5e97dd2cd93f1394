"""The exercises of lesson 03 on layouts and bytes; importing it registers the others and the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.exercises.checks import exercise, same
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_03_one_step import checks_mean as lesson_03_mean  # noqa: F401 - each registers what it holds
from lessons.lesson_03_one_step import checks_step as lesson_03_step  # noqa: F401 - each registers what it holds

_MESH, _OTHER_MESH = MeshSpec([("batch", 8)]), MeshSpec([("x", 8)])
_AXES = {"images": 3, "labels": 1, "losses": 1, "gradient": 2, "mean_loss": 0}
_WEIGHTS = 784 * 700 + 700 * 10
_GRADIENT_BYTES = 4 * (_WEIGHTS + 700 + 10)


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
        return _("Each device computes the losses of its own images. No device needs those of the others.")
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
        ((4 * (_WEIGHTS + 700), 4 * (_WEIGHTS + 700)), "one of the two biases"),
        ((4 * (_WEIGHTS + 10), 4 * (_WEIGHTS + 10)), "one of the two biases"),
        ((8 * _GRADIENT_BYTES, 8 * _GRADIENT_BYTES), "all eight devices bring together, or the bits"),
        ((_GRADIENT_BYTES // 2, _GRADIENT_BYTES // 2), "float16"),
        ((2 * _GRADIENT_BYTES, 2 * _GRADIENT_BYTES), "float64"),
        ((16 * _GRADIENT_BYTES, 128 * _GRADIENT_BYTES), "summed over the rows"),
        ((128 * _GRADIENT_BYTES, 1024 * _GRADIENT_BYTES), "summed over the rows"),
        ((7 * _GRADIENT_BYTES // 4, 7 * _GRADIENT_BYTES // 4), "not what travels"),
        ((7 * _GRADIENT_BYTES // 8, 7 * _GRADIENT_BYTES // 8), "not what travels"),
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
        8 * _GRADIENT_BYTES: _(
            "That is what all eight devices bring together, or the bits of one device."
            " How many bytes does one bring?"
        ),
        _GRADIENT_BYTES // 2: _("An element of float16 takes so many bytes. The gradients are float32."),
        **dict.fromkeys(
            (4 * (_WEIGHTS + 700), 4 * (_WEIGHTS + 10)), _("Here one of the two biases is left out.")
        ),
        **dict.fromkeys(
            (7 * _GRADIENT_BYTES // 4, 7 * _GRADIENT_BYTES // 8),
            _("So much a device may send in a ring. Asked is what it brings into the sum, not what travels."),
        ),
        2 * _GRADIENT_BYTES: _("An element of float64 takes so many bytes. The gradients are float32."),
        **dict.fromkeys(
            (16 * _GRADIENT_BYTES, 128 * _GRADIENT_BYTES),
            _("A device brings one gradient, already summed over the rows that it has."),
        ),
    }
    for wrong, hint in hints.items():
        if same(answer[0], wrong):
            return hint
    if not same(answer[0], _GRADIENT_BYTES):
        return _("Count the elements of each weight and each bias. An element takes 4 bytes.")
    if not same(answer[1], answer[0]):
        return _("A gradient has the shape of its variable. That does not depend on the batch.")
    return None
