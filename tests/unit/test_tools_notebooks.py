"""Building notebooks, and each rule about lessons, notebooks and outputs failing on its breach.

What the build makes of each kind of cell, the stored notebooks of all lessons show: `make check` builds them
anew and compares.
"""

import dataclasses
import re
import shutil
import sys
import tomllib
from types import SimpleNamespace

import nbformat
import pytest

from tests.course import COURSE
from tests.small_course import LESSON, NOTEBOOK, ROOT, copied, edit, pretend_executed, source_of
from tools.checks import __main__ as checks
from tools.checks import output_rules
from tools.checks.lesson_rules import lesson_faults
from tools.environments import estimator
from tools.lesson import first_cell
from tools.lesson.build import build, built_cells, built_notebook
from tools.lesson.sources import Course, LessonError


@pytest.fixture
def course(tmp_path):
    return copied(tmp_path)


@pytest.fixture
def finished(course):
    """The course with notebooks that look executed."""
    list(build(course))
    pretend_executed(course)
    return course


def faults(course):
    return "\n".join(checks.check(Course(course.root)))


# Building


def test_changed_prose_keeps_outputs_and_changed_code_loses_them(finished):
    edit(source_of(finished), "# # Halves", "# # Halves of it")
    assert all(dict(build(Course(finished.root))).values())
    edit(source_of(finished), "matrix = ((1, 2", "matrix = ((7, 2")
    assert not any(dict(build(Course(finished.root))).values())


def test_a_lesson_before_it_renames_a_notebook_which_keeps_its_outputs(finished):
    (finished.root / "README.md").write_text("<!-- lessons -->\n<!-- end of lessons -->\n", "utf-8")
    edit(finished.root / "lessons" / "order.toml", "fixture =", 'first = "First."\nfixture =')
    first = finished.root / "lessons" / "small" / "first" / "lesson.py"
    first.parent.mkdir()
    first.write_text(source_of(finished).read_text("utf-8").replace('"fixture-', '"first-'), "utf-8")
    course = Course(finished.root)
    built = dict(build(course, ("first",)))  # all are written, since numbers changed
    assert (built["notebooks/en/00_first.ipynb"], built["notebooks/en/01_fixture.ipynb"]) == (False, True)
    names = ["00_first.ipynb", "01_fixture.ipynb"]
    assert sorted(path.name for path in (course.root / "notebooks" / "en").iterdir()) == names
    assert nbformat.read(course.notebook("ja", LESSON), 4).cells[0].source.startswith("# 1. 半分\n")
    rows = "| [0. Halves](notebooks/en/00_first.ipynb) | First. | 5 |\n| [1. Halves]"
    assert rows in (course.root / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("A matrix is", "{Lesson:gone}, a matrix is", r"cell '\S+': \{Lesson:gone\}: there is no lesson"),
        ("A matrix is", "{lesson:a-run}, a matrix is", r"\{lesson:a-run\} is no reference"),
        ("How many of 8", "In {lesson:fixture}, 8", "cell 'predict-eight': a card refers to no lesson"),
        ("devices=8", "devices=4", "the cell tagged `setup` is always"),
        ("    # solution end", "", "cell 'exercise-split': an exercise needs lines between"),
        ("# %% picture", '# %% id="x"', r"has \['id'\] in its header"),
    ],
)
def test_what_cannot_be_built_is_told_with_its_cell(course, old, new, fault):
    edit(source_of(course), old, new)
    with pytest.raises(LessonError, match=fault):
        list(build(course))


def test_colab_gets_its_link_and_its_install_where_there_is_a_public_address(course):
    cells = built_cells(course, course.lesson(LESSON), "ja")
    assert not any("colab" in cell.source.lower() for cell in cells)
    public = dataclasses.replace(course, repository="https://github.com/someone/course", branch="main")
    opening, setup, *_others = built_cells(public, public.lesson(LESSON), "ja")
    colab = "https://colab.research.google.com/github/someone/course/blob/main/notebooks/ja/00_fixture.ipynb"
    assert opening.source.endswith(f"\n\n[このレッスンをColabで開く]({colab})")
    install = '%pip install -q --no-deps "course-lib @ git+https://github.com/someone/course@main"'
    assert install in setup.source
    assert "tensorflow" not in setup.source


