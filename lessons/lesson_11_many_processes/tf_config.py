"""TF_CONFIG as TensorFlow reads it: the parts of its JSON, and what is wrong where it has none."""

from __future__ import annotations

import json
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _

EXAMPLE = '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 0}}'


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
        return config["cluster"], config["task"]["type"], int(config["task"]["index"])
    except json.JSONDecodeError as error:
        where = _("line {line}, column {column}", line=error.lineno, column=error.colno)
        problem = _("TF_CONFIG is no JSON ({where}): {text}", where=where, text=text)
        cure = _("Write it with json.dumps, which sets every bracket and quote.")
        if text.startswith("{'"):
            cure = _("This is how Python writes a dictionary. Write it with json.dumps instead of str.")
        raise _refused(problem, cure) from error
    except (KeyError, TypeError, ValueError) as error:
        problem = _("TF_CONFIG lacks a part, or has a wrong one: {text}", text=text)
        raise _refused(problem, _("Write for example {example}.", example=EXAMPLE)) from error


def _refused(problem: str, cure: str) -> CourseError:
    allowed = _('JSON with "cluster", the same for every task, and "task", with "type" and "index"')
    return CourseError(problem, allowed=allowed, cure=cure)
