"""What a training step spends its time on, as `make results` measured it for the three schemes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from course_lib.i18n import _
from course_lib.measured.batch_sizes import Machine
from course_lib.pictures.bars import Bar, Bars, bar_lines, bars_drawing
from course_lib.pictures.figures import Figure, framed

NAME = "05_step_parts"

_PARTS = "step_parts"  # what tells this file from those with other measurements
_FOLDER = files("course_lib") / "measured"
_DIGITS = 7  # of seconds: tenths of a microsecond


@dataclass(frozen=True)
class StepParts:
    """The seconds that a step takes, and others that tell what it spends them on, each measured by itself.

    Attributes:
        loop: a step of the training loop, as a reader runs it.
        step: a step on batches that lie on the devices already.
        packing: choosing a batch's rows on the host and sending each device its own.
        tiny: the operations of a step on eight devices, with one number in place of each tensor and nothing
            to exchange.
        share: the same with as many numbers as a device has of each tensor in this scheme.
        exchanges: the step's collectives, one after the other, and nothing else.
        num_collectives: how many collectives that are.
        payload_bytes: the bytes of what one device holds of all their results.
    """

    loop: float
    step: float
    packing: float
    tiny: float
    share: float
    exchanges: float
    num_collectives: int
    payload_bytes: int

    @property
    def dispatch(self) -> float:
        """Calling TensorFlow and starting each operation on each device: a step with next to no numbers."""
        return self.tiny

    @property
    def arithmetic(self) -> float:
        """What the numbers of a device's share add to that."""
        return self.share - self.tiny

    @property
    def explained(self) -> float:
        """The share of a step on the devices for which dispatch, arithmetic and exchanges account."""
        return (self.share + self.exchanges) / self.step


@dataclass(frozen=True)
class Recorded:
    """The parts of a step, and how they were obtained.

    Attributes:
        command: what measured them.
        machine: where.
        schemes: the parts by scheme, "data", "model" and "spatial".
    """

    command: str
    machine: Machine
    schemes: Mapping[str, StepParts]


def recorded() -> Recorded | None:
    """Returns what was recorded; None where nothing was."""
    path = _FOLDER / f"{NAME}.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    schemes = {scheme: StepParts(**parts) for scheme, parts in content[_PARTS].items()}
    return Recorded(content["command"], Machine(**content["machine"]), schemes)


def save(schemes: Mapping[str, StepParts], machine: Machine, folder: Path) -> Path:
    """Writes the parts to `folder` and returns the file."""
    rounded = {
        scheme: {name: round(value, _DIGITS) for name, value in asdict(parts).items()}
        for scheme, parts in schemes.items()
    }
    content = {"command": "make results", "machine": asdict(machine), _PARTS: rounded}
    path = folder / f"{NAME}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def title(scheme: str) -> str:
    """Returns what a scheme and its mesh are called in the reader's language."""
    titles = {
        "data": _("data parallel, mesh 8"),
        "model": _("model parallel, mesh 4 × 2"),
        "spatial": _("spatial parallel, mesh 2 × 2 × 2"),
    }
    return titles[scheme]


def figure(schemes: Mapping[str, StepParts]) -> Figure:
    """Returns a picture of the parts beside the whole step, in the reader's language."""
    groups: Sequence[Bars] = [Bars(title(scheme), _bars(parts)) for scheme, parts in schemes.items()]
    heading = _("What a training step takes")
    return framed(heading, [bars_drawing(groups)], bar_lines(groups))


def _bars(parts: StepParts) -> tuple[Bar, ...]:
    seconds = {
        _("packing on the host"): parts.packing,
        _("dispatch"): parts.dispatch,
        _("arithmetic"): parts.arithmetic,
        _("collectives"): parts.exchanges,
        _("whole step"): parts.loop,
    }
    return tuple(Bar(label, max(value, 0.0), f"{1e3 * value:.2f} ms") for label, value in seconds.items())