def test_colab_installs_what_the_library_needs_and_colab_lacks():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    brought = (
        "importlib_resources",
        "ipykernel",
        "ipython",
        "ipywidgets",
        "matplotlib>",
        "numpy",
        "pillow",
        "platformdirs",  # Jupyter itself needs it
        "tensorflow>",
        "tensorflow-datasets",
        "tf-keras",  # tensorflow-hub, which Colab brings, needs it
        "traitlets",
    )
    assert sorted(first_cell.COLAB_LACKS) == sorted(need for need in wanted if not need.startswith(brought))


# Appendices

APPENDICES = [lesson for lesson in COURSE.lessons() if lesson.is_appendix]


def test_an_appendix_names_its_own_kernel_and_is_not_offered_in_colab():
    public = dataclasses.replace(COURSE, repository="https://github.com/someone/course")
    for lesson in APPENDICES:
        assert built_notebook(COURSE, lesson, "ja").metadata.kernelspec.name == "estimators"
        assert public.colab_address("en", lesson.topic) == ""
    assert public.colab_address("en", COURSE.topics[0])


@pytest.mark.parametrize("language", COURSE.languages)
def test_under_another_tensorflow_one_sentence_says_what_to_do(monkeypatch, language):
    for lesson in APPENDICES:
        code = built_cells(COURSE, lesson, language)[1].source
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__version__="2.21.0"))
        with pytest.raises(Exception, match=re.escape(estimator.KERNEL_TITLE)) as refused:
            exec(code, {})
        (shown,) = refused.value._render_traceback_()
        assert "`make estimator`" in shown
        assert (shown == first_cell.OTHER_KERNEL) == (language == "en")
        assert f'set_language("{language}")' in code


# Rules about lessons

EIGHT = 'reveal("fixture-eight", 8 // 2)'
BREACHES = [
    ("# %% picture", "# %%", "cell 4 needs a name"),
    ("# %% picture", "# %% imports", "cell 4 has the name 'imports', and so has another"),
    ("# # Halves", "# Halves", "does not begin with a title"),
    ("5 minutes", "a while", "how many minutes"),
    ("# %%\nLANGUAGE", "# %% language\nLANGUAGE", "the first code cell has a name"),
    (EIGHT, f"# NBVAL_IGNORE_OUTPUT\n{EIGHT}", "asks nbval to look away"),
    ("# %% predict-eight", "# %% some", "'reveal-eight' (`reveal`) does not follow"),
    ("# %% reveal-eight", "# %% [markdown]\n# 4.\n\n# %% reveal-eight", "'predict-eight' (`predict`) is not"),
    (EIGHT, "8 // 2", """'reveal-eight' does not end in reveal("fixture-eight", measured)"""),
    (EIGHT, 'reveal("fixture-seven", 4)', """'reveal-eight' does not end in reveal("fixture-eight\""""),
    ("# %%\ncheck", "# %% answer\ncheck", "'exercise-split' (`exercise`) is not followed"),
]


@pytest.mark.parametrize(("old", "new", "fault"), BREACHES)
def test_every_rule_fails_on_its_breach(course, old, new, fault):
    assert list(lesson_faults(course.lesson(LESSON))) == []
    edit(source_of(course), old, new)
    found = list(lesson_faults(Course(course.root).lesson(LESSON)))
    assert [line for line in found if fault in line], found


def test_a_line_of_more_than_72_columns_is_found_in_a_solution_and_in_a_translation(finished):
    half, full = "half = 6 // 2", "行列は行のタプルで、それぞれの行もタプルです。"
    edit(source_of(finished), half, f"{half}  # {'=' * 56}")
    edit(finished.catalogue("ja", LESSON), full, "行" * 36)
    found = faults(finished)
    line = "'half = 6 // 2  # =======================': a line of 73 columns; 72 are allowed"
    assert f"en/{NOTEBOOK}: cell 'exercise-half', {line}" in found
    assert f"ja/{NOTEBOOK}: cell 'reveal-axes'" in found
    assert found.count("74 columns") == 1


# Rules about notebooks


def test_unbuilt_unexecuted_and_finished_notebooks(course):
    assert f"en/{NOTEBOOK}: it is not built" in faults(course)
    list(build(course))
    assert f"ja/{NOTEBOOK}: it is not executed" in faults(course)
    pretend_executed(course)
    assert faults(course) == ""
    shutil.copy(course.notebook("en", LESSON), course.root / "notebooks" / "en" / "09_gone.ipynb")
    assert faults(course) == "en/09_gone.ipynb has no source"


