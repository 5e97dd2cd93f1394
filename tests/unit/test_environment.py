"""The environments agree: conda's with pyproject.toml, and none holds an address."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.course import COURSE

ROOT = Path(__file__).parents[2]


def requirement(line: str) -> tuple[str, str]:
    name, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[\w+\])?(.*)", line).groups()
    return name.lower().replace("_", "-"), bounds


def test_conda_asks_for_the_requirements_and_the_python_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = {requirement(line) for line in project["dependencies"] + extras["lab"] + extras["test"]}
    conda = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    (listed,) = [entry["pip"] for entry in conda if isinstance(entry, dict)]
    assert {requirement(line) for line in listed if line != "-e ."} == wanted
    assert "-e ." in listed
    assert f"python{project['requires-python']}" in conda


def test_no_registry_address_is_written_down():
    for name in ("requirements.lock", "tools/environments/uv.txt", "environment.yml", "pyproject.toml"):
        assert not re.findall(r"index-url|https?://(?!github\.com)", (ROOT / name).read_text("utf-8")), name


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, "notebooks/en"),
        ({"LANG": "ja_JP.UTF-8"}, "notebooks/ja"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "en_US:en"}, "notebooks/en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "ja_JP.UTF-8"}, "notebooks/ja"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "ja"}, "notebooks/ja"),
        ({"LANG": "zz_ZZ.UTF-8"}, "notebooks/en"),
    ],
)
def test_make_lab_opens_the_first_lesson_in_the_readers_language(environment, folder):
    command = ["make", "--dry-run", "--old-file=.venv/ready", "lab"]
    environment = environment | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    address = f"/lab/tree/{folder}/{COURSE.places[0].notebook}"  # also in the address that Jupyter prints
    assert done.stdout.split()[-1] == f"--LabApp.default_url={address}"
