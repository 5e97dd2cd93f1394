"""The picture of this lesson: how far the losses of eight devices and of one are apart, step by step."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.i18n import _, join_sentences
from course_lib.pictures.curves import STYLES, Picture

_LEAST = 1e-17  # where equal losses are drawn: a logarithmic axis has no zero


def differences_picture(by_number_type: Mapping[str, Sequence[float]]) -> Picture:
    """Returns a line for each number type: the differences of the losses, on a logarithmic axis.

    Args:
        by_number_type: the difference at each step, by the name of the number type.
    """
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    lines = zip(by_number_type.items(), reversed(STYLES[:2]), strict=False)
    for (name, differences), (colour, _dashes, marker) in lines:
        steps = range(1, len(differences) + 1)
        axes.semilogy(steps, np.maximum(differences, _LEAST), color=colour, marker=marker, label=name)
    axes.set_xlabel(_("step"))
    axes.set_ylabel(_("difference of the losses"))
    axes.set_xticks(range(0, max(map(len, by_number_type.values())) + 1, 5))
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    file = io.BytesIO()
    figure.savefig(file)
    text = _("Picture: how far the losses of eight devices and of one are apart, step by step.")
    largest = ", ".join(f"{name} {max(values):.0e}" for name, values in by_number_type.items())
    figures = _("Largest difference: {largest}.", largest=largest)
    return Picture(file.getvalue(), join_sentences([text, figures]), text)
