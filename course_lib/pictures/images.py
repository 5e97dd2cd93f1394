"""The picture of some images, each under its label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy.typing as npt
from matplotlib.figure import Figure

from course_lib.i18n import _, ngettext
from course_lib.pictures import shapes
from course_lib.pictures.curves import Picture

_COLUMNS, _WIDTH_INCHES, _ROW_INCHES, _SIZE = 6, 7.0, 0.97, 9


def image_grid(images: npt.NDArray[Any], labels: Sequence[object]) -> Picture:
    """Returns a picture of images under their labels.

    Args:
        images: `[images, height, width]`, from 0 for paper to 255 for ink.
        labels: what each shows.
    """
    names = [str(label) for label in labels]
    count = ngettext("{count} image", "{count} images", len(names))
    text = _("{images} with their labels: {labels}.", images=count, labels=_(", ").join(names))
    num_rows = -(-len(names) // _COLUMNS)
    with mpl.rc_context({"font.size": _SIZE}):
        figure = Figure(figsize=(_WIDTH_INCHES, num_rows * _ROW_INCHES), layout="constrained")
        places = figure.subplots(num_rows, _COLUMNS, squeeze=False).ravel()
        shown = zip(images, names, strict=True)
        for axes, (image, name) in zip(places, shown, strict=False):
            axes.imshow(image, cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.set_title(name, fontsize=_SIZE, color=shapes.INK)
            axes.spines[:].set(edgecolor=shapes.INK, linewidth=0.8)
        for axes in places[len(names) :]:
            axes.set_axis_off()
        return Picture.of(figure, text)
