"""The tool that made the built-in data makes them again, to the bit."""

import lzma

import pytest

from tools.stand_ins.__main__ import FOLDER, contents

pytestmark = pytest.mark.drill


def test_the_tool_makes_every_file_that_the_library_has():
    made = dict(contents())
    stored = {path.stem: lzma.decompress(path.read_bytes()) for path in FOLDER.glob("*.xz")}
    assert made.keys() == stored.keys()
    assert [name for name, content in made.items() if content != stored[name]] == []
