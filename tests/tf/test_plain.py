"""The plain programs: what each lesson taught, in one file that needs TensorFlow and NumPy alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course import COURSE

PROGRAMS = sorted((COURSE.root / "notebooks/plain").glob("*.py"))
# Those of several processes, which their lessons start
OF_MANY = {"workers"} | {path.stem for path in (COURSE.root / "deploy/slurm").glob("*.sbatch")}
ALONE = [program for program in PROGRAMS if program.stem not in OF_MANY]
# Started by hand, these are a whole cluster in one process
CLUSTERS = [program for program in PROGRAMS if program.stem in {"client", "coordinator"}]
# What programs have otherwise than the lessons that build them piece by piece, and tables beside functions.
OTHERWISE = {
    "whole_game": {"shard", "swapped", "runs", "fitted"},
    "your_mesh": {"train_step", "shard"},
    "strategies": {"compare"},
    "mesh_and_layout": {"join", "print_parts"},
    "communication": {"graphs_that_ran", "mesh_dims", "collectives_that_ran", "main"},
    "one_step": {"shard"},
    "a_run": {"shard"},
    "coupled_rows": {"shard", "train_on_one_device", "train_on_eight"},
    "custom_training": {"train", "train_step", "weights_after"},
    "own_steps": {"pair_step", "weights_after"},
    "how_long": {"all_reduce"},
    "stages": {"pipeline", "all_choices"},
    "which_plan": {"all_choices"},
    "all_reduce": {"Device", "run_on_each", "sum_of_rows"},
    "splitting_the_model": {"shard", "Residual"},
    "faster": {"shard", "made_up_reviews"},
    "any_mesh": {"shard"},
    "from_scratch": {"shard", "layouts_on", "ten_steps", "whole"},
    "keras_layouts": {"shard"},
    "save_and_serve": {"shard", "ask"},
    "large_trainings": {"shard", "made_on"},
    "transformer_block": {"shard", "block"},
    "zero_and_fsdp": {"shard", "relayout", "Layouts", "Model", "losses_of", "make_functions", "train"},
}
TABLES = {
    "mesh_and_layout": {"grid"},
    "any_mesh": {"axes", "splits", "meshes", "values"},
    "save_and_serve": {"layouts"},
    "large_trainings": {"axes", "copy_axes", "values"},
    "transformer_block": {"axes", "sizes", "splits", "values"},
}
LESSONS = {topic: (COURSE.folder(topic) / "lesson.py").read_text("utf-8") for topic in COURSE.topics}


def packages(program: Path) -> set[str]:
    tree = ast.parse(program.read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


def lesson_of(program: Path) -> str:
    """Returns the topic of the one lesson that links to a program."""
    (topic,) = [topic for topic, text in LESSONS.items() if f"](../plain/{program.name})" in text]
    return topic


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_plain_program_belongs_to_a_lesson_and_needs_tensorflow_alone(program: Path) -> None:
    assert lesson_of(program)
    assert packages(program) <= {"numpy", "tensorflow", "tf_keras"}


def defined(source: str, tables: set[str]) -> dict[str, str]:
    """Returns the code of functions, classes and tables by name, without what is said of it.

    That of a table is all that changes it.
    """
    found: dict[str, str] = {}
    for node in ast.parse(source.replace("dtensor.UNSHARDED", "WHOLE")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.body = node.body[1:] if ast.get_docstring(node) else node.body
            found[node.name] = ast.unparse(node)
        elif isinstance(node, (ast.Assign, ast.AugAssign)) and (name := assigned(node)) in tables:
            found[name] = f"{found.get(name, '')}{ast.unparse(node)}\n"
    return found


def assigned(node: ast.Assign | ast.AugAssign) -> str:
    """Returns the name that is assigned to, itself or in parts."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    return ast.unparse(target)


@pytest.mark.parametrize("program", ALONE, ids=lambda program: program.stem)
def test_a_plain_program_has_the_code_of_its_lesson(program: Path) -> None:
    tables = TABLES.get(program.stem, set())
    lesson = COURSE.lesson(lesson_of(program))
    code = [cell.source for cell in lesson.cells if cell.kind == "code" and not cell.source.startswith("%%")]
    in_lesson = defined("\n".join(code), tables)
    shown = {
        name: code
        for name, code in defined(program.read_text(), tables).items()
        if name not in OTHERWISE.get(program.stem, ())
    }
    assert shown
    assert tables <= shown.keys()
    assert {name: in_lesson.get(name) for name in shown} == shown


def ran(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""}
    command = [sys.executable, program, folder / "folder"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.drill
@pytest.mark.parametrize("program", [*ALONE, *CLUSTERS], ids=lambda program: program.stem)
def test_a_plain_program_runs(program: Path, tmp_path: Path) -> None:
    done = ran(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


CHANGES = [("whole_game", "DEVICES = 8", f"DEVICES = {count}", "") for count in (4, 16)]
CHANGES += [
    ("your_mesh", '("batch", 4)', '("batch", 2)', ""),
    ("your_mesh", ', "hidden": "model"}', "}", "'model' splits no axis"),
    ("your_mesh", '"b1": ["hidden"]', '"b1": ["units"]', "ValueError: units: `lengths` has no length"),
    ("your_mesh", '"hidden": "model"', '"hiden": "model"', "ValueError: hiden: no tensor has such an axis"),
    ("your_mesh", "= logits_of(weights, x)", "= x[:, :12]", "ValueError: W1: the loss doesn't depend on it"),
]


@pytest.mark.drill
@pytest.mark.parametrize(("name", "line", "changed", "said"), CHANGES)
def test_a_changed_program_runs_or_names_the_slip(
    name: str, line: str, changed: str, said: str, tmp_path: Path
) -> None:
    text = (COURSE.root / f"notebooks/plain/{name}.py").read_text("utf-8")
    assert line in text
    program = tmp_path / "mine.py"
    program.write_text(text.replace(line, changed), "utf-8")
    done = ran(program, tmp_path)
    assert said in done.stdout + done.stderr
    assert bool(done.returncode) == ("Error" in said), done.stderr  # a program compares its runs
