"""Starts a script as the processes of a cluster on this machine, within a time limit, and ends all of them.

    .venv/bin/python -m benchmarks.cluster --worker 2 SCRIPT [ARGUMENT ...]

Each process gets its place in the cluster in TF_CONFIG. Workers end by themselves; where there is a chief, it
alone does, and the others serve it until they are ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import ANSWERED, LIMIT_SECONDS, TIMEOUT, Case, Outcome, outcome_of, require, stop_group
from course_lib.errors import CourseError

JOBS = ("chief", "worker", "ps")
HOST = "127.0.0.1"
GRACE_SECONDS = 5.0  # for what the others have to say once one has failed
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class _Process:
    """A process of the cluster, and where it writes."""

    name: str
    process: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    def outcome(self) -> Outcome:
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in (self.stdout, self.stderr))
        return outcome_of(self.process.returncode, *texts)


def run(case: Case, tasks: Mapping[str, int], limit_seconds: float = LIMIT_SECONDS) -> dict[str, Outcome]:
    """Returns what became of each process that was to end by itself, in the order in which they ended.

    Args:
        case: the script, which finds its place in TF_CONFIG.
        tasks: how many processes of each job, such as `{"chief": 1, "worker": 2, "ps": 1}`.
        limit_seconds: when all that is left is stopped.

    Raises:
        CourseError: there is no such script, Python or job.
    """
    require(case)
    _require_tasks(tasks)
    with (
        _ended_by_signals(),
        _ports(sum(tasks.values())) as ports,
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        started: dict[str, _Process] = {}
        for name, config in configs(tasks, ports).items():
            started[name] = _start(case, name, config, Path(folder))
            stack.callback(_stop, started[name])
        leading = {name for name in started if name.startswith(_leading_job(tasks))}
        ended = _wait(list(started.values()), leading, limit_seconds)
        left = Outcome(TIMEOUT, message=f"no end within {limit_seconds:g} s")
        failed = any(outcome.status != ANSWERED for outcome in ended.values())
        return ended if failed else ended | {name: left for name in sorted(leading - set(ended))}


def configs(tasks: Mapping[str, int], ports: list[int]) -> dict[str, str]:
    """Returns the TF_CONFIG of each process, by its name, such as "worker 0"."""
    unused = iter(ports)
    cluster = {job: [f"{HOST}:{next(unused)}" for _task in range(count)] for job, count in tasks.items()}
    return {
        f"{job} {index}": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        for job, count in tasks.items()
        for index in range(count)
    }


def _require_tasks(tasks: Mapping[str, int]) -> None:
    if not tasks or set(tasks) - set(JOBS) or min(tasks.values()) < 1 or tasks.get("chief", 1) > 1:
        raise CourseError(
            f"These are no tasks of a cluster: {dict(tasks)}.",
            allowed="chief (one), worker and ps, each with the number of its processes",
            cure='Say, for example, {"worker": 2}.',
        )


def _leading_job(tasks: Mapping[str, int]) -> str:
    return "chief" if "chief" in tasks else "worker"


@contextlib.contextmanager
def _ports(count: int) -> Iterator[list[int]]:
    """Yields free ports that stay bound, so that no other program gets them; TensorFlow shares them."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _port in range(count)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind((HOST, 0))
        yield [each.getsockname()[1] for each in sockets]


def _start(case: Case, name: str, config: str, folder: Path) -> _Process:
    stdout, stderr = (folder / f"{name}.{stream}" for stream in ("out", "err"))
    variables = {"TF_CONFIG": config, "TF_GRPC_REUSE_PORT": "1", "GRPC_VERBOSITY": "ERROR", "no_proxy": HOST}
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [*_dies_with_its_parent(), case.python, str(case.script), *case.arguments],
            env={**os.environ, **variables, **case.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    return _Process(name, process, stdout, stderr)


def _dies_with_its_parent() -> list[str]:
    """Returns what has Linux end a process when this one is killed; nothing on other systems."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def _wait(started: list[_Process], leading: set[str], limit_seconds: float) -> dict[str, Outcome]:
    """Waits until those that lead have ended, or one has failed and its grace or the time is over."""
    ended: dict[str, Outcome] = {}
    until = time.monotonic() + limit_seconds
    while leading - set(ended) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        for each in started:
            if each.name not in ended and each.process.poll() is not None:
                ended[each.name] = each.outcome()
                if ended[each.name].status != ANSWERED:
                    until = min(until, time.monotonic() + GRACE_SECONDS)
    return ended


def _stop(started: _Process) -> None:
    """Ends a process with all that it started, and waits for its end."""
    stop_group(started.process)
    started.process.wait()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Lets SIGTERM end this process as an exception, so that what it started is ended first."""
    before = signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit("It was ended."))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Runs the script that the command line names, and prints what became of each process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for job in JOBS:
        parser.add_argument(f"--{job}", type=int, default=0, metavar="COUNT")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    named = parser.parse_args()
    tasks = {job: getattr(named, job) for job in JOBS if getattr(named, job)}
    outcomes = run(Case(named.script, tuple(named.arguments)), tasks, named.limit)
    for name, outcome in outcomes.items():
        print(name, outcome.status, json.dumps(outcome.found) if outcome.found else outcome.message)
    if any(outcome.status != ANSWERED for outcome in outcomes.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
