"""Drawn garments: whole, as hard for a linear model as real ones. See test_drawn_images.py, too."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib import i18n
from course_lib.data import fashion
from course_lib.data.drawing import Glyph, Hand, fill, num_words
from course_lib.data.garments import GARMENTS, make_garments
from course_lib.data.images import ImagesWithChannel

STILL = Hand(0, 0, 0, 0, 0, 0, 0, (16, 16))
SHIRTS, SHOES = {0, 2, 4, 6}, {5, 7, 9}


@pytest.fixture(scope="module")
def garments():
    return make_garments(3_000, 2026)


def filled(text: str) -> np.ndarray:
    """Returns the one picture of a filled glyph that is drawn without differences."""
    glyph = Glyph(text)
    return fill(glyph, STILL, np.zeros((1, num_words([glyph])), np.int64))[0].astype(int)


def test_pictures_are_whole_and_none_is_too_dark_to_see(garments):
    images, _labels = garments
    assert (images.max(axis=(1, 2)) >= 60).all()
    assert ((images > 0).mean(axis=(1, 2)) > 0.08).all()  # nothing has left the picture
    assert 0.25 < (images > 0).mean() < 0.5


@pytest.mark.parametrize(
    "garment", [garment for cuts in GARMENTS for garment in cuts], ids=lambda garment: garment.text
)
def test_a_garment_uses_its_points_and_stays_in_its_box(garment):
    points, *parts = garment.text.split("|")
    assert set("".join(parts).lower()) - {" "} == {chr(ord("a") + at) for at in range(len(points.split()))}
    glyphs = [glyph for glyph in garment.glyphs if glyph]
    assert all((abs(glyph.points) <= 60).all() for glyph in glyphs)
    assert len(parts) == len(garment.glyphs) == 4


# --- A linear model


def test_a_linear_model_gets_as_far_as_on_the_real_set_and_confuses_what_looks_alike():
    """On as many of the real images it gets 0.80, and most mistakes are among tops and among shoes."""
    train, test = (make_garments(count, seed) for count, seed in ((3_000, 2026), (2_000, 2027)))
    told = softmax_regression(*train, test[0])
    mistakes = [(label, other) for label, other in zip(test[1], told, strict=True) if label != other]
    alike = sum({label, other} <= SHIRTS or {label, other} <= SHOES for label, other in mistakes)
    assert 0.80 < 1 - len(mistakes) / len(told) < 0.88
    assert alike > 0.6 * len(mistakes)


def softmax_regression(images: np.ndarray, labels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns the classes of other images, as softmax regression in NumPy sees them."""
    features, unknown = (each.reshape(-1, 784).astype(np.float32) / 255 for each in (images, others))
    random = np.random.default_rng(0)
    weights, bias = np.zeros((784, 10), np.float32), np.zeros(10, np.float32)
    for epoch in range(12):
        rate = np.float32(0.1 / (1 + epoch / 3))
        for rows in np.array_split(random.permutation(len(labels)), len(labels) // 50):
            logits = features[rows] @ weights + bias
            slopes = np.exp(logits - logits.max(axis=1, keepdims=True))
            slopes /= slopes.sum(axis=1, keepdims=True)
            slopes[np.arange(len(rows)), labels[rows]] -= 1
            weights -= rate / len(rows) * (features[rows].T @ slopes)
            bias -= rate / len(rows) * slopes.sum(axis=0)
    return (unknown @ weights + bias).argmax(axis=1)


# --- What is filled


def test_a_rectangle_is_filled_to_its_rim():
    """From 20 to 40 units across, 40 to 65 down: pixels 12 to 16 and 12 to 17, a unit is a fifth of one."""
    image = filled("20,40 40,40 40,65 20,65|ab bc cd da")
    expected = np.zeros((28, 28), int)
    expected[12:17, 12:16] = 255
    assert abs(image - expected).max() <= 255 // 16  # rounded to a sixteenth of a pixel


def test_what_covers_a_part_of_a_pixel_is_as_dark_as_that_part_and_the_area_is_kept():
    image = filled("5,5 52,8 30,90|ab bc ca")
    area = abs((52 - 5) * (90 - 5) - (30 - 5) * (8 - 5)) / 2 / 25  # of the triangle, in pixels
    assert image.sum() / 255 == pytest.approx(area, rel=0.02)
    part = filled("30,0 33,0 33,100 30,100|ab bc cd da")[10:18, 14]
    assert (abs(part - 0.6 * 255) <= 255 / 16).all()  # three of five units


def test_a_line_around_a_hole_leaves_it_empty_where_it_runs_the_other_way():
    image = filled("0,0 60,0 60,100 0,100 20,30 20,70 40,70 40,30|ab bc cd da ef fg gh he")
    assert image[14, 14] == 0
    assert image[14, 9] == 255


def test_what_leaves_the_picture_is_cut_off():
    wide = filled("-200,40 260,40 260,60 -200,60|ab bc cd da")
    assert (wide[12:16] >= 230).all()
    assert (wide[:11] == 0).all()


# --- The data set


@pytest.fixture(scope="module")
def garment_set(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("COURSE_DATA", raising=False)
        return fashion.load(num_train=30, num_test=20)


def test_features_have_a_channel_and_are_divided_by_255(garment_set):
    assert garment_set.source == "built-in"
    assert (len(garment_set.train), len(garment_set.test)) == (30, 20)
    features, images = garment_set.train.features, garment_set.train.images
    assert (features.dtype, features.shape) == (np.float32, (30, 28, 28, 1))
    assert np.array_equal(np.rint(features[..., 0] * 255), images)


def test_some_of_them_keep_their_channel(garment_set):
    kept, held_out = garment_set.train.hold_out(10)
    assert isinstance(kept, ImagesWithChannel)
    assert (kept.features.shape, held_out.features.shape) == ((20, 28, 28, 1), (10, 28, 28, 1))


@pytest.mark.parametrize("language", ["en", "ja"])
def test_ten_classes_have_names_of_their_own(language):
    i18n.set_language(language)
    assert len(set(fashion.class_names())) == 10


def test_names_are_in_the_readers_language():
    i18n.set_language("ja")
    assert fashion.class_names()[7] == "スニーカー"
