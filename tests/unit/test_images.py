"""Labelled images: checked and scaled; and their picture with labels and predictions."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import CourseError, i18n
from course_lib.data import mnist
from course_lib.data.examples import Examples
from course_lib.data.images import LabelledImages, to_features
from course_lib.specs.image_grid import ImageGrid
from tests.drawn import elements, tree

SVG = "{http://www.w3.org/2000/svg}"
WHITE_IMAGE = np.full((1, 28, 28), 255, np.uint8)


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(i18n.SOURCE_LANGUAGE)


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


WRONG_IMAGES = {
    "another size": (np.zeros((2, 28, 27), np.uint8), "(2, 28, 27)", "[images, 28, 28]"),
    "rows of unlike lengths": ([[1, 2], [3]], "(0,)", "[images, 28, 28]"),
    "scaled": (np.full((2, 28, 28), 0.5), "float64", "0 to 255"),
    "above 255": (np.full((2, 28, 28), 256), "256", "0 to 255"),
    "texts": (np.full((2, 28, 28), "7"), "<U1", "0 to 255"),
}


@pytest.mark.parametrize("kind", WRONG_IMAGES)
def test_what_is_no_image_is_refused(kind):
    given, named, allowed = WRONG_IMAGES[kind]
    with pytest.raises(CourseError) as caught:
        LabelledImages(given, [1, 2])
    assert named in caught.value.problem
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    ("labels", "named"),
    [([10, 1], "10"), ([1, -1], "-1"), ([1.0, 2.5], "1.0"), (["a", "b"], "'a'")],
)
def test_a_label_that_is_no_digit_is_refused(labels, named):
    with pytest.raises(CourseError, match="number of a class") as caught:
        LabelledImages(np.zeros((2, 28, 28), np.uint8), labels)
    assert named in caught.value.problem
    assert "0 to 9" in caught.value.allowed


@pytest.mark.parametrize("labels", [[1], [[1, 2]]])
def test_not_one_label_for_each_image_is_refused(labels):
    with pytest.raises(CourseError, match="number of images is 2"):
        LabelledImages(np.zeros((2, 28, 28), np.uint8), labels)


# --- Features of images as a reader has them


@pytest.mark.parametrize("given", [WHITE_IMAGE.reshape(1, -1), WHITE_IMAGE.tolist()])
def test_whole_numbers_are_divided_by_255(given):
    assert np.array_equal(to_features(given), np.ones((1, 784), np.float32))


@pytest.mark.parametrize("kind", [np.float16, np.float64])
@pytest.mark.parametrize("size", [(784,), (28, 28)])
def test_real_numbers_are_taken_as_they_are(kind, size):
    features = to_features(np.full((3, *size), 0.5, kind))
    assert (features.dtype, features.shape) == (np.float32, (3, 784))
    assert (features == 0.5).all()


WRONG_FEATURES = {
    "not scaled": (WHITE_IMAGE.astype(float), "255", "0 to 1"),
    "below 0": (np.full((1, 784), -0.25), "-0.25", "0 to 1"),
    "no number": (np.full((1, 784), np.nan), "nan", "0 to 1"),
    "another number of features": (np.zeros((1, 700)), "(1, 700)", "[images, 28, 28]"),
}


@pytest.mark.parametrize("kind", WRONG_FEATURES)
def test_what_is_no_feature_of_an_image_is_refused(kind):
    given, named, allowed = WRONG_FEATURES[kind]
    with pytest.raises(CourseError) as caught:
        to_features(given)
    assert named in caught.value.problem
    assert allowed in caught.value.allowed


# --- The picture


def drawn_grid(labels, predictions=None) -> ImageGrid:
    return ImageGrid(drawn(len(labels)), labels, predictions)


def test_names_stand_in_place_of_class_numbers():
    names = ["T-shirt", "trouser", "pullover"]
    grid = ImageGrid(drawn(3), [2, 0, 1], [2, 1, 1], names=names)
    assert (grid.labels, grid.predictions) == (
        ("pullover", "T-shirt", "trouser"),
        ("pullover", "trouser", "trouser"),
    )
    assert grid.wrong == (1,)
    texts = {each.text: each.get("font-weight") for each in elements(grid, "text")}
    assert (texts["✗ trouser (T-shirt)"], texts["✓ pullover"]) == ("600", None)


@pytest.mark.parametrize(
    ("labels", "names", "named"),
    [
        ([0, 2], ["coat", "bag"], "2"),
        ([0, -1], ["coat", "bag"], "-1"),
        (["coat", "bag"], ["coat", "bag"], "'coat'"),
        ([0.0, 1.0], ["coat", "bag"], "0.0"),
        ([0, 1], ["coat", "coat"], "coat"),
        ([0, 1], [], "[]"),
        ([0, 1], [0, 1], "[0, 1]"),
        ([0, 1], "ab", "'ab'"),
    ],
)
def test_names_that_do_not_fit_are_refused(language, labels, names, named):
    with pytest.raises(CourseError) as caught:
        ImageGrid(drawn(2), labels, names=names)
    assert named in caught.value.problem


def test_wrong_predictions_have_a_thick_frame_a_mark_and_bold_letters():
    root = tree(drawn_grid([7, 2, 1], [7, 3, 1]))
    (frame,) = (each for each in root.iter(f"{SVG}rect") if each.get("class") == "wrong")
    assert float(frame.get("stroke-width")) >= 3
    texts = {each.text: each.get("font-weight") for each in root.iter(f"{SVG}text")}
    assert texts["✗ 3 (2)"] == "600"
    assert texts["✓ 7"] is None


def test_the_picture_has_the_ink_of_the_image():
    """The areas of the runs of each shade, times the shade, are the image's own ink, rounded up."""
    image = drawn(1)
    root = tree(ImageGrid(image, [0]))
    shades = [each for each in root.iter(f"{SVG}path") if each.get("fill-opacity")]
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


def test_repr_stays_one_line():
    assert repr(drawn_grid([7, 2], [7, 3])) == (
        "ImageGrid(images (2, 28, 28), labels=['7', '2'], predictions=['7', '3'])"
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((np.zeros((0, 28, 28), np.uint8), []), "0"),
        ((np.zeros((101, 28, 28), np.uint8), [1] * 101), "101"),
        ((np.zeros((2, 28, 28), np.uint8), [1]), "(1,)"),
        ((np.zeros((2, 28, 28), np.uint8), 1), "()"),
        ((np.zeros((2, 28, 28), np.uint8), [[1], [2]]), "(2, 1)"),
        ((np.zeros((2, 28, 28), np.uint8), [1, 2], [1, 2, 3]), "(3,)"),
        ((np.zeros((2, 784), np.uint8), [1, 2]), "(2, 784)"),
        ((np.zeros((2, 28, 28)), [1, 2]), "float64"),
    ],
)
def test_what_cannot_be_drawn_is_refused(language, arguments, named):
    with pytest.raises(CourseError) as caught:
        ImageGrid(*arguments)
    assert named in caught.value.problem


def test_images_of_any_size_are_drawn_in_the_middle_of_their_frame():
    root = tree(ImageGrid(np.full((1, 2, 4), 255), ["wide"]))
    (image,) = (each for each in root.iter(f"{SVG}g") if each.get("shape-rendering"))
    assert image.get("transform").endswith("scale(14)")
