"""Labelled images: checked and scaled; and their picture with labels and predictions."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.data import mnist
from course_lib.data.examples import Examples
from course_lib.data.images import LabelledImages
from course_lib.specs.image_grid import ImageGrid
from tests.drawn import elements


def drawn(count: int) -> np.ndarray:
    return mnist.load_mnist("built-in", num_train=count, num_test=1).train.images


# --- Images with labels


def test_features_are_the_pixels_row_by_row_divided_by_255():
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28))
    examples = LabelledImages(images, [1, 2, 3])
    assert (examples.images.dtype, examples.labels.dtype) == (np.uint8, np.int64)
    assert examples.features.dtype == np.float32
    assert examples.features.shape == (3, 784)
    assert np.array_equal(np.rint(examples.features * 255).reshape(3, 28, 28), images)
    assert examples.features[2, 28 * 5 + 7] == np.float32(images[2, 5, 7]) / np.float32(255)


def test_they_are_examples_that_can_be_held_out_and_taken():
    examples = mnist.load_mnist("built-in", num_train=20, num_test=1).train
    kept, held_out = examples.hold_out(5)
    assert isinstance(examples, Examples)
    assert (len(kept), len(held_out)) == (15, 5)
    assert {image.tobytes() for part in (kept, held_out) for image in part.images} == {
        image.tobytes() for image in examples.images
    }
    first = examples.take(slice(3))
    assert np.array_equal(first.features, examples.features[:3])
    assert first.labels.tolist() == examples.labels[:3].tolist()


# --- The picture


def drawn_grid(labels, predictions=None) -> ImageGrid:
    return ImageGrid(drawn(len(labels)), labels, predictions)


def test_wrong_predictions_have_a_thick_frame_a_mark_and_bold_letters():
    grid = drawn_grid([7, 2, 1], [7, 3, 1])
    (frame,) = elements(grid, "rect", "wrong")
    assert float(frame.get("stroke-width")) >= 3
    texts = {each.text: each.get("font-weight") for each in elements(grid, "text")}
    assert texts["✗ 3 (2)"] == "600"
    assert texts["✓ 7"] is None


def test_the_picture_has_the_ink_of_the_image():
    """The areas of the runs of each shade, times the shade, are the image's own ink, rounded up."""
    image = drawn(1)
    shades = [each for each in elements(ImageGrid(image, [0]), "path") if each.get("fill-opacity")]
    found = np.zeros((28, 28))
    for each in shades:
        for run in each.get("d").split("M")[1:]:
            place, length = run.split("v")[0].split("h")
            x, y = map(int, place.split())
            found[y, x : x + int(length)] += float(each.get("fill-opacity"))
    assert (found[image[0] == 0] == 0).all()
    assert (found[image[0] == 255] == 1).all()
    assert abs(found - image[0] / 255).max() <= 1 / 8 + 0.005  # opacities have two digits


def test_what_a_trained_model_predicts_is_described_and_not_compared():
    first, second = (drawn_grid([7, 2], predictions) for predictions in ([7, 2], [7, 3]))
    (data, described), (other, _described) = first._repr_mimebundle_(), second._repr_mimebundle_()
    assert data["text/plain"] == other["text/plain"] == drawn_grid([7, 2]).picture().text
    assert data.keys() == {"image/png", "text/plain"}  # SVG would be compared
    assert data["image/png"] != other["image/png"]
    assert described["image/png"]["alt"] == first.picture().text


def test_images_of_any_size_are_drawn_in_the_middle_of_their_frame():
    groups = elements(ImageGrid(np.full((1, 2, 4), 255), ["wide"]), "g")
    (image,) = (each for each in groups if each.get("shape-rendering"))
    assert image.get("transform").endswith("scale(14)")


BLANK = np.zeros((2, 28, 28), np.uint8)


@pytest.mark.parametrize(
    ("wrong", "named", "allowed"),
    [
        (lambda: ImageGrid(BLANK[..., None], [1, 2]), "(2, 28, 28, 1)", "[images, height, width]"),
        (lambda: ImageGrid(BLANK + 0.5, [1, 2]), "float64", "0 to 255"),
        (lambda: ImageGrid(BLANK, [1.0, 0.5], names=["coat", "bag"]), "1.0", "0 to 1"),
        (lambda: ImageGrid(BLANK, [1]), "(1,)", "one label for each image"),
        (lambda: ImageGrid(BLANK, [1, 2], [1, 2, 3]), "(3,)", "one label for each image"),
        (lambda: ImageGrid(np.repeat(BLANK, 51, axis=0), [1] * 102), "102", "1 to 100 images"),
        (lambda: ImageGrid(BLANK, [0, 2], names=["coat", "bag"]), "2", "0 to 1"),
    ],
)
def test_what_cannot_be_used_is_refused(wrong, named, allowed):
    with pytest.raises(CourseError) as caught:
        wrong()
    assert named in caught.value.problem
    assert allowed in caught.value.allowed
