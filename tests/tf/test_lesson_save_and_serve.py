"""What `save_and_serve` says of the text layer and does not show."""

import json
import re

import pytest

import course_lib
from course_lib import data
from tests.course import COURSE

tf = course_lib.start_tensorflow()


def test_a_checkpoint_of_the_text_layer_lacks_its_words(tmp_path):
    vectorizer = tf.keras.layers.TextVectorization(8, output_mode="tf_idf", pad_to_max_tokens=True)
    vectorizer.adapt(["good film story", "bad film"])
    path = tf.train.Checkpoint(layer=vectorizer).save(str(tmp_path / "checkpoint"))
    assert any("idf_weights" in name for name, _shape in tf.train.list_variables(path))
    assert "story" in vectorizer.get_vocabulary()
    assert not any(b"story" in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.drill_all
def test_the_numbers_of_the_two_vocabularies():
    cells = [cell.source for cell in COURSE.lesson("save_and_serve").cells]
    (words, columns) = re.search(
        r"have ([\d,]+) words in common, and (\d+) of these", json.dumps(cells)
    ).groups()
    reviews = data.load_imdb("built-in")
    vocabularies = []
    for texts in (reviews.train.texts[:4096], reviews.test.texts):
        layer = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
        layer.adapt(texts)
        vocabularies.append(layer.get_vocabulary()[1:])  # [UNK] is no word
    ours, theirs = vocabularies
    assert len(set(ours) & set(theirs)) == int(words.replace(",", ""))
    assert sum(our == their for our, their in zip(ours, theirs, strict=True)) == int(columns)
