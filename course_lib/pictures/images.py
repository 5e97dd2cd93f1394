"""The picture of some images: each under its label, or under what a model takes it for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.pictures import shapes
from course_lib.pictures.curves import Picture

_COLUMNS, _WIDTH_INCHES, _IMAGE_INCHES, _LINE_INCHES, _SIZE = 6, 7.0, 0.7, 0.18, 9


def image_grid(
    images: npt.NDArray[Any], labels: Sequence[object], predictions: Sequence[object] | None = None
) -> Picture:
    """Returns a picture of images under their labels, or under what a model takes them for.

    Its text tells the labels alone: what a trained model predicts differs from machine to machine.

    Args:
        images: `[images, height, width]`, from 0 for paper to 255 for ink.
        labels: what each shows.
        predictions: what a model takes each for.
    """
    names = [str(label) for label in labels]
    count = ngettext("{count} image", "{count} images", len(names))
    text = _("{images} with their labels: {labels}.", images=count, labels=_(", ").join(names))
    if predictions is None:
        return Picture(_png(images, names, [True] * len(names)), text, text)
    answers = [str(prediction) for prediction in predictions]
    right = [label == answer for label, answer in zip(names, answers, strict=True)]
    captions = [
        f"✓ {answer}" if is_right else f"✗ {answer}\n({label})"
        for label, answer, is_right in zip(names, answers, right, strict=True)
    ]
    title = _title(right)
    mistakes = [
        _(
            "Image {place} shows {label}; the model takes it for {prediction}.",
            place=at + 1,
            label=names[at],
            prediction=answers[at],
        )
        for at in np.flatnonzero(np.logical_not(right)).tolist()
    ]
    return Picture(_png(images, captions, right, title), "\n".join([text, title, *mistakes]), text)


def _title(right: Sequence[bool]) -> str:
    """Returns how many predictions are right, and how to see which."""
    num_right, num_wrong = sum(right), len(right) - sum(right)
    counts = [
        ngettext("{count} prediction is right.", "{count} predictions are right.", num_right),
        ngettext("{count} prediction is wrong.", "{count} predictions are wrong.", num_wrong),
    ]
    mark = _("✗ marks a wrong prediction, in a thick frame; the label stands below it in brackets.")
    return "\n".join([join_sentences(counts), mark])


def _png(images: npt.NDArray[Any], captions: Sequence[str], right: Sequence[bool], title: str = "") -> bytes:
    num_rows, lines = -(-len(captions) // _COLUMNS), 1 + max(caption.count("\n") for caption in captions)
    height = num_rows * (_IMAGE_INCHES + (lines + 0.5) * _LINE_INCHES) + (0.5 if title else 0)
    family = [*mpl.rcParams["font.family"], "DejaVu Sans"]  # the Japanese font has no marks
    file = io.BytesIO()
    with mpl.rc_context({"font.family": family, "font.size": _SIZE}):
        figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        figure.suptitle(title, fontsize=_SIZE)
        places = figure.subplots(num_rows, _COLUMNS, squeeze=False).ravel()
        shown = zip(images, captions, right, strict=True)
        for axes, (image, caption, is_right) in zip(places, shown, strict=False):
            axes.imshow(image, cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
            _frame(axes, caption, is_right=is_right)
        for axes in places[len(captions) :]:
            axes.set_axis_off()
        figure.savefig(file)
    return file.getvalue()


def _frame(axes: Axes, caption: str, *, is_right: bool) -> None:
    colour, width = (shapes.INK, 0.8) if is_right else (shapes.ALARM, 3)
    axes.set(xticks=[], yticks=[])
    axes.set_title(caption, fontsize=_SIZE, color=colour)
    axes.spines[:].set(edgecolor=colour, linewidth=width)
