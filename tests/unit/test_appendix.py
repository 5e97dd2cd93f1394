"""Appendices: their own kernel, first cell and rules."""

import re
import sys
from types import SimpleNamespace

import pytest

from tests.course import COURSE
from tests.small_course import copied, pretend_executed
from tools.checks import __main__ as checks
from tools.environments import estimator
from tools.lesson import first_cell
from tools.lesson.build import build, built_cells, built_notebook
from tools.lesson.sources import Course

NAME = "halves"
SOURCE = f"""\
# %% [markdown]
# # Halves
#
# **Time:** 5 minutes.

# %%
{first_cell.plain_of_appendices()}

# %% half
print(tf.constant(8) // 2)
"""


@pytest.fixture
def course(tmp_path):
    """The small course with an appendix."""
    course = copied(tmp_path)
    with (tmp_path / "lessons" / "order.toml").open("a") as order:
        order.write(f'[parts.extra]\ntitle = "Extra"\nletter = "A"\nlessons = {{{NAME} = "Halves."}}\n')
    course.folder(NAME).mkdir(parents=True)
    (course.folder(NAME) / "lesson.py").write_text(SOURCE, "utf-8")
    return course


def test_an_appendix_names_its_own_kernel_keeps_its_rules_and_is_not_offered_in_colab(course):
    assert course.topics == ("fixture",)
    kernels = [built_notebook(course, lesson, "ja").metadata.kernelspec.name for lesson in course.lessons()]
    assert kernels == ["python3", "estimators"]
    public = Course(course.root, repository="https://github.com/someone/course")
    assert (bool(public.colab_address("en", "fixture")), public.colab_address("en", NAME)) == (True, "")
    list(build(course))
    pretend_executed(course)
    assert list(checks.check(course)) == []


@pytest.mark.parametrize("language", COURSE.languages)
def test_under_another_tensorflow_one_sentence_says_what_to_do(monkeypatch, language):
    for lesson in (lesson for lesson in COURSE.lessons() if lesson.is_appendix):
        code = built_cells(COURSE, lesson, language)[1].source
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__version__="2.21.0"))
        with pytest.raises(Exception, match=re.escape(estimator.KERNEL_TITLE)) as refused:
            exec(code, {})
        (shown,) = refused.value._render_traceback_()
        assert "`make estimator`" in shown
        assert (shown == first_cell.OTHER_KERNEL) == (language == "en")
