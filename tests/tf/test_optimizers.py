"""Optimizers against their formulas in NumPy's float64: they return updates and write nothing."""

import numpy as np
import pytest

from course_lib.models.sentiment import MLP, initial_values
from course_lib.training.optimizers import SGD, Adam

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


def adam_in_float64(num_steps, rate=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    values = {name: np.float64(value) for name, value in initial_values(dims=DIMS).items()}
    means, squares = {}, {}
    for step in range(1, num_steps + 1):
        for name, gradient in gradients_of(step - 1).items():
            means[name] = beta_1 * means.get(name, 0.0) + (1 - beta_1) * np.float64(gradient)
            squares[name] = beta_2 * squares.get(name, 0.0) + (1 - beta_2) * np.float64(gradient) ** 2
            corrected = np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
            values[name] = values[name] - rate * corrected * means[name] / (np.sqrt(squares[name]) + epsilon)
    return values, means, squares


@pytest.mark.parametrize("num_steps", [1, 2, 60])
def test_adam_equals_its_formula(num_steps):
    model, slots = apply(Adam(), num_steps)
    values, means, squares = adam_in_float64(num_steps)
    assert int(slots.steps) == num_steps
    for name in model.trained:
        np.testing.assert_allclose(getattr(model, name), values[name], rtol=0, atol=1e-6 * num_steps**0.5)
        largest = np.abs(means[name]).max()  # gradients of both signs cancel
        np.testing.assert_allclose(slots.means[name], means[name], rtol=0, atol=1e-6 * largest)
        np.testing.assert_allclose(slots.squares[name], squares[name], rtol=1e-5)


def test_gradient_descent_moves_against_the_gradient():
    model, slots = apply(SGD(0.5), 1)
    assert slots is None
    for name, gradient in gradients_of(0).items():
        expected = initial_values(dims=DIMS)[name] - 0.5 * gradient
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [SGD(), Adam()])
def test_updates_write_nothing(optimizer):
    model = MLP(initial_values(dims=DIMS))
    slots = optimizer.slots(model)
    updates = optimizer.updates(model.trained, gradients_of(0), slots)
    assert all(
        np.array_equal(value, initial_values(dims=DIMS)[name]) for name, value in model.values().items()
    )
    assert all(not np.any(variable) for variable in (slots.variables if slots else ()))
    assert len({id(variable) for variable, _value in updates}) == len(updates)
