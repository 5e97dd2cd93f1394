"""Rules for Japanese prose that a machine can hold it against, and the glossary.

The conventions are stated in `lessons/locale/ja/glossary.md`, those too that only a reader can hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.lesson.markdown_blocks import parser

_JA = r"[\u3040-\u30ff\u3400-\u9fff々〆ー]"
_OBJECT = "\ufffc"  # stands for a code span, a formula or a placeholder: Latin text, as far as spaces go
_LATIN = rf"[A-Za-z0-9{_OBJECT}%°)\]]"
_LATIN_START = rf"[A-Za-z0-9{_OBJECT}(\[]"
_MARKUP = re.compile(r"`+.+?`+|\$[^$]+\$|\{\w*(?:[!:][^{}]*)?\}|https?://[!-(*-~]+", re.S)
_CALL = re.compile(
    r"\b[\w.]+\([^()]*\)(?:\.\w+)*"
)  # code in a message of the library: layout.of(shape).shards
_LINK_TARGET = re.compile(r"\]\([^)]*\)")

_RULES = {
    "half-width punctuation after Japanese: use 、。，！？：；": rf"{_JA}\s*[,.!?:;]",
    "half-width kana": r"[\uff61-\uff9f]",
    "full-width Latin letters or digits": r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]",
    "full-width space": "\u3000",
    "space between Latin and Japanese": rf"{_LATIN} +{_JA}|{_JA} +{_LATIN_START}",
    "space inside Japanese": rf"{_JA} +{_JA}",
    "space beside full-width punctuation": r"[、。！？：；「」（）] +\S|\S +[、。！？：；「」（）]",
    "half-width brackets around Japanese: use （）": rf"\([^()]*{_JA}[^()]*\)",
    "comma of Latin text in Japanese: use 、": rf"{_JA}，",
    "plain style: use です・ます": (
        r"(?:である|のだ|だった|だろう|(?<![たく])する|なる|ある|いる|れる|せる|える|ない|(?<![まで])した|った|いた|だ)。"
    ),
}

_SHORTENED = (
    "メモリ|レイヤ|サーバ|ユーザ|フォルダ|ブラウザ|パラメータ|コンパイラ|ワーカ|オプティマイザ|コンピュータ"
)
# What is not written, by its pattern, and what is written instead.
_BETTER_WORDS = {
    r"代用データ": "合成データ",
    r"メッシュの次元": "メッシュ次元",
    r"完全な(?:複製|シャーディング)": "完全複製, 完全シャーディング",
    r"訓練(?:用)?データ|学習用データ|学習用の(?:データ|サンプル)": "学習データ",
    r"テスト(?:用(?:の)?データ|用サンプル|セット)": "テストデータ",
    r"検証(?:用(?:の)?データ|セット)": "検証データ",
    r"(?:最後の小さ[いな]|半端な|余りの)バッチ": "端数のバッチ",
    r"移動モーメント|モーメント(?!ム)": "平均と分散, and 移動平均と移動分散",
    r"集合通信|集団演算": "集団通信",
    r"単位長|長さ1の行|長さ(?:を|が)?1に": "L2ノルムを1に正規化: 長さ is a number of elements",
    rf"(?:{_SHORTENED})(?![ァ-ヺー])": "the long vowel at the end, as in メモリー",
    r"本物": "実データ, 実機 or 実際の",
    r"自身": "nothing: ライブラリが生成する, not ライブラリ自身が",
    r"あなた|私たち|われわれ|我々|彼ら|それら": "nothing, or the noun that is meant",
    r"ちょうど": "nothing: a number is exact, 止めたステップから says it too",
    r"拒[否むみま]": "エラーになる, or 使えない",
    r"黙って|何も言わずに": "何の警告もなく",
    r"(?<!次の)ことができ": "…できます",
    rf"次元{_OBJECT}?(?:だけ)?を(?:\d+つ)?(?:だけ)?持": "次元が…のメッシュ: 持つ is for devices",
    r"モデルを[^、。]{0,15}学習(?:し|する)": "モデルを学習させる: readers 学ぶ",
    r"もう一度[^、。]{0,8}ないで": "見返さずに",
    r"いちばん速く変わ": "番号は、まず最後のメッシュ次元に沿って増えていきます",
    r"1つ1つの方向": "各方向",
    r"予想してみましょう": "nothing: the card asks for the prediction",
}
# The same, where the beginning or the end tells what a text is: a label, a heading.
_BETTER_FORMS = {
    r"^(?:\d+\. |[-*] )?\*\*[^*]+\*\*。": "a noun as label, with a colon: **注意**：",
    r"(?:でしょうか|ですか|ましょう)$": "a noun as heading: どのデバイスが何を持つか",
}
_QUESTION = "でしょうか"


@dataclass(frozen=True)
class Term:
    """A term of the glossary: where `english` is used, one of `japanese` must be."""

    english: str
    japanese: tuple[str, ...]

    @cache  # noqa: B019 - a glossary stays for the whole run
    def pattern(self) -> re.Pattern[str]:
        """Returns what finds the term in English prose, plural and hyphens included."""
        words = re.escape(self.english).replace(r"\ ", r"[\s-]").replace(r"\-", r"[\s-]")
        return re.compile(rf"(?<![\w-]){words}(?:s|es)?(?![\w-])", re.I)


def style_problems(japanese: str) -> Iterator[str]:
    """Yields the rules that a Japanese text breaks.

    >>> list(style_problems("メッシュ は格子です."))
    ['half-width punctuation after Japanese: use 、。，！？：；', 'space inside Japanese']
    """
    prose = _prose(japanese)
    for rule, pattern in _RULES.items():
        if re.search(pattern, prose):
            yield rule
    yield from _worse_words(prose, _BETTER_WORDS)
    yield from _worse_words(_without_code(japanese), _BETTER_FORMS)
    for words in filter(re.compile(_JA).search, _italics(japanese)):
        yield f"*{words}*: write 「」 or other words, not italics"
    if (count := prose.count(_QUESTION)) > 1:
        yield f"{_QUESTION} {count} times: ask once, as in …、…、のどれ{_QUESTION}"


def _worse_words(text: str, better: dict[str, str]) -> Iterator[str]:
    for pattern, instead in better.items():
        if found := re.search(pattern, text):
            yield f"「{found[0].replace(_OBJECT, '…')}」: write {instead}"


def _italics(text: str) -> Iterator[str]:
    tokens = parser().parseInline(text)[0].children or []
    for start, token in enumerate(tokens):
        if token.type == "em_open":
            types = [later.type for later in tokens[start:]]
            yield "".join(inner.content for inner in tokens[start : start + types.index("em_close")])


def untranslated(english: str, japanese: str) -> bool:
    """Returns whether a text of several English words was left without any Japanese."""
    words = re.findall(r"[A-Za-z]{2,}", _prose(english))
    return len(words) > 3 and not re.search(_JA, japanese)


def read_glossary(path: Path) -> tuple[Term, ...]:
    """Returns the terms of a glossary's table, longest first; those noted "free" are not checked."""
    table = [line for line in path.read_text("utf-8").splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table]
    checked = [(english, forms) for english, forms, note in rows if not note.startswith("free")]
    terms = [Term(english, tuple(form.strip() for form in forms.split("/"))) for english, forms in checked]
    return tuple(sorted(terms, key=lambda term: -len(term.english)))


def missing_terms(english: str, japanese: str, glossary: tuple[Term, ...]) -> Iterator[str]:
    """Yields the terms that the English uses and the Japanese does not render as the glossary says."""
    prose = _CALL.sub(_OBJECT, _prose(english))
    for term in glossary:
        prose, uses = term.pattern().subn(" ; ", prose)  # "mesh dimension" is not also a "mesh"
        if uses and not any(form in japanese for form in term.japanese):
            yield f"{term.english!r} is {' or '.join(term.japanese)} in the glossary"


def _prose(text: str) -> str:
    return _without_code(text).replace("**", "")


def _without_code(text: str) -> str:
    return _LINK_TARGET.sub("]", _MARKUP.sub(_OBJECT, text))
