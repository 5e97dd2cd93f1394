"""What code checks in this lesson: a schedule with a warm-up, and the newest checkpoint that is whole."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Function = Callable[..., Any]

RATE, WARM = 3.0, 50  # thousandths, steps


def _warm_up(step: int, last_step: int) -> float:
    return RATE * ((step + 1) / WARM if step < WARM else (last_step - step) / (last_step - WARM))


def _unscaled(step: int, last_step: int) -> float:
    return RATE * ((step + 1) / WARM if step < WARM else 1 - step / last_step)


def _from_zero(step: int, last_step: int, rises: int = WARM) -> float:
    return RATE * step / rises if step < WARM else _warm_up(step, last_step)


def _a_step_late(step: int, last_step: int) -> float:
    return RATE * (step + 1) / WARM if step <= WARM else _warm_up(step, last_step)


def _kept(step: int, last_step: int) -> float:
    return min(RATE, _warm_up(min(step, WARM), last_step))


@exercise("a_run-warm-up", right=lambda step, last_step: np.float32(1e-3 * _warm_up(step, last_step)))
def warm_up(answer: Function) -> str | None:
    """A learning rate that rises over 50 steps and then falls."""
    plain_numbers, dtypes = [], set()

    def called(function: Function, *given: Any) -> float:
        found = function(*given)
        plain_numbers.append(isinstance(found, (int, float)) and not isinstance(found, np.generic))
        dtypes.add(np.asarray(found).dtype.name)
        return 1e3 * float(found)

    late = _("Step 0 would not learn anything: it has 1/50 of the rate.")
    hint = judge(
        answer,
        _warm_up,
        [Case((step, last)) for last in (440, 150) for step in (0, 1, 25, 48, 49, 50, 51, 100, 149)],
        misconceptions={
            _unscaled: _(
                "The warm-up is right. After it, step 50 still has the whole rate: share out what is left"
                " over the steps from 50 to `last_step`."
            ),
            _from_zero: late,
            lambda step, last_step: _from_zero(step, last_step, WARM - 1): late,
            _a_step_late: _(
                "Step 50 is one too many for the warm-up: there the rate would be more than the whole one."
            ),
            _kept: _("The warm-up is right. After it, the rate has to fall."),
        },
        run=called,
        advice=_("(The check multiplies what you return by 1,000, to show more digits.)"),
    )
    if hint is None and any(plain_numbers):
        return _(
            "The rates are right. But TensorFlow traces anew for each new Python number:"
            " return `np.float32(...)`."
        )
    if hint is None and dtypes != {"float32"}:
        return _(
            "The rates are right. But the weights are float32, and TensorFlow multiplies them by no other"
            " type: return `np.float32(...)`."
        )
    return hint


def newest_whole(folder: str) -> str | None:
    """Returns the path of the newest checkpoint of a folder that can be read."""
    tf = start_tensorflow()
    numbers = [int(index.stem.removeprefix("ckpt-")) for index in Path(folder).glob("ckpt-*.index")]
    for number in sorted(numbers, reverse=True):
        path = f"{folder}/ckpt-{number}"
        with contextlib.suppress(tf.errors.OpError):
            tf.train.list_variables(path)
            return path
    return None


Numbers = tuple[int, ...]


class _Number(int):
    """The number of a checkpoint that was told by its path."""


def _newest(whole: Numbers, _lost: Numbers, _torn: Numbers, _named: int) -> int | None:
    return max(whole, default=None)


def _kills() -> Iterator[Case]:
    """Yields what kills may leave in a folder.

    A case has the numbers of the checkpoints that are whole, those without an index, those with a torn one,
    and the one that the file `checkpoint` names.
    """
    for whole, lost, torn, named in (
        ((1, 2, 3), (), (), 3),
        ((8, 9, 10), (), (), 10),
        ((1, 2), (3,), (), 3),
        ((98, 99), (101,), (100,), 101),
        ((4,), (), (5, 6), 4),
        ((), (1,), (), 1),
        ((98, 120), (121,), (99,), 98),
    ):
        told = _(
            "a folder with whole checkpoints {whole}, without an index {lost}, with a torn index {torn}",
            whole=[*whole],
            lost=[*lost],
            torn=[*torn],
        )
        yield Case((whole, lost, torn, named), told=told)


def _called(answer: Function, whole: Numbers, lost: Numbers, torn: Numbers, named: int) -> Any:
    """Returns the number of the checkpoint that a reader's function finds in such a folder."""
    tf = start_tensorflow()
    with TemporaryDirectory() as name:
        folder = Path(name)
        saved = tf.train.Checkpoint(v=tf.Variable(1.0)).write(f"{name}/saved")
        index = Path(f"{saved}.index").read_bytes()
        for number in (*whole, *lost, *torn):
            shutil.copy(f"{saved}.data-00000-of-00001", folder / f"ckpt-{number}.data-00000-of-00001")
        for number in (*whole, *torn):
            content = index if number in whole else index[: len(index) // 2]
            (folder / f"ckpt-{number}.index").write_bytes(content)
        for index_file in folder.glob("ckpt-*.index"):  # copied from another machine, the newest first
            number = int(index_file.stem.removeprefix("ckpt-"))
            os.utime(index_file, (10**9 - number, 10**9 - number))
        (folder / f"ckpt-{named + 1}_temp").mkdir()
        lines = [
            f'{key}: "ckpt-{named}"\n' for key in ("model_checkpoint_path", "all_model_checkpoint_paths")
        ]
        (folder / "checkpoint").write_text("".join(lines))
        found = answer(name)
        path = re.fullmatch(re.escape(os.path.realpath(name)) + r"/ckpt-(\d+)", os.path.realpath(str(found)))
        return _Number(path[1]) if path else found


@exercise("a_run-newest", right=newest_whole)
def newest(answer: Function) -> str | None:
    """The newest checkpoint of a folder that can be read."""
    others = []  # what is no path of a checkpoint

    def called(function: Function, *given: Any) -> Any:
        found = _called(function, *given)
        if isinstance(found, _Number) or found is None:
            return found
        others.append(found)
        return str(found)

    hint = judge(
        answer,
        _newest,
        _kills(),
        misconceptions={
            lambda _whole, _lost, _torn, named: named: _(
                "This believes the file `checkpoint`, which may name what is not there."
            ),
            lambda whole, _lost, torn, named: named if named in whole + torn else None: _(
                "This asks the file `checkpoint` alone, as `tf.train.latest_checkpoint` does, and finds"
                " nothing if that names what is not there. Look at the files `ckpt-*.index` yourself."
            ),
            lambda whole, _lost, torn, _named: max(
                {*whole}.intersection(sorted(whole + torn)[-2:]), default=None
            ): _("More than the newest may be torn: go on down until one can be read."),
            lambda whole, _lost, _torn, _named: max(whole, key=str, default=None): _(
                "Sort the numbers, not the names: as text, `ckpt-9` comes after `ckpt-10`."
            ),
            lambda whole, _lost, torn, _named: max(whole + torn, default=None): _(
                "An index can be there and be torn. Try to read each with `tf.train.list_variables`; where"
                " that raises an error, take the one before."
            ),
        },
        run=called,
        advice=_("Go from the highest number down, and return the first path that can be read."),
    )
    if hint is not None and others:
        return _(
            "Your function gives `{found}`. Return a path without an ending, such as `{path}`, or `None`.",
            found=others[0],
            path='folder + "/ckpt-12"',
        )
    return hint
