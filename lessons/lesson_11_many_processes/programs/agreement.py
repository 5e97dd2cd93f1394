"""What processes that meet tell each other, and what is wrong where it does not fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from course_lib.errors import CourseError
from course_lib.i18n import _

Facts = Mapping[str, str]
Table = Mapping[str, Facts]  # what each process said, by its name


def require_same(table: Table) -> None:
    """Checks that all processes told the same.

    Raises:
        CourseError: one differs in a fact from most of the others; from the first, of two.
    """
    for about in dict.fromkeys(about for facts in table.values() for about in facts):
        told = {name: facts.get(about, "") for name, facts in table.items()}
        usual = Counter(told.values()).most_common(1)[0][0]  # of equally many the first
        for name, value in told.items():
            if value != usual:
                raise _differs(name, about, value, usual)


def require_all(there: Iterable[str], wanted: Iterable[str], limit_seconds: float) -> None:
    """Checks that all processes are there.

    Raises:
        CourseError: some are not.
    """
    came = set(there)
    missing = [name for name in wanted if name not in came]
    if missing:
        raise did_not_come(missing, limit_seconds)


def agree(table: Table) -> bool:
    """Returns whether all processes told the same."""
    try:
        require_same(table)
    except CourseError:
        return False
    return True


def did_not_come(names: Iterable[str], limit_seconds: float) -> CourseError:
    """Returns the error of processes that did not come in time."""
    return CourseError(
        _("Not there in time: {names}.", names=_(", ").join(names)),
        allowed=_(
            "all processes that the cluster names, started within {seconds:g} s", seconds=limit_seconds
        ),
        cure=_("Look at the output of those; see that their addresses are right, or wait longer: --wait."),
    )


def wrong_place(wrong: Mapping[str, str]) -> CourseError:
    """Returns the error of processes that are not in their places, as one tells the other.

    Args:
        wrong: "twice", the name that two have; or "elsewhere", the name of one that is "at" the address of
            another.
    """
    cure = _("Give each the index of its own address, in TF_CONFIG or DTENSOR_CLIENT_ID.")
    if "twice" in wrong:
        return CourseError(
            _("Two processes say that they are {name}.", name=wrong["twice"]),
            allowed=_("for each process a place of its own in the cluster"),
            cure=cure,
        )
    return CourseError(
        _(
            "A process says that it is {name}, and is at the address of {at}.",
            name=wrong["elsewhere"],
            at=wrong["at"],
        ),
        allowed=_("for each process the address that the cluster has for it"),
        cure=cure,
    )


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
    words = {
        "cluster": _("addresses of the cluster"),
        "arguments": _("arguments"),
        "versions": _("versions of packages"),
        "code": _("code"),
        "data": _("data"),
        "checkpoint": _("newest checkpoint"),
    }
    return words.get(about, about)
