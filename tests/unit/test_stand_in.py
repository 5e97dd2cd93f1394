"""The stand-in reviews: the same everywhere, hard enough and not too hard, and said without TensorFlow."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import statistics
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from course_lib.data.chance import below, shuffled
from course_lib.data.synthetic import NUM_TEST, NUM_TRAIN, make_reviews
from course_lib.data.synthetic_films import GENRES, Pool, split_words

# Other reviews mean other numbers in every lesson: run `make notebooks` when this has to change.
PINNED = "fc23bd50fb9788026f3c04932053925cc7a679b1e1b495808213d2759d9db839"
NUM_COLUMNS = 1200


@pytest.fixture(scope="module")
def reviews():
    return make_reviews()


@pytest.fixture(scope="module")
def rows(reviews):
    """Returns unscaled tf-idf rows and labels of both splits, by another way than the library's."""
    (train, train_labels), (test, test_labels) = reviews
    counts = [Counter(tokens(text)) for text in train]
    totals, documents = Counter(), Counter()
    for count in counts:
        totals.update(count)
        documents.update(count.keys())
    columns = {token: place for place, (token, _count) in enumerate(totals.most_common(NUM_COLUMNS))}
    weights = np.array([np.log(1 + len(train) / (1 + documents[token])) for token in columns], np.float32)

    def dense(counts):
        matrix = np.zeros((len(counts), NUM_COLUMNS), np.float32)
        for row, count in enumerate(counts):
            for token in count.keys() & columns.keys():
                matrix[row, columns[token]] = count[token]
        return matrix * weights

    test_counts = [Counter(tokens(text)) for text in test]
    return dense(counts), np.array(train_labels), dense(test_counts), np.array(test_labels)


def tokens(text: str) -> list[str]:
    return re.sub(r"[^\w\s]", "", text.lower()).split()


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def digest(reviews) -> str:
    return hashlib.sha256(repr(reviews).encode()).hexdigest()


