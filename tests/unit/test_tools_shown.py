"""What folded outputs leave to read."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.checks import output_rules

FOLDED = {"tags": ["reveal"], "jupyter": {"outputs_hidden": True}}


def shown(**data):
    return new_output("display_data", {mime.replace("_", "/"): text for mime, text in data.items()})


def notebook(*outputs):
    """A notebook whose cells reveal these outputs."""
    return new_notebook(cells=[new_code_cell(outputs=list(each), metadata=FOLDED) for each in outputs])


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        ([], ""),
        ([shown(text_html="Measured\n<p>4</p>", text_plain="4")], "Measured"),
        ([shown(text_plain="4", text_html="\n\n<b>4</b>\n")], "<b>4</b>"),
        ([shown(text_plain="4"), shown(text_html="Measured")], "4"),
        ([shown(image_png="iVBO"), shown(text_plain="4")], ""),
        ([new_output("stream", text="\n4 rows\n5 columns")], "4 rows"),
        ([new_output("error", ename="E", evalue="4", traceback=["4 of", "8"])], "4 of"),
        ([new_output("error", ename="E", evalue="4")], "E: 4"),
    ],
)
def test_the_line_that_jupyterlab_leaves_of_folded_outputs(outputs, line):
    assert output_rules.line_left(new_code_cell(outputs=outputs)) == line


def test_the_same_line_everywhere_tells_nothing_and_neither_does_none():
    measured = [[shown(text_html=f"Measured\n{number}", text_plain=f"{number}")] for number in range(4)]
    waited = [shown(text_plain=""), *measured[0]]
    assert list(output_rules.folded_outputs(notebook(*measured, waited))) == []


@pytest.mark.parametrize(
    "telling",
    [
        shown(text_html="<p>Measured 4</p>"),
        shown(text_plain="4"),
        new_output("stream", text="4\n"),
    ],
)
def test_a_line_of_its_own_may_tell(telling):
    measured = shown(text_html="Measured\n<p>4</p>")
    (fault,) = output_rules.folded_outputs(notebook([measured], [telling, measured], [measured]))
    assert "do not all leave the same line" in fault
    assert "4" in fault


def test_outputs_that_are_not_folded_may_differ():
    differing = notebook([shown(text_plain="4")], [shown(text_plain="5")])
    for cell in differing.cells:
        cell.metadata.pop("jupyter")
    assert list(output_rules.folded_outputs(differing)) == []
