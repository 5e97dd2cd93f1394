"""Cutting lessons into texts and putting translations in: Markdown, comments, exercises."""

import ast

import pytest

from tools.lesson import comments, exercises, markdown_blocks
from tools.lesson.sources import LessonError

MARKDOWN = """\
# Title `x`

Para one
second line $a_b$ more.

- item one
  continued
- `code only`
  1. nested

  para in item

| A word | `code` |
| --- | --- |
| 8 | $x$ |

> quote **Note.** here
> goes on
> - quoted item

<details>
<summary>Open me</summary>

```python
x = 1  # verbatim
```

</details>

$$
a = b
$$

<img src="x.svg" alt="A mesh">

[ref]: https://example.org
"""


def texts(markdown):
    return [block.text for block in markdown_blocks.blocks(markdown)]


def test_every_kind_of_prose_is_a_block_and_nothing_else():
    assert texts(MARKDOWN) == [
        "Title `x`",
        "Para one second line $a_b$ more.",
        "item one continued",
        "nested",
        "para in item",
        "| A word | `code` |",
        "quote **Note.** here goes on",
        "quoted item",
        "<summary>Open me</summary>",
        '<img src="x.svg" alt="A mesh">',
    ]


def test_untranslated_markdown_stays_but_for_line_breaks_inside_a_text():
    joined = MARKDOWN.replace("Para one\nsecond", "Para one second")
    joined = joined.replace("item one\n  continued", "item one continued").replace(
        "here\n> goes", "here goes"
    )
    assert markdown_blocks.translated(MARKDOWN, lambda text: text) == joined


def test_translations_go_where_the_texts_were():
    result = markdown_blocks.translated(
        MARKDOWN, lambda text: text if text.startswith(("|", "<")) else text.upper()
    )
    lines = result.split("\n")
    assert lines[0] == "# TITLE `X`"
    assert lines[2] == "PARA ONE SECOND LINE $A_B$ MORE."
    assert lines[4:6] == ["- ITEM ONE CONTINUED", "- `code only`"]
    assert "  1. NESTED" in lines
    assert "  PARA IN ITEM" in lines
    assert "> QUOTE **NOTE.** HERE GOES ON" in lines
    assert "> - QUOTED ITEM" in lines
    for verbatim in ("x = 1  # verbatim", "a = b", "| --- | --- |", "| 8 | $x$ |", "</details>"):
        assert verbatim in lines


JOINED = {
    "A grid.\nIt has\nnames.": "A grid. It has names.",
    "格子です。\n次元の\n`x`と\n`y`です。": "格子です。次元の`x`と`y`です。",
    "これはTensorFlow\n2.21です。": "これはTensorFlow 2.21です。",
    "- 格子です。\n  はい。\n\n> 注意です。\n> はい。": "- 格子です。はい。\n\n> 注意です。はい。",
    "| 軸 |\n| --- |\n| 行 |": "| 軸 |\n| --- |\n| 行 |",
    "```python\n# 格子\n# 次元\n```": "```python\n# 格子\n# 次元\n```",
}


@pytest.mark.parametrize("markdown", JOINED)
def test_the_lines_of_a_text_are_joined_as_its_language_does(markdown):
    assert markdown_blocks.joined(markdown) == JOINED[markdown]


@pytest.mark.parametrize("text", ["8", "`pack`", "$x_i$", "https://example.org", "<br>", "---", "1200 × 48"])
def test_what_holds_no_words_is_no_prose(text):
    assert not markdown_blocks.is_prose(text)


CODE = """\
# One sentence.
x = 1  # noqa: E501
y = "# no comment"  # the end
if x:
    # inside
    pass
# 8
"""


def test_comments_are_found():
    found = [comment.text for comment in comments.comments(CODE)]
    assert found == ["One sentence.", "the end", "inside"]


def test_comments_are_translated_and_code_is_not():
    result = comments.translated(CODE, str.upper)
    assert (
        result
        == """\
# ONE SENTENCE.
x = 1  # noqa: E501
y = "# no comment"  # THE END
if x:
    # INSIDE
    pass
# 8
"""
    )
    assert comments.without_comments(result) == comments.without_comments(CODE)
    assert comments.without_comments(CODE) != comments.without_comments(CODE.replace("x = 1", "x = 2"))


STUBS = {
    "# solution begin\nx = f(\n    1,\n)\n# solution end\nprint(2)": "x = ...\nprint(2)",
    "# solution begin\nmesh.size, at[0] = 1, 2\n# solution end": "mesh.size = ...\nat[0] = ...",
    "def f(a):\n    # solution begin\n    a()\n    return 1\n    # solution end": "def f(a):\n    return ...",
    "def f(a):\n    # solution begin\n    a.x()\n    a.y()\n    # solution end": "def f(a):\n    ...",
    "# solution begin\nx = 1\nfor i in x:\n    pass\ny = 2\n# solution end": "x = ...\n...\ny = ...",
    "# solution begin\ndef f():\n    pass\n# solution end": "f = ...",
    "class C:\n  # solution begin\n  def f(self):\n    return 1\n  # solution end": "class C:\n  f = ...",
    "# solution begin\nclass C:\n    def f(self):\n        return 1\n# solution end": "C = ...",
    "with a:\n    # solution begin\n    x.y = 1\n    # solution end": "with a:\n    x.y = ...",
}


@pytest.mark.parametrize("code", STUBS)
def test_stubs(code):
    assert exercises.stub(code) == STUBS[code]
    ast.parse(exercises.stub(code))


@pytest.mark.parametrize("code", STUBS)
def test_solutions_are_the_code_without_marks(code):
    solution = exercises.solution(code)
    assert "solution" not in solution
    assert ast.dump(ast.parse(solution)) == ast.dump(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "# solution begin\nx = 1",
        "x = 1\n# solution end",
        "# solution end\n# solution begin",
    ],
)
def test_exercises_without_a_whole_solution_are_refused(code):
    with pytest.raises(LessonError):
        exercises.stub(code)
