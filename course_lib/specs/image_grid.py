"""Grids of images: what each shows, and what a model takes it for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.specs.classes import to_numbers
from course_lib.specs.drawing import DrawsItself

Images = npt.NDArray[np.uint8]

WHITE = 255
MOST_IMAGES = 100
_AXES = 3


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ImageGrid(DrawsItself):
    """Images with their labels, and with what a model takes them for. It draws itself.

    Attributes:
        images: `[images, height, width]`, uint8: 0 for paper, 255 for ink.
        labels: what each shows, as text.
        predictions: what a model takes each for, as text; None where no model was asked.

    Raises:
        CourseError: what is no images, none of them or too many, not a label and a prediction for each, or
            a class number that has no name.
    """

    images: Images
    labels: tuple[str, ...]
    predictions: tuple[str, ...] | None

    def __init__(
        self,
        images: npt.ArrayLike,
        labels: npt.ArrayLike,
        predictions: npt.ArrayLike | None = None,
        *,
        names: Iterable[str] | None = None,
    ) -> None:
        """Takes class numbers or names as labels and predictions; only numbers if `names` are given.

        Args:
            images: `[images, height, width]`, whole numbers from 0 to 255.
            labels: what each shows, `[images]`.
            predictions: what a model takes each for, `[images]`.
            names: of the classes, in the order of their numbers: they are shown in place of the numbers.
        """
        checked = _to_images(images)
        if not 0 < len(checked) <= MOST_IMAGES:
            raise CourseError(
                ngettext(
                    "A grid of {count} image cannot be drawn.",
                    "A grid of {count} images cannot be drawn.",
                    len(checked),
                ),
                allowed=_("1 to {most} images", most=MOST_IMAGES),
                cure=_("Take some of them, for example images[:20]."),
            )
        object.__setattr__(self, "images", checked)
        known = None if names is None else tuple(names)
        object.__setattr__(self, "labels", _texts(labels, checked, known))
        told = None if predictions is None else _texts(predictions, checked, known)
        object.__setattr__(self, "predictions", told)

    def __repr__(self) -> str:
        asked = "" if self.predictions is None else f", predictions={list(self.predictions)}"
        return f"ImageGrid(images {self.images.shape}, labels={list(self.labels)}{asked})"

    @property
    def wrong(self) -> tuple[int, ...]:
        """The places of the images that the model takes for something else.

        >>> ImageGrid(np.zeros((3, 4, 4), np.uint8), [1, 2, 3], [1, 7, 3]).wrong
        (1,)
        """
        if self.predictions is None:
            return ()
        pairs = zip(self.labels, self.predictions, strict=True)
        return tuple(at for at, (label, prediction) in enumerate(pairs) if label != prediction)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the picture, and as text what is the same on every machine: the labels.

        What a trained model predicts is not, so that it stands in the picture and in its description.
        """
        if self.predictions is None:
            return super()._repr_mimebundle_(**options)
        return self._not_compared(ImageGrid(self.images, self.labels).picture().text)


def _to_images(given: npt.ArrayLike) -> Images:
    """Returns images as uint8.

    Args:
        given: `[images, height, width]`, whole numbers from 0 to 255.

    Raises:
        CourseError: another shape, or pixels that are no whole numbers from 0 to 255.
    """
    array = np.asarray(given)
    if array.ndim != _AXES:
        raise CourseError(
            _("Images of the shape {given} cannot be used.", given=array.shape),
            allowed=_("[images, {height}, {width}]", height=_("height"), width=_("width")),
            cure=_("Leave out an axis of colours, and cut or scale the images to this size."),
        )
    if array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() <= WHITE):
        raise CourseError(
            _("The pixels are {dtype}, {values}.", dtype=array.dtype, values=_range(array)),
            allowed=_("whole numbers from {least} to {most}", least=0, most=WHITE),
            cure=_("Give images as they are stored, before they are scaled."),
        )
    return array.astype(np.uint8, copy=False)


def _range(array: npt.NDArray[Any]) -> str:
    if array.dtype.kind not in "iuf" or not array.size:
        return _("no numbers")
    return _("from {least:.4g} to {most:.4g}", least=float(array.min()), most=float(array.max()))


def _one_for_each(given: npt.ArrayLike, images: Images) -> npt.NDArray[Any]:
    """Returns labels or predictions as an array, `[images]`.

    Raises:
        CourseError: not one for each image.
    """
    array = np.asarray(given)
    if array.shape != images.shape[:1]:
        raise CourseError(
            _(
                "The number of images is {images}, the shape of their labels or predictions {labels}.",
                images=len(images),
                labels=array.shape,
            ),
            allowed=_("one label for each image"),
            cure=_("Take images and labels from the same rows."),
        )
    return array


def _texts(given: npt.ArrayLike, images: Images, names: tuple[str, ...] | None) -> tuple[str, ...]:
    array = _one_for_each(given, images)
    if names is not None:
        return tuple(names[number] for number in to_numbers(array, len(names)))
    return tuple(map(str, array.tolist()))
