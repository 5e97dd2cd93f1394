"""Grey images with labels, scaled to the features that a dense model takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.specs.image_grid import WHITE, Images

SIDE = 28
SIZE = (SIDE, SIDE)


@dataclass(frozen=True, init=False, eq=False)
class LabelledImages(Examples):
    """Images with their labels; their features are the pixels, row by row, from 0 to 1.

    >>> LabelledImages(np.full((1, 28, 28), 51), [7]).features[0, :3]
    array([0.2, 0.2, 0.2], dtype=float32)

    Attributes:
        image_shape: of the features of one image.
        images: `[num_examples, 28, 28] global`, uint8, 0 to 255.
        features: `[num_examples, 784] global`, float32, 0 to 1.
        labels: `[num_examples] global`, int64, class numbers from 0 to 9.
    """

    image_shape: ClassVar[tuple[int, ...]] = (math.prod(SIZE),)
    images: Images

    def __init__(self, images: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        """Takes whole numbers for both."""
        pixels = np.asarray(images, np.uint8)
        object.__setattr__(self, "images", pixels)
        object.__setattr__(self, "features", _scaled(pixels).reshape(-1, *self.image_shape))
        object.__setattr__(self, "labels", np.array(labels, np.int64))

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """Returns some of the images, as NumPy takes rows."""
        return type(self)(self.images[rows], self.labels[rows])


class ImagesWithChannel(LabelledImages):
    """Images as convolutions take them: their features keep rows and columns, and gain an axis of channels.

    >>> ImagesWithChannel(np.full((1, 28, 28), 51), [7]).features.shape
    (1, 28, 28, 1)

    Attributes:
        images: `[num_examples, 28, 28] global`, uint8, 0 to 255.
        features: `[num_examples, 28, 28, 1] global`, float32, 0 to 1.
        labels: `[num_examples] global`, int64, class numbers from 0 to 9.
    """

    image_shape = (*SIZE, 1)


@dataclass(frozen=True)
class ImageSet:
    """Images to learn from and images to measure on.

    Attributes:
        source: where they come from: "built-in" for the stand-in, "tfds" for the real ones.
        train: the images to learn from.
        test: the images to measure on.
    """

    source: str
    train: LabelledImages
    test: LabelledImages


def _scaled(images: Images) -> npt.NDArray[np.float32]:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(WHITE)
