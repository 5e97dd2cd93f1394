"""Why communication is what it is: a sentence for each rule, for each collective, and for what CPUs lack."""

from __future__ import annotations

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.specs.collectives import Kind
from course_lib.specs.communication import Rule, Step
from course_lib.specs.explanation import Pair

_FREE = (Rule.CUT, Rule.INNER, Rule.WANTED)


def reason(step: Step) -> str:
    """Returns why a step is taken, and what its collective does."""
    if step.collective is not None:
        return join_sentences([reasons(step)[step.rule], _what_it_does(step.collective.kind)])
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
            "{name} splits the rows of A and the columns of B, but can split one axis of the product only:"
            " {tensor} is gathered.",
            name=name,
            tensor=tensor,
        ),
        Rule.ROWS_LIKE_ROWS: _(
            "{name} splits the rows of A and the rows of B. The rows of B are summed over, and {name} cannot"
            " split the sum and the rows of the product at once: B is gathered.",
            name=name,
        ),
        Rule.COLUMNS_LIKE_COLUMNS: _(
            "{name} splits the columns of A and the columns of B. The columns of A are summed over, and"
            " {name} cannot split the sum and the columns of the product at once: A is gathered.",
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
            "{name} splits the rows of A and the columns of B. DTensor then splits neither axis of the"
            " product over {name}.",
            name=name,
        ),
        Rule.WANTED: _("What reads the product wants this axis split: {tensor} is cut.", tensor=tensor),
        Rule.ROWS_WANTED: _(
            "{name} splits the rows of A and the columns of B, but can split one axis of the product only."
            " What reads the product wants its rows split: B is gathered.",
            name=name,
        ),
    }


def emulated(pair: Pair) -> list[str]:
    """Returns what ran in the place of the predicted collective, where another one was to run and did."""
    planned = pair.step.collective if pair.step else None
    if planned is None or pair.expected is None or planned == pair.expected or not pair.agrees:
        return []
    runs = ngettext(
        "On CPUs DTensor (TensorFlow 2.21) runs an all-reduce of {size} byte in place of the {kind}.",
        "On CPUs DTensor (TensorFlow 2.21) runs an all-reduce of {size} bytes in place of the {kind}.",
        pair.expected.payload_bytes,
        kind=planned.kind,
        size=f"{pair.expected.payload_bytes:,}",
    )
    if planned.kind is Kind.ALL_GATHER:
        return [join_sentences([runs, _("Each device adds its own part, and zeros for the others.")])]
    return [join_sentences([runs, _("Each device keeps its part of the sum.")])]


def _what_it_does(kind: Kind) -> str:
    return {
        Kind.ALL_REDUCE: _("The all-reduce adds what the devices of a group hold; each receives the sum."),
        Kind.ALL_GATHER: _("The all-gather joins what the devices of a group hold; each receives the whole."),
        Kind.REDUCE_SCATTER: _("The reduce-scatter adds; each device of a group receives a part of the sum."),
        Kind.ALL_TO_ALL: _("In the all-to-all each device sends each other one of its group a part."),
    }[kind]
