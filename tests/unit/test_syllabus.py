"""The order of the lessons: numbers, names of notebooks, and how texts refer to lessons."""

import pytest

from course_lib import syllabus
from tools.lesson import references

ORDER = """
first_number = 9
[parts.start]
title = "Start"
lessons = {whole = "Everything.", parts = "Its parts."}
[parts.more]
title = "More"
lessons = {ends = "The ends."}
[parts.old]
title = "Old"
letter = "A"
lessons = {history = "What was."}
"""


@pytest.fixture
def lessons(tmp_path):
    (tmp_path / "order.toml").write_text(ORDER, "utf-8")
    return tmp_path


def test_numbers_and_names_of_notebooks_follow_from_the_order(lessons):
    assert [(place.number, place.part, place.notebook) for place in syllabus.places(lessons)] == [
        ("9", "start", "09_whole.ipynb"),
        ("10", "start", "10_parts.ipynb"),
        ("11", "more", "11_ends.ipynb"),
        ("A1", "old", "A1_history.ipynb"),
    ]
    assert [place.topic for place in syllabus.places(lessons) if place.is_appendix] == ["history"]


def test_a_text_refers_to_a_lesson_by_its_topic(lessons):
    (lessons / "order.toml").write_text(ORDER.replace("first_number = 9", "first_number = 0"), "utf-8")
    text = "{Lesson:ends} follows {lesson:whole}; lessons {number:whole} to {number:ends}; {Lesson:history}."
    said = references.resolved(text, syllabus.places(lessons), str)
    assert said == "Lesson 2 follows lesson 0; lessons 0 to 2; Appendix A1."
    other = references.resolved("[x]({notebook:whole})", syllabus.places(lessons), str)
    assert other == "[x](00_whole.ipynb)"
    with pytest.raises(LookupError, match=r"\{lesson:gone\}: there is no lesson 'gone'"):
        references.resolved("{lesson:gone}", syllabus.places(lessons), str)


def test_a_module_is_found_by_the_topic_of_its_lesson():
    assert syllabus.module("communication.ring").__name__ == "lessons.layouts.communication.ring"
    with pytest.raises(LookupError, match="'gone'"):
        syllabus.module("gone.ring")
