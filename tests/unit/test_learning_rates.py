"""The learning rate of a larger batch."""

import pytest

from lessons.lesson_09_strategies.learning_rates import scaled_learning_rate


def test_it_grows_as_the_batch():
    assert scaled_learning_rate(0.1, 256, 8192) == pytest.approx(3.2)  # Goyal and others, 2017
    assert scaled_learning_rate(0.1, 256, 64) == pytest.approx(0.025)
