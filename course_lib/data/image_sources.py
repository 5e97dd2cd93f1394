"""Where labelled images come from: drawn here and kept on disk, or the real set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from course_lib.data import disk_cache
from course_lib.data.images import ImageSet, LabelledImages
from course_lib.data.prepared import RealSet
from course_lib.data.sources import REAL, choose_source
from course_lib.errors import whole_number
from course_lib.i18n import _
from course_lib.specs.image_grid import Images

MOST_TRAIN, MOST_TEST = 60_000, 10_000
_SAMPLE = 100
_SEEDS = {"train": 2026, "test": 2027}

Labels = npt.NDArray[np.int64]
Make = Callable[[int, int], tuple[Images, Labels]]


@dataclass(frozen=True)
class ImageSource:
    """A set of images in its two forms.

    Attributes:
        make: draws so many images of the stand-in, from a seed; of one seed, fewer are the first of more.
        real: the real set.
        kind: how the images become features.
    """

    make: Make
    real: RealSet
    kind: type[LabelledImages] = LabelledImages

    def load(self, source: str | None, num_train: int, num_test: int) -> ImageSet:
        """Returns the first images of both splits.

        Raises:
            CourseError: an unknown source or impossible numbers; or the real set is missing with no network,
                or damaged.
        """
        chosen = choose_source(source)
        counts = {"train": _count(num_train, MOST_TRAIN), "test": _count(num_test, MOST_TEST)}
        read = self._read_real if chosen == REAL else self._make
        train, test = (self.kind(*read(split, count)) for split, count in counts.items())
        return ImageSet(chosen, train, test)

    def _make(self, split: str, count: int) -> tuple[Images, Labels]:
        """Returns images of the stand-in, from the cache if it has them."""
        some, _labels = self.make(_SAMPLE, _SEEDS[split])  # other drawings, another place in the cache
        sample = hashlib.sha256(some.tobytes()).hexdigest()
        key = json.dumps({"split": split, "count": count, "sample": sample})
        if (kept := disk_cache.load(key)) is not None:
            return kept["images"], kept["labels"]
        images, labels = self.make(count, _SEEDS[split])
        disk_cache.store(key, {"images": images, "labels": labels})
        return images, labels

    def _read_real(self, split: str, count: int) -> tuple[Images, Labels]:
        from course_lib.data.real_images import read_images

        return self.real.read(lambda builder: read_images(builder, split, count))


def _count(count: int, most: int) -> int:
    return whole_number(
        count,
        _("{count!r} images cannot be loaded.", count=count),
        least=1,
        most=most,
        cure=_("Give num_train and num_test such numbers, or leave them out."),
    )
