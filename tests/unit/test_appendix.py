"""The appendix: its own kernel, its first cell, and no link to Colab."""

import dataclasses
import re
import sys
from types import SimpleNamespace

import pytest

from tests.course import COURSE
from tools.environments import estimator
from tools.lesson import first_cell
from tools.lesson.build import built_cells, built_notebook

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
