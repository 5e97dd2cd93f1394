"""Bringing catalogues up to date with the English, and each rule about translations failing on its breach."""

import re
import shutil

import polib
import pytest

from tests.small_course import LESSON, ROOT, copied, edit, source_of
from tools.catalogues import __main__ as catalogues
from tools.catalogues import files
from tools.checks import language_style, translation_rules
from tools.lesson.sources import Course

STYLE = language_style.read_style(ROOT / "lessons/locale/ja/style.yml")


@pytest.fixture
def course(tmp_path):
    course = copied(tmp_path)
    shutil.copy(ROOT / "lessons/locale/ja/style.yml", tmp_path / "lessons/locale/ja")
    return course


def faults(course):
    return "\n".join(catalogues.check(Course(course.root)))


def extract(course):
    list(catalogues.extract(Course(course.root)))


def library_code(course, text):
    (course.root / "course_lib").mkdir()
    (course.root / "course_lib" / "a.py").write_text(text, "utf-8")


def test_a_changed_english_text_is_stale_and_then_fuzzy(course):
    old, new = "A matrix is a tuple of tuples.", "The matrix is a tuple of tuples."
    edit(source_of(course), old, new)
    assert "stale" in faults(course)
    for _time in range(2):
        extract(course)
        assert faults(course) == f"lessons/small/fixture/ja.po: fuzzy, the English changed: {new!r}"
        entry = polib.pofile(str(course.catalogue("ja", LESSON))).find(new)
        assert (entry.previous_msgid, entry.msgstr) == (old, "行列はタプルのタプルです。")


def test_a_cell_changed_wholly_at_its_place_keeps_its_translation_for_the_translator(course):
    before = {entry.msgid: entry.msgstr for entry in files.read(course.catalogue("ja", LESSON), "ja")}
    edit(source_of(course), "# Each device got as many rows as the other.", "# Zebras and quays.")
    extract(course)
    (entry,) = files.read(course.catalogue("ja", LESSON), "ja").fuzzy_entries()
    assert before[entry.previous_msgid] == entry.msgstr


def test_a_new_text_is_missing_and_a_removed_one_leaves(course):
    edit(source_of(course), "# sliders and labels", "# zebras, quays")
    extract(course)
    assert faults(course) == "lessons/small/fixture/ja.po: missing: 'zebras, quays'"
    assert "sliders" not in course.catalogue("ja", LESSON).read_text("utf-8")


def test_the_texts_of_code_are_extracted_and_take_their_translation_to_another_catalogue(course):
    library_code(course, '_("A mesh {name!r} "\n  "of 8.", name=1)\n')
    extract(course)
    entries = polib.pofile(str(course.root / "course_lib" / "locale" / "ja.po"))
    assert [(each.msgid, each.flags) for each in entries] == [
        ("A mesh {name!r} of 8.", ["python-brace-format"])
    ]
    entries[0].msgstr = "メッシュ「{nom}」です。"
    entries.save()
    assert "placeholders differ: ['name'] became ['nom']" in faults(course)
    (course.root / "course_lib" / "a.py").rename(course.folder(LESSON) / "a.py")
    extract(course)
    moved = polib.pofile(str(course.catalogue("ja", LESSON))).find("A mesh {name!r} of 8.")
    assert moved.msgstr == "メッシュ「{nom}」です。"


def test_a_cell_that_moves_to_another_lesson_keeps_its_translation(course):
    text = source_of(course).read_text("utf-8")
    start, end = text.index("# %% breaking"), text.index("# %% error-zero")
    edit(course.root / "lessons" / "order.toml", "fixture =", 'other = "Halves."\nfixture =')
    course.folder("other").mkdir()
    (course.folder("other") / "lesson.py").write_text(text[start:end], "utf-8")
    source_of(course).write_text(text[:start] + text[end:], "utf-8")
    extract(course)
    (cell,) = files.read(course.catalogue("ja", "other"), "ja")
    assert cell.msgstr.startswith("0台のデバイスでは何も分けられません：\n\n- [マニュアル]")
    assert faults(course) == ""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("2番目の軸は分割しません。", "2番目の軸は分割しない。", "「ない。」: plain style"),
        (
            "デバイスが0台ではエラーになります。",
            "0台ではエラーです。",
            "'device' is デバイス in the glossary",
        ),
        ("デバイスが0台ではエラーになります。", "Zero devices are refused.", "left in English"),
        ("8の半分は4です。", "8の半分は 4です。", "space between Latin and Japanese"),
        ("それぞれどれだけ持つのでしょうか", "持つでしょうか、持たないでしょうか", "ask once"),
        ("## まとめ", "まとめ", "headings or bold words differ"),
    ],
)
def test_a_cell_is_held_against_the_rules_paragraph_by_paragraph(course, old, new, fault):
    edit(course.catalogue("ja", LESSON), old, new)
    assert fault in faults(course)


BROKEN = {
    "formulas": ("on $n$ devices", "$m$台のデバイスで"),
    "links": ("[here](https://example.org/a)", "[ここ](https://example.org/b)"),
    "code spans": ("```python\nx = 1\n```", "```python\nx = 2\n```"),
    "placeholders": ("{count} rows of {name!r}", "{count}行"),
    "templates": ("on {{ count }} devices", "{{ counts }}台で"),
    "lessons": ("as {lesson:a_run} says", "{lesson:one_step}のように"),
    "HTML tags": ("<b>x</b> is", "xです"),
    "table rows": ("| a | b |\n| 1 | 2 |", "| a | b |\n| 1 2 |"),
    "headings or bold words": ("- **Note.** This", "- **注。**これは"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_kept_is_named(what):
    (fault,) = translation_rules.differences(*BROKEN[what])
    assert fault.startswith(what)
    assert set(translation_rules.KEPT) <= set(BROKEN)


def test_the_japanese_readme_keeps_the_rules():
    text = re.sub(r"```.*?```", "", (ROOT / "README.ja.md").read_text("utf-8"), flags=re.S)
    lines = [re.sub(r"^(#+|-|\d+\.) ", "", line) for line in text.splitlines()]
    texts = [part.strip() for line in lines for part in (line.split("|") if line[:1] == "|" else [line])]
    assert {part: found for part in texts if (found := list(STYLE.problems(part)))} == {}
