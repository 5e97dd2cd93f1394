"""What `clients_and_servers` says: its programs are those that it writes."""

import ast

import pytest

from tests.course import COURSE

WRITTEN = {
    cell.cell_id: cell.source.partition("\n")[2] for cell in COURSE.lesson("clients_and_servers").cells
}
CELLS = {
    "coordinator": ("roles", "coordinator-start", "variables", "coordinator"),
    "client": ("client-start", "one-mesh", "client"),
}


def statements(text):
    """Returns what a program does: all but texts and imports, which join the lesson's files."""
    nodes = [node for node in ast.parse(text).body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return [code for code in map(ast.unparse, nodes) if code[0] not in "'\""]


@pytest.mark.parametrize("name", CELLS)
def test_a_plain_program_is_what_the_lesson_writes(name):
    written = "\n".join(WRITTEN[cell] for cell in CELLS[name])
    plain = (COURSE.root / f"notebooks/plain/{name}.py").read_text()
    assert statements(written) == statements(plain)
