"""The tables of what each Keras distributes, and of which strategy works with which API."""

from __future__ import annotations

import itertools
import math
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from course_lib import syllabus
from course_lib.errors import CourseError
from course_lib.measured.files import save
from course_lib.messages import plain
from tools.cases import runner
from tools.cases.runner import BUILD, ERROR, Case, Record, found_by

Cluster = syllabus.module("workers.launcher").Cluster
Cells = dict[tuple[str, str], Case]  # by row and column

HERE = Path(__file__).parent
TOLERANCE = 1e-5  # the largest difference that still counts as equal
LIMIT_SECONDS, GRACE_SECONDS = 180.0, 5.0  # the latter for what other processes say once one has failed

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
APIS = ("fit_keras_3", "fit_tf_keras", "loop_keras_3", "loop_tf_keras", "estimator")
WITH_ESTIMATOR = ("default", "one_device", "mirrored", "central_storage")
CLUSTERS = {  # the processes of the strategies that need several
    "multi_worker": {"worker": 2},
    "parameter_server": {"chief": 1, "worker": 2, "ps": 1},
}
STRATEGIES = (*WITH_ESTIMATOR, *CLUSTERS, "tpu")
RUNS = 5  # of each case of parameter servers, of which no two are alike: the worst is recorded

_DUMP = re.compile(r"\{\n.*?\n\}", re.DOTALL)  # the values of a tensor, which say nothing of the error
# What another run would name otherwise: addresses and ports, places in memory, numbers of processes.
_OF_THIS_RUN = re.compile(
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


def strategies_table() -> Cells:
    """Returns the cases of which strategy works with which API."""
    cells = {}
    for row, api in itertools.product(STRATEGIES, APIS):
        if api != "estimator":
            cells[row, api] = _case(row, api, partial(_under_strategy, row, *api.split("_", 1)))
        elif row in WITH_ESTIMATOR:
            run = partial(found_by, HERE / "estimator.py", row, python=str(ESTIMATOR_PYTHON))
            cells[row, api] = _case(row, api, run)
    return cells


def _case(row: str, column: str, run: Any) -> Case:
    limit_seconds = LIMIT_SECONDS * (RUNS if row == "parameter_server" else 1)
    return Case(f"{row} | {column}", run, limit_seconds, alone=True)


def _keras_layouts(row: str, keras: str) -> Record:
    case = row.removesuffix("_uncombined")
    python = str(JAX_PYTHON) if keras == "keras_jax" else sys.executable
    environment = {} if case == row else UNCOMBINED
    return found_by(HERE / "keras_layouts.py", keras, case, python=python, environment=environment)


def _under_strategy(strategy: str, way: str, keras: str) -> Record:
    script, arguments = HERE / "under_strategy.py", (strategy, way, keras)
    if strategy not in CLUSTERS:
        return found_by(script, *arguments)
    runs = RUNS if strategy == "parameter_server" else 1
    return worst([worst(_in_cluster([script, *arguments], CLUSTERS[strategy])) for _time in range(runs)])


def _in_cluster(program: Sequence[object], tasks: Mapping[str, int]) -> list[Record]:
    """Returns what became of each process that ends by itself; the others serve these."""
    with Cluster(program, tasks) as cluster:
        report = cluster.wait(2 * LIMIT_SECONDS, grace_seconds=GRACE_SECONDS)  # the runner ends it before
        ended = [task for task in cluster.ending if report[task].status is not None]
        return [runner.outcome_of(report[task].status, *cluster.written(task)) for task in ended]


def worst(records: Sequence[Record]) -> Record:
    """Returns the first of several that failed, or the worst that they found."""
    for each in records:
        if "verdict" in each:
            return each
    return max(records, key=_distance) | {"distributed": all(each["distributed"] for each in records)}


def _distance(found: Record) -> list[float]:
    """Returns how bad it is: how far variables are off, then told losses, then the loss at the end."""
    numbers = [
        found.get("difference", 0.0),
        found.get("reported_difference", 0.0),
        found.get("losses", [0.0])[-1],
    ]
    return [math.inf if math.isnan(each) else each for each in numbers]


def cell_of(found: Record) -> Record:
    """Returns the cell of a table: how a case failed, or a verdict and the numbers that it found.

    Args:
        found: `mistaken`, whether what was asked is a mistake, which an error should have named;
            `distributed`, whether each device holds as much of every variable as was asked for; `difference`,
            the largest from the same computation on one device, and `reported_difference`, that of a loss
            that was told; `losses` before and after a training in no fixed order.
    """
    if "verdict" in found:
        message = of_any_run(found["message"]).replace("`", "'")  # the page shows it as code
        return found | {"message": plain(message) if found["verdict"] == ERROR else message}
    numbers = {name: value for name, value in found.items() if name not in ("mistaken", "distributed")}
    return {"verdict": _verdict(**found), **numbers}


def _verdict(
    distributed: bool = True,
    mistaken: bool = False,
    difference: float = 0.0,
    reported_difference: float = 0.0,
    losses: Sequence[float] = (),
) -> str:
    if mistaken or not distributed:
        return "accepted" if mistaken else "no-op"
    if losses:
        return "asynchronous" if losses[-1] < losses[0] else "different"
    if not difference <= TOLERANCE:  # nor where it is no number
        return "different"
    return "equal" if reported_difference <= TOLERANCE else "misreported"


def of_any_run(message: str) -> str:
    r"""Returns a message without values, addresses and numbers that only this run has.

    >>> of_any_run("ValueError: no value (PerReplica:{\n  0: [0.67 0.8]\n}) from 127.0.0.1:4077")
    'ValueError: no value (PerReplica:{...}) from ...'
    """
    return _OF_THIS_RUN.sub("...", _DUMP.sub("{...}", message))


def measure_layouts() -> None:
    """Writes the table of what each Keras distributes; without an environment with JAX, a `CourseError`."""
    beside_jax = versions(JAX_PYTHON, "jax", "keras")
    others = {"devices": "8", "jax": beside_jax["jax"], "keras beside JAX": beside_jax["keras"]}
    _measure("keras_layouts", "make jax", layouts_table(), others)


def measure_strategies() -> None:
    """Writes the table of which strategy works with which API; without Estimators, a `CourseError`."""
    (version,) = versions(ESTIMATOR_PYTHON, "tensorflow-cpu", "tensorflow").values()
    how = {"tensorflow with Estimators": version, "runs with parameter servers": str(RUNS)}
    _measure("strategies", "make estimator", strategies_table(), how)


def _measure(lesson: str, before: str, cells: Cells, others: dict[str, str]) -> None:
    name, here = f"{lesson}-support", versions(Path(sys.executable), "tensorflow", "tf-keras", "keras")
    how = {
        "command": f"{before}; .venv/bin/python -m tools.cases {lesson}",
        "python": platform.python_version(),
        **here,
        **others,
    }
    found = runner.completed(list(cells.values()), name, "-".join((here | others).values()))
    support: dict[str, Record] = {}
    for (row, column), case in cells.items():
        support.setdefault(row, {})[column] = cell_of(found[case.name])
    save(name, {"how": how, "support": support})


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
