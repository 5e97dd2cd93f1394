"""The films that the stand-in reviews speak of, the words for what happens there, and how words are drawn."""

from __future__ import annotations

import itertools
import random
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

TEXTS = tomllib.loads(Path(__file__).with_name("reviews.toml").read_text("utf-8"))
Item = TypeVar("Item")


def below(bound: int, source: random.Random) -> int:
    """Returns a whole number from 0 to `bound - 1`, by integer arithmetic alone."""
    return source.getrandbits(40) * bound >> 40


def one_of(items: Sequence[Item], source: random.Random) -> Item:
    """Returns one of the items; all are equally likely."""
    return items[below(len(items), source)]


def shuffled(items: Sequence[Item], source: random.Random) -> list[Item]:
    """Returns `items` in random order (Fisher and Yates)."""
    mixed = list(items)
    for last in range(len(mixed) - 1, 0, -1):
        other = below(last + 1, source)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


class Pool:
    """Things to draw from, the first ones more often, as with the words of a language."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = tuple(items)
        self._cumulative = tuple(itertools.accumulate(60_000 // (place + 5) for place in range(len(items))))

    @classmethod
    def of(cls, text: str) -> Pool:
        """Returns what to draw from the words, or from the phrases where "|" divides them, of a list."""
        return cls([" ".join(part.split()) for part in (text.split("|") if "|" in text else text.split())])

    def draw(self, source: random.Random) -> str:
        """Returns one of the things."""
        return self.items[bisect_right(self._cumulative, below(self._cumulative[-1], source))]


def make_films(num_films: int, source: random.Random) -> list[dict[str, Pool]]:
    """Returns films, each with a title of its own: what may fill the slots of a sentence about it."""
    common = {slot: Pool.of(text) for slot, text in TEXTS["words"].items()}
    genres = [
        {"genre": Pool([genre])} | {slot: Pool.of(text) for slot, text in lists.items()}
        for genre, lists in TEXTS["genres"].items()
    ]
    titles = shuffled([f"The {title}" for title in _joined("title", " ")], source)
    surnames, towns = _joined("surname"), _joined("town")
    return [
        common | one_of(genres, source) | _draw_names(title, surnames, towns, source)
        for title in titles[:num_films]
    ]


def _draw_names(
    title: str, surnames: Sequence[str], towns: Sequence[str], source: random.Random
) -> dict[str, Pool]:
    first = TEXTS["names"]["first"].split()
    his, hers = Pool(first[::2]), Pool(first[1::2])
    firsts = {"actor": his, "actress": hers, "director": hers, "author": his}
    names = {slot: f"{pool.draw(source)} {one_of(surnames, source)}" for slot, pool in firsts.items()}
    names |= {"hero": his.draw(source), "heroine": hers.draw(source), "surname": one_of(surnames, source)}
    names |= {slot: one_of(towns, source) for slot in ("town", "other_town")}
    names |= {"title": title, "year": str(1930 + below(90, source))}
    return {slot: Pool([name]) for slot, name in names.items()}


def _joined(kind: str, between: str = "") -> list[str]:
    """Returns every name of a kind, made of each beginning with each end."""
    names = TEXTS["names"]
    starts, ends = names[f"{kind}_start"].split(), names[f"{kind}_end"].split()
    return [between.join(parts) for parts in itertools.product(starts, ends)]
