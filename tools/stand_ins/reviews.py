"""Film reviews, the stand-in for those of IMDB: written from the sentences and the words in reviews.toml.

They have what makes real ones hard for a bag of words: opinions on one aspect that go against the verdict,
negation, quoted opinions, irony, and much talk about the plot that says nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from tools.stand_ins.films import TEXTS, Pool, below, make_films, one_of, shuffled

NUM_TRAIN, NUM_TEST = 8_100, 2_000  # 8,100 does not divide by the batch of 64: the last batch has 36 reviews
_NUM_FILMS, _NUM_TRAIN_FILMS = 800, 600
_SEED = 2026
# How many of a review's opinions agree with its verdict. Drawn for each review: some are clear, some are not.
_AGREEMENT_PERCENT = (95, 88, 78, 62)
_REMARK_PERCENT, _TURNED_PERCENT, _ONE_SIDED_PERCENT, _ONE_SIDED_VERDICT_PERCENT = 25, 25, 10, 40
_SIDES = {True: "good", False: "bad"}

_SLOT = re.compile(r"{(\w+)}")
_ARTICLE = re.compile(r"\b([Aa])\(n\) (?=(\w+))")
_VOWEL_SOUND = re.compile(r"(?!one|uni|eu)[aeiou]|hon|heir|hour", re.IGNORECASE)

_Pattern = tuple[str, ...]  # literal, slot, literal, slot, ..., literal
_Part = tuple[Sequence[_Pattern], bool]  # what a sentence may be, and whether it speaks well of the film
_Drawn = TypeVar("_Drawn")


def make_reviews() -> dict[str, dict[str, list[str] | list[int]]]:
    """Returns the texts and the labels of the training and of the test reviews; label 1 is for a good review.

    Half of the labels of each split are 1. The two splits speak of different films.
    """
    source = random.Random(_SEED)
    films = make_films(_NUM_FILMS, source)
    return {
        "train": _write_reviews(films[:_NUM_TRAIN_FILMS], NUM_TRAIN, source),
        "test": _write_reviews(films[_NUM_TRAIN_FILMS:], NUM_TEST, source),
    }


def _write_reviews(
    films: Sequence[dict[str, Pool]], num_reviews: int, source: random.Random
) -> dict[str, list[str] | list[int]]:
    labels = shuffled([0, 1] * (num_reviews // 2), source)
    popular = Pool([str(number) for number in range(len(films))])
    texts = [_write_review(films[int(popular.draw(source))], bool(label), source) for label in labels]
    return {"texts": texts, "labels": labels}


def _write_review(film: dict[str, Pool], liked: bool, source: random.Random) -> str:
    num_plots, num_opinions = _draw_lengths(source)
    agreement = one_of(_AGREEMENT_PERCENT, source)
    remarks, plots = _PATTERNS["remarks"], _PATTERNS["plots"]
    parts: list[_Part] = [(remarks, liked)]
    parts += [(remarks if _happens(_REMARK_PERCENT, source) else plots, liked) for _ in range(num_plots)]
    parts += [_draw_opinion(liked == _happens(agreement, source), source) for _ in range(num_opinions)]
    one_sided = _happens(_ONE_SIDED_VERDICT_PERCENT, source)
    parts.append((_ONE_SIDED["verdicts"][liked] if one_sided else _PATTERNS["verdicts"], liked))
    slots = {good: film | _VOICES[good] for good in _SIDES}
    used: set[_Pattern] = set()
    return " ".join(_write_sentence(patterns, slots[good], used, source) for patterns, good in parts)


def _draw_lengths(source: random.Random) -> tuple[int, int]:
    """Returns how many sentences tell the plot and how many hold opinions."""
    longest = one_of((4, 6, 10, 18), source)
    return below(longest, source), 2 + below(longest, source)


def _draw_opinion(good: bool, source: random.Random) -> _Part:
    if _happens(_ONE_SIDED_PERCENT, source):
        return _ONE_SIDED["opinions"][good], good
    return _PATTERNS["turned_opinions" if _happens(_TURNED_PERCENT, source) else "plain_opinions"], good


def _happens(percent: int, source: random.Random) -> bool:
    return below(100, source) < percent


def _write_sentence(
    patterns: Sequence[_Pattern], slots: dict[str, Pool], used: set[_Pattern], source: random.Random
) -> str:
    pattern = _draw_other(used, lambda: one_of(patterns, source))
    parts, said = list(pattern), set[str]()
    for at in range(1, len(parts), 2):
        parts[at] = _draw_other(said, partial(slots[parts[at]].draw, source))
    text = _ARTICLE.sub(_article, "".join(parts))
    return text[0].upper() + text[1:]


def _draw_other(before: set[_Drawn], draw: Callable[[], _Drawn]) -> _Drawn:
    """Returns what `draw` gives, after up to three attempts at something that was not drawn before."""
    drawn = draw()
    for _attempt in range(2):
        if drawn not in before:
            break
        drawn = draw()
    before.add(drawn)
    return drawn


def _article(match: re.Match[str]) -> str:
    return f"{match[1]}{'n' if _VOWEL_SOUND.match(match[2]) else ''} "


def _patterns(lines: str) -> list[_Pattern]:
    return [tuple(_SLOT.split(line)) for line in lines.splitlines()]


def _voice(good: bool) -> dict[str, Pool]:
    """Returns the word lists of an opinion: its own words, and as `anti_...` those of the other side."""
    lists = TEXTS["voices"].items()
    own = {slot: Pool.of(sides[_SIDES[good]]) for slot, sides in lists}
    return own | {f"anti_{slot}": Pool.of(sides[_SIDES[not good]]) for slot, sides in lists}


_PATTERNS = {name: _patterns(lines) for name, lines in TEXTS["sentences"].items()}
_ONE_SIDED = {
    name: {good: _patterns(TEXTS[f"one_sided_{name}"][side]) for good, side in _SIDES.items()}
    for name in ("opinions", "verdicts")
}
_VOICES = {good: _voice(good) for good in _SIDES}
