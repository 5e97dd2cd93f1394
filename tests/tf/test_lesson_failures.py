"""What `failures` shows is what its readers take away: its program, and what `deploy/` starts."""

import difflib
import re
import runpy
import textwrap

from tests.course import COURSE

DEPLOY = COURSE.root / "deploy" / "slurm"
PLAIN = COURSE.root / "notebooks" / "plain"
WORKER, SCRIPT = (PLAIN / "worker.py").read_text(), (DEPLOY / "worker.sbatch").read_text()
CELLS = {cell.cell_id: cell.source for cell in COURSE.lesson("failures").cells}


def written(name):
    """Returns what a cell writes with %%writefile."""
    return CELLS[name].partition("\n")[2] + "\n"


def test_the_plain_program_is_what_the_lesson_writes_and_until_it_saves_that_of_workers():
    assert written("worker") == WORKER
    known, whole = ((PLAIN / name).read_text().splitlines()[4:] for name in ("workers.py", "worker.py"))
    known.remove("step = tf.Variable(0, dtype=tf.int64)")  # which stands in the block now
    begin, end = whole.index("# From here to `while`, all is new"), whole.index("while step < args.steps:")
    changes = [(line[0], line[2:]) for line in difflib.ndiff(known, whole[:begin] + whole[end:])]
    (removed,) = [line for kind, line in changes if kind == "-"]
    assert removed == "faulthandler.dump_traceback_later(300, exit=True)"
    added = [line for kind, line in changes if kind == "+"]
    added.remove("        faulthandler.dump_traceback_later(args.step_timeout, exit=True)")  # marked above
    assert added == [line for line in whole if "# new" in line]


def test_what_the_text_quotes_stands_in_the_programs():
    quoted = re.findall(r"^```(?:python|sh)\n(.*?)^```", "\n".join(CELLS.values()), re.M | re.S)
    assert len(quoted) > 10
    without_remarks = re.sub("  # .*", "", WORKER)
    for block in quoted:
        indented = [textwrap.indent(block, spaces * " ") for spaces in (0, 4, 8)]
        assert any(each in WORKER + without_remarks + SCRIPT for each in indented)


def test_the_batch_script_and_its_program_are_those_of_deploy(tmp_path):
    exec(CELLS["batch-script"], {"programs": tmp_path})
    assert (tmp_path / "worker.sbatch").read_text() == SCRIPT
    assert written("tf-config") == (DEPLOY / "tf_config.py").read_text()


def test_tensorflow_sorts_ten_machines_as_texts(monkeypatch):
    for name, value in (
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "10"),
        ("SLURM_STEP_NODELIST", "n[1-10]"),
        ("SLURM_STEP_TASKS_PER_NODE", "1(x10)"),
        ("SLURMD_NODENAME", "n2"),
    ):
        monkeypatch.setenv(name, value)
    config = runpy.run_path(str(DEPLOY / "tf_config.py"))["slurm_config"]
    assert config()["cluster"]["worker"][1] == "n10:12345"  # and this task runs on n2
