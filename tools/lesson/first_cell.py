"""The first code cell, the same in every lesson but for the reader's language."""

from __future__ import annotations

from tools.lesson.sources import SOURCE_LANGUAGE, Course, LessonError

# What course_lib needs and Colab does not bring; small and pure Python. The rest stays as Colab has it.
COLAB_LACKS = ("anywidget>=0.9", "jupyter_ui_poll>=1.0", "matplotlib-fontja>=1.1", "polib>=1.2")

_PLAIN = """\
LANGUAGE = "{language}"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)"""

_WITH_COLAB = """\
LANGUAGE = "{language}"

import sys

if "google.colab" in sys.modules:
    %pip install -q --no-deps "course-lib @ git+{repository}@{branch}"
    %pip install -q {packages}

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)"""


def plain() -> str:
    """Returns the cell as a lesson's source holds it."""
    return _PLAIN.format(language=SOURCE_LANGUAGE)


def first_cell(course: Course, language: str, written: str) -> str:
    """Returns the cell as the notebook holds it.

    Args:
        course: while it has no public address there is nothing that Colab could install.
        language: the reader's.
        written: the cell in the source.

    Raises:
        LessonError: the source says anything else than `plain()`.
    """
    if written != plain():
        raise LessonError(f"the cell tagged `setup` is always:\n{plain()}")
    template = _WITH_COLAB if course.repository else _PLAIN
    packages = " ".join(f'"{package}"' for package in COLAB_LACKS)
    return template.format(
        language=language, repository=course.repository, branch=course.branch, packages=packages
    )
