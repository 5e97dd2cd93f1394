"""The picture of this lesson: how far the losses of eight devices and of one are apart, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture


def differences_picture(comparisons: Mapping[str, Sequence[float]]) -> Picture:
    """Returns a line for each comparison: the largest difference so far, from where there is one.

    Args:
        comparisons: how far the losses are apart at each step, by what is compared.
    """
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    ends = []
    for (name, differences), (colour, _dashes, marker) in zip(comparisons.items(), STYLES, strict=False):
        so_far = np.maximum.accumulate(differences)
        steps = np.arange(1, len(so_far) + 1)
        axes.semilogy(steps[so_far > 0], so_far[so_far > 0], color=colour, marker=marker)
        ends.append((float(so_far[-1]), len(so_far) + 0.5, name, colour))
    lowest = 0.0
    for last, right, name, colour in sorted(ends):
        height = max(last, lowest)
        axes.annotate(name, (right, height), color=colour, va="center", annotation_clip=False)
        lowest = 10 * height  # so that no two names overlap
    axes.set_xlabel(_("step"))
    axes.set_ylabel(_("largest difference so far"))
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_xlim(0.5, 25)
    axes.set_ylim(top=10)
    axes.grid(visible=True, alpha=0.3)
    text = _("Picture: how far the losses of eight devices and of one are apart, step by step.")
    largest = ", ".join(f"{name} {max(values):.0e}" for name, values in comparisons.items())
    figures = _("Largest difference: {largest}.", largest=largest)
    return Picture.of(figure, text, figures)
