"""The exercises of lesson 05; importing it registers those of its other modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.exercises.checks import exercise
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_05_model_and_spatial import checks_plan as lesson_05_plan  # noqa: F401 - each registers what it holds
from lessons.lesson_05_model_and_spatial import checks_product as lesson_05_product  # noqa: F401 - each registers what it holds
from lessons.lesson_05_model_and_spatial import checks_restore as lesson_05_restore  # noqa: F401 - each registers what it holds

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_ENTRIES: dict[str, Sequence[str]] = {
    "W1": [UNSHARDED, "model"],
    "b1": ["model"],
    "y1": ["batch", "model"],
    "W2": ["model", UNSHARDED],
    "b2": [UNSHARDED],
    "y2": ["batch", UNSHARDED],
}


def _layouts(**changed: Sequence[str]) -> dict[str, LayoutSpec]:
    return {name: LayoutSpec(entries, _MESH) for name, entries in {**_ENTRIES, **changed}.items()}


@exercise(
    "05-layouts",
    right=_layouts(),
    wrong=[
        (_layouts(W1=["model", UNSHARDED]), "inputs first"),
        (_layouts(W1=[UNSHARDED, UNSHARDED]), "inputs first"),
        (_layouts(W1=["batch", "model"]), "no example"),
        (_layouts(b1=[UNSHARDED]), "added to `x W1`"),
        (_layouts(y1=["batch", UNSHARDED]), "its columns are `hidden`"),
        (_layouts(y1=[UNSHARDED, "model"]), "rows of `y1`"),
        (_layouts(W2=[UNSHARDED, UNSHARDED]), "sums over `hidden`"),
        (_layouts(W2=[UNSHARDED, "model"]), "sums over `hidden`"),
        (_layouts(W2=["model", "batch"]), "no example"),
        (_layouts(b2=["model"]), "nothing splits `second`"),
        (_layouts(y2=["batch", "model"]), "nothing splits `second`"),
        (_layouts(y2=[UNSHARDED, UNSHARDED]), "rows of `y2`"),
        (_layouts(y1=["batch"]), "2 axes"),
        ({"W1": LayoutSpec([UNSHARDED, "model"], _MESH)}, "b1"),
        (
            {name: LayoutSpec.replicated(MeshSpec([("x", 8)]), len(each)) for name, each in _ENTRIES.items()},
            "Use `mesh`",
        ),
    ],
)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of two dense layers of which the first one's units are split."""
    for name, entries in _ENTRIES.items():
        hint = _layout_hint(name, answer.get(name), len(entries))
        if hint is not None:
            return hint
    return next((hint for name in _ENTRIES if (hint := _entries_hint(name, answer[name]))), None)


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
    return None if layout.mesh == _MESH else _("Use `mesh`, with its dimensions batch of 2 and model of 4.")


def _entries_hint(name: str, layout: LayoutSpec) -> str | None:
    """Returns what is wrong with a layout on the right mesh, with the right number of axes."""
    entries = layout.sharding_specs
    if entries == tuple(_ENTRIES[name]):
        return None
    if name not in ("y1", "y2") and "batch" in entries:
        return _("A variable holds no example: leave `batch` out of the layout of `{name}`.", name=name)
    if name in ("y1", "y2") and entries[0] != "batch":
        return _("The rows of `{name}` are the examples: which dimension splits these?", name=name)
    hints = {
        "W1": _("`W1` has the axes inputs first, then `hidden`. Which of them is split over `model`?"),
        "b1": _("`b1` is added to `x W1`. Whoever holds a column of that needs the entry of `b1` for it."),
        "y1": _("`y1` is `x W1 + b1`, so its columns are `hidden`, like those of `W1`."),
        "W2": _("`y1 W2` sums over `hidden`. Which axis of `W2` is that, and what splits it in `y1`?"),
    }
    return hints.get(name) or _("In this plan nothing splits `second`: every device of a replica has all.")
