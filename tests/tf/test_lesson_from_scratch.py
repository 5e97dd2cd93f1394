"""What `from_scratch` says: its programs with bugs, what finds them, two places of epsilon, rivals."""

import ast
import re

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
    """Returns the losses, and the optimizer, after steps of a program."""
    values = lesson["make_values"](sizes)
    model, optimizer = lesson["Model"](values, layouts), kind(values, layouts)
    losses = []
    for step in range(steps):
        rows = lesson["rows_of"](step)
        x = lesson["place"](lesson["train_x"][rows], layouts.get("x"))
        y = lesson["place"](lesson["train_y"][rows], layouts.get("y"))
        losses.append(float(lesson["train_step"](model, optimizer, x, y)[0]))
    return np.array(losses), optimizer


def factor(step):
    return np.sqrt(1 - 0.999**step) / (1 - 0.9**step)


def test_the_factor_of_adam_falls_and_rises():
    factors = [factor(step) for step in range(1, 20_000)]
    assert (round(factors[0], 2), round(min(factors), 2)) == (0.32, 0.15)
    assert 100 < next(step for step, each in enumerate(factors, 1) if each > factors[0]) < 110
    assert factors[-1] == pytest.approx(1)


def test_a_tiny_gradient_moves_a_weight_less_and_the_two_places_of_epsilon_are_two_optimizers():
    other = _adam(_to_the_corrected_root)
    moves = [-formula(np.zeros(1), [np.array([1e-6])], 1.0)[0] for formula in (right_adam, other)]
    assert [round(move, 2) for move in moves] == [0.24, 0.91]
    assert round(-right_adam(np.zeros(1), [np.array([1e-5])], 1.0)[0], 2) == 0.76


@pytest.mark.drill_all
def test_with_the_other_epsilon_losses_differ_and_the_counter_of_b_is_frozen(lesson):
    class OtherEpsilon(lesson["Adam"]):
        def apply(self, weights, gradients):
            t = self.step.assign_add(1)
            for name, g in gradients.items():
                m = self.means[name].assign(0.9 * self.means[name] + 0.1 * g)
                v = self.squares[name].assign(0.999 * self.squares[name] + 0.001 * tf.square(g))
                root = tf.sqrt(v / (1 - 0.999**t))
                weights[name].assign_sub(1e-3 * m / (1 - 0.9**t) / (root + 1e-7))

    kinds = (lesson["Adam"], OtherEpsilon, lesson["AdamB"])
    (ours, right), (theirs, _other), (_counting, b) = (taken(lesson, kind, {}) for kind in kinds)
    assert round(np.abs(ours - theirs).max(), 3) == 0.006
    assert (int(right.step), b.count) == (30, 1)


def test_c_is_right_without_fusing_and_reads_slots_of_the_step_before_with_it(lesson, monkeypatch):
    on_one, _right = taken(lesson, lesson["Adam"], {}, 10, SMALL)
    fused, _c = taken(lesson, lesson["AdamC"], lesson["layouts"], 10, SMALL)
    assert np.abs(fused - on_one)[1:].max() > 1e-2
    monkeypatch.setenv("DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE", "1")
    apart, c = taken(lesson, lesson["AdamC"], lesson["layouts"], 10, SMALL)
    np.testing.assert_allclose(apart, on_one, rtol=0, atol=1e-5)
    assert int(c.step.numpy()) == 10


def test_with_a_wrong_sign_the_loss_rises(lesson):
    class Climbs(lesson["Adam"]):
        def apply(self, weights, gradients):
            super().apply(weights, {name: -gradient for name, gradient in gradients.items()})

    losses, _climbs = taken(lesson, Climbs, {}, 10, SMALL)
    assert losses[-1] > losses[0] + 0.5


def test_layers_with_one_seed_have_the_same_numbers():
    draw = tf.random.stateless_uniform
    first, second = (draw(shape, seed=(22, 23)).numpy().ravel() for shape in ((784, 700), (700, 500)))
    np.testing.assert_array_equal(first[: len(second)], second)


def test_in_the_first_step_many_weights_of_w1_do_not_move(lesson):
    values = lesson["make_values"]((784, 700, 500, 10))
    model = lesson["Model"](values, {})
    rows = lesson["rows_of"](0)
    x, y = (tf.constant(lesson[f"train_{name}"][rows]) for name in "xy")
    lesson["train_step"](model, lesson["Adam"](values, {}), x, y)
    assert np.mean(model.weights["W1"].numpy() == values["W1"]) > 0.2


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


@pytest.mark.parametrize(
    ("group_size", "expected"),
    [
        ("1", "sum write 0 read 0 sum write 1 read 1 sum write 2 read 2"),
        ("0", "read 0 read 1 sum write 2 read 2 write 0 write 1"),
    ],
)
def test_the_order_of_reads_and_writes_in_the_graph(lesson, monkeypatch, group_size, expected):
    from tensorflow.python.eager import context  # no public way to the graphs that ran

    if group_size != "0":
        monkeypatch.setenv("DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE", group_size)
    layouts = lesson["layouts"]
    lesson["variables"] = [lesson["variable"](np.zeros(size, "float32"), layouts["b1"]) for size in (1, 2, 3)]
    inputs = [lesson["place"](np.ones((8, size), "float32"), layouts["x"]) for size in (1, 2, 3)]
    traced = tf.function(lesson["write_then_read"]).get_concrete_function(inputs).graph.get_operations()
    reads = [each for each in traced if each.type == "ReadVariableOp"]
    waits = [[before.inputs[0] is read.inputs[0] for before in read.control_inputs] for read in reads]
    assert waits == 3 * [[True]]  # for the write to its own variable alone
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # what still ran of others
        tf.function(lesson["write_then_read"])(inputs)
        context.async_wait()
        graphs = context.export_run_metadata().function_graphs
    finally:
        context.disable_run_metadata()
    libraries = [each for graph in graphs for each in graph.pre_optimization_graph.library.function]
    orders = [order_of(each.node_def) for each in libraries]
    assert {order for order in orders if "write" in order} == {expected}


def order_of(nodes):
    words = []
    for node in nodes:
        if node.op == "CollectiveReduceV2":
            words.append("sum")
        elif node.op in {"AssignVariableOp", "ReadVariableOp"}:
            kind = "write" if node.op == "AssignVariableOp" else "read"
            before = re.search(r"(?:AssignVariableOp|Read|ReadVariableOp)_(\d)", node.name)
            words.append(f"{kind} {before.group(1) if before else 0}")
    return " ".join(words)
