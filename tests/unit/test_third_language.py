"""A third language is catalogues and no code: the real lessons and the library in one that nobody speaks."""

import re
import subprocess
import sys

import pytest

from tests.pseudo_language import LANGUAGE, add_language, copied_course, left_in_english, translated
from tools.catalogues.__main__ import check
from tools.lesson import comments, markdown_blocks
from tools.lesson.build import built_notebook
from tools.lesson.texts import OTHER_KERNEL

APPENDIX = re.compile(r"\bA\d+\b")  # its number, which is the same in every language


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course with one more language."""
    course = copied_course(tmp_path_factory.mktemp("course"))
    add_language(course)
    return course


def texts(notebook):
    """Yields every text of a notebook that a translator sees."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from (block.text for block in markdown_blocks.blocks(cell.source))
        elif "setup" not in cell.metadata.get("tags", ()):
            yield from (words for _line, _column, words in comments.comments(cell.source))


def test_its_catalogues_are_found_and_whole(course):
    assert LANGUAGE in course.translations
    assert list(check(course)) == []
    assert left_in_english(f"{translated('Use `pack` on')} on {{name}}") == "on"


def test_every_text_of_every_lesson_is_in_it(course):
    for lesson in course.lessons():
        english, pseudo = (built_notebook(course, lesson, language) for language in ("en", LANGUAGE))
        setup = pseudo.cells[1].source
        assert (translated(OTHER_KERNEL) if lesson.is_appendix else f'LANGUAGE = "{LANGUAGE}"') in setup
        assert len(list(texts(pseudo))) == len(list(texts(english)))
        said = [APPENDIX.sub("", text) for text in texts(pseudo)]
        assert said[0] == translated(APPENDIX.sub("", next(texts(english))))
        assert [text for text in said if left_in_english(text)] == []


def test_the_library_speaks_it(course):
    code = (
        "import course_lib; from course_lib import MeshSpec\n"
        f"course_lib.setup(language={LANGUAGE!r})\n"
        "try: MeshSpec([('x', 3), ('x', 2)])\n"
        "except course_lib.CourseError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=course.root,
        env={"PYTHONPATH": str(course.root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(run.stdout.splitlines()) == 3
    assert left_in_english(run.stdout.replace("'x'", "")) == ""
