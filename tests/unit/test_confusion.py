"""Confusion matrices: counted, drawn, and refused where they are none."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError, i18n
from lessons.lesson_10_custom_training.confusion import Confusion, ConfusionMatrix

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = [[5, 0, 1], [2, 4, 0], [0, 10, 6]]
NAMES = ["shirt", "coat", "bag"]


@pytest.fixture(params=["en", "ja"])
def language(request):
    i18n.set_language(request.param)
    return request.param


def test_it_counts_labels_by_rows_and_predictions_by_columns():
    matrix = ConfusionMatrix.of([0, 0, 0, 1, 2, 2], [0, 0, 2, 1, 1, 2])
    assert matrix.counts.tolist() == [[2, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert matrix.names == ("0", "1", "2")
    assert (matrix.num_examples, matrix.num_right) == (6, 4)
    assert matrix.accuracy == pytest.approx(4 / 6)


def test_names_say_how_many_classes_there_are():
    assert ConfusionMatrix.of([0], [1], NAMES).counts.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60))
def test_its_accuracy_is_that_of_the_predictions(pairs):
    labels, predictions = zip(*pairs, strict=True)
    matrix = ConfusionMatrix.of(labels, predictions, [f"class {number}" for number in range(10)])
    assert matrix.accuracy == pytest.approx(np.mean(np.equal(labels, predictions)))
    assert matrix.counts.sum(axis=1).tolist() == np.bincount(labels, minlength=10).tolist()
    assert matrix.counts.sum(axis=0).tolist() == np.bincount(predictions, minlength=10).tolist()


def test_the_most_frequent_mistakes_come_first_and_equal_ones_in_the_order_of_the_classes():
    matrix = ConfusionMatrix([[5, 2, 3], [2, 4, 0], [0, 9, 6]], NAMES)
    assert matrix.most_confused(4) == (
        Confusion("bag", "coat", 9),
        Confusion("shirt", "bag", 3),
        Confusion("shirt", "coat", 2),
        Confusion("coat", "shirt", 2),
    )
    assert len(matrix.most_confused(99)) == 4
    assert ConfusionMatrix([[3]]).most_confused() == ()


def test_golden_text():
    assert ConfusionMatrix(COUNTS, NAMES).picture().text == (
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


def test_golden_text_without_names_and_without_mistakes():
    assert ConfusionMatrix([[1, 0], [0, 0]]).picture().text == (
        """
Confusion matrix: 1 example, 2 classes
Accuracy 1.0000: 1 of 1 are on the diagonal.
A row is what the examples show, a column is what the model takes them for.

     0  1
  0  1  ·
  1  ·  ·

No example is taken for another class.
""".strip("\n")
    )


def test_golden_text_in_japanese():
    i18n.set_language("ja")
    assert ConfusionMatrix(COUNTS, ["シャツ", "コート", "バッグ"]).picture().text == (
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


def test_the_picture_has_a_cell_for_each_pair_with_its_count():
    tree = ElementTree.fromstring(ConfusionMatrix(COUNTS, NAMES).picture().svg)
    assert len([each for each in tree.iter(f"{SVG}rect") if each.get("class") == "cell"]) == 9
    texts = [each.text for each in tree.iter(f"{SVG}text")]
    assert [text for text in texts if text == "·" or text.isdigit()] == [
        "5",
        "·",
        "1",
        "2",
        "4",
        "·",
        "·",
        "10",
        "6",
    ]
    assert all(texts.count(name) == 2 for name in NAMES)  # of a row and of a column


def test_a_cell_is_as_dark_as_its_part_of_the_row():
    tree = ElementTree.fromstring(ConfusionMatrix([[6, 2, 0], [1, 7, 0], [0, 0, 0]]).picture().svg)
    shades = [float(each.get("fill-opacity")) for each in tree.iter(f"{SVG}rect") if each.get("fill-opacity")]
    assert shades == pytest.approx([0.75, 0.5, 0, 0.25, 0.875, 0, 0, 0, 0], abs=0.01)


def test_what_a_trained_model_predicts_is_described_and_not_compared():
    data, described = ConfusionMatrix(COUNTS, NAMES)._repr_mimebundle_()
    assert data["text/plain"] == "Confusion matrix: 28 examples, 3 classes"
    assert described["image/png"]["alt"] == ConfusionMatrix(COUNTS, NAMES).picture().text
    assert repr(ConfusionMatrix(COUNTS, NAMES)) == (
        "ConfusionMatrix(counts (3, 3), names=['shirt', 'coat', 'bag'])"
    )


@pytest.mark.parametrize(
    ("counts", "names", "named"),
    [
        ([[1, 2, 3], [4, 5, 6]], None, "(2, 3)"),
        ([1, 2], None, "(2,)"),
        ([[1], [2, 3]], None, "(0,)"),
        (np.ones((21, 21), int), None, "(21, 21)"),
        (np.ones((0, 0), int), None, "(0, 0)"),
        ([[0.5, 1], [1, 1]], None, "0.5"),
        ([[-1, 1], [1, 1]], None, "-1"),
        ([[0, 0], [0, 0]], None, "0"),
        ([[1, 0], [0, 1]], ["coat"], "1"),
        ([[1, 0], [0, 1]], ["coat", "coat"], "coat"),
        ([[1, 0], [0, 1]], ["coat", ""], "coat"),
        ([[1, 0], [0, 1]], "ab", "'ab'"),
        ([[1, 0], [0, 1]], 2, "2"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused(language, counts, names, named):
    with pytest.raises(CourseError) as caught:
        ConfusionMatrix(counts, names)
    assert named in caught.value.problem


@pytest.mark.parametrize(
    ("labels", "predictions", "named"),
    [
        ([0, 1], [0], "2"),
        ([], [], "0"),
        ([0, 3], [0, 1], "3"),
        ([0, 1], [0, -1], "-1"),
        ([0, 1], [0.5, 1.0], "0.5"),
        (["shirt"], [0], "shirt"),
        ([0, 1], np.zeros((2, 3)), "(2, 3)"),
        ([[1], [2, 3]], [0, 1], "(0, 0)"),
    ],
)
def test_what_are_no_labels_or_predictions_is_refused(language, labels, predictions, named):
    with pytest.raises(CourseError) as caught:
        ConfusionMatrix.of(labels, predictions, NAMES)
    assert named in caught.value.problem


@pytest.mark.parametrize("count", [0, -1, 1.5, "3"])
def test_an_impossible_number_of_mistakes_is_refused(language, count):
    with pytest.raises(CourseError) as caught:
        ConfusionMatrix(COUNTS).most_confused(count)
    assert repr(count) in caught.value.problem
