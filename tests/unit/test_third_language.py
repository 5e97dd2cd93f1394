"""A third language is catalogues and no code: the real lessons and the library in one that nobody speaks."""

import dataclasses
import doctest
import re
import subprocess
import sys

import pytest

from tests import pseudo_language
from tests.pseudo_language import LANGUAGE, add_language, copied_course, left_in_english, translated
from tools.catalogues.__main__ import check
from tools.checks.__main__ import different_code
from tools.lesson import comments, markdown_blocks
from tools.lesson.build import built_notebook
from tools.lesson.texts import OTHER_KERNEL

APPENDIX = re.compile(r"\bA\d+\b")  # its number, which is the same in every language


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course with one more language."""
    course = copied_course(tmp_path_factory.mktemp("course"))
    before = files(course)
    added = add_language(course)
    assert files(course) - before == {path.relative_to(course.root) for path in added}
    assert {path.suffix for path in added} == {".po"}
    return dataclasses.replace(course, repository="https://github.com/someone/course")


def files(course):
    return {path.relative_to(course.root) for path in course.root.rglob("*") if path.is_file()}


def texts(notebook):
    """Yields every text of a notebook that a translator sees."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from (block.text for block in markdown_blocks.blocks(cell.source))
        elif "setup" not in cell.metadata.get("tags", ()):
            yield from (comment.text for comment in comments.comments(cell.source))


def test_the_pseudo_language_keeps_what_translators_keep():
    assert doctest.testmod(pseudo_language).failed == 0
    assert left_in_english("Úśé `pack` on {name}") == "on"


def test_its_catalogues_are_found_and_whole(course):
    assert LANGUAGE in course.translations
    assert list(check(course)) == []


def test_every_text_of_every_lesson_is_in_it(course):
    for lesson in course.lessons():
        english, pseudo = (built_notebook(course, lesson, language) for language in ("en", LANGUAGE))
        assert pseudo.metadata.language == LANGUAGE
        setup = pseudo.cells[1].source
        assert (translated(OTHER_KERNEL) if lesson.is_appendix else f'LANGUAGE = "{LANGUAGE}"') in setup
        assert list(different_code(pseudo, english)) == []
        assert [cell.id for cell in pseudo.cells] == [cell.id for cell in english.cells]
        assert len(list(texts(pseudo))) == len(list(texts(english)))
        said = [APPENDIX.sub("", text) for text in texts(pseudo)]
        assert said[0] == translated(APPENDIX.sub("", next(texts(english))))
        assert [text for text in said if left_in_english(text)] == []


def test_the_library_speaks_it(course):
    code = (
        "import course_lib; from course_lib import i18n, MeshSpec; print(i18n.languages());"
        f"course_lib.setup(language={LANGUAGE!r})\n"
        "try: MeshSpec([('x', 3), ('x', 2)])\n"
        "except course_lib.CourseError as error: print(error)"
    )
    environment = {"PYTHONPATH": str(course.root), "PATH": "/usr/bin:/bin"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=course.root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    languages, *error = run.stdout.splitlines()
    assert LANGUAGE in languages
    assert len(error) == 3
    assert left_in_english(run.stdout.replace("'x'", "").partition("\n")[2]) == ""
