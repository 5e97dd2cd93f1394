"""The tools on the small course, with real kernels: they do their work, and fail where they must."""

import asyncio
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

from course_lib import varying
from tests import small_course
from tests.notebooks.nbval import compared
from tests.small_course import LESSON, ROOT, edit, source_of
from tools.lesson import solutions
from tools.lesson.build import build, built_notebook
from tools.lesson.execute import execute, execute_files, is_executed
from tools.lesson.sources import Course


@pytest.fixture(scope="module", autouse=True)
def kernels_find_the_lesson():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", small_course.PATHS)
        yield


@pytest.fixture(scope="module")
def executed_course(tmp_path_factory):
    """The small course, built and executed once; tests that change it take a copy."""
    course = small_course.copied(tmp_path_factory.mktemp("course"))
    list(build(course))
    assert asyncio.run(execute_files(notebooks(course))) == []
    return course


@pytest.fixture
def course(executed_course, tmp_path):
    shutil.copytree(executed_course.root, tmp_path, dirs_exist_ok=True)
    return Course(tmp_path)


def notebooks(course):
    return [course.notebook(language, LESSON) for language in course.languages]


def change(path, cell_id, edit_cell):
    notebook = nbformat.read(path, 4)
    edit_cell(next(cell for cell in notebook.cells if cell.id == cell_id))
    nbformat.write(notebook, path)


def test_building_and_executing_again_changes_no_byte(course):
    before = [path.read_bytes() for path in notebooks(course)]
    list(build(course))
    assert [path.read_bytes() for path in notebooks(course)] == before
    assert asyncio.run(execute_files(notebooks(course))) == []
    assert [path.read_bytes() for path in notebooks(course)] == before


def test_a_cell_that_raises_fails_and_stores_nothing(course):
    path = course.notebook("en", LESSON)
    change(path, "picture", lambda cell: cell.update(source="1 / 0"))
    before = path.read_bytes()
    failures = asyncio.run(execute_files([path]))
    assert "ZeroDivisionError" in failures[0]
    assert path.read_bytes() == before


def test_changed_and_missing_outputs_fail_the_comparison_but_a_number_that_varies_does_not(course):
    def stores(old, new):
        def edit_cell(cell):
            assert old in cell.outputs[0].text
            cell.outputs[0].text = cell.outputs[0].text.replace(old, new)

        return edit_cell

    english, japanese = notebooks(course)
    outside = "from course_lib import about; print('rows', about(0.43, 0.30, 0.42))"
    change(english, "printed", lambda cell: cell.update(source=outside))
    change(english, "printed", stores("rows 2\ncolumns 2", "rows ≈ 0.36"))
    change(english, "varying", stores("    ≈ 0.36", "  ≈ 4.1e-05"))
    change(english, "error-zero", lambda cell: cell.update(outputs=[]))
    change(japanese, "varying", stores("of 4", "of 5"))
    change(japanese, "reveal-eight", lambda cell: cell.outputs[0].data.update({"text/plain": "5"}))
    run = compared(notebooks(course))
    assert run.returncode == 1
    assert "4 failed, 44 passed" in run.stdout
    failed = re.findall(r"(\w\w)/00_fixture.ipynb::Cell (\d+)", run.stdout)
    assert set(failed) == {("en", "3"), ("en", "14"), ("ja", "4"), ("ja", "7")}


def test_what_the_comparison_leaves_out_is_what_about_prints():
    patterns = get_sanitize_patterns((ROOT / "tests/notebooks/nbval.cfg").read_text("ascii"))
    assert patterns == [(f"[ ]*{varying.NUMBER}", "(a number that varies)")]
    for number in ("0.30", "-17", "168", "0.00012", "1.2e-07"):
        assert re.sub(*patterns[0], f"loss  ≈ {number}, 3") == "loss(a number that varies), 3"


def test_a_wrong_solution_is_found(course):
    edit(source_of(course), "half = 6 // 2", "half = 6 // 1")
    faults = asyncio.run(solutions.solve(course, Course(course.root).lesson(LESSON)))
    assert faults == ["fixture, cell 'check-half' refuses the solution: ✗ That is the whole."]


def test_the_first_cell_for_colab_runs_outside_colab(course):
    public = Course(course.root, repository="https://github.com/someone/course")
    notebook = built_notebook(public, public.lesson(LESSON), "en")
    notebook.cells = notebook.cells[:2]
    assert is_executed(asyncio.run(execute(notebook, course.root)))


def test_the_commands_fail_where_something_is_wrong(course):
    course.shared_catalogue("ja").unlink()
    course.notebook("ja", LESSON).unlink()
    for words in ("catalogues check", "checks", "lesson.build gone", "lesson.execute gone"):
        name, *arguments = words.split()
        command = [sys.executable, "-m", f"tools.{name}", *arguments]
        assert subprocess.run(command, cwd=course.root, check=False).returncode == 1, words
