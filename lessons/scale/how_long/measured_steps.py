"""Steps that were measured on virtual devices, beside what the arithmetic of `cost` says of them."""

from __future__ import annotations

import numpy as np

from course_lib.measured.files import Record
from course_lib.specs.mesh import MeshSpec
from lessons.scale.cost import StepCosts
from lessons.scale.machines import Cluster, Device, Link
from lessons.scale.networks import transformer

NETWORK = transformer(sequence=32, features=128, heads=6, vocabulary=96, size=32, hidden=768)
_SPLITS = {"batch": "batch", "heads": "model", "hidden": "model"}
_CASES = (
    (MeshSpec([("batch", 8)]), {"batch": "batch"}),
    (MeshSpec([("batch", 4)]), {"batch": "batch"}),
    (MeshSpec([("batch", 4), ("model", 2)]), _SPLITS),
    (MeshSpec([("batch", 3), ("model", 2)]), _SPLITS),
    (MeshSpec([("batch", 2), ("model", 3)]), _SPLITS),
    (MeshSpec([("batch", 2), ("x", 2), ("y", 2)]), {"batch": "batch", "heads": "x", "hidden": "y"}),
)
PLANS = {str(mesh): (mesh, splits) for mesh, splits in _CASES}
_CALIBRATED_ON = ("batch 8", "batch 4 × model 2", "batch 4")
_UNIT = Cluster(Device("", 1.0, 0.0, float("inf"), ""), 8, Link(1.0, 0.0, ""), Link(1.0, 0.0, ""))


def predictions(found: list[Record]) -> list[tuple[Record, float]]:
    """Returns each case that no constant was taken from, with the seconds that are predicted for it.

    The two constants, seconds of an operation and of a byte that is sent, are those that fit the other cases
    best, each error as a part of the time. All devices share the cores, so both count those of all devices.
    """
    known = [each for each in found if each.mesh in _CALIBRATED_ON]
    rows = np.array([_counted(each) for each in known]) / np.array([[each.seconds] for each in known])
    constants = np.linalg.lstsq(rows, np.ones(len(known)), rcond=None)[0]
    return [(each, float(_counted(each) @ constants)) for each in found if each.mesh not in _CALIBRATED_ON]


def _counted(case: Record) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns the operations of all devices in a step, and the bytes that they send."""
    mesh, splits = PLANS[case.mesh]
    cost = StepCosts(NETWORK, splits).cost(mesh, case.batch_size, _UNIT)
    return mesh.size * np.array([cost.compute_seconds, sum(cost.communication_seconds.values())])
