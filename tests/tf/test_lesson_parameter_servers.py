"""What `parameter_servers` and `one_mesh` say: their programs are those that they write."""

import ast

import pytest

from lessons.strategies import own_file
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
