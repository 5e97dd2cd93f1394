"""Communication in words: what changes, which collective that takes, who takes part, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from course_lib.i18n import _, join_sentences, labelled, ngettext
from course_lib.pictures.text import marked, relayout_title
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import FACTORS, PRODUCT, Communication, Rule, Step
from course_lib.specs.explanation import Explanation, Pair
from course_lib.specs.sharding import Sharding

_FREE = (Rule.CUT, Rule.INNER, Rule.WANTED)
_ROMAN = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def title(communication: Communication) -> str:
    """Returns what is done: two tensors are multiplied, or one gets another layout."""
    operands, result = communication.operands, communication.result
    if len(operands) == len(FACTORS):
        return _("The matrix product x @ W on the mesh {mesh}", mesh=result.mesh)
    return relayout_title(operands[0], result)


def tensor_names(communication: Communication) -> list[tuple[str, Sharding]]:
    """Returns each tensor with its name: what goes in, and what comes out."""
    named = list(zip(FACTORS, communication.operands, strict=False))
    return [*named, (PRODUCT, communication.result)] if len(named) > 1 else named


def step_title(number: int, step: Step) -> str:
    """Returns the number of a step, its tensor, and from which layout it goes to which."""
    source, target = step.source.layout, step.sharding.layout
    values = {"number": number, "tensor": step.tensor}
    if step.rule is Rule.PARTIAL_SUM:
        return _("{number}. {tensor}: partial sums {layout} → sums", layout=source, **values)
    return _("{number}. {tensor}: {source} → {target}", source=source, target=target, **values)


def collective_lines(collective: Collective | None) -> list[str]:
    """Returns what is exchanged over which mesh dimensions, the payload, and what a device sends of it."""
    if collective is None:
        return [_("free: nothing is sent")]
    size = collective.payload_bytes
    payload = ngettext("payload: {size} byte", "payload: {size} bytes", size, size=f"{size:,}")
    return [exchange(collective), payload, _sent(collective)]


def collective_text(collective: Collective | None) -> list[str]:
    """Returns the same, and who exchanges with whom: the devices of each group, behind its number."""
    lines = collective_lines(collective)
    if collective is None:
        return lines
    groups = enumerate(collective.groups, start=1)
    return [*lines, " · ".join(f"{roman(at)}: {' '.join(map(str, group))}" for at, group in groups)]


def exchange(collective: Collective) -> str:
    """Returns the collective with its mesh dimensions."""
    return _("{kind} over {dims}", kind=collective.kind, dims=_(", ").join(collective.mesh_dims))


def roman(number: int) -> str:
    """Returns a Roman number: it tells groups from devices, which have Arabic ones.

    >>> [roman(number) for number in (1, 4, 8, 16)]
    ['I', 'IV', 'VIII', 'XVI']
    """
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


def bytes_text(size: Fraction | float) -> str:
    """Returns a number of bytes, with one digit after the point where it is not whole.

    >>> bytes_text(Fraction(1344)), bytes_text(Fraction(1000, 3))
    ('1,344', '333.3')
    """
    return f"{float(size):,.1f}".removesuffix(".0")


def totals(collectives: Sequence[Collective]) -> str:
    """Returns how many collectives there are and what a device sends in all of them."""
    if not collectives:
        return _("No collective: no device needs data of another.")
    return ngettext(
        "{count} collective; each device sends {size} bytes.",
        "{count} collectives; each device sends {size} bytes in all.",
        len(collectives),
        size=bytes_text(sum((each.bytes_sent for each in collectives), Fraction(0))),
    )


def both_totals(explanation: Explanation) -> list[str]:
    """Returns the same as predicted and as observed."""
    both = (_("Predicted"), explanation.predicted.collectives), (_("Observed"), explanation.observed)
    return [labelled(heading, totals(collectives)) for heading, collectives in both]


def tensor_lines(communication: Communication) -> list[str]:
    """Returns the name, the shape and the layout of each tensor."""
    named = tensor_names(communication)
    return [f"{name} {each.global_shape} {each.layout}" for name, each in named]


def pair_lines(pair: Pair) -> list[str]:
    """Returns the predicted collective of a step, what ran in its place, and whether that was expected."""
    planned = collective_text(pair.step.collective if pair.step else None)
    seen = marked("; ".join(collective_text(pair.observed)), agrees=pair.agrees)
    return [labelled(_("Predicted"), "; ".join(planned)), labelled(_("Observed"), seen)]


def verdict(explanation: Explanation) -> str:
    """Returns whether TensorFlow ran what was predicted, and what differs."""
    wrong = []
    if explanation.observed != explanation.expected:
        wrong.append(_("TensorFlow ran other collectives than predicted."))
    if explanation.layout != explanation.predicted.result.layout:
        values = {"real": explanation.layout, "predicted": explanation.predicted.result.layout}
        wrong.append(_("The result has the layout {real}; predicted was {predicted}.", **values))
    if not explanation.values_agree:
        wrong.append(_("The values differ from those of NumPy."))
    if explanation.expected == explanation.predicted.collectives:
        agrees = _("TensorFlow ran what was predicted. Layout and values of the result are right.")
    else:
        agrees = _(
            "Apart from all-reduces in place of all-gathers, TensorFlow ran what was predicted."
            " Layout and values of the result are right."
        )
    return marked(join_sentences(wrong or [agrees]), agrees=not wrong)


def reason(step: Step) -> str:
    """Returns why a step is taken, and what its collective does."""
    if step.collective is not None:
        return join_sentences([reasons(step)[step.rule], what_it_does(step.collective.kind)])
    if step.rule not in _FREE:
        return _("Along this mesh dimension there is one device only. Nothing is sent.")
    return join_sentences([reasons(step)[step.rule], _("Each device cuts its part out; nothing is sent.")])


def reasons(step: Step) -> dict[Rule, str]:
    """Returns for every rule why it asks for a step such as this one."""
    name = _(", ").join(step.collective.mesh_dims if step.collective else ())
    tensor = step.tensor
    return {
        Rule.CUT: _("Each device already holds all of its new block of {tensor}.", tensor=tensor),
        Rule.MOVE: _("{name} moves from one axis of {tensor} to the other.", name=name, tensor=tensor),
        Rule.GATHER: _(
            "Parts of {tensor} that lie on different devices along {name} have to come together.",
            tensor=tensor,
            name=name,
        ),
        Rule.ROWS_LIKE_COLUMNS: _(
            "{name} splits the rows of x and the columns of W, but can split one axis of the product only:"
            " {tensor} is gathered.",
            name=name,
            tensor=tensor,
        ),
        Rule.ROWS_LIKE_ROWS: _(
            "{name} splits the rows of x and the rows of W. The rows of W are summed over, and {name} cannot"
            " split the sum and the rows of the product at once: W is gathered.",
            name=name,
        ),
        Rule.COLUMNS_LIKE_COLUMNS: _(
            "{name} splits the columns of x and the columns of W. The columns of x are summed over, and"
            " {name} cannot split the sum and the columns of the product at once: x is gathered.",
            name=name,
        ),
        Rule.INNER: _(
            "The other factor is split along the axis that is summed over: {tensor} is cut likewise.",
            tensor=tensor,
        ),
        Rule.PARTIAL_SUM: _(
            "The axis that is summed over is split over {name}: each device has added its own terms only.",
            name=name,
        ),
        Rule.OUTPUT: _(
            "{name} splits the rows of x and the columns of W. DTensor then splits neither axis of the"
            " product over {name}.",
            name=name,
        ),
        Rule.WANTED: _("What reads the product wants this axis split: {tensor} is cut.", tensor=tensor),
        Rule.ROWS_WANTED: _(
            "{name} splits the rows of x and the columns of W, but can split one axis of the product only."
            " What reads the product wants its rows split: W is gathered.",
            name=name,
        ),
    }


def emulated(pair: Pair) -> list[str]:
    """Returns what ran in the place of the predicted collective, where another one was to run and did."""
    planned = pair.step.collective if pair.step else None
    if planned is None or pair.expected is None or planned == pair.expected or not pair.agrees:
        return []
    runs = ngettext(
        "By default DTensor (TensorFlow 2.21) runs an all-reduce of {size} byte in place of the {kind}.",
        "By default DTensor (TensorFlow 2.21) runs an all-reduce of {size} bytes in place of the {kind}.",
        pair.expected.payload_bytes,
        kind=planned.kind,
        size=f"{pair.expected.payload_bytes:,}",
    )
    if planned.kind is Kind.ALL_GATHER:
        return [join_sentences([runs, _("Each device of a group adds its part, and zeros for the others.")])]
    return [join_sentences([runs, _("Each device keeps its part of the sum.")])]


def what_it_does(kind: Kind) -> str:
    """Returns what a collective does for the devices of a group."""
    return {
        Kind.ALL_REDUCE: _("The all-reduce adds what the devices of a group hold; each receives the sum."),
        Kind.ALL_GATHER: _("The all-gather joins what the devices of a group hold; each receives the whole."),
        Kind.REDUCE_SCATTER: _("The reduce-scatter adds; each device of a group receives a part of the sum."),
        Kind.ALL_TO_ALL: _("In the all-to-all each device sends each other one of its group a part."),
    }[kind]


def _sent(collective: Collective) -> str:
    count, size = math.ceil(collective.bytes_sent), bytes_text(collective.bytes_sent)
    if collective.kind is Kind.ALL_TO_ALL:  # each part goes to the one device that needs it
        return ngettext("each device sends {size} byte", "each device sends {size} bytes", count, size=size)
    return ngettext(
        "each device sends {size} byte in a ring",
        "each device sends {size} bytes in a ring",
        count,
        size=size,
    )
