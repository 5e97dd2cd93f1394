"""What the READMEs and the page on what comes next say about the lessons is what the lessons say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.lesson.build import built_cells
from tools.lesson.sources import Course

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
READMES = {
    language: path
    for language in COURSE.languages
    for path in [ROOT / ("README.md" if language == "en" else f"README.{language}.md")]
    if path.exists()
}
ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<link>[^)]+)\) \|.*\| (?P<minutes>\d+) \|$", re.M)


@pytest.mark.parametrize("language", READMES)
def test_the_map_lists_each_lesson_with_its_title_and_minutes(language):
    wanted = []
    for lesson in COURSE.lessons():
        title = re.search(r"^# (.+)$", built_cells(COURSE, lesson, language)[0].source, re.M)[1]
        minutes = re.search(r"(\d+) minutes", lesson.cells[0].source)[1]
        wanted.append((title, f"notebooks/{language}/{lesson.name}.ipynb", minutes))
    assert ROW.findall(READMES[language].read_text("utf-8")) == wanted
