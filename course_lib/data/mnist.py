"""Handwritten digits: drawn, or the real MNIST."""

from __future__ import annotations

from course_lib.data.image_sources import load_images
from course_lib.data.images import ImageSet, LabelledImages
from course_lib.data.sources import RealSet

NUM_TRAIN, NUM_TEST = 5_000, 5_000

REAL_SET = RealSet("mnist", "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz")


def load_mnist(
    source: str | None = None, *, num_train: int = NUM_TRAIN, num_test: int = NUM_TEST
) -> ImageSet:
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
    counts = {"train": num_train, "test": num_test}
    return load_images("digits", REAL_SET, LabelledImages, source, counts)
