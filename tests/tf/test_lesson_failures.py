"""What `failures` shows is what its readers take away: its program, and what `deploy/` starts."""

import json
import runpy

from tests.course import COURSE

DEPLOY = COURSE.root / "deploy" / "slurm"
CELLS = {cell.cell_id: cell.source for cell in COURSE.lesson("failures").cells}


def written(name):
    """Returns what a cell writes with %%writefile."""
    return CELLS[name].partition("\n")[2]


def test_the_plain_program_is_what_the_lesson_joins():
    parts = [written("first").partition("step = tf.Variable")[0]]
    parts += map(written, ("folders", "restore", "agree", "sigterm", "loop"))
    joined = "\n\n\n".join(part.strip() for part in parts) + "\n"
    assert joined == (COURSE.root / "notebooks/plain/worker.py").read_text()


def test_the_batch_script_and_place_are_those_of_deploy(tmp_path):
    exec(CELLS["batch-script"], {"programs": tmp_path})
    assert (tmp_path / "worker.sbatch").read_text() == (DEPLOY / "worker.sbatch").read_text()
    assert written("place") + "\n" == (DEPLOY / "place.py").read_text()


def test_tensorflow_sorts_ten_machines_as_texts(monkeypatch):
    for name, value in (
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "10"),
        ("SLURM_STEP_NODELIST", "n[1-10]"),
        ("SLURM_STEP_TASKS_PER_NODE", "1(x10)"),
        ("SLURMD_NODENAME", "n2"),
    ):
        monkeypatch.setenv(name, value)
    place = runpy.run_path(str(DEPLOY / "place.py"))["place_in_slurm"]
    assert json.loads(place())["cluster"]["worker"][1] == "n10:12345"  # and this task runs on n2
