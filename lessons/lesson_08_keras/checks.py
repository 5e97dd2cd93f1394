"""The exercises of lesson 08 without devices; importing it registers the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_08_keras import checks_on_devices  # noqa: F401 - it registers its exercises
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns

Names = list[str]
Patterns = list[str]
Fits = Callable[[str, str], object]

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_OF_CHANNELS = ("gamma", "beta", "moving_mean", "moving_variance")


@exercise("08-normalisation", right=dict.fromkeys(_OF_CHANNELS, LayoutSpec([UNSHARDED], _MESH)))
def normalisation(answer: dict[str, Any]) -> str | None:
    """The layouts of the four variables that normalise images whose rows of pixels are split over `model`."""
    return next(filter(None, (_vector_hint(name, answer.get(name)) for name in _OF_CHANNELS)), None)


def _vector_hint(name: str, layout: object) -> str | None:
    if not isinstance(layout, LayoutSpec):
        return _("The dictionary needs a LayoutSpec for {name!r}.", name=name)
    if layout.num_axes != 1:
        return ngettext(
            "The tensor {name!r} has {count} axis.", "The tensor {name!r} has {count} axes.", 1, name=name
        )
    if layout.mesh != _MESH:
        return _("Use `mesh_of_images`, the mesh that the cell makes.")
    hints = {
        "batch": _("`{name}` has no entry for an example: `batch` splits examples.", name=name),
        "model": _(
            "`{name}` has one number for each channel. Which channels does a device hold of its images?",
            name=name,
        ),
    }
    return hints.get(layout.sharding_specs[0])


def _unmatched(patterns: Patterns, names: Names) -> list[str]:
    layout = LayoutSpec(["model"], _MESH)
    return list(LayoutPatterns(dict.fromkeys(patterns, layout), _MESH).unmatched(names))


def _all_that_fit(patterns: Patterns, names: Names) -> list[str]:
    """Takes every fitting pattern for used, whichever comes first."""
    return [pattern for pattern in patterns if not any(re.match(pattern, name) for name in names)]


def _by_the_first(fits: Fits, *, name_itself: bool = True) -> Callable[[Patterns, Names], list[str]]:
    """Returns the answer for which a name uses itself, or else the first pattern that fits in this sense."""

    def unused(patterns: Patterns, names: Names) -> list[str]:
        first = {name: next((each for each in patterns if fits(each, name)), None) for name in names}
        used = {name if name_itself and name in patterns else first[name] for name in names}
        return [pattern for pattern in patterns if pattern not in used]

    return unused


_PATTERNS = ("hidden", "hidden.kernel", ".*kernel", ".*bias", "kernel", "hiden.*", "logits.*kernel", "logits")
_NAMES = ("hidden.kernel", "hidden.bias", "logits.kernel", "logits.bias", "hidden_kernel.bias")


def _draw(random: np.random.Generator) -> tuple[Patterns, Names]:
    patterns = random.permutation(_PATTERNS)[: random.integers(1, 6)]
    return [str(each) for each in patterns], [str(each) for each in random.permutation(_NAMES)[:3]]


@exercise("08-unmatched", right=_unmatched)
def unmatched(answer: Callable[..., Any]) -> str | None:
    """The patterns from which no variable gets its layout."""
    only_one = Case(
        (["hidden", "hidden.kernel"], ["hidden.kernel", "logits.bias"]),
        _("A name gets its layout from one pattern only."),
    )
    return judge(
        answer,
        _unmatched,
        [
            *drawn(_draw, count=80),
            Case((["hidden"], []), _("Without any variable no pattern is used.")),
            only_one,
        ],
        misconceptions={
            _all_that_fit: _(
                "A pattern that fits is not always used: another one may come before it, and takes its place."
            ),
            _by_the_first(re.search): _(
                "A pattern has to fit from the beginning of the name: that is `re.match`."
            ),
            _by_the_first(re.fullmatch): _(
                "A pattern fits the beginning; the rest of the name does not matter."
            ),
            _by_the_first(re.match, name_itself=False): _(
                "A pattern that is the name itself goes first, wherever it stands."
            ),
        },
        advice=_(
            "For each name, find the one pattern that it gets its layout from. Return the other patterns."
        ),
    )
