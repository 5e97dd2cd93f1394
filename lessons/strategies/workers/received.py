"""Who got which example, as the workers of a cluster printed it."""

from __future__ import annotations

import itertools

from lessons.strategies.received_examples import ReceivedExamples
from lessons.strategies.workers.launcher import Report


def received(report: Report, rule: str) -> ReceivedExamples:
    """Returns who got which example of each batch, by a rule; it draws itself.

    >>> from lessons.strategies.workers.launcher import Told
    >>> received(Report((Told("worker 0", ("FILE 0 1",)), Told("worker 1", ("FILE 4 5",)))), "FILE").batches
    (((0, 1), (4, 5)),)

    Args:
        report: of workers that print a line for each batch: the rule, and the numbers of its examples.
        rule: how the examples were divided: lines of others are left out.
    """
    parts = []
    for told in report.told:
        lines = (line.split() for line in told.lines)
        parts.append([tuple(map(int, numbers)) for name, *numbers in lines if name == rule])
    return ReceivedExamples(itertools.zip_longest(*parts, fillvalue=()))
