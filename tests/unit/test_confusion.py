"""Confusion matrices: counted, drawn, and refused where they are none."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib import CourseError, i18n
from lessons.lesson_10_custom_training.confusion import ConfusionMatrix

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = np.array([[5, 0, 1], [2, 4, 0], [0, 10, 6]])
NAMES = ("shirt", "coat", "bag")
MATRIX = ConfusionMatrix(COUNTS, NAMES)


def test_it_counts_labels_by_rows_and_predictions_by_columns():
    matrix = ConfusionMatrix.of([0, 0, 0, 1, 2, 2], [0, 0, 2, 1, 1, 2], NAMES)
    assert matrix.counts.tolist() == [[2, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert matrix.accuracy == pytest.approx(4 / 6)


def test_golden_text():
    assert MATRIX.picture().text == (
        """
Confusion matrix: 28 examples, 3 classes
Accuracy 0.5357: 15 of 28 are on the diagonal.
A row is what the examples show, a column is what the model takes them for.

            0   1   2
  0 shirt   5   ·   1
  1 coat    2   4   ·
  2 bag     ·  10   6

The most frequent mistakes:
  bag is taken for coat: 10 examples
  coat is taken for shirt: 2 examples
  shirt is taken for bag: 1 example
""".strip("\n")
    )


def test_without_mistakes_it_says_so():
    assert (
        "No example is taken for another class."
        in ConfusionMatrix(np.eye(3, dtype=int), NAMES).picture().text
    )


def test_golden_text_in_japanese():
    i18n.set_language("ja")
    assert ConfusionMatrix(COUNTS, ("シャツ", "コート", "バッグ")).picture().text == (
        """
混同行列：28件、3クラス
正解率0.5357：28件中15件が対角線上にあります。
行は正解のクラス、列はモデルが予測したクラスです。

             0   1   2
  0 シャツ   5   ·   1
  1 コート   2   4   ·
  2 バッグ   ·  10   6

多い誤り：
  バッグをコートと予測：10件
  コートをシャツと予測：2件
  シャツをバッグと予測：1件
""".strip("\n")
    )


def test_a_cell_is_as_dark_as_its_part_of_the_row():
    tree = ElementTree.fromstring(
        ConfusionMatrix(np.array([[6, 2, 0], [1, 7, 0], [0, 0, 0]]), NAMES).picture().svg
    )
    shades = [float(each.get("fill-opacity")) for each in tree.iter(f"{SVG}rect") if each.get("fill-opacity")]
    assert shades == pytest.approx([0.75, 0.5, 0, 0.25, 0.875, 0, 0, 0, 0], abs=0.01)


def test_what_a_trained_model_predicts_is_described_and_not_compared():
    data, described = MATRIX._repr_mimebundle_()
    assert data["text/plain"] == "Confusion matrix: 28 examples, 3 classes"
    assert described["image/png"]["alt"] == MATRIX.picture().text
    assert repr(MATRIX) == ("ConfusionMatrix(counts (3, 3), names=['shirt', 'coat', 'bag'])")


@pytest.mark.parametrize(
    ("labels", "predictions", "named"),
    [([0, 1], [0], "2"), ([0, 3], [0, 1], "3"), ([0, 1], np.zeros((2, 3)), "(2, 3)")],
)
def test_what_are_no_labels_or_predictions_is_refused(labels, predictions, named):
    with pytest.raises(CourseError) as caught:
        ConfusionMatrix.of(labels, predictions, NAMES)
    assert named in caught.value.problem
