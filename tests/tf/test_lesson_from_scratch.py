"""What `from_scratch` says and does not show: two places of epsilon, stale reads, seeds of layers."""

import ast

import numpy as np
import pytest

import course_lib
from course_lib import shard
from course_lib.data import load_mnist
from tests.course import COURSE, from_lesson

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

_adam, _to_the_corrected_root, right_adam, right_momentum = from_lesson(
    "from_scratch.checks", "_adam", "_to_the_corrected_root", "right_adam", "right_momentum"
)

SMALL = (784, 32, 16, 10)


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """The functions, classes and layouts of the lesson's cells, by name."""
    digits = load_mnist("built-in")
    names = {"np": np, "tf": tf, "dtensor": dtensor, "shard": shard, "apply_momentum": right_momentum}
    names |= {"train_x": digits.train.features, "train_y": digits.train.labels}
    names |= {"test_x": digits.test.features, "test_y": digits.test.labels}
    cells = [cell for cell in COURSE.lesson("from_scratch").cells if cell.kind == "code"]
    kept = [node for cell in cells for node in ast.parse(cell.source.replace("await ", "")).body]
    kept = [node for node in kept if wanted(node)]
    file = tmp_path_factory.mktemp("lesson") / "cells.py"
    file.write_text("\n\n".join(map(ast.unparse, kept)))
    exec(compile(file.read_text(), str(file), "exec"), names)  # AutoGraph finds the lines in the file
    return names


def wanted(node):
    if isinstance(node, ast.For):
        return "layouts[f" in ast.unparse(node)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in {"WHOLE", "mesh", "layouts", "STEPS_PER_EPOCH"}
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def taken(lesson, kind, layouts, steps=30, sizes=(784, 700, 500, 10)):
    """Returns the losses of steps of a program."""
    values = lesson["make_values"](sizes)
    model, optimizer = lesson["Model"](values, layouts), kind(values, layouts)
    losses = []
    for step in range(steps):
        rows = lesson["rows_of"](step)
        x = lesson["place"](lesson["train_x"][rows], layouts.get("x"))
        y = lesson["place"](lesson["train_y"][rows], layouts.get("y"))
        losses.append(float(lesson["train_step"](model, optimizer, x, y)[0]))
    return np.array(losses)


def test_a_tiny_gradient_moves_a_weight_less_and_the_two_places_of_epsilon_are_two_optimizers():
    other = _adam(_to_the_corrected_root)
    moves = [-formula(np.zeros(1), [np.array([1e-6])], 1.0)[0] for formula in (right_adam, other)]
    assert [round(move, 2) for move in moves] == [0.24, 0.91]
    assert round(-right_adam(np.zeros(1), [np.array([1e-5])], 1.0)[0], 2) == 0.76


@pytest.mark.drill_all
def test_with_the_other_epsilon_losses_differ(lesson):
    class OtherEpsilon(lesson["Adam"]):
        def apply(self, weights, gradients):
            t = self.step.assign_add(1)
            for name, g in gradients.items():
                m = self.means[name].assign(0.9 * self.means[name] + 0.1 * g)
                v = self.squares[name].assign(0.999 * self.squares[name] + 0.001 * tf.square(g))
                root = tf.sqrt(v / (1 - 0.999**t))
                weights[name].assign_sub(1e-3 * m / (1 - 0.9**t) / (root + 1e-7))

    ours, theirs = (taken(lesson, kind, {}) for kind in (lesson["Adam"], OtherEpsilon))
    assert round(np.abs(ours - theirs).max(), 3) == 0.006


def test_c_is_right_without_fusing_and_reads_slots_of_the_step_before_with_it(lesson, monkeypatch):
    on_one = taken(lesson, lesson["Adam"], {}, 10, SMALL)
    fused = taken(lesson, lesson["AdamC"], lesson["layouts"], 10, SMALL)
    assert np.abs(fused - on_one)[1:].max() > 1e-2
    monkeypatch.setenv("DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE", "1")
    apart = taken(lesson, lesson["AdamC"], lesson["layouts"], 10, SMALL)
    np.testing.assert_allclose(apart, on_one, rtol=0, atol=1e-5)


def test_layers_with_one_seed_have_the_same_numbers():
    draw = tf.random.stateless_uniform
    first, second = (draw(shape, seed=(22, 23)).numpy().ravel() for shape in ((784, 700), (700, 500)))
    np.testing.assert_array_equal(first[: len(second)], second)


def test_no_read_of_an_argument_is_stale(lesson):
    layouts = lesson["layouts"]
    slots = [lesson["variable"](np.zeros(size, "float32"), layouts["b1"]) for size in (1, 2, 3)]
    inputs = [lesson["place"](np.ones((8, size), "float32"), layouts["x"]) for size in (1, 2, 3)]

    def write_then_read(inputs, slots):
        for slot, ones in zip(slots, inputs, strict=True):
            slot.assign(tf.reduce_sum(ones, axis=0))
        return [slot + 0.0 for slot in slots]

    found = tf.function(write_then_read)(inputs, slots)
    assert [each.numpy()[0] for each in found] == [8, 8, 8]
