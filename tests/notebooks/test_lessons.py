"""The lessons' notebooks, byte for byte; `make nbval` compares their outputs."""

import asyncio

import pytest

from tests.course import COURSE
from tests.pseudo_language import copied_course
from tools.lesson.build import build
from tools.lesson.execute import execute_files


def notebooks(course):
    return [course.notebook(language, name) for name in course.topics for language in course.languages]


@pytest.mark.drill_all
def test_building_and_executing_twice_changes_no_byte(tmp_path):
    """Pictures and the state of widgets included, which nbval does not compare."""
    course = copied_course(tmp_path)
    assert course.languages == COURSE.languages
    runs = []
    for _run in range(2):
        list(build(course))
        assert asyncio.run(execute_files(notebooks(course))) == []
        runs.append([path.read_bytes() for path in notebooks(course)])
    assert runs[0] == runs[1]
