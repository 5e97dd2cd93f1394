"""The environments agree: conda's with pyproject.toml, the lock with both, and none holds an address."""

import itertools
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.course import COURSE

ROOT = Path(__file__).parents[2]
SIX_PACKAGES = {"tensorflow", "tensorflow-datasets", "jupyterlab", "ipywidgets", "matplotlib", "nbval"}


def requirement(line: str) -> tuple[str, str]:
    name, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[\w+\])?(.*)", line).groups()
    return name.lower().replace("_", "-"), bounds


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def conda() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def pip_requirements(conda: dict) -> list[str]:
    return next(entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict))


def test_conda_asks_for_the_requirements_and_the_python_of_pyproject(project, conda):
    extras = project["optional-dependencies"]
    wanted = {requirement(line) for line in project["dependencies"] + extras["lab"] + extras["test"]}
    listed = {requirement(line) for line in pip_requirements(conda) if not line.startswith("-e")}
    assert listed == wanted
    assert "-e ." in pip_requirements(conda)
    assert f"python{project['requires-python']}" in conda["dependencies"]


def test_conda_lists_the_six_packages(conda):
    assert {requirement(line)[0] for line in pip_requirements(conda) if line != "-e ."} >= SIX_PACKAGES


def test_the_lock_pins_every_requirement_with_a_hash(project):
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([A-Za-z0-9_.-]+)==\S+.*\\\n    --hash=sha256:", lock, re.M))
    required = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    assert {requirement(line)[0] for line in required} <= {name.lower().replace("_", "-") for name in pinned}


@pytest.mark.parametrize(
    "name", ["requirements.lock", "tools/environments/uv.txt", "environment.yml", "pyproject.toml"]
)
def test_no_registry_address_is_written_down(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.findall(r"index-url|https?://(?!github\.com)", text)


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
