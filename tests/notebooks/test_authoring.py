"""docs/authoring.md is true: its lesson, made by its own files and commands in a copy of the course."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course import COURSE
from tests.pseudo_language import LANGUAGE, translate
from tools.lesson.sources import Course

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "authoring.md").read_text("utf-8")
TOPIC = "positions"
FILES = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", TEXT, re.M | re.S))
(ORDER,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.M | re.S)
RECIPE = TEXT.partition("## A lesson\n")[2].partition("\n## ")[0]


def commands(text):
    shown = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
    return [shlex.split(line, comments=True) for block in shown for line in block.splitlines()]


@pytest.fixture
def course(tmp_path):
    """The course without its lessons, in a language that the test can play the translator of."""
    topics = [place.topic for place in COURSE.places]
    left_out = ("*.ipynb", "__pycache__", "attempts_*", "ja", "ja.po")
    shutil.copytree(ROOT / "lessons", tmp_path / "lessons", ignore=shutil.ignore_patterns(*left_out, *topics))
    for name in ("course_lib", "benchmarks", "tools", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*left_out))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    order = tmp_path / "lessons" / "order.toml"
    lines = order.read_text("utf-8").splitlines(keepends=True)
    order.write_text("".join(line for line in lines if line.partition(" ")[0] not in topics), "utf-8")
    (tmp_path / "lessons" / "locale" / LANGUAGE).mkdir()
    return Course(tmp_path)


def run(course, words):
    environment = {**os.environ, "PYTHONPATH": str(course.root)}
    command = [sys.executable, *words[1:]] if words[0] == "python" else words
    done = subprocess.run(
        command, cwd=course.root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.drill
def test_the_recipe_for_a_lesson_makes_one(course):
    folder = f"lessons/layouts/{TOPIC}"
    own = {f"{folder}/{name}.py" for name in ("__init__", "lesson", "checks")}
    assert set(FILES) == {*own, f"tests/lessons/attempts_{TOPIC}.py"}
    for name, text in FILES.items():
        (course.root / name).parent.mkdir(exist_ok=True)
        (course.root / name).write_text(text, "utf-8")
    order = course.root / "lessons" / "order.toml"
    heading, _end, line = ORDER.partition("\n")
    order.write_text(order.read_text("utf-8").replace(heading, f"{heading}\n{line}"), "utf-8")
    printed = []
    for words in commands(RECIPE):
        printed.append(run(course, words))
        if words[2:] == ["tools.catalogues", "extract"]:
            translate(course)
    for language in ("en", LANGUAGE):
        assert f"{language}/00_{TOPIC}.ipynb executed in" in "".join(printed)
        assert course.notebook(language, TOPIC).exists()
    assert (
        f"[0. Positions in a mesh](notebooks/en/00_{TOPIC}.ipynb)" in (course.root / "README.md").read_text()
    )
    code_cells = [cell for cell in course.lesson(TOPIC).cells if cell.kind == "code"]
    assert f"{2 * len(code_cells)} passed" in printed[-1]
    run(course, ["python", "-m", "ruff", "check", *FILES])
    run(course, ["python", "-m", "ruff", "format", "--check", *FILES])


def test_the_recipe_for_a_language_is_what_the_test_of_a_third_one_does():
    section = TEXT.partition("## A language\n")[2]
    assert commands(section)[:2] == [
        ["mkdir", f"lessons/locale/{LANGUAGE}"],
        ["python", "-m", "tools.catalogues", "extract"],
    ]


def test_every_file_that_it_names_exists():
    named = set(re.findall(r"`((?:course_lib|lessons|tests|tools|notebooks|docs)/[\w./-]+)`", TEXT))
    assert [name for name in named if name.islower() and not (ROOT / name).exists()] == []
