"""Programs to read and to copy, of which a widget shows one at a time.

Which one is shown, and whether any, the module remembers: it is how the reader looks, and no part of the
choice, so a page's table needs no view for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from course_lib.code.choices import FRAMEWORKS, Choice, sections_of
from course_lib.i18n import _
from course_lib.pictures.shapes import Node, node


def code_listings(choice: Choice) -> Node:
    """Returns the code of a choice in each framework."""
    return listings(_("The code of this choice"), {name: sections_of(choice, name) for name in FRAMEWORKS})


def listings(heading: str, programs: Mapping[str, Sequence[str]]) -> Node:
    """Returns programs, each in parts, that the reader can unfold, choose among, and copy.

    Equal parts stand in the table of a page once.
    """
    first, *others = programs
    return node(
        "details",
        node("summary", heading),
        *([_options(heading, programs)] if others else []),
        region(heading, [_listing(name, parts, shown=name == first) for name, parts in programs.items()]),
        _copying(),
        class_="listings",
    )


def _options(heading: str, names: Iterable[str]) -> Node:
    """Returns a choice among the names, the first of them chosen."""
    options = []
    for at, name in enumerate(names):
        checked = None if at else ""
        radio = node("input", type="radio", name="listing", checked=checked, data_listing=name)
        options.append(node("label", radio, node("span", name), class_="choice"))
    return node("div", *options, class_="options", role="radiogroup", aria_label=heading)


def listing(heading: str, text: str) -> Node:
    """Returns one text to read and to copy, unfolded."""
    return node(
        "div", node("h3", heading), region(heading, [node("pre", text)]), _copying(), class_="listings"
    )


def region(heading: str, texts: Sequence[Node]) -> Node:
    """Returns code that the reader can move where it is too wide."""
    return node("div", *texts, class_="listing", tabindex="0", role="region", aria_label=heading)


def _copying() -> Node:
    failed = _("The browser does not let this page copy. Select the code and copy it yourself.")
    return node(
        "div",
        node("button", _("Copy"), type="button", class_="copy"),
        node("span", class_="copied", role="status", data_done=_("Copied."), data_failed=failed),
        class_="copying",
    )


def _listing(name: str, parts: Sequence[str], *, shown: bool) -> Node:
    """Returns a program in as few attributes as can be: a page's table has it once for each choice."""
    return node(
        "pre", *(node("span", part) for part in parts), data_listing=name, hidden=None if shown else ""
    )
