"""The first code cell, the same in every lesson, and in every appendix, but for the reader's language."""

from __future__ import annotations

import json
from collections.abc import Callable

from tools.lesson.sources import SOURCE_LANGUAGE, Course, LessonError
from tools.lesson.texts import OTHER_KERNEL

# What course_lib needs and Colab does not bring; small and pure Python. The rest stays as Colab has it.
COLAB_LACKS = (
    "anywidget>=0.9",
    "cloudpickle>=3",
    "jupyter_ui_poll>=1.0",
    "matplotlib-fontja>=1.1",
    "polib>=1.2",
)

_LESSON = """\
LANGUAGE = "{language}"
{colab}
import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)"""

_COLAB = """
import sys

if "google.colab" in sys.modules:
    %pip install -q --no-deps "course-lib @ git+{repository}@{branch}"
    %pip install -q {packages}
"""

_OF_APPENDICES = """\
import os
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.simplefilter("ignore")

import tensorflow as tf


class OtherKernel(Exception):
    def _render_traceback_(self):
        return [str(self)]


if not tf.__version__.startswith("2.15."):
    raise OtherKernel(
        {sentence}
    )
tf.get_logger().setLevel("ERROR")

from course_lib import check
from course_lib.i18n import set_language

set_language("{language}")"""


def first_cell(course: Course, language: str, written: str) -> str:
    """Returns the cell as the notebook holds it.

    Args:
        course: while it has no public address there is nothing that Colab could install.
        language: the reader's.
        written: the cell in the source.

    Raises:
        LessonError: the source says anything else than the notebook in English, and nothing of Colab.
    """
    _hold(written, _LESSON.format(language=SOURCE_LANGUAGE, colab=""))
    packages = " ".join(f'"{package}"' for package in COLAB_LACKS)
    colab = _COLAB.format(repository=course.repository, branch=course.branch, packages=packages)
    return _LESSON.format(language=language, colab=colab if course.repository else "")


def of_appendices(language: str, written: str, translate: Callable[[str], str]) -> str:
    """Returns the cell as an appendix's notebook holds it: under another TensorFlow it says what to do.

    Raises:
        LessonError: the source says anything else than the notebook in English.
    """
    _hold(written, _of_appendices(SOURCE_LANGUAGE, OTHER_KERNEL))
    return _of_appendices(language, translate(OTHER_KERNEL))


def _of_appendices(language: str, sentence: str) -> str:
    return _OF_APPENDICES.format(language=language, sentence=json.dumps(sentence, ensure_ascii=False))


def _hold(written: str, wanted: str) -> None:
    if written != wanted:
        raise LessonError(f"the cell tagged `setup` is always:\n{wanted}")
