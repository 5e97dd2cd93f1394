"""The exported model on the real reviews, as `make results` measured it, for lesson 06 and the book."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.i18n import _

NAME = "06_export"
ONE_DEVICE, SHARDS = KINDS = ("one_device", "shards")
# Asked of the exported model, for the page of the book: what the reader types there nobody can answer.
REVIEWS = (
    "A wonderful film, moving and funny to the end.",
    "Boring, badly acted and far too long.",
    "The acting is great, but the story is a mess.",
    "Not bad at all: I loved every minute of it.",
    "Not good at all: I hated every minute of it.",
    "I expected the worst film of the year. It was the best.",
)

_FOLDER = files("course_lib") / "measured"
_DIGITS = 2  # of the probabilities of single reviews


@dataclass(frozen=True)
class Exported:
    """What a fresh process that loaded an export made of the test reviews, given as texts.

    Attributes:
        accuracy: the share of them that it classified rightly.
        otherwise: how many it classified in another way than the trained model.
        largest_difference: of a probability, from that of the trained model.
    """

    accuracy: float
    otherwise: int
    largest_difference: float


@dataclass(frozen=True)
class ExportMeasured:
    """A trained model, and what became of it.

    Attributes:
        how: the circumstances, a value for each name: the command, the data, versions.
        trained_accuracy: of the model on its mesh, on the test rows.
        exports: by "one_device", restored from the sharded checkpoint, and "shards", from the mesh itself.
        answers: the probability that a review is a good one, for each of `REVIEWS`.
    """

    how: Mapping[str, str]
    trained_accuracy: float
    exports: Mapping[str, Exported]
    answers: Mapping[str, float]


def recorded() -> ExportMeasured | None:
    """Returns what was recorded; None where nothing was."""
    path = _FOLDER / f"{NAME}.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    exports = {kind: Exported(**each) for kind, each in content.pop("exports").items()}
    return ExportMeasured(exports=exports, **content)


def load() -> ExportMeasured:
    """Returns what was recorded.

    Raises:
        CourseError: nothing was.
    """
    found = recorded()
    if found is None:
        raise CourseError(
            _("There are no results called {name!r}.", name=NAME),
            allowed=_("results that were measured"),
            cure=_("Measure them with make results."),
        )
    return found


def save(measured: ExportMeasured, folder: Path) -> Path:
    """Writes what was measured to `folder` and returns the file."""
    content = asdict(measured)
    content["answers"] = {text: round(good, _DIGITS) for text, good in measured.answers.items()}
    for each in content["exports"].values():
        each["largest_difference"] = float(f"{each['largest_difference']:.2g}")
    path = folder / f"{NAME}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def title(kind: str) -> str:
    """Returns what an export is called in the reader's language."""
    titles = {
        ONE_DEVICE: _("restored on one device, then exported"),
        SHARDS: _("exported straight from its shards"),
    }
    return titles[kind]


def trained_title() -> str:
    """Returns what the model itself is called in the reader's language."""
    return _("trained, on its mesh")


def table(measured: ExportMeasured) -> str:
    """Returns the accuracies and differences, a line for the model and one for each export, as text."""
    lines = [_("Accuracy, reviews answered otherwise, largest difference of a probability")]
    lines.append(f"{measured.trained_accuracy:.3f} {'':7} {'':10}  " + trained_title())
    lines += [
        f"{each.accuracy:.3f} {each.otherwise:7,} {each.largest_difference:10.1e}  {title(kind)}"
        for kind, each in measured.exports.items()
    ]
    return "\n".join(lines)
