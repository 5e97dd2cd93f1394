"""The learning rate of a larger batch: numbers worked out by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.i18n import set_language
from lessons.lesson_09_strategies.learning_rates import scaled_learning_rate


@pytest.mark.parametrize(
    ("base", "base_batch", "batch", "rate"),
    [
        (0.1, 256, {"global_batch": 8192}, 3.2),  # Goyal and others, 2017: ResNet-50 in one hour
        (0.1, 256, {"global_batch": 64}, 0.025),
        (0.5, 10, {"per_replica": 5, "replicas": 2}, 0.5),
        (0.01, 32, {"per_replica": 32, "replicas": 3}, 0.03),
        (np.float32(0.5), np.int64(4), {"per_replica": np.int32(4), "replicas": 7}, 3.5),
    ],
)
def test_it_grows_as_the_batch(base, base_batch, batch, rate):
    assert scaled_learning_rate(base, base_batch, **batch) == pytest.approx(rate, rel=1e-12)


@given(st.floats(1e-6, 10), st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 64))
def test_any_number_of_replicas_will_do(base, base_batch, per_replica, replicas):
    rate = scaled_learning_rate(base, base_batch, per_replica=per_replica, replicas=replicas)
    assert rate * base_batch == pytest.approx(base * sum([per_replica] * replicas))


@pytest.mark.parametrize(
    ("base", "base_batch", "batch", "says"),
    [
        (0, 8, {"global_batch": 8}, "^0 cannot be a learning rate"),
        (-0.1, 8, {"global_batch": 8}, "-0.1 cannot be a learning rate"),
        (float("nan"), 8, {"global_batch": 8}, "nan cannot"),
        (float("inf"), 8, {"global_batch": 8}, "inf cannot"),
        ("0.1", 8, {"global_batch": 8}, "'0.1' cannot"),
        (True, 8, {"global_batch": 8}, "True cannot"),
        (1 + 1j, 8, {"global_batch": 8}, "cannot be a learning rate"),
        (0.1, 0, {"global_batch": 8}, "base_batch is 0.\n  Allowed: whole numbers from 1"),
        (0.1, 8.0, {"global_batch": 8}, r"base_batch is 8\.0"),
        (0.1, 8, {"global_batch": -8}, "global_batch is -8"),
        (0.1, 8, {"per_replica": 8, "replicas": 0}, "replicas is 0"),
        (0.1, 8, {"per_replica": "8", "replicas": 2}, "per_replica is '8'"),
        (0.1, 8, {}, "do not say one batch.\n  Allowed: global_batch alone, or per_replica and replicas"),
        (0.1, 8, {"per_replica": 8}, "per_replica=8 and replicas=None do not say"),
        (0.1, 8, {"replicas": 8}, "replicas=8 do not say"),
        (0.1, 8, {"global_batch": 8, "replicas": 2}, "global_batch=8, per_replica=None and replicas=2"),
        (0.1, 8, {"global_batch": 8, "per_replica": 4, "replicas": 2}, "do not say one batch"),
    ],
)
def test_what_is_no_rate_or_no_batch_is_refused_by_name(base, base_batch, batch, says):
    with pytest.raises(CourseError, match=says):
        scaled_learning_rate(base, base_batch, **batch)


def test_it_is_refused_in_japanese_too():
    set_language("ja")
    with pytest.raises(CourseError, match="条件") as caught:
        scaled_learning_rate(0.1, 8, per_replica=8)
    assert "per_replica=8" in caught.value.problem
