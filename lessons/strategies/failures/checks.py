"""The exercise of this lesson on resuming; importing it registers that on the drill."""

from __future__ import annotations

import contextlib
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
Restored = list[tuple[int, int]]  # of each worker, the step and a weight, which counts steps too


@exercise("failures-resume", right=Callable)
def resume(answer: Callable[..., Any]) -> str | None:
    """Restores what all workers see, and says where each saves; it refuses where one of them sees nothing."""
    with tempfile.TemporaryDirectory() as name:
        full, late, empty = (_written(Path(name, str(count)), count) for count in (10, 9, 0))
        for folders, step in [([empty] * 3, 0), ([full] * 3, 30), ([full, late, full], 27)]:
            restored, calls = _called(answer, folders)
            _raise_first(calls)
            managers = [answered(each.result()) for each in calls]
            if hint := _of_managers(managers, folders[0]) or _of_steps(restored, step):
                return hint
        for folders in ([late, late, empty], [empty, late, late]):
            _restored, calls = _called(answer, folders)
            refused = [isinstance(each.exception(), ValueError) for each in calls]
            if not all(refuses for refuses, folder in zip(refused, folders, strict=True) if folder == late):
                _raise_first([each for each, refuses in zip(calls, refused, strict=True) if not refuses])
                return _(
                    "Worker {worker} sees no checkpoint, and the others do. Each of the others has to raise a"
                    " ValueError, and not all of them do.",
                    worker=folders.index(empty),
                )
        if not Path(managers[0].save()).name.startswith("ckpt-"):
            return _("`numbers_in` doesn't find what worker 0 saves: leave the checkpoints their names.")
    return None


def _written(folder: Path, count: int) -> str:
    """Writes so many checkpoints, three steps apart, of which three stay, and returns their folder."""
    tf = start_tensorflow()
    step, weight = tf.Variable(0, dtype=tf.int64), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step, weight=weight)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=3)
    for _epoch in range(count):
        step.assign_add(3)
        weight.assign_add(3)
        manager.save()
    return str(folder)


def _called(answer: Callable[..., Any], folders: Sequence[str]) -> tuple[Restored, list[Future[Any]]]:
    """Returns what workers have restored, each from a folder as it sees it, and how each call ended."""
    tf, numbers = start_tensorflow(), dict[int, int]()
    together = threading.Barrier(_WORKERS, timeout=5.0)
    variables = [{name: tf.Variable(0, dtype=tf.int64) for name in ("step", "weight")} for _ in folders]

    def one(worker: int) -> Any:
        def all_reduce_min(number: Any) -> int:
            numbers[worker] = int(number)
            together.wait()
            least = min(numbers.values())
            with contextlib.suppress(threading.BrokenBarrierError):  # one has gone on, and raised
                together.wait()  # before anybody calls it again
            return least

        try:
            checkpoint = tf.train.Checkpoint(**variables[worker])
            return answer(worker, checkpoint, folders[worker], all_reduce_min)
        except Exception:
            together.abort()
            raise

    with ThreadPoolExecutor(_WORKERS) as pool:
        calls = [pool.submit(one, worker) for worker in range(_WORKERS)]
    return [(int(own["step"].numpy()), int(own["weight"].numpy())) for own in variables], calls


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


def _of_steps(restored: Restored, right: int) -> str | None:
    steps = [step for step, _weight in restored]
    told = ", ".join(map(str, steps))
    if len(set(steps)) > 1:
        return _(
            "The workers restored different steps: {steps}. They would train different models.", steps=told
        )
    if steps[0] != right:
        return _("All restored step {step}, but that is not the latest that all of them see.", step=steps[0])
    if any(step != weight for step, weight in restored):
        return _("The step is restored, and the rest of `checkpoint` is not: its weights are still new.")
    return None
