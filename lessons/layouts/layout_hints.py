"""Judging layouts that a reader wrote: one for each tensor of a step, in a dictionary."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec


def layouts_hint(
    answer: Mapping[str, object],
    right: Mapping[str, LayoutSpec],
    hints: Mapping[str, str],
) -> str | None:
    """Returns what is wrong with the first layout that is not right, by the name of its tensor; else None.

    Where an entry is wrong, the tensor's hint is said.
    """
    wrong = [name for name, wanted in right.items() if answer.get(name) != wanted]
    return form_hint(answer, right) or (hints[wrong[0]] if wrong else None)


def form_hint(answer: Mapping[str, object], right: Mapping[str, LayoutSpec]) -> str | None:
    """Returns what is wrong with the first layout that has other axes or another mesh than the right one."""
    for name, wanted in right.items():
        layout = answer.get(name)
        if not isinstance(layout, LayoutSpec):
            return _("The dictionary needs a dtensor.Layout for {name!r}.", name=name)
        if layout.num_axes != wanted.num_axes:
            return ngettext(
                "The tensor {name!r} has {count} axis.",
                "The tensor {name!r} has {count} axes.",
                wanted.num_axes,
                name=name,
            )
        if layout.mesh != wanted.mesh:
            return _("Use the mesh {mesh}.", mesh=wanted.mesh)
    return None
