"""All processes of a cluster meet before TensorFlow starts: is everybody there, and do all do the same?

TensorFlow itself waits for a process that never comes, in silence: an hour, or without end where there are
parameter servers. And it trains on where one process has other data. So each tells the first one what it is
going to do, on the port that TensorFlow is going to use, and the first one tells all of them what it heard.
Each also listens at its own port and calls it: so two that take themselves for the same one find each other,
and one that is where another should be.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import time
from collections.abc import Mapping
from typing import Any

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.cluster.ports import call, opened
from lessons.lesson_11_many_processes.programs.agreement import (
    Facts,
    Table,
    agree,
    did_not_come,
    require_all,
    require_same,
    wrong_place,
)
from lessons.lesson_11_many_processes.programs.calls import READ_SECONDS, hung_up, listen, read, write

_RETRY_SECONDS, _GRACE_SECONDS = 0.1, 10.0
_TELL_SECONDS = 3.0  # for which the first process, if it is not there yet, is told what is wrong
_ANSWER_SECONDS = READ_SECONDS + 1  # who has this port may just be calling another one
_ASK_SECONDS = 0.5  # from one call of a process to its own address to the next
_STRANGE = (OSError, ValueError, KeyError, AttributeError)  # what a call leads to that is not of a meeting


def meet(name: str, addresses: Mapping[str, str], facts: Facts, limit_seconds: float) -> None:
    """Waits until all processes are there, and compares what they are going to do.

    Args:
        name: of this process.
        addresses: of all processes that take part, by their names; they meet at the first.
        facts: what must be the same for all of them, in words or as a digest, by what it is about.
        limit_seconds: how long the others are waited for.

    Raises:
        CourseError: a process did not come, two say that they are the same one, one is at the address of
            another, a fact of one differs, or the port of this one is taken.
    """
    if len(addresses) <= 1:
        return
    with contextlib.ExitStack() as stack:
        table = _Meeting(name, addresses, facts, limit_seconds, stack).table()
    require_same(table)
    require_all(table, addresses, limit_seconds)


def wait_for(addresses: Mapping[str, str], limit_seconds: float) -> None:
    """Waits until something listens at all of the addresses.

    Raises:
        CourseError: somewhere nothing does in time.
    """
    until = time.monotonic() + limit_seconds
    there = {name for name, address in addresses.items() if opened(address)}
    while len(there) < len(addresses) and time.monotonic() < until:
        time.sleep(_RETRY_SECONDS)
        there |= {name for name, address in addresses.items() if name not in there and opened(address)}
    require_all(there, addresses, limit_seconds)


class _Meeting:
    """A process's part in a meeting: it listens at its own port, and calls the first process and itself."""

    def __init__(
        self,
        name: str,
        addresses: Mapping[str, str],
        facts: Facts,
        limit_seconds: float,
        stack: contextlib.ExitStack,
    ) -> None:
        self._name, self._addresses, self._limit, self._stack = name, addresses, limit_seconds, stack
        self._leader = next(iter(addresses))
        self._id = secrets.token_hex(8)  # tells two processes of one name apart
        self._heard: dict[str, Facts] = {name: dict(facts)}
        self._calls: dict[str, tuple[socket.socket, float]] = {}  # that it made: to whom, and when
        self._callers: dict[str, tuple[str, socket.socket]] = {}  # who called: by id, the name and the call
        self._others: set[str] = set()  # the ids of all that it knows of
        self._wrong: dict[str, str] = {}  # what all are told instead, once it is known
        self._asked = time.monotonic()
        self._until = self._asked + limit_seconds

    @property
    def _leads(self) -> bool:
        return self._name == self._leader

    def table(self) -> Table:
        """Returns what all processes told, once the last one has come or the time is over."""
        with self._listen() as server:
            while not self._is_over():
                self._make_calls()
                made = {connection: to for to, (connection, _since) in self._calls.items()}
                for ready in select.select([server, *made], [], [], _RETRY_SECONDS)[0]:
                    if ready is server:
                        self._hear(server)
                    elif (table := self._answer(made[ready], ready)) is not None:
                        return table
            self._tell({"table": self._heard})
        return self._heard

    def _is_over(self) -> bool:
        """Returns whether nothing more is waited for."""
        late = time.monotonic() >= self._until
        if self._wrong and (late or len(self._others) + 1 >= len(self._addresses)):
            self._tell(self._wrong)
            raise wrong_place(self._wrong)
        if self._leads:
            self._forget_those_gone()
            return late or (not self._wrong and set(self._addresses) <= set(self._heard))
        if late and self._leader_says_nothing():
            raise did_not_come([self._leader], self._limit)
        return False

    def _leader_says_nothing(self) -> bool:
        """Returns whether the first process is not there, or is and has had time to say who is missing.

        It may have come later than this one, and waits for the others as long.
        """
        if self._leader not in self._calls:
            return True
        _call, since = self._calls[self._leader]
        return time.monotonic() >= since + self._limit + _GRACE_SECONDS

    def _listen(self) -> socket.socket:
        try:
            server = listen(self._name, self._addresses[self._name])
        except CourseError:  # who has the port may be a process that takes itself for this one
            with contextlib.suppress(*_STRANGE), call(self._addresses[self._name]) as made:
                write(made, self._said_to(self._name))
                self._wrong = read(made, _ANSWER_SECONDS)["wrong"]
            if self._wrong:
                self._tell_leader()
                raise wrong_place(self._wrong) from None
            raise
        server.settimeout(READ_SECONDS)
        return server

    def _make_calls(self) -> None:
        """Calls the first process, and from time to time its own address, where no call is open."""
        now = time.monotonic()
        if not self._leads:
            self._call(self._leader)
        if now >= self._asked + _ASK_SECONDS:
            if self._name in self._calls and now > self._calls[self._name][1] + READ_SECONDS:
                self._hang_up(self._name)
            self._call(self._name)
            self._asked = time.monotonic()

    def _call(self, to: str) -> None:
        if to not in self._calls:
            with contextlib.suppress(OSError):  # not there yet, or its name is not known yet
                made = self._stack.enter_context(call(self._addresses[to]))
                write(made, self._said_to(to))
                self._calls[to] = made, time.monotonic()

    def _said_to(self, to: str) -> dict[str, Any]:
        return {"to": to, "name": self._name, "id": self._id, "facts": self._heard[self._name]}

    def _hang_up(self, to: str) -> None:
        if to in self._calls:
            self._calls.pop(to)[0].close()

    def _hear(self, server: socket.socket) -> None:
        """Hears what another process is going to do, or that it takes itself for this one."""
        try:
            caller = server.accept()[0]
        except OSError:
            return
        try:
            said = read(caller)
            to, name, process = (str(said[part]) for part in ("to", "name", "id"))
            facts = {str(about): str(fact) for about, fact in said["facts"].items()}
        except _STRANGE:
            caller.close()
            return
        if said.get("wrong"):
            self._note(process, name, caller)
            self._fail(said["wrong"])
        elif to != self._name:
            self._note(process, name, caller)
            self._fail({"elsewhere": self._name, "at": to})
        elif process == self._id:
            self._hang_up(to)  # it has reached itself
            caller.close()
        else:
            is_twice = name == self._name or self._is_there(name, process)
            self._note(process, name, caller)
            if is_twice:
                self._fail({"twice": name})
            self._heard[name] = facts
            if not agree(self._heard):
                self._end_soon()

    def _note(self, process: str, name: str, caller: socket.socket) -> None:
        self._callers[process] = name, self._stack.enter_context(caller)
        self._others |= {process} - {self._id}

    def _forget_those_gone(self) -> None:
        """Forgets who has hung up: it ended, and comes back under this name, or does not."""
        for process, (name, caller) in list(self._callers.items()):
            if hung_up(caller):
                del self._callers[process]
                if name not in (self._name, *(other for other, _caller in self._callers.values())):
                    self._heard.pop(name, None)

    def _is_there(self, name: str, process: str) -> bool:
        """Returns whether another process of this name is still connected."""
        return any(
            other != process and named == name and not hung_up(caller)
            for other, (named, caller) in self._callers.items()
        )

    def _answer(self, to: str, made: socket.socket) -> Table | None:
        """Returns what the first process has heard, if it says that; who hangs up is called again."""
        try:
            said = read(made)
        except (OSError, ValueError):  # nobody who knows of meetings: TensorFlow of an earlier run, perhaps
            self._hang_up(to)
            time.sleep(_RETRY_SECONDS)
            return None
        if said.get("wrong"):
            self._others |= set(said["all"]) - {self._id}
            if not self._wrong:  # else two first processes would tell each other without end
                self._fail(said["wrong"])
        return said.get("table")

    def _fail(self, wrong: dict[str, str]) -> None:
        """Tells who is here, and fails: the first process only when all have come, so that all are told."""
        self._wrong = wrong
        self._end_soon()
        self._tell(wrong)
        if not self._leads:
            self._tell_leader()
            raise wrong_place(wrong)

    def _end_soon(self) -> None:
        """Lets those that are on their way come; it fails anyway."""
        self._until = min(self._until, time.monotonic() + _GRACE_SECONDS)

    def _tell(self, said: Mapping[str, Any]) -> None:
        told = said if "table" in said else {"wrong": said, "all": [self._id, *self._others]}
        for _name, caller in self._callers.values():
            with contextlib.suppress(OSError):
                write(caller, told)

    def _tell_leader(self) -> None:
        """Tells the first process what is wrong, where it is there: else it would wait for this one."""
        until = time.monotonic() + _TELL_SECONDS
        while True:
            with contextlib.suppress(OSError), call(self._addresses[self._leader]) as made:
                write(made, {**self._said_to(self._leader), "wrong": self._wrong})
                return
            if time.monotonic() >= until:
                return
            time.sleep(_RETRY_SECONDS)
