"""What `from_scratch` says and does not show: right, other and wrong Adams, descent, layers of one seed."""

import ast
import itertools

import numpy as np
import pytest

from benchmarks import programs
from course_lib.data import load_mnist
from tests.course import COURSE, from_lesson

_adam, _to_the_corrected_root, right_adam = from_lesson(
    "from_scratch.checks", "_adam", "_to_the_corrected_root", "right_adam"
)

DEFINED = (ast.FunctionDef, ast.ClassDef)
CELLS = ("values", "records", "counts-in-python", "writes-then-reads")  # what the program lacks


@pytest.fixture(scope="module")
def digits():
    return load_mnist("built-in")


@pytest.fixture(scope="module")
def lesson(digits, tmp_path_factory):
    """The program's definitions and the lesson's own, by name."""
    names = vars(programs.program("from_scratch")) | {"pairwise": itertools.pairwise, "train": digits.train}
    code = {cell.cell_id: cell.source for cell in COURSE.lesson("from_scratch").cells}
    found = [node for cell in CELLS for node in ast.parse(code[cell]).body if isinstance(node, DEFINED)]
    file = tmp_path_factory.mktemp("lesson") / "cells.py"
    file.write_text("\n\n".join(map(ast.unparse, found)))
    exec(compile(file.read_text(), str(file), "exec"), names)  # AutoGraph finds the lines in the file
    return names


def factor(step):
    return np.sqrt(1 - 0.999**step) / (1 - 0.9**step)


def test_the_factor_of_adam_falls_and_rises():
    factors = [factor(step) for step in range(1, 20_000)]
    assert (round(factors[0], 2), round(min(factors), 2)) == (0.32, 0.15)
    assert 100 < next(step for step, each in enumerate(factors, 1) if each > factors[0]) < 110
    assert factors[-1] == pytest.approx(1)


def test_the_two_places_of_epsilon_are_two_optimizers():
    other = _adam(_to_the_corrected_root)
    moves = [-formula(np.zeros(1), [np.array([1e-6])], 1.0)[0] for formula in (right_adam, other)]
    assert [round(move, 2) for move in moves] == [0.24, 0.91]


@pytest.mark.drill_all
def test_with_the_other_epsilon_losses_differ_and_what_counts_in_python_ends_lowest(lesson):
    tf = lesson["tf"]

    class OtherEpsilon(lesson["Adam"]):
        def apply(self, gradients, variables):
            self.t.assign_add(1)
            for g, w, m, v in zip(gradients, variables, self.m, self.v, strict=True):
                m.assign(0.9 * m + 0.1 * g)
                v.assign(0.999 * v + 0.001 * tf.square(g))
                root = tf.sqrt(v / (1 - 0.999**self.t))
                w.assign_sub(1e-3 * m / (1 - 0.9**self.t) / (root + 1e-7))

    def trained(kind):
        model = lesson["MLP"](lesson["initial_values"](0))
        adam = kind(model.weights)
        steps = (lesson["train_step"](model, adam, *lesson["batch"](step)) for step in range(30))
        return np.array([float(loss) for loss, _accuracy, _gradients in steps]), adam

    kinds = (lesson["Adam"], OtherEpsilon, lesson["CountsInPython"])
    (ours, _right), (theirs, _other), (counting, counts_in_python) = map(trained, kinds)
    assert round(np.abs(ours - theirs).max(), 3) == 0.006
    assert counting[-1] < ours[-1] - 0.05  # what counts in Python learns faster at first
    assert counts_in_python.count == 1


@pytest.mark.drill_all
def test_the_last_variable_is_spared_and_the_others_move_by_the_slots_of_the_step_before(lesson):
    values = lesson["initial_values"](0, (784, 32, 16, 10))
    model, gradients, weights = lesson["on_eight"](values), [], []
    adam = lesson["WritesThenReads"](model.weights, lesson["dtensor"].DVariable)
    for step in range(10):
        *_loss, found = lesson["train_step"](model, adam, *lesson["split"](lesson["batch"](step)))
        gradients.append([np.float64(each.numpy()) for each in found])
        weights.append([each.numpy() for each in model.weights])
    moved = [np.abs(now - before).max() > 0 for now, before in zip(weights[0], values, strict=True)]
    last = 4  # W3
    assert [at for at, each in enumerate(moved) if each] == [last]
    expected = right_adam(np.float64(values[last]), [each[last] for each in gradients], 1e-3)
    np.testing.assert_allclose(weights[-1][last], expected, rtol=0, atol=1e-5)
    for at, value in enumerate(values[:last]):
        m, v = 0.1 * gradients[0][at], 0.001 * gradients[0][at] ** 2
        expected = value - 1e-3 * factor(2) * m / (np.sqrt(v) + 1e-7)
        np.testing.assert_allclose(weights[1][at], expected, rtol=0, atol=1e-6)


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
