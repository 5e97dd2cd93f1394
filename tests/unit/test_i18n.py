"""The reader's language: lookup, placeholders, and catalogues that are whole."""

import string

import polib
import pytest

import course_lib
from course_lib import CourseError, i18n


def placeholders(message: str) -> set[str]:
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(message) if name}


def test_japanese_is_there_and_english_comes_first():
    assert i18n.languages()[0] == "en"
    assert "ja" in i18n.languages()


def test_english_is_the_source_itself():
    assert i18n._("{count} devices", count=8) == "8 devices"


def test_an_unknown_language_is_refused_by_name():
    with pytest.raises(CourseError, match="'zz'") as caught:
        course_lib.setup(language="zz")
    assert caught.value.allowed == ", ".join(i18n.languages())
    assert i18n.language() == "en"


def test_an_error_reads_in_the_readers_language():
    i18n.set_language("ja")
    with pytest.raises(CourseError) as caught:
        course_lib.setup(language="zz")
    assert "'zz'" in str(caught.value)
    assert "What to do" not in str(caught.value)


@pytest.mark.parametrize("code", i18n.languages()[1:])
def test_a_catalogue_is_whole_and_keeps_every_placeholder(code):
    entries = polib.pofile((i18n._CATALOGUES / f"{code}.po").read_text(encoding="utf-8"))
    assert len(entries) > 50
    for entry in entries:
        assert entry.msgstr, entry.msgid
        assert not entry.fuzzy, entry.msgid
        assert placeholders(entry.msgstr) == placeholders(entry.msgid), entry.msgid
