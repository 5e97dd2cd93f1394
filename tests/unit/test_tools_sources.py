"""What an author need not write: names and tags of cells, and where a line of prose ends."""

import pytest

from course_lib.syllabus import Place
from tools.checks import prose_rules
from tools.lesson.sources import read_lesson

SOURCE = """\
# %% [markdown]
# # 7. A title

# %%
LANGUAGE = "en"

# %% [markdown]
# ## A heading with a place
#
# Prose before code.

# %% sum
1 + 1

# %% [markdown]
# ## Two
#
# Two and two.

# %% predict-two
predict("names-two")

# %% reveal-two
reveal("names-two", 2 + 2)

# %% [markdown]
# It is four.

# %% predict-three
predict("names-three")

# %% reveal-three
reveal("names-three", 3)

# %% [markdown]
# It is three.

# %% [markdown]
# Four and four.

# %% predict-four
predict("names-four")

# %% reveal-four
reveal("names-four", 4)

# %% [markdown]
# ## What if?
#
# More prose.

# %% given [markdown]
# A text with a name of its own.

# %% exercise-rows tags=["error"]
# solution begin
rows = 4
# solution end

# %%
check("names-rows", rows)

# %% [markdown]
# ## Takeaways
#
# - One.
"""


@pytest.fixture
def lesson(tmp_path):
    path = tmp_path / "lesson.py"
    path.write_text(SOURCE, "utf-8")
    return read_lesson(Place("names", "small", "7", "", tmp_path))


def test_cells_have_the_names_and_parts_that_their_places_give_them(lesson):
    assert [(cell.cell_id, cell.tags) for cell in lesson.cells] == [
        ("opening", ("opening",)),
        ("setup", ("setup",)),
        ("sum-text", ()),
        ("sum", ()),
        ("two-given", ()),
        ("predict-two", ("predict",)),
        ("reveal-two", ("reveal",)),
        ("two-why", ()),
        ("predict-three", ("predict",)),
        ("reveal-three", ("reveal",)),
        ("three-why", ()),
        ("four-given", ()),
        ("predict-four", ("predict",)),
        ("reveal-four", ("reveal",)),
        ("what-if", ()),
        ("given", ()),
        ("exercise-rows", ("exercise", "error")),
        ("check-rows", ("check",)),
        ("takeaways", ("takeaways",)),
    ]


@pytest.mark.parametrize(
    "expected",
    [
        ["One.", "Two?", "Three!", "Four"],
        ["It takes 0.5 s with TensorFlow 2.21 on one device."],
        ["**1.** A matrix of (8, 8).", "Write it."],
        ["**Time:** 5 minutes.", "**You need to know:** lists."],
        ["Use a mesh, e.g. A by B.", "`pack` follows."],
        ["(An aside.)", "$n$ rows.", "[A link](https://example.org/a. B)."],
        ["See `a. B` and $x. Y$ only."],
        ['She said "Stop."', "Then it went on."],
        [],
    ],
)
def test_sentences(expected):
    assert prose_rules.sentences(" ".join(expected)) == expected
