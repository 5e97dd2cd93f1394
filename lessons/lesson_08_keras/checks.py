"""The exercises of lesson 08; importing it registers those of its other modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_08_keras import checks_layout_map as lesson_08_layout_map  # noqa: F401 - each registers what it holds
from lessons.lesson_08_keras import checks_step as lesson_08_step  # noqa: F401 - each registers what it holds
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_NUM_AXES = {"gamma": 1, "beta": 1, "moving_mean": 1, "moving_variance": 1}


def _of_channels(**changed: Sequence[str]) -> dict[str, LayoutSpec]:
    right: dict[str, Sequence[str]] = {name: [UNSHARDED] for name in _NUM_AXES}
    return {name: LayoutSpec(entries, _MESH) for name, entries in {**right, **changed}.items()}


@exercise(
    "08-normalisation",
    right=_of_channels(),
    wrong=[
        (dict.fromkeys(_NUM_AXES, LayoutSpec(["model"], _MESH)), "one number for each channel"),
        (dict.fromkeys(_NUM_AXES, LayoutSpec(["batch"], _MESH)), "no entry for an example"),
        (dict.fromkeys(_NUM_AXES, LayoutSpec(["batch", "model", UNSHARDED, UNSHARDED], _MESH)), "1 axis"),
        (_of_channels(moving_mean=["model"]), "`moving_mean`"),
        (_of_channels(moving_variance=["batch"]), "no entry for an example"),
        ({"gamma": LayoutSpec([UNSHARDED], _MESH)}, "beta"),
        (dict.fromkeys(_NUM_AXES, LayoutSpec([UNSHARDED], MeshSpec([("model", 8)]))), "`mesh_of_images`"),
    ],
)
def normalisation(answer: dict[str, Any]) -> str | None:
    """The layouts of the four variables that normalise images whose rows of pixels are split over `model`."""
    for name in _NUM_AXES:
        hint = _vector_hint(name, answer.get(name))
        if hint is not None:
            return hint
    return None


def _vector_hint(name: str, layout: object) -> str | None:
    if not isinstance(layout, LayoutSpec):
        return _("The dictionary needs a LayoutSpec for {name!r}.", name=name)
    if layout.num_axes != 1:
        return ngettext(
            "The tensor {name!r} has {count} axis.", "The tensor {name!r} has {count} axes.", 1, name=name
        )
    if layout.mesh != _MESH:
        return _("Use `mesh_of_images`, the mesh that the cell makes.")
    if layout.sharding_specs == ("batch",):
        return _("`{name}` has no entry for an example: `batch` splits examples.", name=name)
    if layout.sharding_specs == ("model",):
        return _(
            "`{name}` has one number for each channel. Which channels does a device hold of its images?",
            name=name,
        )
    return None


Names = list[str]
Patterns = list[str]


def _unmatched(patterns: Patterns, names: Names) -> list[str]:
    layout = LayoutSpec(["model"], _MESH)
    return list(LayoutPatterns(dict.fromkeys(patterns, layout), _MESH).unmatched(names))


def _by(fits: Callable[[str, str], object]) -> Callable[[Patterns, Names], list[str]]:
    """Returns the answer that takes every fitting pattern for used, whichever comes first."""
    return lambda patterns, names: [
        pattern for pattern in patterns if not any(fits(pattern, name) for name in names)
    ]


def _matched(patterns: Patterns, names: Names) -> list[str]:
    return [pattern for pattern in patterns if pattern not in _unmatched(patterns, names)]


def _last_wins(patterns: Patterns, names: Names) -> list[str]:
    used = {
        name if name in patterns else next((each for each in patterns[::-1] if re.match(each, name)), None)
        for name in names
    }
    return [pattern for pattern in patterns if pattern not in used]


def _exact_name_not_first(patterns: Patterns, names: Names) -> list[str]:
    used = {next((each for each in patterns if re.match(each, name)), None) for name in names}
    return [pattern for pattern in patterns if pattern not in used]


def _both_used(patterns: Patterns, names: Names) -> list[str]:
    """Returns the answer that takes the name itself and the first that fits, both, for used."""
    first = {next((each for each in patterns if re.match(each, name)), None) for name in names}
    return [pattern for pattern in patterns if pattern not in first and pattern not in names]


def _searched(patterns: Patterns, names: Names) -> list[str]:
    """Returns the answer that has the order right and looks for a pattern anywhere in a name."""
    return _in_order(re.search)(patterns, names)


def _literal_dots(patterns: Patterns, names: Names) -> list[str]:
    """Returns the answer for which a dot is only a dot, unless a star follows."""
    return _in_order(lambda pattern, name: re.match(re.sub(r"\.(?!\*)", r"\\.", pattern), name))(
        patterns, names
    )


def _in_order(fits: Callable[[str, str], object]) -> Callable[[Patterns, Names], list[str]]:
    def unused(patterns: Patterns, names: Names) -> list[str]:
        used = {
            name if name in patterns else next((each for each in patterns if fits(each, name)), None)
            for name in names
        }
        return [pattern for pattern in patterns if pattern not in used]

    return unused


def _begun_with(patterns: Patterns, names: Names) -> list[str]:
    """Returns the answer that has the order right and takes a pattern for plain text."""
    return _in_order(lambda pattern, name: name.startswith(pattern))(patterns, names)


def _fitting_whole_names(patterns: Patterns, names: Names) -> list[str]:
    """Returns the answer that has the order right and wants a pattern to fit the whole name."""
    return _in_order(re.fullmatch)(patterns, names)


def _by_hand(patterns: Patterns, names: Names) -> list[str]:
    """Returns a right answer that is written as a reader would."""
    unused = list(patterns)
    for name in names:
        fitting = [pattern for pattern in patterns if pattern == name]
        fitting += [pattern for pattern in patterns if re.match(pattern, name)]
        if fitting and fitting[0] in unused:
            unused.remove(fitting[0])
    return unused


_PATTERNS = ("hidden", "hidden.kernel", ".*kernel", ".*bias", "kernel", "hiden.*", "logits.*kernel", "logits")
_NAMES = ("hidden.kernel", "hidden.bias", "logits.kernel", "logits.bias", "hidden_kernel.bias")


def _draw(random: np.random.Generator) -> tuple[Patterns, Names]:
    patterns = random.permutation(_PATTERNS)[: random.integers(1, 6)]
    return [str(each) for each in patterns], [str(each) for each in random.permutation(_NAMES)[:3]]


@exercise(
    "08-unmatched",
    right=_unmatched,
    also=[_by_hand, lambda patterns, names: tuple(_unmatched(patterns, names))],
    wrong=[
        (_by(lambda pattern, name: pattern == name), "regular expression"),
        (_by(re.match), "takes its place"),
        (_by(re.search), "beginning"),
        (_by(re.fullmatch), "rest of the name"),
        (_last_wins, "first that fits"),
        (_exact_name_not_first, "goes first"),
        (_both_used, "from one pattern only"),
        (_searched, "beginning"),
        (_literal_dots, "any character"),
        (_begun_with, "regular expression"),
        (_fitting_whole_names, "rest of the name"),
        (_matched, "opposite"),
        (lambda patterns, names: [], "gives"),
        ("hiden.*", "function"),
    ],
)
def unmatched(answer: Callable[..., Any]) -> str | None:
    """The patterns from which no variable gets its layout."""
    return judge(
        answer,
        _unmatched,
        [
            *drawn(_draw, count=80),
            Case((["hidden"], []), _("Without any variable no pattern is used.")),
            Case(
                (["hidden", "hidden.kernel"], ["hidden.kernel", "logits.bias"]),
                _("A name gets its layout from one pattern only."),
            ),
        ],
        misconceptions={
            _by(lambda pattern, name: pattern == name): _(
                "A pattern is a regular expression: it fits more names than its own text."
            ),
            _by(re.match): _(
                "A pattern that fits is not always used: another one may come before it, and takes its place."
            ),
            _by(re.search): _("A pattern has to fit from the beginning of the name: that is `re.match`."),
            _searched: _("A pattern has to fit from the beginning of the name: that is `re.match`."),
            _literal_dots: _("In a regular expression a dot stands for any character."),
            _begun_with: _("A pattern is a regular expression: it fits more names than its own text."),
            _fitting_whole_names: _("A pattern fits the beginning; the rest of the name does not matter."),
            _by(re.fullmatch): _("A pattern fits the beginning; the rest of the name does not matter."),
            _last_wins: _("Where several patterns fit a name, the first that fits counts."),
            _exact_name_not_first: _("A pattern that is the name itself goes first, wherever it stands."),
            _matched: _("These are the patterns that are used: the opposite is asked for."),
        },
        advice=_(
            "For each name, find the one pattern that it gets its layout from. Return the other patterns."
        ),
    )
