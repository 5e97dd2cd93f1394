"""Where labelled images come from: the stored stand-in, or the real set."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.data.images import ImageSet, LabelledImages
from course_lib.data.sources import BUILT_IN, REAL, RealSet, choose_source, open_built_in
from course_lib.errors import whole_number
from course_lib.i18n import _

MOST = {BUILT_IN: {"train": 5_000, "test": 5_000}, REAL: {"train": 60_000, "test": 10_000}}


def load_images(
    stand_in: str, real: RealSet, kind: type[LabelledImages], source: str | None, counts: dict[str, int]
) -> ImageSet:
    """Returns the first images of both splits.

    Args:
        stand_in: the name of the stand-in.
        real: the real set.
        kind: how the images become features.
        source: as `choose_source` takes it.
        counts: how many images of "train" and of "test".

    Raises:
        CourseError: an unknown source or impossible numbers; or the real set is missing with no network.
    """
    chosen = choose_source(source)
    for split, count in counts.items():
        whole_number(
            count,
            _("{count!r} images cannot be loaded.", count=count),
            least=1,
            most=MOST[chosen][split],
            cure=_(
                "Give num_train and num_test such numbers, or leave them out. The real set has more images"
                ' than the built-in one: load "tfds" for them.'
            ),
        )
    if chosen == REAL:
        parts = [_read_real(real, split, count) for split, count in counts.items()]
    else:
        parts = [_read_stand_in(f"{stand_in}-{split}.npy", count) for split, count in counts.items()]
    train, test = (kind(images, labels) for images, labels in parts)
    return ImageSet(chosen, train, test)


def _read_stand_in(name: str, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    with open_built_in(name) as file:
        table = np.load(io.BytesIO(file.read()))[:count]
    return np.ascontiguousarray(table["image"]), table["label"]


def _read_real(real: RealSet, split: str, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    images, labels = real.read(f"{split}[:{count}]", "image")
    return images[..., 0], labels
