"""Errors: what a reader is told survives the way from one process to another."""

import copy
import pickle

import pytest

from course_lib import CourseError, i18n


def sent(error):
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("copied", [sent, copy.copy, copy.deepcopy])
def test_a_copy_says_the_same_and_carries_the_same(copied):
    error = CourseError("It is 5.", allowed="4", cure="Give 4.")
    error.add_note("a note")
    again = copied(error)
    assert type(again) is CourseError
    assert str(again) == str(error)
    assert again.args == error.args
    assert again.__notes__ == ["a note"]
    i18n.set_language("ja")
    assert "4" in str(again)