def cell(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def printing(text):
    return [nbformat.v4.new_output("stream", name="stdout", text=text)]


HAND_EDITS = {
    "prose": (lambda nb: cell(nb, "opening").update(source="# x"), "'opening': its source is not"),
    "order": (lambda nb: nb.cells.reverse(), "its cells are not those of the source"),
    "folding": (lambda nb: cell(nb, "reveal-eight").metadata.pop("jupyter"), "its metadata is not"),
    "kernel": (lambda nb: nb.metadata.kernelspec.update(name="ir"), "metadata 'kernelspec' is not"),
    "outputs": (lambda nb: cell(nb, "reveal-eight").update(outputs=[]), "'reveal-eight' shows nothing"),
    "telling": (
        lambda nb: cell(nb, "reveal-axes").update(outputs=[*printing("2"), *cell(nb, "picture").outputs]),
        "'reveal-axes' shows more than `reveal`",
    ),
    "counts": (lambda nb: cell(nb, "picture").update(execution_count=None), "it is not executed"),
    "pieces": (
        lambda nb: cell(nb, "printed").update(outputs=[*printing("4"), *printing("5")]),
        "not as tools.lesson.execute stores them",
    ),
}


@pytest.mark.parametrize(("edit_notebook", "fault"), HAND_EDITS.values(), ids=HAND_EDITS)
def test_a_notebook_edited_by_hand_is_found(finished, edit_notebook, fault):
    path = finished.notebook("ja", LESSON)
    notebook = nbformat.read(path, 4)
    edit_notebook(notebook)
    nbformat.write(notebook, path)
    assert fault in faults(finished)


# Rules about outputs


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("3.2秒", "holds a time"),
        ("12:30:01", "holds a time of day"),
        ("2026年11月21日", "holds a date"),
        ("/home/reader/course", "holds an absolute path"),
        ("<object at 0x7f0012ab34cd>", "holds a memory address"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "holds a random id"),
        ("loss ≈ 0.51", "holds ≈ 0.51, which lies in no band"),
        ("loss ≈ 0.36 ✗（0.10～0.20の範囲外）", "holds '≈ 0.36 ✗', a number outside of its band"),
        ("loss ≈ nan ✗ (outside 0.30 to 0.42)", "holds '≈ nan ✗', a number outside of its band"),
        ("loss    ≈ 0.36, ≈ 0.30, ≈ 0.4249 in one run, ≈ 0.43 rounded from 0.425", ""),
        ("≈ 168, ≈ -1.5e-07", ""),
        ("TensorFlow 2.21.0; lessons/steps; rows 0:24, 12:24; <div>a</div><br/>; 8 shards", ""),
        ("/job:localhost/replica:0/task:0/device:CPU:0", ""),
    ],
)
def test_text_that_another_run_would_change_is_found(text, fault):
    cell = nbformat.v4.new_code_cell(outputs=printing(text))
    found = list(output_rules.output_faults(cell, [(0.30, 0.425), (100, 200), (-2e-7, -1e-7)]))
    assert [fault in each for each in found] == [True] * bool(fault), found


def test_errors_and_stderr_do_not_stay_in_notebooks():
    raised = nbformat.v4.new_output("error", ename="ValueError", evalue="x")
    warned = nbformat.v4.new_output("stream", name="stderr", text="W0000")
    found = list(output_rules.output_faults(nbformat.v4.new_code_cell(outputs=[raised, warned])))
    assert found == ["raised ValueError, which is to be caught and printed", "wrote to stderr: 'W0000'"]


def test_the_bands_are_those_of_the_cell_or_where_it_states_none_of_the_lesson(course):
    def prints(cell_id, text):
        path = course.notebook("en", LESSON)
        notebook = nbformat.read(path, 4)
        cell(notebook, cell_id).outputs = printing(text)
        nbformat.write(notebook, path)
        return faults(course)

    edit(source_of(course), 'print("rows", 2)', 'print("rows", about(2, 1, 3))')
    list(build(course))
    pretend_executed(course)
    assert prints("printed", "rows ≈ 2.0\n") == ""
    assert "'printed' holds ≈ 0.36, which lies in no band" in prints("printed", "rows ≈ 0.36\n")
    assert "'slider' holds" not in prints("slider", "≈ 0.36, ≈ 2.0\n")
    assert "'slider' holds ≈ 0.51, which lies in no band" in prints("slider", "≈ 0.51\n")
