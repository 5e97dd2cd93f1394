"""The table of what each Keras distributes, and the column of Estimators in that of strategies."""

from __future__ import annotations

import itertools
import platform
import re
import sys
from collections.abc import Mapping
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.measured.files import load, save
from course_lib.messages import plain
from tools.cases import runner
from tools.cases.runner import BUILD, ERROR, Case, Record, found_by

Cells = dict[tuple[str, str], Case]  # by row and column

HERE = Path(__file__).parent
TOLERANCE = 1e-5  # the largest difference that still counts as equal
LIMIT_SECONDS = 180.0

JAX_PYTHON = BUILD / "jax-venv" / "bin" / "python"
KERASES = ("tf_keras", "keras_tensorflow", "keras_jax")
LAYOUT_ROWS = (
    "arguments",
    "patterns",
    "unmatched_pattern",
    "equal_seeds",
    "training_step",
    "training_step_uncombined",
    "training_step_apart",
    "fit_arrays",
    "fit_dataset",
    "fit_dataset_uncombined",
    "evaluate_arrays",
    "evaluate_dataset",
    "predict_arrays",
    "predict_dataset",
    "weights_h5",
    "weights_checkpoint",
)
ONLY_TF_KERAS = re.compile("_uncombined|_apart|_checkpoint")  # what mends DTensor's fault, and its own files
UNCOMBINED = {"DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE": "1"}

ESTIMATOR_PYTHON = BUILD / "estimator-venv" / "bin" / "python"
WITH_ESTIMATOR = ("one_device", "mirrored", "central_storage")

_DUMP = re.compile(r"\{\n.*?\n\}", re.DOTALL)  # the values of a tensor, which say nothing of the error
# What another run would name otherwise: files, addresses and ports, places in memory, numbers of processes.
_OF_THIS_RUN = re.compile(
    r" \(defined @ [^)]*\)|"
    r"(?:ipv[46]:|grpc://)?\b(?:\d{1,3}(?:\.\d{1,3}){3}|localhost):\d+| at 0x[0-9a-f]+|\bpid[ =:]*\d+",
    re.IGNORECASE,
)


def layouts_table() -> Cells:
    """Returns the cases of what each Keras distributes."""
    cells = {}
    for row, keras in itertools.product(LAYOUT_ROWS, KERASES):
        if keras == "tf_keras" or not ONLY_TF_KERAS.search(row):
            cells[row, keras] = _case(row, keras, partial(_keras_layouts, row, keras))
    return cells


def estimator_table() -> Cells:
    """Returns the cases of strategies with an Estimator."""
    return {
        (row, "estimator"): _case(
            row, "estimator", partial(found_by, HERE / "estimator.py", row, python=str(ESTIMATOR_PYTHON))
        )
        for row in WITH_ESTIMATOR
    }


def _case(row: str, column: str, run: Any) -> Case:
    return Case(f"{row} | {column}", run, LIMIT_SECONDS, alone=True)


def _keras_layouts(row: str, keras: str) -> Record:
    case = row.removesuffix("_uncombined")
    python = str(JAX_PYTHON) if keras == "keras_jax" else sys.executable
    environment = {} if case == row else UNCOMBINED
    return found_by(HERE / "keras_layouts.py", keras, case, python=python, environment=environment)


def cell_of(found: Record) -> Record:
    """Returns the cell of a table: how a case failed, or a verdict and the numbers that it found.

    Args:
        found: `mistaken`, whether what was asked is a mistake, which an error should have named;
            `distributed`, whether each device holds as much of every variable as was asked for; `difference`,
            the largest from the same computation on one device.
    """
    if "verdict" in found:
        message = of_any_run(found["message"]).replace("`", "'")  # the page shows it as code
        return found | {"message": plain(message) if found["verdict"] == ERROR else message}
    numbers = {name: value for name, value in found.items() if name not in ("mistaken", "distributed")}
    return {"verdict": _verdict(**found), **numbers}


def _verdict(distributed: bool = True, mistaken: bool = False, difference: float = 0.0) -> str:
    if mistaken or not distributed:
        return "accepted" if mistaken else "no-op"
    return "equal" if difference <= TOLERANCE else "different"  # nan is not


def of_any_run(message: str) -> str:
    r"""Returns a message without values, addresses and numbers that only this run has.

    >>> of_any_run("ValueError: no value (PerReplica:{\n  0: [0.67 0.8]\n}) from 127.0.0.1:4077")
    'ValueError: no value (PerReplica:{...}) from ...'
    """
    return _OF_THIS_RUN.sub("...", _DUMP.sub("{...}", message))


def measure_layouts() -> None:
    """Writes the table of what each Keras distributes; without an environment with JAX, a `CourseError`."""
    beside_jax = versions(JAX_PYTHON, "jax", "keras")
    here = versions(Path(sys.executable), "tensorflow", "tf-keras", "keras")
    how = {
        "command": "make jax; .venv/bin/python -m tools.cases keras_layouts",
        "python": platform.python_version(),
        **here,
        **{"devices": "8", "jax": beside_jax["jax"], "keras beside JAX": beside_jax["keras"]},
    }
    save("keras_layouts-support", {"how": how, "support": _measured("keras_layouts", layouts_table(), how)})


def measure_estimator() -> None:
    """Writes what works with an Estimator into the table of strategies; without one, a `CourseError`."""
    (version,) = versions(ESTIMATOR_PYTHON, "tensorflow-cpu", "tensorflow").values()
    record = load("strategies-support")
    how = record.how | {"tensorflow with Estimators": version}
    for row, cells in _measured("estimator", estimator_table(), how).items():
        record.support[row] |= cells
    save("strategies-support", {"how": how, "support": record.support})


def _measured(name: str, cells: Cells, how: Mapping[str, str]) -> dict[str, Record]:
    versions = [value for key, value in how.items() if key not in ("command", "python")]
    found = runner.completed(list(cells.values()), name, "-".join(versions))
    support: dict[str, Record] = {}
    for (row, column), case in cells.items():
        support.setdefault(row, {})[column] = cell_of(found[case.name])
    return support


def versions(python: Path, *packages: str) -> dict[str, str]:
    """Returns the version of each of these packages that an environment has, by its Python.

    Raises:
        CourseError: the environment was not made.
    """
    if not python.exists():
        raise CourseError(
            f"There is no environment in build/{python.parents[1].name}.",
            allowed="the environment that has what the cases import",
            cure="Make it: make jax, or make estimator.",
        )
    folders = map(str, python.parents[1].glob("lib/python*/site-packages"))
    found = {each.name.replace("_", "-"): each.version for each in distributions(path=list(folders))}
    return {name: found[name] for name in packages if name in found}
