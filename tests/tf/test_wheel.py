"""The wheel holds the whole library: installed elsewhere, every module of it can be imported from there."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from course_lib import i18n
from tests.kernels import ROOT
from tests.unit.test_imports import tensorflows_side

PACKAGES = ("course_lib", "lessons")
# What pip asks of the project; an environment that uv made has no pip.
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
IMPORT_ALL = """
import importlib, json, sys, course_lib
names = json.loads(sys.argv[1])
files = {importlib.import_module(name).__file__ for name in names}
from course_lib import i18n
print(json.dumps([sorted(files), "tensorflow" in sys.modules, i18n.languages()]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Returns a folder with nothing but the installed wheel, made of a copy of what the wheel is made of."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], check=True, timeout=120, cwd=source)
    (wheel,) = folder.glob("*.whl")
    shutil.rmtree(source)
    with zipfile.ZipFile(wheel) as archive:  # to unpack a wheel of Python files is to install it
        archive.extractall(folder / "site")
    return folder / "site"


def names_in(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for name in PACKAGES
        for path in (folder / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".md", ".yml")
    )


def test_every_file_of_the_library_is_in_the_wheel(installed):
    names = names_in(installed)
    assert names == names_in(ROOT)
    assert {Path(name).suffix for name in names} >= {".py", ".po", ".json", ".js", ".typed"}


@pytest.mark.parametrize("tensorflow", [False, pytest.param(True, marks=pytest.mark.drill_all)])
def test_every_module_can_be_imported_from_there(installed, tensorflow, tmp_path):
    modules = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): str(installed / name)
        for name in names_in(ROOT)
        if name.endswith(".py") and not name.endswith("/lesson.py")
    }
    late = tuple(tensorflows_side())
    wanted = [name for name in modules if tensorflow or not name.startswith(late)]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(wanted)],
        env={**os.environ, "PYTHONPATH": str(installed), "TF_CPP_MIN_LOG_LEVEL": "3"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    files, tensorflow_came, languages = json.loads(done.stdout)
    assert files == sorted(modules[name] for name in wanted)
    assert tensorflow_came is tensorflow
    assert languages == list(i18n.languages())
