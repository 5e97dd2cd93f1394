"""The tool that made the built-in data makes them again, to the bit, and notices a difference."""

import shutil

import pytest

from tools.stand_ins.__main__ import FOLDER, different

pytestmark = pytest.mark.drill


def test_the_tool_makes_every_file_that_the_library_has(tmp_path):
    folder = tmp_path / "built_in"
    shutil.copytree(FOLDER, folder)
    shutil.copy(folder / "digits-train.npy.xz", folder / "digits-test.npy.xz")
    assert different(folder) == ["digits-test.npy"]
