"""What a lesson asks, as its source says it: a question, its plausible answers, and what to say to each.

    How many devices does that mesh have?

    - [ ] `8`
      That is the sum of its sizes.
    - [x] `15`
      Three rows of five devices.
    - [ ] `16` one for each position
      A mesh has no more devices than positions.
    - otherwise
      Count the devices.

The right answer is marked. Words after a value are shown in its place. `otherwise` is what to say to a number
that is none of these: with it, the reader types a number. A right number may be off by what follows it:
`0.77` ± 0.5. An exercise's simple answer is written alike, under the name of what the reader gives a value.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from course_lib import syllabus
from course_lib.exercises.values import plain, same, shown
from course_lib.i18n import translated

_ITEM = re.compile(r"- \[(?P<mark>[ x])\] `(?P<value>[^`]+)`(?: ± (?P<off>[\d.]+))?(?: (?P<label>.+))?$")
_OTHERWISE = "- otherwise"
_ID = re.compile(r"(\w+)-([a-z0-9-]+)")
# A card in a percent script: `# %% predict-size [markdown]`, and the lines of its comment.
_CARD = re.compile(r"^# %% ((?:predict|check)-\S+) \[markdown\]\n((?:#.*\n?)*)", re.M)
_AS_SHOWN = 5e-3  # by which part a number may be off: three digits are shown


@dataclass(frozen=True)
class Option:
    """A plausible answer.

    Attributes:
        value: the answer.
        right: whether it is the right one.
        off_by: by how much a number may differ from the value; 0 where it must be shown alike.
        label: what is shown in place of the value, as the source has it; "" where the value is.
        comment: what there is to say to it, as the source has it.
    """

    value: object
    right: bool
    off_by: float = 0.0
    label: str = ""
    comment: str = ""

    @property
    def text(self) -> str:
        """The answer as the reader sees it."""
        return translated(self.label) or f"`{shown(self.value)}`"

    @property
    def said(self) -> str:
        """What there is to say to it, in the reader's language."""
        return translated(self.comment)

    def fits(self, measured: object) -> bool:
        """Returns whether `measured` is this value, or an error whose name it is."""
        if isinstance(self.value, str) and isinstance(measured, str):
            return measured == self.value or measured.startswith(f"{self.value}: ")
        if isinstance(self.value, (int, float)) and self.off_by:
            return same(plain(measured), float(self.value), relative=0, absolute=self.off_by)
        return same(plain(measured), plain(self.value), relative=_AS_SHOWN)


@dataclass
class Choice:
    """The reader's choice of an answer, in the memory of this kernel alone: a restart forgets it.

    Attributes:
        now: the answer that is chosen now, as the card's state says it; None before any.
        revealed: whether the measured value was shown.
        counted: the answer that stood when the measured value was first shown, None for none; it alone is a
            prediction, and the reader's score counts it.
    """

    now: Any = None
    revealed: bool = False
    counted: Any = None

    def is_late(self, chosen: Any) -> bool:
        """Returns whether an answer is one that was chosen after the measured value was shown."""
        return self.revealed and chosen != self.counted

    def reveal(self) -> None:
        """Notes that the measured value is shown; the first time decides what was predicted."""
        if not self.revealed:
            self.revealed, self.counted = True, self.now


choices: dict[str, Choice] = defaultdict(Choice)  # by the ids of questions


