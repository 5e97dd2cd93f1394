"""What code checks in this lesson: where two lines of times cross, and a pipeline that stacks batches."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _

Times = Mapping[int, float]


def _line(times: Times) -> tuple[float, float]:
    few, many = sorted(times)
    per_review = (times[many] - times[few]) / (many - few)
    return times[few] - per_review * few, per_review


def _break_even(one: Times, eight: Times) -> float | None:
    (fixed_one, each_one), (fixed_eight, each_eight) = _line(one), _line(eight)
    if each_eight >= each_one:
        return None
    return (fixed_eight - fixed_one) / (each_one - each_eight)


def _number(answer: Callable[..., Any], one: Times, eight: Times) -> Any:
    found = answer(one, eight)
    return float(found) if isinstance(found, Fraction) else found


def _free_start(one: Times, eight: Times) -> float:
    fixed, each = _line(eight)
    return fixed / (_line(one)[1] - each)


def _an_eighth(one: Times, eight: Times) -> float:
    (fixed_one, each), (fixed_eight, _each) = _line(one), _line(eight)
    return (fixed_eight - fixed_one) / (each * 7 / 8)


def _times(random: np.random.Generator) -> tuple[Times, Times]:
    few, many = int(random.integers(2, 9)) * 8, int(random.integers(32, 129)) * 8
    fixed_one, fixed_eight = random.integers(1, 9) / 8, random.integers(16, 80) / 8
    each_one, each_eight = random.integers(8, 16) / 1024, random.integers(1, 8) / 1024
    one, eight = (  # the larger number first, now and then
        {rows: float(fixed + each * rows) for rows in sorted((few, many), reverse=bool(random.integers(2)))}
        for fixed, each in ((fixed_one, each_one), (fixed_eight, each_eight))
    )
    return one, eight


@exercise("faster-break-even", right=_break_even)
def break_even(answer: Callable[..., Any]) -> str | None:
    """The number of reviews at which eight devices take as long as one."""
    never = {64: 1.0, 128: 2.0}, {64: 5.0, 128: 6.5}
    parallel = {64: 1.0, 128: 2.0}, {64: 5.0, 128: 6.0}
    return judge(
        answer,
        _break_even,
        [
            *drawn(_times),
            Case(never, _("Here each review takes longer on eight devices than on one: return None.")),
            Case(parallel, _("Here each review takes as long on eight devices as on one: return None.")),
        ],
        run=_number,
        misconceptions={
            _free_start: _("This forgets that one device has a fixed cost, too."),
            _an_eighth: _(
                "This assumes that a review takes an eighth of the time on eight devices. Take the cost for a"
                " review from the measurements of the eight, as for one device."
            ),
        },
        advice=_(
            "The cost for a review is the difference of the two times, divided by the difference of the two"
            " numbers of reviews. The fixed cost is what is left of either time."
        ),
    )


def _digits(random: np.random.Generator) -> Case:
    """Returns records in two files, of which the last stack is not full, a batch size and steps."""
    batch_size, steps = int(random.integers(2, 5)), int(random.integers(5, 8))
    count = 2 * batch_size * steps + int(random.integers(1, batch_size * steps))
    records = random.integers(0, 256, (count, 785)).astype(np.uint8)
    records[:, -1] %= 10
    told = _(
        "two files, records in each: {count}; `batch_size = {batch_size}`, `steps = {steps}`",
        count=count,
        batch_size=batch_size,
        steps=steps,
    )
    return Case((records, batch_size, steps), told=told)


def _stacks(
    records: Array,
    batch_size: int,
    steps: int,
    *,
    label_at: int = 784,
    scale: int = 255,
    label_type: str = "int64",
    swapped: bool = False,
) -> Any:
    """Returns what a pipeline yields, described, or what one with a mistake does."""
    if swapped:
        batch_size, steps = steps, batch_size
    count = batch_size * steps
    whole = records[: len(records) // count * count].reshape(-1, steps, batch_size, 785)
    images = np.delete(whole, label_at, axis=-1).astype(np.float32) / np.float32(scale)
    labels = whole[..., label_at].astype(label_type)
    return [(_described(x), _described(y)) for x, y in zip(images, labels, strict=True)]


def _described(array: Array) -> tuple[Any, ...]:
    """Returns the shape and the type of an array, and its numbers: all labels, some of the pixels."""
    some = np.ravel(array)[:: 97 if array.ndim > 2 else 1]
    return array.shape, str(array.dtype), tuple(float(each) for each in some)


def _from_files(answer: Callable[..., Any], records: Array, batch_size: int, steps: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("first.bin", "second.bin")]
        parts = np.split(records, [len(records) // 3])
        for file, part in zip(files, parts, strict=True):
            np.zeros_like(part).tofile(file)
        dataset = answer(files, batch_size, steps)
        for file, part in zip(files, parts, strict=True):  # for who reads as the records are needed
            part.tofile(file)
        if not hasattr(dataset, "element_spec"):
            return "no dataset"
        some = itertools.islice(dataset, 9)  # there are two
        stacks = [tuple(_described(np.asarray(each)) for each in pair) for pair in some]
        return "endless" if len(stacks) == 9 else stacks


@exercise("faster-pipeline", right=_stacks)
def pipeline(answer: Callable[..., Any]) -> str | None:
    """A pipeline from files of records to stacked batches."""
    random = np.random.default_rng(0)
    return judge(
        answer,
        _stacks,
        [_digits(random) for _case in range(3)],
        run=_from_files,
        misconceptions={
            partial(_stacks, swapped=True): _(
                "Batches of `steps` records are stacked `batch_size` times. The first `batch` makes a batch,"
                " and the second stacks batches."
            ),
            partial(_stacks, label_at=0): _("The label is the last byte of a record, not the first."),
            partial(_stacks, scale=1): _("Divide the pixels by 255."),
            partial(_stacks, scale=256): _("Divide the pixels by 255, so that 255 becomes 1."),
            partial(_stacks, label_type="int32"): _("Cast the labels to `tf.int64`."),
            lambda *_inputs: "no dataset": _("Return a dataset of `tf.data`."),
            lambda *_inputs: "endless": _("This dataset never ends: leave out `repeat`."),
            lambda records, *sizes: _stacks(np.zeros_like(records), *sizes): _(
                "This reads all files before the first stack is asked for. Let `tf.data` read them."
            ),
        },
        advice=_(
            "A stack is described by its shape, its type and its numbers, first of the images (only some of"
            " the pixels), then of the labels. Are the types right? Are the pixels fractions, and not whole"
            " numbers? Does `drop_remainder` stand in both calls of `batch`, and does nothing shuffle?"
        ),
    )
