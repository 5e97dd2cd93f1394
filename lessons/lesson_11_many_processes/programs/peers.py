"""What the processes of a training tell of each other: who is going to do something else, and who is lost."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from course_lib.data.examples import Examples
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.training.examples import fingerprint
from course_lib.training.saved import names_in
from lessons.lesson_11_many_processes.cluster_spec import Place

# Arguments that each process may have for itself; the folder may be called otherwise on another machine.
_OWN = ("language", "checkpoints", "wait", "pause", "hold", "digits", "index")
_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")


def facts_of(arguments: argparse.Namespace, examples: Examples) -> dict[str, str]:
    """Returns what must be the same for all, as short texts, by what each is about."""
    package = sorted(Path(__file__).parents[1].rglob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in package))
    names = names_in(Path(arguments.checkpoints)) if arguments.checkpoints else ()
    same = {name: value for name, value in sorted(vars(arguments).items()) if name not in _OWN}
    return {
        _("arguments"): " ".join(f"{name}={value}" for name, value in same.items()),
        _("code"): code.hexdigest()[:8],
        _("data"): fingerprint(examples),
        _("newest checkpoint"): names[-1] if names else "",
    }


def compare(place: Place, facts: Mapping[str, str]) -> None:
    """Checks that all processes are going to do the same; TensorFlow carries the facts between them.

    TensorFlow itself compares nothing of it: it trains on in silence where one has other data.

    Raises:
        CourseError: one differs from the first.

    Source: CoordinationServiceAgent::InsertKeyValue and GetKeyValue, which waits until there is a value.
    """
    if not place.others:
        return
    names, name = list(map(str, place.cluster.tasks)), str(place.task)
    store = importlib.import_module("tensorflow.python.eager.context").context()
    store.set_config_key_value(f"course/facts/{name}", json.dumps([*facts.values()]))
    table = {other: json.loads(store.get_config_key_value(f"course/facts/{other}")) for other in names}
    if name == names[0]:  # what all say lies with the first: it ends when all know
        for other in place.others:
            store.get_config_key_value(f"course/read/{other}")
    else:
        with contextlib.suppress(importlib.import_module("tensorflow").errors.OpError):  # it may end at once
            store.set_config_key_value(f"course/read/{name}", "yes")
    require_same({other: dict(zip(facts, values, strict=True)) for other, values in table.items()})


def require_same(table: Mapping[str, Mapping[str, str]]) -> None:
    """Checks that all processes said the same facts.

    Raises:
        CourseError: one differs from the first.
    """
    usual = next(iter(table.values()))
    for about, value in usual.items():
        for name, facts in table.items():
            if facts[about] != value:
                raise CourseError(
                    _(
                        "{name} differs from the others in its {about}: {value}, not {usual}.",
                        name=name,
                        about=about,
                        value=facts[about] or _("none"),
                        usual=value or _("none"),
                    ),
                    allowed=_("the same program, arguments, data and checkpoints in all processes"),
                    cure=_("Start all processes anew, with the same code, arguments and data."),
                )


@contextlib.contextmanager
def explaining_lost_peers(others: Collection[str]) -> Iterator[None]:
    """Says in one sentence that another process is lost, when TensorFlow says so in many.

    Args:
        others: the names of the other processes, such as "worker 1".

    Raises:
        CourseError: an operation of TensorFlow's failed.
    """
    tf = importlib.import_module("tensorflow")
    try:
        yield
    except (tf.errors.OpError, CourseError) as error:
        cause = error if isinstance(error, tf.errors.OpError) else error.__cause__
        named = [f"{job} {index}" for job, index in _TASK.findall(str(cause))]
        names = [name for name in named if name in others]
        gone = (tf.errors.UnavailableError, tf.errors.AbortedError)
        if not names and not (others and isinstance(cause, gone)):
            raise
        unnamed = others if len(others) == 1 else [_("another process")]
        raise CourseError(
            _("{name} no longer answers.", name=next(iter(names or unnamed))),
            allowed=_("processes that all run until the training is done"),
            cure=_(
                "Start all of them again, with the same arguments: with --checkpoints they go on from the"
                " newest."
            ),
        ) from error
