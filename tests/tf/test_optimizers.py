"""Optimizers against their formulas in NumPy's float64: they return updates and write nothing."""

import numpy as np

from course_lib.models.sentiment import MLP, initial_values
from course_lib.training.optimizers import SGD

DIMS = (6, 4, 2)


def gradients_of(step: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(step)
    return {
        name: (10.0 ** random.integers(-6, 3) * random.standard_normal(variable.shape)).astype(np.float32)
        for name, variable in MLP(initial_values(dims=DIMS)).trained.items()
    }


def apply(optimizer, num_steps: int):
    model = MLP(initial_values(dims=DIMS))
    slots = optimizer.slots(model)
    for step in range(num_steps):
        for variable, value in optimizer.updates(model.trained, gradients_of(step), slots):
            variable.assign(value)
    return model, slots


def test_gradient_descent_moves_against_the_gradient():
    model, slots = apply(SGD(0.5), 1)
    assert slots is None
    for name, gradient in gradients_of(0).items():
        expected = initial_values(dims=DIMS)[name] - 0.5 * gradient
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-6)


def test_updates_write_nothing():
    model = MLP(initial_values(dims=DIMS))
    updates = SGD().updates(model.trained, gradients_of(0), None)
    for name, value in model.values().items():
        assert np.array_equal(value, initial_values(dims=DIMS)[name])
    assert len({id(variable) for variable, _value in updates}) == len(updates)
