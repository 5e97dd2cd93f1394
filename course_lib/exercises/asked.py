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
from collections.abc import Iterator
from dataclasses import dataclass

_ITEM = re.compile(
    r"- \[(?P<mark>[ x])\] (?P<values>`[^`]+`(?:, `[^`]+`)*)(?: ± (?P<off>[\d.]+))?(?: (?P<label>.+))?$"
)
_OTHERWISE = "- otherwise"


@dataclass(frozen=True)
class Answer:
    """A plausible answer.

    Attributes:
        value: the answer.
        right: whether it is the right one.
        off_by: by how much a number may differ from the value; 0 where it must be shown alike.
        label: what is shown in place of the value; "" where the value is.
        comment: what there is to say to it.
    """

    value: object
    right: bool
    off_by: float = 0.0
    label: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Asked:
    """A question with its answers.

    Attributes:
        question: what is asked; for an exercise the name that gets a value.
        answers: the plausible answers, the right one among them.
        otherwise: what to say to any other answer; "" where one must be chosen.
    """

    question: str
    answers: tuple[Answer, ...]
    otherwise: str = ""

    @property
    def right(self) -> Answer:
        """The right answer."""
        return next(answer for answer in self.answers if answer.right)

    def texts(self) -> Iterator[str]:
        """Yields what a translator has to see."""
        yield self.question
        for answer in self.answers:
            yield from filter(None, (answer.label, answer.comment))
        if self.otherwise:
            yield self.otherwise


def parsed(text: str) -> Asked:
    r"""Returns what a cell asks.

    >>> parsed("How many?\n\n- [x] `8`\n  All.\n- [ ] `2`, `4`\n  Some.").right.value
    8

    Raises:
        ValueError: a line is neither of the question nor of an answer, or there is not one right answer.
    """
    question, _gap, listed = text.partition("\n\n")
    answers: list[Answer] = []
    otherwise = ""
    for item in re.split(r"\n(?=- )", listed.strip()):
        first, *comment = (" ".join(line.split()) for line in item.split("\n"))
        if first == _OTHERWISE:
            otherwise = " ".join(comment)
        else:
            answers += _answers(first, " ".join(comment))
    if sum(answer.right for answer in answers) != 1:
        raise ValueError(f"one answer is right, as in `- [x] 8`: {text[:60]!r}")
    return Asked(" ".join(question.split()), tuple(answers), otherwise)


def _answers(first: str, comment: str) -> Iterator[Answer]:
    item = _ITEM.match(first)
    if item is None:
        raise ValueError(f"an answer is written as `- [ ] value`, its value between backticks: {first!r}")
    for value in re.findall(r"`([^`]+)`", item["values"]):
        yield Answer(
            _value(value), item["mark"] == "x", float(item["off"] or 0), item["label"] or "", comment
        )


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word, such as refused
