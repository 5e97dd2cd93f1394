"""Each rule about translations fails on a translation that breaks it, and passes a good one."""

import pytest

from tools.checks import japanese_style, translation_rules
from tools.checks.japanese_style import Term

GOOD = {
    "Use `pack` on $n$ devices.": "$n$台のデバイスで`pack`を使います。",
    "See [the guide](https://example.org/a_b) or https://example.org.": (
        "[ガイド](https://example.org/a_b)か、https://example.orgをご覧ください。"
    ),
    "The mesh has no dimension {name!r}.": "メッシュに「{name}」という次元はありません。",
    "**Note.** Two words.": "**注**：二つの語です。",
    "| axis | a direction |": "| 軸 | 方向 |",
    "<b>Bold</b> here": "<b>太字</b>です。",
    '<img src="x" alt="A mesh">': '<img src="x" alt="メッシュ">',
    "Lesson 1, TensorFlow 2.21 and 0.5 seconds": "レッスン1、TensorFlow 2.21、0.5秒",
    "A tensor of shape (8, 6) in JupyterLab": "JupyterLabにある形状(8, 6)のテンソル",
    "The rows (and columns)": "行（と列）",
    "x": "`a b`と`c`です！本当ですか？はい：「そうです」。",
}


@pytest.mark.parametrize("english", [key for key in GOOD if key != "x"])
def test_good_translations_keep_everything(english):
    assert list(translation_rules.differences(english, GOOD[english])) == []


@pytest.mark.parametrize("japanese", GOOD.values())
def test_good_japanese_breaks_no_rule(japanese):
    assert list(japanese_style.style_problems(japanese)) == []


BROKEN = {
    "formulas": ("on $n$ devices", "$m$台のデバイスで"),
    "links": ("[here](https://example.org/a)", "[ここ](https://example.org/b)"),
    "code spans": ("use `pack`", "packを使います"),
    "placeholders": ("{count} rows of {name!r}", "{count}行"),
    "templates": ("on {{ count }} devices", "{{ counts }}台で"),
    "HTML tags": ("<b>x</b> is", "xです"),
    "table columns": ("| a | b |", "| a b |"),
    "bold stretches": ("**Note.** This", "**注。**これは"),
}


def test_every_thing_to_keep_has_a_breach():
    assert set(BROKEN) == set(translation_rules.KEPT)


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_kept_is_named(what):
    faults = list(translation_rules.differences(*BROKEN[what]))
    assert [fault for fault in faults if fault.startswith(f"{what} differ")]


UNSTYLED = {
    "half-width punctuation after Japanese: use 、。，！？：；": [
        "格子です.",
        "はい,そうです。",
        "ですか?",
        "注:",
    ],
    "half-width kana": ["ﾒｯｼｭです。"],
    "full-width Latin letters or digits": ["８台です。", "Ａです。"],
    "full-width space": ["はい　です。"],
    "space between Latin and Japanese": [
        "8 台",
        "台数は 8",
        "`pack` を使います。",
        "形状は $x$",
        "値は {name}",
    ],
    "space inside Japanese": ["メッシュ は格子です。"],
    "space beside full-width punctuation": ["はい。 Aです。", "A 、Bです。"],
    "half-width brackets around Japanese: use （）": ["行(と列)です。"],
    "comma of Latin text in Japanese: use 、": ["はい，そうです。"],
    "plain style: use です・ます": [
        "格子である。",
        "分割する。",
        "できない。",
        "8だ。",
        "呼ばれる。",
        "なった。",
    ],
}


def test_every_rule_of_style_has_a_breach():
    assert set(UNSTYLED) == set(japanese_style._RULES)


@pytest.mark.parametrize("rule", UNSTYLED)
def test_breaches_of_style_are_found(rule):
    for japanese in UNSTYLED[rule]:
        assert rule in list(japanese_style.style_problems(japanese)), japanese


def test_polite_endings_are_no_plain_style():
    for ending in (
        "です",
        "ます",
        "ません",
        "ました",
        "ください",
        "でしょう",
        "でした",
        "ませんでした",
        "こと",
    ):
        assert list(japanese_style.style_problems(f"分割{ending}。")) == []


def test_english_left_in_place_is_found():
    assert japanese_style.untranslated("The mesh has two dimensions.", "The mesh has two dimensions.")
    assert not japanese_style.untranslated("TensorFlow 2.21", "TensorFlow 2.21")


GLOSSARY = """\
# Words

| English | Japanese | Note |
| --- | --- | --- |
| mesh | メッシュ | |
| mesh dimension | メッシュ次元 / メッシュの次元 | |
| sharded | 分割 | |
| all-reduce | all-reduce | |
| run | 実行 | free |
"""


@pytest.fixture
def glossary(tmp_path):
    path = tmp_path / "glossary.md"
    path.write_text(GLOSSARY, "utf-8")
    return japanese_style.read_glossary(path)


def test_the_glossary_is_read_without_its_free_rows(glossary):
    assert Term("mesh dimension", ("メッシュ次元", "メッシュの次元")) in glossary
    assert {term.english for term in glossary} == {"mesh", "mesh dimension", "sharded", "all-reduce"}


@pytest.mark.parametrize(
    ("english", "japanese", "missing"),
    [
        ("A mesh.", "格子です。", ["mesh"]),
        ("Two meshes.", "二つの格子です。", ["mesh"]),
        ("A mesh dimension.", "メッシュの次元です。", []),
        ("A mesh dimension.", "メッシュです。", ["mesh dimension"]),
        ("An all reduce.", "集約です。", ["all-reduce"]),
        ("It is unsharded.", "そのままです。", []),
        ("Sharded.", "そのままです。", ["sharded"]),
        ("Use `mesh`.", "`mesh`を使います。", []),
        ("A meshwork, run.", "網です。", []),
    ],
)
def test_terms_must_be_those_of_the_glossary(glossary, english, japanese, missing):
    found = list(japanese_style.missing_terms(english, japanese, glossary))
    assert [fault.split("'")[1] for fault in found] == missing
