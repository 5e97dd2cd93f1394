"""Predicted collectives: costs by hand, and what holds for every relayout and product."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import relayout

MESH = MeshSpec([("x", 4), ("y", 2)])
LAYOUTS = [
    LayoutSpec(entries, MESH)
    for entries in [
        (UNSHARDED, UNSHARDED),
        ("x", UNSHARDED),
        ("y", UNSHARDED),
        (UNSHARDED, "x"),
        (UNSHARDED, "y"),
        ("x", "y"),
        ("y", "x"),
    ]
]


def ring_bytes(kind: Kind, devices: int, payload: int) -> float:
    """Counts what one device sends in a ring, chunk by chunk."""
    chunk = payload if kind is Kind.REDUCE_SCATTER else payload / devices
    rounds = {Kind.ALL_REDUCE: 2 * (devices - 1)}.get(kind, devices - 1)
    return sum(chunk for _round in range(rounds))


@given(st.sampled_from(list(Kind)), st.integers(1, 8), st.integers(0, 2**20))
def test_a_ring_sends_its_chunks(kind, devices, payload):
    collective = Collective(kind, MeshSpec([("x", devices)]), ("x",), payload)
    assert float(collective.bytes_sent) == pytest.approx(ring_bytes(kind, devices, payload))


@pytest.mark.parametrize("source", LAYOUTS, ids=str)
@pytest.mark.parametrize("target", LAYOUTS, ids=str)
def test_a_relayout_ends_in_its_target_and_is_free_where_nothing_is_missing(source, target):
    matrix = source.of((16, 32))
    found = relayout(matrix, target)
    assert found.result == target.of((16, 32))
    indices = np.arange(16 * 32).reshape(16, 32)
    before = [set(part.ravel()) for part in matrix.split(indices)]
    after = [set(part.ravel()) for part in target.of((16, 32)).split(indices)]
    missing = any(new - old for old, new in zip(before, after, strict=True))
    assert bool(found.collectives) is missing
