"""How far the schemes are from one device, for lesson 05: as figures, and as a picture step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from course_lib.i18n import _, ngettext
from course_lib.measured.files import Record
from course_lib.measured.titles import title
from course_lib.measured.trainings import history
from course_lib.pictures.arranging import Drawing, beside, lines_of_text, stacked, titled
from course_lib.pictures.curves import Curve
from course_lib.pictures.figures import Figure, framed
from lessons.lesson_05_model_and_spatial.overlay import overlay_drawing, swatch

_WINDOW = 10  # steps of which a picture of differences shows the largest: it has no room for every step
_APART = 1e-3  # a loss, that far from another, has left it: records are rounded to a tenth of this


def differences(runs: Mapping[str, Record]) -> str:
    """Returns the largest differences between each scheme and one device, a line each, as text."""
    lines = [_("Largest differences from one device: loss of a step, accuracy of a step, weights")]
    for name, run in runs.items():
        if "first" in run:
            first = _("{scheme}, the first 20 steps", scheme=title(name))
            whole = ngettext(
                "{scheme}, {count} step", "{scheme}, all {count} steps", len(run.losses), scheme=title(name)
            )
            lines += [f"{_figures(run.first)}   {first}", f"{_figures(run.whole)}   {whole}"]
    return "\n".join(lines)


def loss_differences(runs: Mapping[str, Record]) -> Figure:
    """Returns a picture of how far the loss of a step lies from one device, in the reader's language."""
    steps = [record.step for record in history(runs["one"]).steps]
    gaps = {
        name: [abs(ours - theirs) for ours, theirs in zip(run.losses, runs["one"].losses, strict=True)]
        for name, run in runs.items()
        if name != "one"
    }
    heading = ngettext(
        "Distance of the loss from one device: the largest in {count} step",
        "Distance of the loss from one device: the largest in {count} steps",
        _WINDOW,
    )
    sentences = [_farthest(title(name), steps, distances) for name, distances in gaps.items()]
    return framed(heading, [titled(heading, _curves(steps, gaps)), _legend(gaps)], sentences)


def _figures(difference: Record) -> str:
    return f"{difference.loss:9.1e} {difference.accuracy:8.4f} {difference.weights:9.1e}"


def _curves(steps: Sequence[int], gaps: Mapping[str, Sequence[float]]) -> Drawing:
    """Returns the largest gaps; the colours are those of `picture`, where one device has the first."""
    ends = range(_WINDOW, len(steps) + 1, _WINDOW)
    at = tuple(steps[end - 1] for end in ends)
    lines = {
        style: [Curve("loss", "train", at, tuple(max(gap[end - _WINDOW : end]) for end in ends))]
        for style, gap in enumerate(gaps.values(), start=1)
    }
    return overlay_drawing(lines, "loss", steps[-1])


def _legend(schemes: Iterable[str]) -> Drawing:
    lines = [
        beside([swatch(style), lines_of_text([title(scheme)], size=12, max_width=300)], 8)
        for style, scheme in enumerate(schemes, start=1)
    ]
    return stacked(lines, 4)


def _farthest(scheme: str, steps: Sequence[int], gaps: Sequence[float]) -> str:
    largest = max(gaps)
    values = {"scheme": scheme, "largest": f"{largest:.2g}", "step": steps[gaps.index(largest)]}
    apart = next((step for step, gap in zip(steps, gaps, strict=True) if gap > _APART), None)
    if apart is None:
        return _("{scheme}: at most {largest}, in step {step}", **values)
    return _(
        "{scheme}: above {limit} first in step {apart}; at most {largest}, in step {step}",
        limit=_APART,
        apart=apart,
        **values,
    )
