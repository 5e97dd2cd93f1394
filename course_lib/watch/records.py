"""What a training yields, record by record, and the history that its records add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _

Record = Mapping[str, Any]


@dataclass
class History:
    """The records of a training, in the order in which they came.

    Attributes:
        steps: a record for each step: `step` and `epoch`, counted from 1 over the whole training, and `loss`
            and `accuracy`, per example of its batch.
        epochs: a record for each evaluation on held-out examples, with `test_loss` and `test_accuracy`.
        stopped: whether the reader stopped the training.
    """

    steps: list[Record] = field(default_factory=list)
    epochs: list[Record] = field(default_factory=list)
    stopped: bool = False

    @property
    def last_step(self) -> int:
        """The number of the last step, 0 if there is none."""
        return self.steps[-1]["step"] if self.steps else 0

    @property
    def epoch(self) -> int:
        """The epoch of the last step, 1 if there is none."""
        return self.steps[-1]["epoch"] if self.steps else 1

    def add(self, record: Record) -> None:
        """Puts a record behind the others, as plain numbers, and drops those of steps that it does again.

        >>> history = History()
        >>> for step in (1, 2, 2):
        ...     history.add({"step": step, "epoch": 1, "loss": 1 / step, "accuracy": 0.5})
        >>> [record["step"] for record in history.steps]
        [1, 2]

        Raises:
            CourseError: the record lacks a key, or is no mapping.
        """
        given = record if isinstance(record, Mapping) else {}
        evaluated = "test_loss" in given
        names = ("test_loss", "test_accuracy") if evaluated else ("loss", "accuracy")
        keys = ("step", "epoch", *names)
        for key in keys:
            if key not in given:
                cure = _("Yield a dictionary with {keys} for each step.", keys=", ".join(keys))
                raise CourseError(_("A record lacks {key!r}.", key=key), allowed=", ".join(keys), cure=cure)
        numbers = {name: float(given[name]) for name in names}
        plain = {"step": int(given["step"]), "epoch": int(given["epoch"]), **numbers}
        kept = self.epochs if evaluated else self.steps
        for records in (kept, self.epochs):
            while records and records[-1]["step"] >= plain["step"]:
                records.pop()
        kept.append(plain)
