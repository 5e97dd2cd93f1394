"""Layouts by patterns of names: which of them a variable gets, and which pattern none does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec


@dataclass(frozen=True)
class LayoutPatterns:
    """A layout for each pattern, as tf_keras finds the layout of a variable by its name.

    A pattern that is the name itself goes first. Otherwise the patterns are tried in their order, and the
    first one counts that fits the *beginning* of the name. What none fits is whole on every device.

    >>> mesh = MeshSpec([("model", 2)])
    >>> patterns = LayoutPatterns({"hidden.*kernel": LayoutSpec(["unsharded", "model"], mesh)}, mesh)
    >>> print(patterns.layout_of("hidden.kernel", 2), patterns.layout_of("my_hidden.kernel", 2))
    [unsharded, model] [unsharded, unsharded]
    >>> patterns.unmatched(["hiden.kernel", "hiden.bias"])
    ('hidden.*kernel',)

    Attributes:
        layouts: by pattern, a regular expression.
        mesh: the mesh of all layouts.

    Raises:
        CourseError: a layout of another mesh.

    Source: https://github.com/keras-team/tf-keras/blob/v2.21.0/tf_keras/src/dtensor/layout_map.py
    """

    layouts: Mapping[str, LayoutSpec]
    mesh: MeshSpec

    def __post_init__(self) -> None:
        for pattern, layout in self.layouts.items():
            if layout.mesh != self.mesh:
                raise CourseError(
                    _("The pattern {pattern!r} has {layout!r}.", pattern=pattern, layout=layout),
                    allowed=_("a LayoutSpec on the mesh {mesh}", mesh=self.mesh),
                    cure=_("Write for example LayoutSpec([UNSHARDED, name], mesh)."),
                )

    def pattern_of(self, name: str) -> str | None:
        """Returns the pattern that a variable of this name gets its layout from; None where none fits."""
        if name in self.layouts:
            return name
        return next((pattern for pattern in self.layouts if re.match(pattern, name)), None)

    def layout_of(self, name: str, num_axes: int) -> LayoutSpec:
        """Returns the layout of a variable of this name and with so many axes.

        Raises:
            CourseError: the pattern's layout has another number of axes.
        """
        pattern = self.pattern_of(name)
        if pattern is None:
            return LayoutSpec.replicated(self.mesh, num_axes)
        layout = self.layouts[pattern]
        if layout.num_axes != num_axes:
            problem = _(
                "The pattern {pattern!r} gives {name!r} the layout {layout}, which has another number of"
                " axes.",
                pattern=pattern,
                name=name,
                layout=layout,
            )
            raise CourseError(
                problem,
                allowed=ngettext("layouts with {count} entry", "layouts with {count} entries", num_axes),
                cure=_("Make the pattern narrower, or put a narrower one in front of it."),
            )
        return layout

    def unmatched(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns the patterns that give none of these variables its layout."""
        used = {self.pattern_of(name) for name in names}
        return tuple(pattern for pattern in self.layouts if pattern not in used)

    def require_matched(self, names: Iterable[str]) -> None:
        """Checks that every pattern gives at least one of these variables its layout.

        Raises:
            CourseError: one does not; the message names it.
        """
        known = list(names)
        unmatched = self.unmatched(known)
        if unmatched:
            raise CourseError(
                _(
                    "No variable gets its layout from {patterns}.",
                    patterns=_(", ").join(map(repr, unmatched)),
                ),
                allowed=_("patterns that fit the beginning of a name: {names}", names=_(", ").join(known)),
                cure=_("Correct the pattern, take it out, or put it before the one that takes its place."),
            )
