"""The processes of a training compare what they are going to do, once TensorFlow has joined them.

TensorFlow compares nothing of it: it trains on in silence where one has other data.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.programs.places import Peers
from course_lib.training.examples import fingerprint
from course_lib.training.saved import is_whole, names_in

_PACKAGE = Path(__file__).parents[1]
# Arguments that each process may have for itself; the folder may be called otherwise on another machine.
_OWN = ("language", "checkpoints", "wait", "pause", "hold", "digits")
Facts = Mapping[str, str]


def facts_of(arguments: argparse.Namespace, examples: Examples) -> dict[str, str]:
    """Returns what must be the same for all, as short texts, by what each is about."""
    named = {name: value for name, value in sorted(vars(arguments).items()) if name not in _OWN}
    return {
        "arguments": " ".join(f"{name}={value}" for name, value in named.items()),
        "code": _digest(b"".join(map(_digest_of_file, sorted(_PACKAGE.rglob("*.py"))))).hex(),
        "data": fingerprint(examples),
        "checkpoint": newest(arguments.checkpoints),
    }


def newest(checkpoints: str | None) -> str:
    """Returns the name of the checkpoint from which this process would go on; "" if there is none."""
    folder = Path(checkpoints or "")
    names = reversed(names_in(folder)) if checkpoints else ()
    return next((name for name in names if is_whole(folder / name)), "")


def compare(peers: Peers, facts: Facts) -> None:
    """Checks that all processes are going to do the same; TensorFlow carries the facts between them.

    Raises:
        CourseError: one differs in a fact from most of the others; from the first, of two.

    Source: CoordinationServiceAgent::InsertKeyValue and GetKeyValue, which waits until there is a value.
    """
    store = importlib.import_module("tensorflow.python.eager.context").context()
    if not peers.others:
        return
    store.set_config_key_value(f"course/facts/{peers.name}", json.dumps(facts))
    table = {name: json.loads(store.get_config_key_value(f"course/facts/{name}")) for name in peers.addresses}
    store.set_config_key_value(f"course/read/{peers.name}", "yes")
    if peers.name == next(iter(peers.addresses)):  # what all say lies with the first, which ends after them
        for name in peers.addresses:
            store.get_config_key_value(f"course/read/{name}")
    require_same(table)


def require_same(table: Mapping[str, Facts]) -> None:
    """Checks that all processes said the same.

    Args:
        table: what each said, by its name.

    Raises:
        CourseError: one differs in a fact from most of the others; from the first, of two.
    """
    for about in next(iter(table.values())):
        values = {name: facts[about] for name, facts in table.items()}
        usual = Counter(values.values()).most_common(1)[0][0]  # of equally many the first
        for name, value in values.items():
            if value != usual:
                raise _differs(name, about, value, usual)


def _differs(name: str, about: str, value: str, usual: str) -> CourseError:
    return CourseError(
        _(
            "{name} differs from the others in its {about}: {value}, not {usual}.",
            name=name,
            about=_worded(about),
            value=value or _("none"),
            usual=usual or _("none"),
        ),
        allowed=_("the same program, arguments, data and checkpoints in all processes"),
        cure=_("Start all processes anew, with the same code, arguments and data."),
    )


def _worded(about: str) -> str:
    """Returns what a fact is about in the reader's language."""
    return {
        "arguments": _("arguments"),
        "code": _("code"),
        "data": _("data"),
        "checkpoint": _("newest checkpoint"),
    }[about]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:4]


def _digest_of_file(path: Path) -> bytes:
    return _digest(path.read_bytes())
