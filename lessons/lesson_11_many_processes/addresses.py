"""Where a task of a cluster is reached: a host and a port."""

from __future__ import annotations

import re

from course_lib.errors import CourseError
from course_lib.i18n import _

LAST_PORT = 65_535
_HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def require_address(address: object, task: str) -> str:
    """Returns an address that is one, such as "host0:12345" or "[::1]:12345".

    TensorFlow 2.21 checks none, and waits for the others in silence.

    Raises:
        CourseError: it is no host with a port.
    """
    match = _HOST_AND_PORT.fullmatch(str(address))
    if match is None or not 1 <= int(match[2]) <= LAST_PORT:
        raise CourseError(
            _("{address!r} cannot be the address of {task}.", address=address, task=task),
            allowed=_("host:port with a port from 1 to {last}, and nothing before or after", last=LAST_PORT),
            cure=_("Write for example {example}.", example='"host0:12345"'),
        )
    return str(address)


def host_and_port(address: str) -> tuple[str, int]:
    """Returns the two parts of an address.

    >>> host_and_port("host0:12345"), host_and_port("[::1]:12345")
    (('host0', 12345), ('::1', 12345))
    """
    host, _colon, port = address.rpartition(":")
    return host.strip("[]"), int(port)
