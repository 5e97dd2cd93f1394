"""The picture of images with labels and predictions."""

from __future__ import annotations

import numpy as np

from course_lib.pictures.images import image_grid

BLANK = np.zeros((3, 28, 28), np.uint8)


def test_the_text_tells_the_labels_and_the_description_what_a_model_makes_of_them():
    labels = ["coat", "bag", "ankle boot"]
    plain, predicted = image_grid(BLANK, labels), image_grid(BLANK, labels, ["coat", "coat", "bag"])
    assert plain.text == plain.alt == "3 images with their labels: coat, bag, ankle boot."
    assert predicted.text == plain.text  # the same on every machine
    assert predicted.alt.splitlines()[1:] == [
        "1 prediction is right. 2 predictions are wrong.",
        "✗ marks a wrong prediction, in a thick frame; the label stands below it in brackets.",
        "Image 2 shows bag; the model takes it for coat.",
        "Image 3 shows ankle boot; the model takes it for bag.",
    ]
