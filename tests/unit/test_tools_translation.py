"""Each rule about translations fails on a translation that breaks it, and passes a good one."""

import re
from pathlib import Path

import pytest

from tools.checks import language_style, translation_rules
from tools.checks.language_style import Term

ROOT = Path(__file__).parents[2]
STYLE = language_style.read_style(ROOT / "lessons/locale/ja/style.yml")


BROKEN = {
    "formulas": ("on $n$ devices", "$m$台のデバイスで"),
    "links": ("[here](https://example.org/a)", "[ここ](https://example.org/b)"),
    "code spans": ("use `pack`", "packを使います"),
    "placeholders": ("{count} rows of {name!r}", "{count}行"),
    "templates": ("on {{ count }} devices", "{{ counts }}台で"),
    "HTML tags": ("<b>x</b> is", "xです"),
    "table rows": ("| a | b |\n| 1 | 2 |", "| a | b |\n| 1 2 |"),
    "bold stretches": ("- **Note.** This", "- **注。**これは"),
    "heading levels": ("# A mesh\n\n## A grid", "## メッシュ\n\n# 格子"),
}


def test_every_thing_to_keep_has_a_breach():
    assert set(BROKEN) == set(translation_rules.KEPT)


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_not_kept_is_named(what):
    faults = list(translation_rules.differences(*BROKEN[what]))
    assert [fault for fault in faults if fault.startswith(f"{what} differ")]


FENCED = "```python\n# a `b` of $n$\n| x = 1\n```"


def test_fenced_code_is_kept_as_a_whole_wherever_it_stands():
    english = f"Use `x`.\n\n{FENCED}"
    assert list(translation_rules.differences(english, f"{FENCED}\n\n`x`を使います。")) == []
    for translation in (f"`x`を使います。\n\n{FENCED.replace('1', '2')}", "`x`と`b`を使います。$n$です。"):
        assert any(
            fault.startswith("code spans") for fault in translation_rules.differences(english, translation)
        )


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
    assert set(UNSTYLED) == set(STYLE.rules.values())


@pytest.mark.parametrize("rule", UNSTYLED)
def test_breaches_of_style_are_found(rule):
    for japanese in UNSTYLED[rule]:
        assert rule in list(STYLE.problems(japanese)), japanese


# What is not written, each with what the message offers.
WORSE = [
    ("レッスンは代用データで始まります。", "合成データ"),
    ("メッシュの次元で分割します。", "メッシュ次元"),
    ("これは完全な複製です。", "完全複製"),
    ("完全なシャーディングです。", "完全シャーディング"),
    ("訓練データの損失", "学習データ"),
    ("学習用のサンプル8件", "学習データ"),
    ("テストセットの損失", "テストデータ"),
    ("検証用データの損失", "検証データ"),
    ("最後の小さいバッチ", "端数のバッチ"),
    ("移動モーメントを使います。", "移動平均と移動分散"),
    ("all-reduceは集合通信です。", "集団通信"),
    ("各行を長さ1にそろえます。", "L2ノルム"),
    ("メモリに収まります。", "メモリー"),
    ("本物のデバイスではどうでしょうか。", "実機"),
    ("ライブラリ自身が作ります。", "nothing"),
    ("あなたの予想です。", "nothing"),
    ("ちょうど止めたステップから再開します。", "nothing"),
    ("TensorFlowは拒みます。", "エラーになる"),
    ("何も言わずに受け入れます。", "何の警告もなく"),
    ("読み出すことができます。", "…できます"),
    ("次元`batch`だけを持つメッシュ", "持つ is for devices"),
    ("大きさ8の次元を1つだけ持つメッシュ", "持つ is for devices"),
    ("モデルを8台で学習します。", "モデルを学習させる"),
    ("もう一度図を見ないで答えます。", "見返さずに"),
    ("最後の次元がいちばん速く変わります。", "まず最後のメッシュ次元に沿って"),
    ("格子の1つ1つの方向", "各方向"),
    ("では予想してみましょう。", "the card"),
    ("むしろ*遅く*なります。", "not italics"),
    ("**注意**。これは罠です。", "a noun as label"),
    ("1. **8台です**。はい。", "a noun as label"),
    ("どのデバイスが何を持つでしょうか", "a noun as heading"),
    ("上がるでしょうか、下がるでしょうか。", "ask once"),
]


def test_every_better_word_has_a_worse_one_that_is_found():
    for pattern in [*STYLE.better_words, *STYLE.better_forms]:
        assert any(re.search(pattern, worse.replace("`batch`", "\ufffc")) for worse, *_ in WORSE), pattern


@pytest.mark.parametrize(("worse", "offered"), WORSE)
def test_a_worse_word_is_found_and_a_better_one_offered(worse, offered):
    (problem,) = STYLE.problems(worse)
    assert offered in problem


def test_the_japanese_readme_keeps_the_rules():
    text = re.sub(r"```.*?```", "", (ROOT / "README.ja.md").read_text("utf-8"), flags=re.S)
    lines = [re.sub(r"^(#+|-|\d+\.) ", "", line) for line in text.splitlines()]
    texts = [part.strip() for line in lines for part in (line.split("|") if line[:1] == "|" else [line])]
    assert {part: found for part in texts if (found := list(STYLE.problems(part)))} == {}


def test_english_left_in_place_is_found():
    assert STYLE.left_out("The mesh has two dimensions.", "The mesh has two dimensions.")
    assert not STYLE.left_out("TensorFlow 2.21", "TensorFlow 2.21")


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
    return language_style.read_glossary(path)


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
        ("Look at mesh.of(mesh, 8).mesh now.", "mesh.of(mesh, 8).meshで調べます。", []),
        ("A mesh (sharded).", "格子（そのまま）です。", ["sharded", "mesh"]),
        ("A meshwork, run.", "網です。", []),
    ],
)
def test_terms_must_be_those_of_the_glossary(glossary, english, japanese, missing):
    found = list(language_style.missing_terms(english, japanese, glossary))
    assert [fault.split("'")[1] for fault in found] == missing
