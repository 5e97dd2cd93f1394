"""What lesson 07 claims: its program is its code; its Adam beside other answers; what finds mistakes."""

import ast
import functools
import itertools

import keras
import numpy as np
import pytest

from benchmarks import plain_loop
from benchmarks.digits import PROGRAM
from course_lib import collectives
from course_lib.combining import no_combining
from course_lib.data import load_mnist
from lessons.lesson_07_from_scratch.checks import _adam, _corrected, _to_the_corrected_root, right_adam
from tools.lesson.sources import Course

DEFINED = (ast.FunctionDef, ast.ClassDef)
CELLS = ("values", "records", "counts-in-python", "writes-then-reads")  # what the program lacks
WHOLE, SMALL, SMALL_AND_NARROW = (784, 700, 500, 10), (784, 32, 16, 10), (784, 32, 10, 10)
KINDS = ["CountsInPython", "WritesThenReads"]


def definitions(source):
    return {node.name: node for node in ast.parse(source).body if isinstance(node, DEFINED)}


def lesson_code():
    cells = Course.here().lesson("07_from_scratch").cells
    return {cell.cell_id: cell.source for cell in cells if cell.kind == "code" and "await" not in cell.source}


@pytest.fixture(scope="module")
def digits():
    return load_mnist("built-in")


@pytest.fixture(scope="module")
def lesson(digits, tmp_path_factory):
    """The program's definitions and the lesson's own, by name."""
    names = plain_loop.definitions(PROGRAM) | {"pairwise": itertools.pairwise, "train": digits.train}
    found = [node for cell in CELLS for node in definitions(lesson_code()[cell]).values()]
    file = tmp_path_factory.mktemp("lesson") / "cells.py"
    file.write_text("\n\n".join(map(ast.unparse, found)))
    exec(compile(file.read_text(), str(file), "exec"), names)  # AutoGraph finds the lines in the file
    return names


@pytest.fixture(scope="module")
def trained(lesson):
    """A function that trains ten steps once and keeps what came of them."""
    return functools.cache(functools.partial(steps, lesson))


def steps(lesson, kind, sizes=SMALL, *, eight=True, num_steps=10):
    """Returns the losses, all gradients, the weights after each step, and the optimizer."""
    values = lesson["initial_values"](0, sizes)
    variable = lesson["dtensor"].DVariable if eight else lesson["tf"].Variable
    model = lesson["on_eight"](values) if eight else lesson["MLP"](values)
    optimizer, losses, gradients, weights = lesson[kind](model.weights, variable), [], [], []
    for step in range(num_steps):
        arrays = lesson["batch"](step)
        arrays = lesson["split"](arrays) if eight else arrays
        loss, _accuracy, found = lesson["train_step"](model, optimizer, *arrays)
        losses.append(float(loss))
        gradients.append([np.float64(each.numpy()) for each in found])
        weights.append([each.numpy() for each in model.weights])
    return np.array(losses), gradients, weights, optimizer


def gap(ours, theirs):
    return max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True))


def by_formula(lesson, gradients, formula=right_adam):
    values = lesson["initial_values"](0, SMALL)
    return [
        formula(np.float64(value), list(each), 1e-3)
        for value, each in zip(values, zip(*gradients, strict=True), strict=True)
    ]


def test_the_program_is_the_lessons_code_name_by_name():
    in_lesson = {
        name: node for source in lesson_code().values() for name, node in definitions(source).items()
    }
    of_program = definitions(PROGRAM.read_text())
    assert len(of_program) == 6
    for name, node in of_program.items():
        assert ast.dump(in_lesson[name]) == ast.dump(node), name


def test_adam_on_eight_devices_is_that_of_one_device_of_numpy_and_of_keras(lesson, trained):
    _losses, gradients, weights, _adam_of_eight = trained("Adam")
    assert gap(weights[-1], trained("Adam", eight=False)[2][-1]) < 1e-5
    assert gap(weights[-1], by_formula(lesson, gradients)) < 1e-5
    assert gap(weights[-1], by_keras(lesson, SMALL)) < 1e-5


def by_keras(lesson, sizes):
    layers = [keras.layers.Dense(32, "relu"), keras.layers.Dense(16, "relu"), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((784,)), *layers])
    model.set_weights(lesson["initial_values"](0, sizes))
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for step in range(10):
        model.train_on_batch(*lesson["batch"](step))
    return model.get_weights()