def test_reviews_are_pinned_bit_for_bit(reviews):
    assert digest(reviews) == PINNED


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same_reviews_without_tensorflow_or_numpy(hash_seed):
    code = (
        "import hashlib, sys; from course_lib.data.synthetic import make_reviews;"
        "print(hashlib.sha256(repr(make_reviews()).encode()).hexdigest());"
        "print('tensorflow' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == [PINNED, "False"]


def test_splits_have_their_sizes_and_balanced_labels(reviews):
    for (texts, labels), num_reviews in zip(reviews, (NUM_TRAIN, NUM_TEST), strict=True):
        assert len(texts) == len(labels) == num_reviews
        assert Counter(labels) == {0: num_reviews // 2, 1: num_reviews // 2}


def test_last_batch_of_64_is_smaller_and_does_not_divide_among_8_devices():
    assert NUM_TRAIN % 64 == 36
    assert NUM_TRAIN % 64 % 8 != 0


def test_labels_come_in_no_order(reviews):
    for _texts, labels in reviews:
        halves = [sum(labels[: len(labels) // 2]), sum(labels[len(labels) // 2 :])]
        assert abs(halves[0] - halves[1]) < 3 * len(labels) ** 0.5
        runs = sum(first != second for first, second in itertools.pairwise(labels))
        assert abs(runs - len(labels) / 2) < 3 * len(labels) ** 0.5


def test_no_text_occurs_twice_and_the_films_of_the_splits_differ(reviews):
    (train, _), (test, _) = reviews
    assert len({*train, *test}) == NUM_TRAIN + NUM_TEST

    def directors(texts):
        return set(re.findall(r"directed by (\w+ \w+)\.", " ".join(texts)))

    assert len(directors(train)) > 300
    assert len(directors(train) & directors(test)) < 0.1 * len(directors(test))  # chance namesakes


def test_vocabulary_is_well_above_1200_words_with_few_frequent_ones(reviews):
    counts = Counter(token for text in reviews[0][0] for token in tokens(text))
    assert 3_000 <= len(counts) <= 6_000
    in_order = [count for _token, count in counts.most_common()]
    assert in_order[1_200] >= 20  # the 1,200 columns have something to learn from
    assert sum(in_order[:100]) > 0.5 * sum(in_order)


def test_lengths_vary_widely(reviews):
    lengths = sorted(len(text.split()) for text in reviews[0][0])
    assert 10 <= lengths[0] <= 30
    assert 350 <= lengths[-1] <= 500
    assert statistics.quantiles(lengths, n=10)[0] * 3 < statistics.quantiles(lengths, n=10)[-1]


def test_sentences_are_whole(reviews):
    for text in reviews[0][0][:2_000]:
        assert not re.search(r"[{}()|]|  | a [aeio]\w|\ban [bcdfgjklmnpqrstvwxz]", text), text
        for sentence in re.split(r"(?<=\.) ", text):
            assert sentence[0].isupper(), text
            assert sentence.endswith("."), text


def test_words_of_the_genre_say_nothing_about_the_label(reviews):
    texts, labels = reviews[0]
    for genre in GENRES:
        told = [label for text, label in zip(texts, labels, strict=True) if f"{genre} film" in text]
        assert abs(statistics.mean(told) - 0.5) < 4 * 0.5 / len(told) ** 0.5, genre


@pytest.mark.parametrize("word", ["great", "boring", "not", "masterpiece"])
def test_telling_words_occur_in_both_kinds_of_reviews(reviews, word):
    texts, labels = reviews[0]
    told = [label for text, label in zip(texts, labels, strict=True) if word in tokens(text)]
    assert 0.1 < statistics.mean(told) < 0.9


def test_a_linear_model_gets_80_to_90_percent(rows):
    train, train_labels, test, test_labels = rows
    weights = logistic_regression(unit(train), train_labels)
    accuracy = np.mean((unit(test) @ weights > 0) == test_labels)
    assert 0.80 < accuracy < 0.90


def test_the_mlp_learns_fast_on_unit_rows_and_slowly_as_the_tutorials_have_it(rows):
    train, train_labels, test, test_labels = rows
    scales = {"he": (np.sqrt(2 / NUM_COLUMNS), np.sqrt(2 / 48)), "normal": (1.0, 1.0)}
    fast = mlp_accuracy((unit(train), train_labels), (unit(test), test_labels), scales["he"])
    slow = mlp_accuracy((train, train_labels), (test, test_labels), scales["normal"])
    assert 0.78 < fast < 0.90
    assert 0.50 < slow < 0.70


def logistic_regression(rows, labels, epochs=10):
    """Returns weights after stochastic gradient descent, averaged over the last half of the steps."""
    random = np.random.default_rng(0)
    signs = (2 * labels - 1).astype(np.float32)
    weights = np.zeros(rows.shape[1], np.float32)
    averaged, num_averaged = np.zeros_like(weights), 0
    for epoch in range(epochs):
        for batch in np.array_split(random.permutation(len(labels)), len(labels) // 64):
            margins = signs[batch] * (rows[batch] @ weights)
            slopes = -signs[batch] / (1 + np.exp(margins)) / len(batch)
            weights -= np.float32(4 / (1 + epoch)) * (rows[batch].T @ slopes)
            if epoch >= epochs // 2:
                averaged, num_averaged = averaged + weights, num_averaged + 1
    return averaged / num_averaged


def mlp_accuracy(train, test, scales, *, epochs=3, rate=1e-2):
    """Returns the test accuracy of lesson 03's model, in NumPy: SGD on the summed loss, batch norm."""
    (rows, labels), (test_rows, test_labels) = train, test
    random = np.random.default_rng(0)
    hidden_weight = (scales[0] * random.standard_normal((rows.shape[1], 48))).astype(np.float32)
    logits_weight = (scales[1] * random.standard_normal((48, 2))).astype(np.float32)
    hidden_bias, logits_bias = np.zeros(48, np.float32), np.zeros(2, np.float32)
    mean, variance = np.zeros(48, np.float32), np.ones(48, np.float32)
    one_hot = np.eye(2, dtype=np.float32)
    for _epoch in range(epochs):
        order = random.permutation(len(labels))
        for batch in (order[start : start + 64] for start in range(0, len(labels), 64)):
            hidden = np.maximum(rows[batch] @ hidden_weight + hidden_bias, 0)
            moments = hidden.mean(0), hidden.var(0)
            mean, variance = 0.9 * mean + 0.1 * moments[0], 0.9 * variance + 0.1 * moments[1]
            deviation = np.sqrt(moments[1] + 1e-5)
            normal = (hidden - moments[0]) / deviation
            logits = normal @ logits_weight + logits_bias
            odds = np.exp(logits - logits.max(1, keepdims=True))
            slope = odds / odds.sum(1, keepdims=True) - one_hot[labels[batch]]
            back = slope @ logits_weight.T
            back = (back - back.mean(0) - normal * (back * normal).mean(0)) / deviation * (hidden > 0)
            logits_weight -= rate * (normal.T @ slope)
            logits_bias -= rate * slope.sum(0)
            hidden_weight -= rate * (rows[batch].T @ back)
            hidden_bias -= rate * back.sum(0)
    hidden = np.maximum(test_rows @ hidden_weight + hidden_bias, 0)
    logits = (hidden - mean) / np.sqrt(variance + 1e-5) @ logits_weight + logits_bias
    return np.mean(logits.argmax(1) == test_labels)


class Bits:
    """A source whose bits are all alike, in place of a random one."""

    def __init__(self, bit):
        self.bit = bit

    def getrandbits(self, num_bits):
        return self.bit * (2**num_bits - 1)


@pytest.mark.parametrize("bound", [1, 2, 7, 1_000_003])
def test_below_stays_in_its_range(bound):
    assert below(bound, Bits(0)) == 0
    assert below(bound, Bits(1)) == bound - 1


def test_a_pool_gives_its_first_and_its_last_item():
    pool = Pool(["first", "second", "last"])
    assert pool.draw(Bits(0)) == "first"
    assert pool.draw(Bits(1)) == "last"


def test_shuffled_keeps_every_item():
    import random

    assert sorted(shuffled(range(100), random.Random(1))) == list(range(100))
    assert shuffled(range(100), random.Random(1)) != list(range(100))


def test_phrases_are_divided_by_bars_and_words_by_blanks():
    assert split_words("one two\n three") == ("one", "two", "three")
    assert split_words("first hour|\n    camera work") == ("first hour", "camera work")
