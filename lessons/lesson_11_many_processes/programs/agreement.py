"""The processes of a training compare what they are going to do, once TensorFlow has joined them.

TensorFlow compares nothing of it: it trains on in silence where one has other data.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.training.examples import fingerprint
from course_lib.training.saved import names_in
from lessons.lesson_11_many_processes.programs.places import Peers

# Arguments that each process may have for itself; the folder may be called otherwise on another machine.
_OWN = ("language", "checkpoints", "wait", "pause", "hold", "digits")


def facts_of(arguments: argparse.Namespace, examples: Examples) -> list[str]:
    """Returns what must be the same for all, as short texts: arguments, code, data, newest checkpoint."""
    package = sorted(Path(__file__).parents[1].rglob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in package))
    return [
        " ".join(f"{name}={value}" for name, value in sorted(vars(arguments).items()) if name not in _OWN),
        code.hexdigest()[:8],
        fingerprint(examples),
        newest(arguments.checkpoints),
    ]


def newest(checkpoints: str | None) -> str:
    """Returns the name of the checkpoint from which this process would go on; "" if there is none."""
    return next(reversed(names_in(Path(checkpoints))), "") if checkpoints else ""


def compare(peers: Peers, facts: Sequence[str]) -> None:
    """Checks that all processes are going to do the same; TensorFlow carries the facts between them.

    Raises:
        CourseError: one differs from the first.

    Source: CoordinationServiceAgent::InsertKeyValue and GetKeyValue, which waits until there is a value.
    """
    if not peers.others:
        return
    store = importlib.import_module("tensorflow.python.eager.context").context()
    store.set_config_key_value(f"course/facts/{peers.name}", json.dumps(facts))
    table = {name: json.loads(store.get_config_key_value(f"course/facts/{name}")) for name in peers.addresses}
    if peers.name == next(iter(peers.addresses)):  # what all say lies with the first: it ends when all know
        for name in peers.others:
            store.get_config_key_value(f"course/read/{name}")
    else:
        with contextlib.suppress(importlib.import_module("tensorflow").errors.OpError):  # it may end at once
            store.set_config_key_value(f"course/read/{peers.name}", "yes")
    require_same(table)


def require_same(table: Mapping[str, Sequence[str]]) -> None:
    """Checks that all processes said the same facts.

    Raises:
        CourseError: one differs from the first.
    """
    usual = next(iter(table.values()))
    for at, about in enumerate([_("arguments"), _("code"), _("data"), _("newest checkpoint")]):
        for name, facts in table.items():
            if facts[at] != usual[at]:
                raise CourseError(
                    _(
                        "{name} differs from the others in its {about}: {value}, not {usual}.",
                        name=name,
                        about=about,
                        value=facts[at] or _("none"),
                        usual=usual[at] or _("none"),
                    ),
                    allowed=_("the same program, arguments, data and checkpoints in all processes"),
                    cure=_("Start all processes anew, with the same code, arguments and data."),
                )
