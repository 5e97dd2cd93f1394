"""The exercise of this lesson on resuming; importing it registers that on the drill."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies.failures import checks_drill  # noqa: F401 - it registers its exercise

_WORKERS = 3


@exercise("failures-resume", right=Callable)
def resume(answer: Callable[..., Any]) -> str | None:
    """Restores what all workers see, and says where each saves; it refuses where one of them sees nothing."""
    with tempfile.TemporaryDirectory() as name:
        full, late, empty = (_written(Path(name, str(count)), count) for count in (10, 9, 0))
        for folders, step in [([empty] * 3, 0), ([full] * 3, 30), ([full, late, full], 27)]:
            steps, calls = _called(answer, folders)
            _raise_first(calls)
            managers = [answered(each.result()) for each in calls]
            if hint := _of_managers(managers, folders[0]) or _of_steps(steps, step):
                return hint
        steps, calls = _called(answer, [late, late, empty])
        if any(isinstance(each.exception(), ValueError) for each in calls):
            return None
        _raise_first(calls)
        return _(
            "One worker sees no checkpoint, and the others do. None of them refuses: they restored the steps"
            " {steps}.",
            steps=", ".join(map(str, steps)),
        )


def _written(folder: Path, count: int) -> str:
    """Writes so many checkpoints, three steps apart, of which three stay, and returns their folder."""
    tf = start_tensorflow()
    step = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), str(folder), max_to_keep=3)
    for _epoch in range(count):
        step.assign_add(3)
        manager.save()
    return str(folder)


def _called(answer: Callable[..., Any], folders: Sequence[str]) -> tuple[list[int], list[Future[Any]]]:
    """Returns what workers have restored, each from a folder as it sees it, and how each call ended."""
    tf, numbers = start_tensorflow(), dict[int, int]()
    together = threading.Barrier(_WORKERS, timeout=5.0)
    steps = [tf.Variable(0, dtype=tf.int64) for _worker in folders]

    def one(worker: int) -> Any:
        def all_reduce_min(number: Any) -> int:
            numbers[worker] = int(number)
            together.wait()
            least = min(numbers.values())
            together.wait()  # before anybody calls it again
            return least

        try:
            return answer(worker, tf.train.Checkpoint(step=steps[worker]), folders[worker], all_reduce_min)
        except Exception:
            together.abort()
            raise

    with ThreadPoolExecutor(_WORKERS) as pool:
        calls = [pool.submit(one, worker) for worker in range(_WORKERS)]
    return [int(step.numpy()) for step in steps], calls


def _raise_first(calls: Sequence[Future[Any]]) -> None:
    """Raises the error of a call, if there is one: rather that of its own than of having waited in vain."""
    errors = [error for each in calls if (error := each.exception())]
    for error in sorted(errors, key=lambda each: isinstance(each, threading.BrokenBarrierError)):
        if isinstance(error, threading.BrokenBarrierError):
            raise CourseError(
                _("A worker waits in `all_reduce_min` for others, which don't call it."),
                cure=_("Every worker calls it once, even one that finds nothing."),
            ) from None
        raise error


def _of_managers(managers: Sequence[Any], shared: str) -> str | None:
    kind = start_tensorflow().train.CheckpointManager
    if not all(isinstance(each, kind) and hasattr(each.checkpoint, "step") for each in managers):
        return _(
            "A worker returns no CheckpointManager of `checkpoint`, so it will not save. But every worker has"
            " to: a Keras metric, for example, is summed over all workers as it is saved, and the others"
            " would wait forever."
        )
    folders = [str(Path(each.directory).resolve()) for each in managers]
    if len(set(folders)) < len(folders):
        return _("Two workers save into one folder: they write the same files at the same time.")
    if folders[0] != str(Path(shared).resolve()):
        return _("Worker 0 does not save into the shared folder: nobody finds anything after the next crash.")
    return None


def _of_steps(steps: Sequence[int], right: int) -> str | None:
    told = ", ".join(map(str, steps))
    if len(set(steps)) > 1:
        return _(
            "The workers restored different steps: {steps}. They would train different models.", steps=told
        )
    if steps[0] != right:
        return _("All restored step {step}, but that is not the latest that all of them see.", step=steps[0])
    return None
