"""The exercises of this lesson: columns from stored blocks, and a mesh of six devices for batches of 64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _

Stored = list[tuple[int, Array]]

_SPLIT_BY = {"batch": 64, "feature": 1200, "model": 48}  # what each dimension splits, and how large that is
_DEVICES = 6
_FAR = 10**15  # no memory holds a row of so many numbers


def read_columns(stored: Stored, first: int, stop: int) -> Array:
    """Returns some columns of a matrix from its blocks."""
    return _in_order_of_the_list(sorted(stored, key=lambda pair: pair[0]), first, stop)


def _in_order_of_the_list(stored: Stored, first: int, stop: int) -> Array:
    return np.concatenate([block[:, max(first - at, 0) : max(stop - at, 0)] for at, block in stored], axis=1)


def _one_block(stored: Stored, first: int, stop: int) -> Array:
    (found,) = [pair for pair in stored if pair[0] <= first < pair[0] + pair[1].shape[1]]
    return found[1][:, first - found[0] : stop - found[0]]


def _including_the_last(stored: Stored, first: int, stop: int) -> Array:
    return read_columns(stored, first, stop + 1)


def _whole_blocks(stored: Stored, first: int, stop: int) -> Array:
    touching = [pair for pair in stored if pair[0] < stop and first < pair[0] + pair[1].shape[1]]
    return np.concatenate([block for _at, block in sorted(touching, key=lambda pair: pair[0])], axis=1)


def _blocks(random: np.random.Generator, begin: int = 0) -> tuple[Stored, int, int]:
    """Draws blocks in any order, of a matrix that is stored from column `begin` on, and what to read."""
    width, count = int(random.integers(2, 5)), int(random.integers(1, 5))
    stored = [(begin + width * at, random.integers(-9, 10, (2, width)) * 1.0) for at in range(count)]
    first, stop = sorted(random.choice(width * count + 1, 2, replace=False))
    return [stored[at] for at in random.permutation(count)], begin + int(first), begin + int(stop)


def _far_blocks(random: np.random.Generator) -> tuple[Stored, int, int]:
    """Draws the same of a large matrix, with one block that lies far from what to read."""
    stored, first, stop = _blocks(random, _FAR)
    return [*stored, (0, random.integers(-9, 10, (2, 3)) * 1.0)], first, stop


@exercise("any_mesh-columns", right=read_columns)
def columns(answer: Callable[..., Any]) -> str | None:
    """Some columns of a matrix, from its blocks."""
    far = _(
        "This matrix has far more columns than fit into memory, and only a few of its blocks are in `stored`."
        " Go by the number of each block's first column, and make room only for the columns asked for."
    )
    random = np.random.default_rng(1)
    return judge(
        answer,
        read_columns,
        [*drawn(_blocks), *(Case(_far_blocks(random), hint=far) for _number in range(3))],
        misconceptions={
            _in_order_of_the_list: _(
                "The columns are right, but not their order: `stored` is a list in any order."
            ),
            _one_block: _("Columns may lie in more than one block. What do you need of each?"),
            _whole_blocks: _("These are whole blocks. Of each, take only the columns that are asked for."),
            _including_the_last: _("The column `stop` itself does not belong to it any more."),
        },
        advice=_("Which columns does each block have, and which of them are between `first` and `stop`?"),
    )


@exercise("any_mesh-six", right=[("batch", 2), ("model", 3)])
def six(answer: Sequence[Any]) -> str | None:
    """A mesh of six devices that fits the batch and the network."""
    if not all(isinstance(dim, tuple) and len(dim) == 2 for dim in answer):
        return _('Write a list of pairs, each a name and a size, such as `("batch", 4)`.')
    names, sizes = [name for name, _size in answer], [size for _name, size in answer]
    unknown = [name for name in names if name not in _SPLIT_BY]
    if unknown:
        return _("`splits` knows no mesh dimension {name!r}.", name=unknown[0])
    if len(set(names)) < len(names):
        return _("Two dimensions of a mesh cannot have the same name.")
    if any(type(size) is not int or size < 1 for size in sizes):
        return _("Sizes are whole numbers, from 1 on.")
    if math.prod(sizes) != _DEVICES:
        return _("The size of your mesh is {count}. You have six devices.", count=math.prod(sizes))
    for name, size in answer:
        if _SPLIT_BY[name] % size:
            return _(
                "`{name}` has size {size}, and cannot split an axis of {length} into as many equal parts.",
                name=name,
                length=_SPLIT_BY[name],
                size=size,
            )
    return None
