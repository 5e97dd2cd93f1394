"""What `parameter_servers` and `one_mesh` say: their programs are those that they write."""

import ast
import re

import numpy as np
import pytest
import tensorflow as tf

from lessons.strategies import own_file
from lessons.strategies.launcher import Cluster
from tests.course import COURSE
from tools.lesson import exercises

ALONE = "if 'TF_CONFIG' not in os.environ:"  # what only the plain coordinator has

# Of each plain program its lesson, and the cells that write it
CELLS = {
    "coordinator": (
        "parameter_servers",
        ("roles", "coordinator-start", "exercise-epoch", "variables", "train-step", "coordinator"),
    ),
    "client": ("one_mesh", ("client-start", "exercise-mine", "mesh", "model", "client")),
}


def statements(text):
    """Returns what a program does: all but texts and imports, which join the lesson's files."""
    nodes = [node for node in ast.parse(text).body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return [code for code in map(ast.unparse, nodes) if code[0] not in "'\""]


@pytest.mark.parametrize("name", CELLS)
def test_a_plain_program_is_what_the_lesson_writes(name):
    topic, cells = CELLS[name]
    lesson = {cell.cell_id: cell.source for cell in COURSE.lesson(topic).cells}
    written = [
        exercises.solution(lesson[cell]) if cell.startswith("exercise-") else lesson[cell].partition("\n")[2]
        for cell in cells
    ]
    plain = statements((COURSE.root / f"notebooks/plain/{name}.py").read_text())
    assert [code for code in plain if not code.startswith(ALONE)] == statements("\n".join(written))


@pytest.mark.parametrize("exercise_id", ["failures-resume", "parameter_servers-epoch", "one_mesh-mine"])
def test_a_program_gets_the_solution_where_an_answer_is_wrong(exercise_id, tmp_path):
    topic, name = exercise_id.split("-")
    (cell,) = [cell for cell in COURSE.lesson(topic).cells if cell.cell_id == f"exercise-{name}"]
    file = tmp_path / "own.py"
    own_file.write_own(file, exercise_id, lambda *_arguments: None)
    assert file.read_text().endswith(f"\n\n{exercises.solution(cell.source).strip()}\n")


def test_an_optimizer_of_keras_trains_split_variables_as_on_one_device(tmp_path):
    sources = {cell.cell_id: cell.source for cell in COURSE.lesson("parameter_servers").cells}
    (with_adam,) = re.findall(r"```python\n(.*?)```", sources["note-optimizer"], re.S)
    plain = (COURSE.root / "notebooks/plain/coordinator.py").read_text().replace(".shuffle(96)", "")
    before, rest = plain.split("@tf.function\ndef train_step", 1)
    program = tmp_path / "with_adam.py"
    program.write_text(before + with_adam + "\n\nwith" + rest.split("\nwith", 1)[1])
    with Cluster([program, "--epochs", "2"], {"chief": 1, "worker": 1, "ps": 2}) as cluster:
        lines = cluster.wait()["chief 0"].lines
    assert [line for line in lines if "W1 (32, 16)" in line], lines

    random = np.random.default_rng(0)
    weights = [random.normal(0, 0.2, (64, 16)), random.normal(0, 0.4, (16, 4))]
    y = np.arange(96) % 4
    x = np.random.default_rng(0).normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
    layers = [tf.keras.layers.Dense(16, "relu", use_bias=False), tf.keras.layers.Dense(4, use_bias=False)]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers])
    model.set_weights(weights)
    model.compile(tf.keras.optimizers.Adam(0.001), tf.keras.losses.SparseCategoricalCrossentropy(True))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
    losses = model.fit(dataset, epochs=2, steps_per_epoch=5, verbose=0).history["loss"]
    printed = [float(re.search(r"loss (\S+)", line)[1]) for line in lines if line.startswith("epoch")]
    np.testing.assert_allclose(printed, losses, atol=6e-4)
