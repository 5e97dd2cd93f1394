"""TF_CONFIG as TensorFlow reads it: the parts of its JSON, and what is wrong where it has none."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _

EXAMPLE = '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 0}}'


def written(jobs: Mapping[str, list[str]], job: str, index: int) -> str:
    """Returns the JSON that tells a task of a cluster its place.

    >>> written({"worker": ["host0:12345"]}, "worker", 0)
    '{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 0}}'
    """
    return json.dumps({"cluster": jobs, "task": {"type": job, "index": index}})


def spread(text: str) -> str:
    """Returns a TF_CONFIG over several lines, one for each job; what is no JSON stays as it is.

    >>> print(spread(EXAMPLE))
    {
      "cluster": {
        "worker": ["host0:12345", "host1:12345"]
      },
      "task": {"type": "worker", "index": 0}
    }
    """
    try:
        config = json.loads(text)
    except json.JSONDecodeError:
        return text
    jobs = ",\n".join(f'    "{job}": {json.dumps(addresses)}' for job, addresses in config["cluster"].items())
    return f'{{\n  "cluster": {{\n{jobs}\n  }},\n  "task": {json.dumps(config["task"])}\n}}'


def parts(text: str | None) -> tuple[Any, Any, int]:
    """Returns the cluster, the job and the index that a TF_CONFIG names, not yet checked against each other.

    An index in quotes counts as its number, as in TensorFlow. TensorFlow 2.21 trains alone, in silence, where
    TF_CONFIG is not set or has no "cluster".

    Raises:
        CourseError: it is not set, no JSON, or lacks a part.
    """
    if not text:
        raise _refused(_("TF_CONFIG is not set."), _("Set it for each task before its program starts."))
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        where = _("line {line}, column {column}", line=error.lineno, column=error.colno)
        problem = _("TF_CONFIG is no JSON ({where}): {text}", where=where, text=text)
        raise _refused(problem, _cure(text)) from error
    cluster, task = (_part(config, key, "TF_CONFIG") for key in ("cluster", "task"))
    job, index = (_part(task, key, '"task"') for key in ("type", "index"))
    try:
        return cluster, job, int(index)
    except ValueError as error:
        raise _refused(
            _("The task's index is {index!r}.", index=index),
            _("Give the number of the task within its job, counted from 0."),
        ) from error


def _cure(text: str) -> str:
    """Returns how to mend what is no JSON: most often it is what Python prints of a dictionary."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return _("Write it with json.dumps, which sets every bracket and quote.")
    return _("This is how Python writes a dictionary. Write it with json.dumps instead of str.")


def _part(whole: Any, key: str, name: str) -> Any:
    if not isinstance(whole, dict) or key not in whole:
        keys = _(", ").join(whole if isinstance(whole, dict) else ()) or _("none")
        raise _refused(
            _('{name} has no "{key}"; it has: {found}.', name=name, key=key, found=keys),
            _("Write for example {example}.", example=EXAMPLE),
        )
    return whole[key]


def _refused(problem: str, cure: str) -> CourseError:
    allowed = _('JSON with "cluster", the same for every task, and "task", with "type" and "index"')
    return CourseError(problem, allowed=allowed, cure=cure)