def test_one_device_finds_what_is_written_and_then_read_and_nothing_else(trained):
    for kind, sizes, found in (
        ("CountsInPython", SMALL, False),
        ("WritesThenReads", SMALL, True),
        ("Adam", SMALL_AND_NARROW, False),
    ):
        apart = gap(trained(kind, sizes)[2][-1], trained(kind, sizes, eight=False)[2][-1])
        assert (apart > 1e-3) == found, kind
        assert found or apart < 1e-5, kind


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_and_keras_find_both_wrong_adams(lesson, trained, kind):
    _losses, gradients, weights, _optimizer = trained(kind)
    b1 = 1
    assert np.abs(weights[-1][b1] - by_formula(lesson, gradients)[b1]).max() > 5e-4
    assert gap(weights[-1], by_keras(lesson, SMALL)) > 1e-3


def test_keras_refuses_the_values_of_the_narrow_network(lesson):
    with pytest.raises(ValueError, match=r"weight shape \(32, 16\) is not compatible"):
        by_keras(lesson, SMALL_AND_NARROW)


def test_a_counter_of_pythons_stays_at_one_and_the_factor_falls_and_rises(trained):
    assert trained("CountsInPython")[3].count == 1
    factors = [_corrected(step) for step in range(1, 20_000)]
    assert (round(factors[0], 2), round(min(factors), 2)) == (0.32, 0.15)
    assert 100 < next(step for step, factor in enumerate(factors, 1) if factor > factors[0]) < 110
    assert factors[-1] == pytest.approx(1)


def test_without_combining_what_is_written_and_then_read_is_right(lesson, trained):
    with no_combining():
        uncombined = steps(lesson, "WritesThenReads", num_steps=3)
    assert gap(uncombined[2][-1], trained("Adam")[2][2]) < 1e-5


def test_the_last_variable_is_spared_and_the_others_move_by_the_slots_of_the_step_before(lesson, trained):
    _losses, gradients, weights, _optimizer = trained("WritesThenReads")
    values = lesson["initial_values"](0, SMALL)
    moved = [np.abs(now - before).max() > 0 for now, before in zip(weights[0], values, strict=True)]
    last = 4  # W3
    assert [at for at, each in enumerate(moved) if each] == [last]
    assert np.abs(weights[-1][last] - by_formula(lesson, gradients)[last]).max() < 1e-5
    for at, value in enumerate(values[:4]):
        m, v = 0.1 * gradients[0][at], 0.001 * gradients[0][at] ** 2
        expected = value - 1e-3 * _corrected(2) * m / (np.sqrt(v) + 1e-7)
        np.testing.assert_allclose(weights[1][at], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sizes", list(itertools.permutations((1, 2, 3))))
def test_the_variable_whose_all_reduce_comes_last_is_spared(lesson, sizes):
    tf, on_mesh = lesson["tf"], lesson["on_mesh"]
    variable = lesson["dtensor"].DVariable
    slots = [variable(on_mesh([np.zeros(size, "float32")] * 8)) for size in sizes]
    rows = [on_mesh([np.ones((1, size), "float32")] * 8, "batch") for size in sizes]

    def write_then_read(rows):
        for slot, each in zip(slots, rows, strict=True):
            slot.assign(tf.reduce_sum(each, axis=0))
        return [slot + 0.0 for slot in slots]

    *_others, last = (each.payload_bytes for each in collectives(write_then_read, rows))
    read = [each.numpy() for each in tf.function(write_then_read)(rows)]
    assert [len(each) for each in read if (each == 8).all()] == [last // 4]


def test_the_two_places_of_epsilon_are_two_optimizers(lesson, monkeypatch):
    other = _adam(_corrected, _to_the_corrected_root)
    moves = [-formula(np.zeros(1), [np.array([1e-6])], 1.0)[0] for formula in (right_adam, other)]
    assert [round(move, 2) for move in moves] == [0.24, 0.91]
    tf = lesson["tf"]

    class OtherEpsilon(lesson["Adam"]):
        def apply(self, gradients, variables):
            self.t.assign_add(1)
            for g, w, m, v in zip(gradients, variables, self.m, self.v, strict=True):
                m.assign(0.9 * m + 0.1 * g)
                v.assign(0.999 * v + 0.001 * tf.square(g))
                root = tf.sqrt(v / (1 - 0.999**self.t))
                w.assign_sub(1e-3 * m / (1 - 0.9**self.t) / (root + 1e-7))

    monkeypatch.setitem(lesson, "OtherEpsilon", OtherEpsilon)
    kinds = ("Adam", "OtherEpsilon", "CountsInPython")
    ours, theirs, counting = (steps(lesson, kind, WHOLE, eight=False, num_steps=30)[0] for kind in kinds)
    assert round(np.abs(ours - theirs).max(), 3) == 0.006
    assert counting[-1] < ours[-1] - 0.05  # what counts in Python learns faster at first


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
