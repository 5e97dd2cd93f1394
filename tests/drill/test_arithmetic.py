"""Training agrees with its oracles in other arithmetic too: oneDNN on an old processor and on a newer one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The tests that hold computed floating-point numbers against others.
COMPARING_FLOATS = ("lesson_*", "lab", "plans")


@pytest.mark.drill_all
@pytest.mark.parametrize("processor", ["SSE41", "AVX2"])
def test_training_agrees_with_its_oracles_in_other_arithmetic(processor):
    found = [sorted(ROOT.glob(f"tests/tf/test_{name}.py")) for name in COMPARING_FLOATS]
    assert all(found)
    files = [str(path) for paths in found for path in paths]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    environment = {"ONEDNN_MAX_CPU_ISA": processor, "TF_ENABLE_ONEDNN_OPTS": "1"}
    environment["COURSE_TESTS_OPTIMIZE_GRAPHS"] = "1"  # all of them, as they are for readers
    done = subprocess.run(
        [*command, "-m", "not drill and not drill_all"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout  # and none skipped