@dataclass(frozen=True)
class Question:
    """A question with its plausible answers.

    Attributes:
        question_id: the lesson's topic, then what it asks, such as "mesh_and_layout-hybrid".
        source: what is asked, as the source has it; for an exercise the name that gets a value.
        options: the plausible answers, the right one among them.
        otherwise: what to say to any other answer, as the source has it; "" where one must be chosen.
    """

    question_id: str
    source: str
    options: tuple[Option, ...]
    otherwise: str = ""

    @property
    def text(self) -> str:
        """The question, in the reader's language."""
        return translated(self.source)

    @property
    def right(self) -> Option:
        """The right answer."""
        return next(option for option in self.options if option.right)

    @property
    def is_typed(self) -> bool:
        """Whether the reader types a number; the options are then the numbers with a comment of their own."""
        return bool(self.otherwise)

    @cached_property
    def offered(self) -> list[Option]:
        """The options by their values, so that their order tells nothing; names come after numbers."""
        return sorted(self.options, key=lambda option: (isinstance(option.value, str), option.value))

    def option(self, chosen: int | float | None) -> Option | None:
        """Returns the answer that the reader chose; None where there is none.

        Args:
            chosen: the place of an option in `offered`, or the number in the field; None for no choice.
        """
        if chosen is None:
            return None
        return self.offered[int(chosen)] if not self.is_typed else self.of(chosen)

    def of(self, value: object) -> Option:
        """Returns the option of a value, which another one than the right one fits to the rounding only."""
        known = next((option for option in self.options if replace(option, off_by=0).fits(value)), None)
        if known is None and self.right.fits(value):
            return replace(self.right, label=f"`{shown(value)}`")
        return known or Option(value, right=False, comment=self.otherwise)

    def texts(self) -> Iterator[str]:
        """Yields what a translator has to see."""
        yield self.source
        for option in self.options:
            yield from filter(None, (option.label, option.comment))
        if self.otherwise:
            yield self.otherwise


def parsed(text: str, question_id: str = "") -> Question:
    r"""Returns what a cell asks.

    >>> parsed("How many?\n\n- [x] `8`\n  All.\n- [ ] `4`\n  Some.").right.value
    8

    Raises:
        ValueError: a line is neither of the question nor of an answer, or there is not one right answer.
    """
    question, _gap, listed = text.partition("\n\n")
    options: list[Option] = []
    otherwise = ""
    for item in re.split(r"\n(?=- )", listed.strip()):
        first, *comment = (" ".join(line.split()) for line in item.split("\n"))
        if first == _OTHERWISE:
            otherwise = " ".join(comment)
        else:
            options.append(_option(first, " ".join(comment)))
    if sum(option.right for option in options) != 1:
        raise ValueError(f"one answer is right, as in `- [x] 8`: {text[:60]!r}")
    return Question(question_id, " ".join(question.split()), tuple(options), otherwise)


def find(part: str, question_id: object) -> Question | None:
    """Returns what a lesson asks in the cell `predict-size` or `check-size`; None where there is none.

    Args:
        part: "predict" or "check".
        question_id: the lesson's topic and the rest of the cell's name, such as "mesh_and_layout-size".
    """
    known = _ID.fullmatch(question_id) if isinstance(question_id, str) else None
    text = _cards(known[1]).get(f"{part}-{known[2]}") if known else None
    return parsed(text, str(question_id)) if text else None


def predictions(topic: object) -> list[Question]:
    """Returns what is predicted in a lesson, such as "a_run", in the order in which it is asked."""
    cards = _cards(topic) if isinstance(topic, str) else {}
    asked = {name: text for name, text in cards.items() if name.startswith("predict-")}
    return [parsed(text, f"{topic}-{name.removeprefix('predict-')}") for name, text in asked.items()]


def _option(first: str, comment: str) -> Option:
    item = _ITEM.match(first)
    if item is None:
        raise ValueError(f"an answer is written as `- [ ] value`, its value between backticks: {first!r}")
    off_by, label = float(item["off"] or 0), item["label"] or ""
    return Option(_value(item["value"]), item["mark"] == "x", off_by, label, comment)


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word, such as refused


@cache
def _cards(topic: str) -> dict[str, str]:
    """Returns what a lesson asks, by the names of its cells, such as `predict-size`."""
    place = syllabus.find(topic)
    text = "" if place is None else (place.folder / "lesson.py").read_text("utf-8")
    return {name: re.sub(r"^# ?", "", body, flags=re.M) for name, body in _CARD.findall(text)}
