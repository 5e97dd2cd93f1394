"""What lesson 07 says and does not show: factors of Adam's, Adam beside plain descent, layers of one seed."""

import ast
import itertools

import numpy as np
import pytest

from benchmarks import plain_loop
from benchmarks.digits import PROGRAM
from course_lib.data import load_mnist
from lessons.lesson_07_from_scratch.checks import _adam, _corrected, _to_the_corrected_root, right_adam
from tests.course import COURSE

CELLS = ("values", "records")  # what the program lacks


@pytest.fixture(scope="module")
def digits():
    return load_mnist("built-in")


@pytest.fixture(scope="module")
def lesson(digits, tmp_path_factory):
    """The program's definitions and the lesson's own, by name."""
    names = plain_loop.definitions(PROGRAM) | {"pairwise": itertools.pairwise, "train": digits.train}
    code = {cell.cell_id: cell.source for cell in COURSE.lesson("07_from_scratch").cells}
    found = [
        node for cell in CELLS for node in ast.parse(code[cell]).body if isinstance(node, ast.FunctionDef)
    ]
    file = tmp_path_factory.mktemp("lesson") / "cells.py"
    file.write_text("\n\n".join(map(ast.unparse, found)))
    exec(compile(file.read_text(), str(file), "exec"), names)  # AutoGraph finds the lines in the file
    return names


def test_the_factor_of_adam_falls_and_rises():
    factors = [_corrected(step) for step in range(1, 20_000)]
    assert (round(factors[0], 2), round(min(factors), 2)) == (0.32, 0.15)
    assert 100 < next(step for step, factor in enumerate(factors, 1) if factor > factors[0]) < 110
    assert factors[-1] == pytest.approx(1)


def test_the_two_places_of_epsilon_are_two_optimizers():
    other = _adam(_corrected, _to_the_corrected_root)
    moves = [-formula(np.zeros(1), [np.array([1e-6])], 1.0)[0] for formula in (right_adam, other)]
    assert [round(move, 2) for move in moves] == [0.24, 0.91]


@pytest.mark.parametrize(("rate", "low", "high"), [(None, 0.95, 0.97), (0.1, 0.84, 0.88), (0.3, 0.92, 0.95)])
def test_adam_beside_plain_gradient_descent(lesson, digits, rate, low, high):
    model = lesson["MLP"](lesson["initial_values"](0))
    optimizer = lesson["Adam"](model.weights) if rate is None else GradientDescent(rate)
    for step in range(78):
        lesson["train_step"](model, optimizer, *lesson["batch"](step))
    _loss, accuracy = lesson["evaluate"](model, digits.test.features, digits.test.labels)
    assert low < accuracy < high


class GradientDescent:
    def __init__(self, rate):
        self.rate = rate

    def apply(self, gradients, variables):
        for gradient, variable in zip(gradients, variables, strict=True):
            variable.assign_sub(self.rate * gradient)


def test_layers_with_one_seed_have_the_same_numbers(lesson):
    draw = lesson["tf"].random.stateless_uniform
    first, second = (draw(shape, seed=(22, 23)).numpy().ravel() for shape in ((784, 700), (700, 500)))
    np.testing.assert_array_equal(first[: len(second)], second)
