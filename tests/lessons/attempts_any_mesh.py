"""Attempts at the exercises of `any_mesh`."""

import numpy as np

from tests.lessons.attempts import Attempts


def column_by_column(stored, first, stop):
    columns = []
    for column in range(first, stop):
        for start, block in stored:
            if start <= column < start + block.shape[1]:
                columns.append(block[:, column - start].tolist())
    return np.transpose(columns)


def with_a_mask(stored, first, stop):
    result = np.empty((len(stored[0][1]), stop - first))
    for start, block in stored:
        own = np.arange(start, start + block.shape[1])
        wanted = (own >= first) & (own < stop)
        result[:, own[wanted] - first] = block[:, wanted]
    return result


def joined_and_cut(stored, first, stop):
    return np.concatenate([block for _start, block in sorted(stored, key=lambda pair: pair[0])], 1)[
        :, first:stop
    ]


def joined_from_the_first(stored, first, stop):
    in_order = sorted(stored, key=lambda pair: pair[0])
    begin = in_order[0][0]
    return np.concatenate([block for _start, block in in_order], 1)[:, first - begin : stop - begin]


def rows(stored, first, stop):
    return column_by_column(stored, first, stop).T


ATTEMPTS = {
    "any_mesh-columns": Attempts(
        right=(column_by_column, with_a_mask),
        wrong=(
            (joined_and_cut, "fit into memory"),
            (joined_from_the_first, "fit into memory"),
            (rows, "between `first` and `stop`"),
        ),
    ),
    "any_mesh-six": Attempts(
        right=(
            (("model", 6),),
            [["feature", 3], ["batch", 2]],
            [("batch", 1), ("feature", 2), ("model", 3)],
        ),
        wrong=(
            ([("batch", 3), ("model", 2)], "axis of 64"),
            ([("batch", 2), ("model", 4)], "mesh is 8"),
            ([("batch", 2), ("hidden", 3)], "no mesh dimension 'hidden'"),
            ([("model", 2), ("model", 3)], "same name"),
            ([("batch", 2.0), ("model", 3)], "whole numbers"),
            ([("batch", -2), ("model", -3)], "from 1 on"),
            ({"batch": 2, "model": 3}, "tuple or list"),
            (["batch", 2, "model", 3], "list of pairs"),
        ),
    ),
}
