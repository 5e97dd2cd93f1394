"""Real images through tensorflow_datasets: the first of a split, in their stored order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.specs.image_grid import Images

_IMAGES_A_BATCH = 5_000


def read_images(builder: Any, split: str, count: int) -> tuple[Images, npt.NDArray[np.int64]]:
    """Returns the first images of a split, `[count, 28, 28]`, and their labels, `[count]`.

    Raises:
        ValueError: there are fewer.
    """
    batches = list(builder.as_dataset(split=f"{split}[:{count}]", batch_size=_IMAGES_A_BATCH))
    images = np.concatenate([batch["image"].numpy()[..., 0] for batch in batches])
    labels = np.concatenate([batch["label"].numpy() for batch in batches])
    if len(images) != count:
        raise ValueError(f"{split}: {len(images)} of {count}")
    return images, labels
