"""The reader's language: lookup, placeholders, and catalogues that are whole."""

import ast
import re

import pytest

import course_lib
from course_lib import CourseError, i18n
from tests.course import COURSE
from tools.catalogues.texts import code_texts

# A word that changes with the number before it; "1 to 4 runs" is no such place.
COUNTED = re.compile(
    r"(?<! to )\{\w+\} (\w+ )?"
    r"(axes|batches|bytes|classes|columns|components|devices|dimensions|elements|epochs|examples|features|lengths"
    r"|parts|places|rows|runs|steps)\b"
)


def calls(tree):
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in found if ast.unparse(call.func) in ("_", "ngettext")]


def test_every_text_of_code_is_one_that_catalogues_find():
    for folder in (COURSE.root / "course_lib", COURSE.root / "lessons"):
        for path in folder.rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            for call in calls(tree):
                texts = call.args[: 2 if ast.unparse(call.func) == "ngettext" else 1]
                assert texts, f"{path}:{call.lineno}"
                assert all(isinstance(each, ast.Constant) for each in texts), f"{path}:{call.lineno}"
            strings = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))
            assert not any(map(calls, strings)), f"{path}: within an f-string Babel finds none on Python 3.11"


def test_an_unknown_language_is_refused_by_name_in_the_readers_own(language):
    with pytest.raises(CourseError, match="'zz'") as caught:
        course_lib.setup(language="zz")
    assert re.split(", |、", caught.value.allowed) == list(i18n.languages())
    assert i18n.language() == language
    assert ("What to do" in str(caught.value)) == (language == "en")


def test_a_word_beside_a_number_has_a_plural_form():
    folders = (COURSE.root / "course_lib", COURSE.root / "lessons")
    texts = list(code_texts(COURSE, (path for folder in folders for path in folder.rglob("*.py"))))
    counting = [text for text in texts if COUNTED.search(text.plural or text.english)]
    assert any(text.plural for text in counting)
    assert [(text.place, text.english) for text in counting if not text.plural] == []
