"""What may become of a function of DTensors, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.i18n import _

RIGHT, REFUSED, WRONG, DEAD = VERDICTS = ("right", "refused", "wrong", "dead")


@dataclass(frozen=True)
class Verdict:
    """What became of a function of DTensors.

    Attributes:
        verdict: `RIGHT`, `REFUSED` (an error), `WRONG` (in silence) or `DEAD` (the process ended, or hung).
        layouts: of each result that is right, such as `["x", "unsharded"]`.
        collectives: each as its kind and its mesh dimensions, such as `"all-reduce x"`; `tf.function` only.
        message: what was refused, or how far it is off.
    """

    verdict: str
    layouts: tuple[tuple[str, ...], ...] = ()
    collectives: tuple[str, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        words = {
            RIGHT: _("right"),
            REFUSED: _("refused"),
            WRONG: _("silently wrong"),
            DEAD: _("ends the process"),
        }
        parts = [", ".join(f"[{', '.join(each)}]" for each in self.layouts), ", ".join(self.collectives)]
        return " | ".join(part for part in (words[self.verdict], *parts, self.message) if part)
