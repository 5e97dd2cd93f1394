"""Pictures of garments: drawn, or the real Fashion-MNIST."""

from __future__ import annotations

from course_lib.data.image_sources import load_images
from course_lib.data.images import ImageSet, ImagesWithChannel
from course_lib.data.sources import RealSet
from course_lib.i18n import _

NUM_TRAIN, NUM_TEST = 5_000, 5_000

REAL_SET = RealSet(
    "fashion_mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz",
)


def load_fashion(
    source: str | None = None, *, num_train: int = NUM_TRAIN, num_test: int = NUM_TEST
) -> ImageSet:
    """Returns images of garments with their labels, from the stand-in or from the real Fashion-MNIST.

    Features are `[images, 28, 28, 1]`, the pixels divided by 255, as convolutions take them.

    Args:
        source: "built-in" for the stand-in that comes with the library, "tfds" for the real garments. If
            left out, the environment variable COURSE_DATA says it, and "built-in" if that is not set.
        num_train: how many images to learn from, the first ones; all are 5,000, of the real set 60,000.
        num_test: how many to measure on, the first ones; all are 5,000, of the real set 10,000.

    Raises:
        CourseError: an unknown source or impossible numbers; or the real set is missing with no network.

    Source: https://www.tensorflow.org/datasets/catalog/fashion_mnist
    """
    counts = {"train": num_train, "test": num_test}
    return load_images("garments", REAL_SET, ImagesWithChannel, source, counts)


def class_names() -> tuple[str, ...]:
    """Returns the names of the ten classes in the reader's language, in the order of their numbers.

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
