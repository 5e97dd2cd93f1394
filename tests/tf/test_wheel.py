"""The wheel holds the whole library, as Colab installs it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.kernels import ROOT

PACKAGES = ("course_lib", "lessons")
# What pip asks of the project; an environment that uv made has no pip.
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def names_in(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for name in PACKAGES
        for path in (folder / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".md", ".yml")
    }


def test_every_file_of_the_library_is_in_the_wheel(tmp_path):
    source = tmp_path / "source"  # what the wheel is made of, copied, since to build it leaves files behind
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], check=True, timeout=120, cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:  # to unpack a wheel of Python files is to install it
        archive.extractall(tmp_path / "site")
    assert names_in(tmp_path / "site") == names_in(ROOT)
