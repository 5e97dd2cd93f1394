"""Moments by one collective: right where the mean is far above the deviation."""

import numpy as np
import pytest

from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.plan import data_parallel, spatial_parallel
from course_lib.training.records import StepRecord
from course_lib.training.run import train
from tests.tf import oracles

pytestmark = pytest.mark.usefixtures("optimized")


@pytest.mark.parametrize("plan", [data_parallel(8), spatial_parallel()], ids=lambda plan: plan.name)
def test_training_on_such_data_equals_one_device(plan):
    examples = oracles.random_examples(64 * 12, 24)
    values = initial_values(dims=(24, 8, 2)) | {"hidden_bias": np.full(8, 100.0, np.float32)}
    expected_losses, expected = oracles.train_one_device(values, examples, 10)
    model = MLP(values, plan)
    with train(model, examples, epochs=1) as run:
        records = [next(run) for _step in range(10)]
    assert all(isinstance(record, StepRecord) for record in records)
    assert np.abs(np.subtract([record.loss for record in records], expected_losses)).max() < 1e-5
    found = model.values()
    assert found["moving_mean"].min() > 20 * np.sqrt(found["moving_variance"].max())
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
