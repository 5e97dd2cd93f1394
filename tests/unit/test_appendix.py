"""Appendices: their own kernel, first cell and rules, and left alone where they cannot run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from tests.course import COURSE
from tools.checks import __main__ as checks
from tools.checks.lesson_rules import lesson_faults
from tools.environments import estimator
from tools.lesson import execute, first_cell
from tools.lesson.build import build, built_cells, built_notebook
from tools.lesson.sources import Course
from tools.lesson.stored_outputs import normalised

FIXTURES = Path(__file__).parents[1] / "notebooks" / "fixtures"
NAME = "halves"
SOURCE = f"""\
# %% [markdown]
# # Halves
#
# **Time:** 5 minutes.
# **You need to know:** division.

# %%
{first_cell.plain_of_appendices()}

# %% half
print(tf.constant(8) // 2)

# %% [markdown]
# ## Takeaways
#
# - Four.
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The fixture course with an appendix, and no environment for it."""
    shutil.copytree(FIXTURES / "course", tmp_path, dirs_exist_ok=True)
    with (tmp_path / "lessons" / "order.toml").open("a") as order:
        order.write(f'[parts.extra]\ntitle = "Extra"\nletter = "A"\nlessons = {{{NAME} = "Halves."}}\n')
    folder = tmp_path / "lessons" / "extra" / NAME
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "lesson.py").write_text(SOURCE, "utf-8")
    monkeypatch.setattr(estimator, "ENVIRONMENT", tmp_path / "environment")
    monkeypatch.setattr(estimator, "KERNEL_FILE", tmp_path / "kernels" / estimator.KERNEL / "kernel.json")
    return Course(tmp_path)


def edited(course, old, new):
    path = course.folder(NAME) / "lesson.py"
    assert old in SOURCE
    path.write_text(SOURCE.replace(old, new), "utf-8")
    return Course(course.root).lesson(NAME)


def appendices():
    return [lesson for lesson in COURSE.lessons() if lesson.is_appendix]


def test_appendices_come_after_the_lessons_and_are_none(course):
    assert course.topics == ("fixture",)
    assert [place.notebook for place in course.places] == ["00_fixture.ipynb", f"A1_{NAME}.ipynb"]
    assert [lesson.is_appendix for lesson in course.lessons()] == [False, True]


def test_their_notebooks_name_their_own_kernel(course):
    kernels = [built_notebook(course, lesson, "ja").metadata.kernelspec.name for lesson in course.lessons()]
    assert kernels == ["python3", "estimators"]


def test_they_are_not_offered_in_colab(course):
    public = Course(course.root, repository="https://github.com/someone/course")
    assert public.colab_address("en", "fixture")
    assert public.colab_address("en", NAME) == ""
    assert "colab" not in nbformat.writes(built_notebook(public, public.lesson(NAME), "en"))


@pytest.mark.parametrize("language", COURSE.languages)
def test_under_another_tensorflow_one_sentence_says_what_to_do(monkeypatch, language):
    for lesson in appendices():
        code = built_cells(COURSE, lesson, language)[1].source
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__version__="2.21.0"))
        with pytest.raises(Exception, match=re.escape(f"{estimator.KERNEL_TITLE}")) as refused:
            exec(code, {})
        (shown,) = refused.value._render_traceback_()
        assert "`make estimator`" in shown
        assert len(re.findall(r"[.。](?: |$)", shown)) == 1
        assert (shown == first_cell.OTHER_KERNEL) == (language == "en")


def test_an_appendix_keeps_the_rules_of_prose_and_needs_no_cards(course):
    assert list(lesson_faults(course.lesson(NAME))) == []
    (fault,) = lesson_faults(edited(course, "# - Four.", "# Four."))
    assert "0 takeaways" in fault
    (fault,) = lesson_faults(edited(course, "5 minutes", "five minutes"))
    assert "how many minutes" in fault


def pretend_executed(course):
    for language in course.languages:
        notebook = nbformat.read(course.notebook(language, NAME), 4)
        for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
            cell.execution_count = count
        nbformat.write(normalised(notebook), course.notebook(language, NAME))


def faults(course):
    return [fault for fault in checks.check(course) if NAME in fault]


def test_stored_notebooks_are_held_against_their_sources_but_need_no_picture(course):
    assert f"en/A1_{NAME}.ipynb is not built" in faults(course)
    list(build(course))
    assert len(faults(course)) == 2
    assert all("not executed" in fault for fault in faults(course))
    pretend_executed(course)
    assert faults(course) == []
    path = course.notebook("ja", NAME)
    path.write_text(path.read_text("utf-8").replace('"estimators"', '"python3"'), "utf-8")
    assert faults(course) == [f"ja/A1_{NAME}.ipynb: its metadata 'kernelspec' is not what the build writes"]


def executing(course, monkeypatch, *names):
    ran = []

    async def none_fails(paths):
        ran.extend(path.stem for path in paths)
        return []

    monkeypatch.chdir(course.root)
    monkeypatch.setattr(sys, "argv", ["execute", *names])
    monkeypatch.setattr(execute, "execute_files", none_fails)
    return execute.main(), ran


def test_without_their_environment_lessons_are_executed_and_appendices_left(course, monkeypatch, capsys):
    assert executing(course, monkeypatch) == (0, ["00_fixture"] * 2)
    assert capsys.readouterr().out.startswith(f"{NAME} is not executed: ")
    assert executing(course, monkeypatch, NAME) == (1, [])


def test_nbval_takes_appendices_only_where_they_are_named():
    ja = f"notebooks/ja/{appendices()[0].place.notebook}"
    command = [sys.executable, "-m", "pytest", "--nbval", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "notebooks/en", ja], cwd=COURSE.root, capture_output=True, text=True, check=True
    )
    collected = set(re.findall(r"^(\S+\.ipynb)::", done.stdout, re.M))
    assert collected == {f"notebooks/en/{COURSE.place(topic).notebook}" for topic in COURSE.topics} | {ja}
