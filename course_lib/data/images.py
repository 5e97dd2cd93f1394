"""Grey images with labels: handwritten digits and garments, drawn, or the real MNIST and Fashion-MNIST."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples, Splits
from course_lib.data.sources import BUILT_IN, REAL, RealSet, choose_source, open_built_in
from course_lib.errors import whole_number
from course_lib.i18n import _

MNIST = RealSet("mnist", "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz")
FASHION_MNIST = RealSet(
    "fashion_mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz",
)
_MOST = {BUILT_IN: {"train": 5_000, "test": 5_000}, REAL: {"train": 60_000, "test": 10_000}}


@dataclass(frozen=True)
class LabelledImages(Examples):
    """Images with their labels.

    Attributes:
        features: the pixels from 0 to 1, float32, `[num_examples, 784] global`; or with a channel, as
            convolutions take them, `[num_examples, 28, 28, 1] global`.
        labels: `[num_examples] global`, int64, class numbers from 0 to 9.
        images: `[num_examples, 28, 28] global`, uint8, 0 to 255.
    """

    images: npt.NDArray[np.uint8]


Images = Splits[LabelledImages]


def load_mnist(source: str | None = None, *, num_train: int = 5_000, num_test: int = 5_000) -> Images:
    """Returns images of digits with their labels, from the stand-in or from the real MNIST.

    Args:
        source: "built-in" for the stand-in that comes with the library, "tfds" for the real digits. If
            left out, the environment variable COURSE_DATA says it, and "built-in" if that is not set.
        num_train: how many images to learn from, the first ones; all are 5,000, of the real set 60,000.
        num_test: how many to measure on, the first ones; all are 5,000, of the real set 10,000.

    Raises:
        CourseError: an unknown source or impossible numbers; or the real set is missing with no network.

    Source: https://www.tensorflow.org/datasets/catalog/mnist
    """
    return _load("digits", MNIST, source, {"train": num_train, "test": num_test}, (784,))


def load_fashion(source: str | None = None, *, num_train: int = 5_000, num_test: int = 5_000) -> Images:
    """Returns images of garments with their labels, from the stand-in or from the real Fashion-MNIST.

    Features are `[images, 28, 28, 1]`, as convolutions take them. For the rest see `load_mnist`.

    Source: https://www.tensorflow.org/datasets/catalog/fashion_mnist
    """
    counts = {"train": num_train, "test": num_test}
    return _load("garments", FASHION_MNIST, source, counts, (28, 28, 1))


def class_names() -> tuple[str, ...]:
    """Returns the names of the ten classes of garments in the reader's language, by their numbers.

    >>> class_names()[0], class_names()[9]
    ('T-shirt', 'ankle boot')
    """
    return (
        _("T-shirt"),
        _("trouser"),
        _("pullover"),
        _("dress"),
        _("coat"),
        _("sandal"),
        _("shirt"),
        _("sneaker"),
        _("bag"),
        _("ankle boot"),
    )


def _load(
    stand_in: str, real: RealSet, source: str | None, counts: dict[str, int], shape: tuple[int, ...]
) -> Images:
    """Returns the first images of both splits, as many as `counts` says, with features of that shape each."""
    chosen = choose_source(source)
    parts = {}
    for split, count in counts.items():
        whole_number(
            count,
            _("{count!r} images cannot be loaded.", count=count),
            least=1,
            most=_MOST[chosen][split],
            cure=_(
                "Give num_train and num_test such numbers, or leave them out. The real set has more images"
                ' than the built-in one: load "tfds" for them.'
            ),
        )
        if chosen == REAL:
            images, labels = real.read(f"{split}[:{count}]", "image")
        else:
            with open_built_in(f"{stand_in}-{split}.npy") as file:
                table = np.load(io.BytesIO(file.read()))[:count]
            images, labels = np.ascontiguousarray(table["image"]), table["label"]
        features = images.reshape(-1, *shape).astype(np.float32) / np.float32(255)
        parts[split] = LabelledImages(features, labels.astype(np.int64), images.reshape(-1, 28, 28))
    return Splits(**parts)
