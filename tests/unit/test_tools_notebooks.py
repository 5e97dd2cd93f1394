"""Building notebooks, and each rule about lessons, notebooks and outputs failing on its breach."""

import dataclasses
import shutil
import tomllib
from pathlib import Path

import nbformat
import polib
import pytest

from course_lib.syllabus import Place
from tests.course import have_lessons
from tools.catalogues import __main__ as catalogues
from tools.catalogues import files
from tools.checks import __main__ as checks
from tools.checks import lesson_rules, output_rules
from tools.lesson import first_cell
from tools.lesson.build import build, built_cells, built_notebook
from tools.lesson.execute import is_executed
from tools.lesson.sources import Course, LessonError, read_lesson
from tools.lesson.stored_outputs import normalised

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "notebooks" / "fixtures"
LESSON, NOTEBOOK = "fixture", "00_fixture.ipynb"


@pytest.fixture
def course(tmp_path, monkeypatch):
    shutil.copytree(FIXTURES / "course", tmp_path, dirs_exist_ok=True)
    shutil.copy(ROOT / "lessons/locale/ja/style.yml", tmp_path / "lessons/locale/ja")
    have_lessons(monkeypatch, tmp_path / "lessons")
    return Course(tmp_path)


@pytest.fixture
def lesson(course):
    return course.lesson(LESSON)


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def source_path(course):
    return course.folder(LESSON) / "lesson.py"


def pretend_executed(course):
    """Gives every built notebook an output for each code cell, as an execution would."""
    for language in course.languages:
        path = course.notebook(language, LESSON)
        notebook = nbformat.read(path, 4)
        for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
            cell.execution_count = count
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="4\n")]
            if cell.id == "picture":
                cell.outputs = [nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>"})]
        nbformat.write(normalised(notebook), path)


# Building


def test_two_languages_differ_only_where_they_may(course, lesson):
    english, japanese = (built_cells(course, lesson, language) for language in ("en", "ja"))
    assert [(cell.cell_id, cell.tags) for cell in english] == [(cell.cell_id, cell.tags) for cell in japanese]
    differing = {e.cell_id for e, j in zip(english, japanese, strict=True) if e.source != j.source}
    commented = {"imports", "reveal-axes", "exercise-half"}
    assert {cell.cell_id for cell in english if cell.kind == "code"} & differing == {"setup", *commented}
    notebooks = (built_notebook(course, lesson, language) for language in ("ja", "en"))
    assert list(checks.different_code(*notebooks)) == []


def test_prose_and_comments_are_in_the_readers_language(course, lesson):
    cells = {cell.cell_id: cell.source for cell in built_cells(course, lesson, "ja")}
    assert cells["opening"].startswith("# 0. 半分\n\n2台のデバイスは")
    assert "| 軸 | テンソルの方向 |\n| `8` | $8$ |" in cells["opening"]
    assert "# 行列は行のタプルで、それぞれの行もタプルです。\nmatrix =" in cells["reveal-axes"]
    assert "8 // 0  # this comment stays, it is in a fence" in cells["breaking"]
    assert cells["setup"].startswith('LANGUAGE = "ja"\n')


def test_sentences_are_merged_split_and_moved_within_a_cell(course, lesson):
    catalogue = files.read(course.catalogue("ja", LESSON), "ja")
    (opening,) = [entry for entry in catalogue if ("opening", "") in entry.occurrences]
    opening.msgstr = (
        "# 半分\n\n"
        "**時間**：5分。\n**前提知識**：割り算。\n\n"
        "| 用語 | 意味 |\n| --- | --- |\n| 軸 | テンソルの方向 |\n| `8` | $8$ |\n\n"
        "`n // 2`は$\\frac{n}{2}$の書き方です。\nどの軸でも、\n2台のデバイスはどれだけ持つでしょうか。\n\n"
        "軸ごとに違うでしょうか。\n"
        "すぐにわかります。"
    )
    files.write(catalogue, course.catalogue("ja", LESSON))
    assert faults(course) == ""
    assert built_cells(course, lesson, "ja")[0].source == (
        "# 0. 半分\n\n"
        "**時間**：5分。**前提知識**：割り算。\n\n"
        "| 用語 | 意味 |\n| --- | --- |\n| 軸 | テンソルの方向 |\n| `8` | $8$ |\n\n"
        "`n // 2`は$\\frac{n}{2}$の書き方です。どの軸でも、2台のデバイスはどれだけ持つでしょうか。\n\n"
        "軸ごとに違うでしょうか。すぐにわかります。"
    )


def test_exercises_become_stubs_with_a_folded_solution(course, lesson):
    cells = built_cells(course, lesson, "ja")
    ids = [cell.cell_id for cell in cells]
    at = ids.index("exercise-split")
    assert ids[at : at + 3] == ["exercise-split", "check-split", "exercise-split-solution"]
    assert cells[at].source == "def split(length, parts):\n    return ..."
    assert cells[at + 2].source == (
        "<details>\n<summary>解答</summary>\n\n```python\ndef split(length, parts):\n"
        "    size = length // parts\n    return [size] * parts\n```\n\n</details>"
    )


def test_a_fuzzy_translation_is_not_shown(course, lesson):
    edit(
        course.catalogue("ja", LESSON),
        "#: opening\n",
        "#: opening\n#, fuzzy\n",
    )
    assert built_cells(course, lesson, "ja")[0].source.startswith("# 0. Halves")


def test_building_twice_changes_no_byte_and_keeps_outputs(course):
    assert dict(build(course)) == {f"notebooks/{code}/{NOTEBOOK}": False for code in ("en", "ja")}
    pretend_executed(course)
    before = [course.notebook(code, LESSON).read_bytes() for code in ("en", "ja")]
    assert all(dict(build(course)).values())
    assert [course.notebook(code, LESSON).read_bytes() for code in ("en", "ja")] == before


def test_a_lesson_before_it_renames_a_notebook_which_keeps_its_outputs(course):
    (course.root / "README.md").write_text("<!-- lessons -->\n<!-- end of lessons -->\n", "utf-8")
    list(build(course))
    pretend_executed(course)
    edit(course.root / "lessons" / "order.toml", "fixture =", 'first = "First."\nfixture =')
    first = course.root / "lessons" / "small" / "first" / "lesson.py"
    first.parent.mkdir()
    (first.parent / "__init__.py").touch()
    first.write_text(source_path(course).read_text("utf-8").replace('"fixture-', '"first-'), "utf-8")
    built = dict(build(Course(course.root), ("first",)))  # all are written, since numbers changed
    assert (built["notebooks/en/00_first.ipynb"], built["notebooks/en/01_fixture.ipynb"]) == (False, True)
    names = ["00_first.ipynb", "01_fixture.ipynb"]
    assert sorted(path.name for path in (course.root / "notebooks" / "en").iterdir()) == names
    assert nbformat.read(course.notebook("ja", LESSON), 4).cells[0].source.startswith("# 1. 半分\n")
    rows = "| [0. Halves](notebooks/en/00_first.ipynb) | First. | 5 |\n| [1. Halves]"
    assert rows in (course.root / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "A matrix is",
            "As {lesson:gone} says, a matrix is",
            r"cell '\S+': \{lesson:gone\}: there is no lesson",
        ),
        ("A matrix is", "As {lesson:a-run} says, a matrix is", r"\{lesson:a-run\} is no reference"),
        (
            "How many of 8",
            "After {lesson:fixture}, how many of 8",
            "cell 'predict-eight': a card refers to no",
        ),
    ],
)
def test_what_is_no_good_reference_to_a_lesson_is_told_with_its_cell(course, old, new, fault):
    edit(source_path(course), old, new)
    with pytest.raises(LessonError, match=fault):
        list(build(course))


def test_a_wrong_topic_in_a_translation_is_a_fault_beside_others(course):
    edit(
        course.catalogue("ja", LESSON), "2番目の軸は分割しません。", "2番目の軸は{lesson:gone}で分割します。"
    )
    edit(course.catalogue("ja", LESSON), "8の半分は4です。", "8の半分は 4です。")
    assert "small/fixture/ja.po: {lesson:gone}: there is no lesson 'gone'" in faults(course)
    assert "space between Latin and Japanese" in faults(course)


def test_an_order_that_names_a_topic_twice_or_a_folder_that_is_no_package_is_refused(course):
    (course.folder(LESSON) / "__init__.py").unlink()
    with pytest.raises(LessonError, match="has no __init__"):
        list(build(course))
    with (course.root / "lessons" / "order.toml").open("a") as order:
        order.write('[parts.more]\ntitle = "More"\nlessons = {fixture = "Again."}\n')
    with pytest.raises(LessonError, match="the topic 'fixture' is no identifier, or it occurs twice"):
        list(build(course))


def test_changed_prose_keeps_outputs_and_changed_code_loses_them(course):
    list(build(course))
    pretend_executed(course)
    edit(source_path(course), "# # Halves", "# # Halves of it")
    assert dict(build(Course(course.root)))[f"notebooks/en/{NOTEBOOK}"]
    edit(source_path(course), "matrix = ((1, 2", "matrix = ((7, 2")
    assert not any(dict(build(Course(course.root))).values())
    assert not is_executed(nbformat.read(course.notebook("en", LESSON), 4))


# The first cell


def test_without_an_address_nothing_points_to_colab(course, lesson):
    text = nbformat.writes(built_notebook(course, lesson, "en"))
    assert "colab" not in text.lower()


@pytest.fixture
def public(course):
    return dataclasses.replace(course, repository="https://github.com/someone/course", branch="main")


def test_with_an_address_colab_gets_its_install_and_its_link(public, lesson):
    cells = built_cells(public, lesson, "ja")
    colab = "https://colab.research.google.com/github/someone/course/blob/main/notebooks/ja/00_fixture.ipynb"
    assert cells[0].source.endswith(f"\n\n[このレッスンをColabで開く]({colab})")
    install = '%pip install -q --no-deps "course-lib @ git+https://github.com/someone/course@main"'
    assert install in cells[1].source
    assert "tensorflow" not in cells[1].source


def test_colab_installs_what_the_library_needs_and_colab_lacks():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    brought = (
        "importlib_resources",
        "ipykernel",
        "ipython",
        "ipywidgets",
        "matplotlib>",
        "numpy",
        "pillow",
        "platformdirs",  # Jupyter itself needs it
        "tensorflow>",
        "tensorflow-datasets",
        "tf-keras",  # tensorflow-hub, which Colab brings, needs it
        "traitlets",
    )
    assert sorted(first_cell.COLAB_LACKS) == sorted(need for need in wanted if not need.startswith(brought))


def test_another_first_cell_is_refused(course):
    edit(source_path(course), "devices=8", "devices=4")
    with pytest.raises(LessonError, match="setup"):
        built_cells(course, read_lesson(course.place(LESSON)), "en")


# Catalogues


def library_code(course, text):
    (course.root / "course_lib").mkdir()
    (course.root / "course_lib" / "a.py").write_text(text, "utf-8")


def test_the_fixtures_catalogues_are_whole_and_extraction_is_stable(course):
    paths = sorted(course.root.rglob("*.po"))
    before = [path.read_bytes() for path in paths]
    assert list(catalogues.check(course)) == []
    list(catalogues.extract(course))
    list(catalogues.extract(course))
    assert [path.read_bytes() for path in paths] == before


def faults(course):
    return "\n".join(catalogues.check(Course(course.root)))


def test_a_changed_english_text_is_stale_and_then_fuzzy(course):
    old, new = "A matrix is a tuple of tuples.", "The matrix is a tuple of tuples."
    edit(source_path(course), old, new)
    assert f"stale, this text is not in it (run extract): {new!r}" in faults(course)
    assert f"stale, this text is gone (run extract): {old!r}" in faults(course)
    list(catalogues.extract(Course(course.root)))
    assert faults(course).count("\n") == 0
    assert f"fuzzy, the English changed: {new!r}" in faults(course)
    entry = polib.pofile(str(course.catalogue("ja", LESSON))).find(new)
    assert entry.previous_msgid == old
    assert entry.msgstr == "行列はタプルのタプルです。"


OTHER_WORDS = {
    "at its place": ("# Each device got as many rows as the other.", "# Zebras and quays."),
    "elsewhere": (
        "# %% breaking [markdown]\n# Zero devices cannot share",
        "# %% broken [markdown]\n# No devices can share",
    ),
}


@pytest.mark.parametrize(("old", "new"), OTHER_WORDS.values(), ids=OTHER_WORDS)
def test_a_changed_cell_keeps_its_translation_for_the_translator(course, old, new):
    before = {entry.msgid: entry.msgstr for entry in files.read(course.catalogue("ja", LESSON), "ja")}
    edit(source_path(course), old, new)
    list(catalogues.extract(Course(course.root)))
    (entry,) = files.read(course.catalogue("ja", LESSON), "ja").fuzzy_entries()
    assert before[entry.previous_msgid] == entry.msgstr
    assert faults(course).startswith("lessons/small/fixture/ja.po: fuzzy, the English changed: ")


def test_changed_line_breaks_change_nothing(course):
    edit(
        source_path(course),
        "# How much does each of two devices hold?",
        "# How much does each of\n# two devices hold?",
    )
    assert faults(course) == ""


def test_a_new_text_is_missing_and_a_removed_one_leaves(course):
    edit(
        source_path(course),
        "# sliders and labels",
        "# zebras, quays",
    )
    list(catalogues.extract(Course(course.root)))
    assert "missing: 'zebras, quays'" in faults(course)
    assert "sliders" not in course.catalogue("ja", LESSON).read_text("utf-8")


def test_moved_texts_make_a_catalogue_stale(course):
    edit(source_path(course), "# %% predict-eight", "# %% predict-eights")
    assert "order, places, flags or line breaks changed" in faults(course)


def test_what_another_tool_wrote_is_stale_until_it_is_extracted(course):
    path = course.catalogue("ja", LESSON)
    extracted = path.read_bytes()
    path.write_bytes(extracted + b"\n")
    assert "line breaks changed (run extract)" in faults(course)
    list(catalogues.extract(course))
    assert path.read_bytes() == extracted


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("$\\\\frac{n}{2}$を", "$\\\\frac{n}{3}$を", "formulas differ"),
        ("`n // 2`と", "`n / 2`と", "code spans differ"),
        ("(https://example.org/manual)によれば", "(https://example.com/manual)によれば", "links differ"),
        ("2番目の軸は分割しません。", "2番目の軸は分割しない。", "plain style"),
        (
            "デバイスが0台ではエラーになります。",
            "0台では拒否されます。",
            "'device' is デバイス in the glossary",
        ),
        ("デバイスが0台ではエラーになります。", "Zero devices are refused.", "left in English"),
        ("8の半分は4です。", "8の半分は 4です。", "space between Latin and Japanese"),
        (
            "それぞれどれだけ持つのでしょうか",
            "どれだけ持つでしょうか、持たないでしょうか",
            "でしょうか 2 times",
        ),
        ("## まとめ", "まとめ", "heading levels differ"),
        ('です。\\n"\n"2. デバイス', "です。デバイス", "list items differ"),
    ],
)
def test_translations_are_held_against_every_rule(course, old, new, fault):
    edit(course.catalogue("ja", LESSON), old, new)
    assert fault in faults(course)


def test_the_texts_of_code_are_extracted(course):
    library_code(course, '_("A mesh {name!r} "\n  "of 8.", name=1)\n')
    (course.folder(LESSON) / "b.py").write_text('_("In a lesson.")\n', "utf-8")
    list(catalogues.extract(course))
    path = course.root / "course_lib" / "locale" / "ja.po"
    entries = polib.pofile(str(path))
    assert [(entry.msgid, entry.flags) for entry in entries] == [
        ("A mesh {name!r} of 8.", ["python-brace-format"])
    ]
    assert polib.pofile(str(course.catalogue("ja", LESSON))).find("In a lesson.")
    entries[0].msgstr = "メッシュ「{nom}」です。"
    entries.save()
    assert "placeholders differ: ['name'] became ['nom']" in faults(course)


def test_a_text_that_moves_to_another_catalogue_keeps_its_translation(course):
    library_code(course, '_("A mesh.")\n')
    list(catalogues.extract(course))
    entries = polib.pofile(str(course.root / "course_lib" / "locale" / "ja.po"))
    entries[0].msgstr = "メッシュです。"
    entries.save()
    (course.root / "course_lib" / "a.py").rename(course.folder(LESSON) / "a.py")
    list(catalogues.extract(course))
    assert polib.pofile(str(course.catalogue("ja", LESSON))).find("A mesh.").msgstr == "メッシュです。"
    assert faults(course) == ""


def test_a_cell_that_moves_to_another_lesson_keeps_its_translation(course):
    text = source_path(course).read_text("utf-8")
    start, end = text.index("# %% breaking"), text.index("# %% error-zero")
    edit(course.root / "lessons" / "order.toml", "fixture =", 'other = "Halves."\nfixture =')
    course.folder("other").mkdir()
    (course.folder("other") / "__init__.py").touch()
    (course.folder("other") / "lesson.py").write_text(text[start:end], "utf-8")
    source_path(course).write_text(text[:start] + text[end:], "utf-8")
    list(catalogues.extract(Course(course.root)))
    (cell,) = files.read(course.catalogue("ja", "other"), "ja")
    assert cell.msgstr.startswith("0台のデバイスでは何も分けられません：\n\n- [マニュアル]")
    assert "Zero devices cannot" not in course.catalogue("ja", LESSON).read_text("utf-8")
    assert faults(course) == ""


def test_a_text_that_code_looks_up_is_translated_alike_in_all_catalogues(course):
    edit(course.root / "lessons" / "order.toml", "fixture =", 'other = "Other."\nfixture =')
    other = course.catalogue("ja", "other")
    other.parent.mkdir()
    (other.parent / "__init__.py").touch()
    (other.parent / "lesson.py").write_text(source_path(course).read_text("utf-8"), "utf-8")
    shutil.copy(course.catalogue("ja", LESSON), other)
    (other.parent / "explorer.py").write_text('_("Half.")\n', "utf-8")
    list(catalogues.extract(Course(course.root)))
    edit(course.shared_catalogue("ja"), 'msgid "Other."\nmsgstr ""', 'msgid "Other."\nmsgstr "別のもの。"')
    assert faults(course) == ""
    entries = files.read(other, "ja")
    entries.find("Half.").msgstr = "二分の一です。"
    entries.find("A matrix is a tuple of tuples.").msgstr = "行列とは、タプルのタプルです。"
    files.write(entries, other)
    assert "small/other/ja.po: 'Half.' is '半分です。' in lessons/small/fixture/ja.po" in faults(course)
    assert faults(course).count("\n") == 0


def test_texts_with_a_number_have_the_plural_forms_of_each_language(course):
    library_code(course, 'ngettext("{count} row", "{count} rows", n)\n')
    for language, num_forms in (("ja", 1), ("pl", 3)):
        (course.root / "lessons" / "locale" / language).mkdir(exist_ok=True)
        list(catalogues.extract(course))
        path = course.root / "course_lib" / "locale" / f"{language}.po"
        catalogue = polib.pofile(str(path))
        (entry,) = catalogue
        assert (entry.msgid, entry.msgid_plural) == ("{count} row", "{count} rows")
        assert list(entry.msgstr_plural) == list(range(num_forms))
        assert f"nplurals={num_forms};" in catalogue.metadata["Plural-Forms"]
        assert f"{language}.po: missing: '{{count}} row'" in faults(course)
        entry.msgstr_plural |= {0: "{num}行"}
        catalogue.save()
    assert "placeholders differ: ['count'] became ['num']: '{count} rows' -> '{num}行'" in faults(course)


@pytest.mark.parametrize("call", ['_(f"{x} rows")', 'ngettext("{count} row", many, x)', "_(x)", "_()"])
def test_a_text_that_no_translator_would_see_is_refused(course, call):
    library_code(course, f"x = 1\n{call}\n")
    with pytest.raises(LessonError, match=r"course_lib/a\.py, line 2"):
        list(catalogues.check(course))


# Rules about lessons


def test_the_fixture_breaks_no_rule(lesson):
    assert list(lesson_rules.lesson_faults(lesson)) == []


LONG = "\n".join(f"x{number} = {number}" for number in range(16))
HALF = "half = 6 // 2\n"
SPLIT = 'check("fixture-split", split)'
EIGHT = 'reveal("fixture-eight", 8 // 2)'

BREACHES = [
    ("# %% picture", "# %%", "cell 4 needs a name"),
    ("# %% picture", f"# %% {'p' * 51}", "is not a slug"),
    ("# %% picture", "# %% imports", "'imports' is used twice"),
    ("# %% picture", '# %% picture tags=["exercize"]', "unknown tag 'exercize'"),
    ("# # Halves", "# Halves", "starts with a title"),
    ("# %% [markdown]", "# %% start [markdown]", "tagged `opening`"),
    ("5 minutes", "a while", "how many minutes"),
    ("You need to know:", "You know:", "what one needs to know"),
    ("# %%\nLANGUAGE", "# %% language\nLANGUAGE", "tagged `setup`"),
    ("# %% imports", '# %% imports tags=["setup"]', "tagged `setup`"),
    ("import ipywidgets ", f"{LONG}\nimport ipywidgets ", "18 lines of code; 15 are allowed"),
    ("import ipywidgets ", "!ls\nimport ipywidgets ", "magic or a shell command"),
    (EIGHT, f"# NBVAL_IGNORE_OUTPUT\n{EIGHT}", "asks nbval to look away"),
    ('tags=["error"]', 'tags=["error", "raises-exception"]', "asks nbval to look away"),
    ("# ## Takeaways", "# ```{note}\n# x\n# ```", "directive"),
    ("hold?\n", "hold?  \n", "hard line break"),
    ("hold?\n# You", "hold? You", "more than one sentence on a line"),
    ("`n // 2`.\n", f"`n // 2`, {'n' * 60}.\n", "a line of more than 110 characters"),
    ("# %% predict-eight", "# %% some", "'reveal-eight' (`reveal`) does not follow"),
    ("# %% reveal-eight", "# %% eight", "'predict-eight' (`predict`) is not followed"),
    ("# %% reveal-eight", "# %% [markdown]\n# 4.\n\n# %% reveal-eight", "'predict-eight' (`predict`) is not"),
    (EIGHT, "8 // 2", """'reveal-eight' does not end in reveal("fixture-...", measured)"""),
    (EIGHT, f"{EIGHT}\nhalf = 4", """'reveal-eight' does not end in reveal("fixture-...", measured)"""),
    (
        EIGHT,
        'reveal("fixture-seven", 8 // 2)',
        "reveals 'fixture-seven', and the card before it asks for 'fixture-eight'",
    ),
    (EIGHT, f"print(4)\n{EIGHT}", "'reveal-eight' prints or displays"),
    (
        'score("fixture")',
        'score("mesh_and_layout")',
        """the last code cell, 'score', is not score("fixture")""",
    ),
    ('score("fixture")', 'score("fixture")\n\n# %% end\n8', "the last code cell, 'end', is not score"),
    (
        EIGHT,
        f"{HALF}{EIGHT}\n\n# %% later\nprint(half)",
        "'later' needs 'half', which only 'reveal-eight' makes",
    ),
    ("print(error)", "pass", "catches and prints no error"),
    ("# %%\ncheck", "# %% answer\ncheck", "'exercise-split' (`exercise`) is not followed"),
    (HALF, "third = 6 // 2\n", "looks at 'half', which the exercise does not leave open"),
    (SPLIT, "split", 'does not end in check("fixture-...", name)'),
    (SPLIT, 'check("fixture-split", 3)', "looks at 'no name'"),
    ("0.36, 0.30, 0.42", "0.36, low, 0.42", "about(0.36, low, 0.42) does not state its band as low < high"),
    ("0.36, 0.30, 0.42", "0.36, 0.42, low=0.30", "does not state its band"),
    ("0.36, 0.30, 0.42", "0.36", "does not state its band"),
    ("# ## Takeaways", "# ## What stays", "tagged `takeaways`"),
    ("# 2. Zero devices", "# 2. b\n# 3. c\n# 4. Zero devices", "there are 4 takeaways"),
]


@pytest.mark.parametrize(("old", "new", "fault"), BREACHES)
def test_every_rule_fails_on_its_breach(course, old, new, fault):
    edit(source_path(course), old, new)
    found = list(lesson_rules.lesson_faults(read_lesson(course.place(LESSON))))
    assert [line for line in found if fault in line], found


def wide(course, *wide_code):
    """Returns what is wrong with the width of code, where these lessons are listed as wide."""
    order = course.root / "lessons" / "order.toml"
    lines = [line for line in order.read_text("utf-8").splitlines() if not line.startswith("wide_code")]
    order.write_text("\n".join([f"wide_code = {list(wide_code)}", *lines]), "utf-8")
    found = checks.check(Course(course.root))
    return [fault for fault in found if "is not built" not in fault]


def test_a_line_of_more_than_72_columns_is_found_in_a_solution_and_in_a_translation(course):
    fits = f"half = 6 // 2  # {'=' * 55}\n"
    edit(source_path(course), HALF, fits)
    assert wide(course) == []
    edit(source_path(course), fits, fits.replace("# ", "# ="))
    line = "'half = 6 // 2  # =======================': a line of 73 columns; 72 are allowed"
    assert wide(course) == [f"{name}/00_fixture.ipynb: cell 'exercise-half', {line}" for name in ("en", "ja")]
    edit(source_path(course), fits.replace("# ", "# ="), HALF)
    catalogue = course.catalogue("ja", LESSON)
    edit(catalogue, "行列は行のタプルで、それぞれの行もタプルです。", "行" * 35)
    assert wide(course) == []
    edit(catalogue, "行" * 35, "行" * 36)
    (fault,) = wide(course)
    assert fault.startswith("ja/00_fixture.ipynb: cell 'reveal-axes'")
    assert "74 columns" in fault


def test_a_lesson_is_listed_as_wide_as_long_as_it_is(course):
    assert wide(course, LESSON, "gone") == [
        "fixture: all its lines of code fit: take it off `wide_code` in lessons/order.toml",
        "`wide_code` in lessons/order.toml names 'gone', which is no lesson",
    ]
    edit(source_path(course), HALF, f"half = 6 // 2  # {'=' * 56}\n")
    assert wide(course, LESSON) == []


def test_the_header_of_a_cell_says_its_name_and_tags_alone(tmp_path):
    (tmp_path / "lesson.py").write_text('# %% id="x"\nx = 1', "utf-8")
    fault = r"the cell 'x = 1' has \['id'\] in its header; write `# %% name`"
    with pytest.raises(LessonError, match=fault):
        read_lesson(Place("odd", "small", "0", "", tmp_path))


# Rules about notebooks


def notebook_faults(course):
    return "\n".join(checks.check(course))


def test_a_lesson_that_cannot_be_built_is_told_of_once_with_its_cell(course):
    edit(source_path(course), "    # solution end", "")
    (fault,) = checks.check(course)
    assert fault.startswith("fixture, cell 'exercise-split': an exercise needs")


def test_unbuilt_unexecuted_and_finished_notebooks(course):
    assert "en/00_fixture.ipynb is not built" in notebook_faults(course)
    list(build(course))
    assert "ja/00_fixture.ipynb: it is not executed" in notebook_faults(course)
    pretend_executed(course)
    assert notebook_faults(course) == ""


def change(course, language, edit_notebook):
    path = course.notebook(language, LESSON)
    notebook = nbformat.read(path, 4)
    edit_notebook(notebook)
    nbformat.write(notebook, path)


def cell(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


HAND_EDITS = {
    "source of prose": (lambda nb: cell(nb, "opening").update(source="# x"), "'opening': its source is not"),
    "source of code": (
        lambda nb: cell(nb, "imports").update(source="1"),
        "its code is not that of the English",
    ),
    "order": (lambda nb: nb.cells.reverse(), "its cells are not those of the source"),
    "id": (lambda nb: cell(nb, "imports").update(id="other"), "its cells are not those of the source"),
    "tags": (lambda nb: cell(nb, "predict-eight").metadata.clear(), "'predict-eight': its metadata is not"),
    "folding": (lambda nb: cell(nb, "reveal-eight").metadata.pop("jupyter"), "its metadata is not"),
    "kind": (lambda nb: cell(nb, "picture").update(cell_type="raw"), "its cell_type is not"),
    "language": (lambda nb: nb.metadata.update(language="zz"), "metadata 'language' is not"),
    "kernel": (lambda nb: nb.metadata.kernelspec.update(name="ir"), "metadata 'kernelspec' is not"),
    "outputs": (lambda nb: cell(nb, "reveal-eight").update(outputs=[]), "'reveal-eight' shows nothing"),
    "telling": (
        lambda nb: cell(nb, "reveal-axes").outputs[0].update(text="5\n"),
        "leave the same line to read",
    ),
    "counts": (lambda nb: cell(nb, "picture").update(execution_count=None), "it is not executed"),
    "timing": (
        lambda nb: cell(nb, "printed").outputs.append(nbformat.v4.new_output("stream", text="5\n")),
        "not as tools.lesson.execute stores them",
    ),
}


@pytest.mark.parametrize(("edit_notebook", "fault"), HAND_EDITS.values(), ids=HAND_EDITS)
def test_a_notebook_edited_by_hand_is_found(course, edit_notebook, fault):
    list(build(course))
    pretend_executed(course)
    change(course, "ja", edit_notebook)
    assert fault in notebook_faults(course)


def test_a_notebook_older_than_its_source_or_catalogue_is_found(course):
    list(build(course))
    pretend_executed(course)
    edit(course.catalogue("ja", LESSON), "8の半分は4です。", "8の半分は、4です。")
    assert notebook_faults(course).startswith("ja/00_fixture.ipynb: cell 'takeaways': its source")


def test_a_notebook_without_source_is_found(course):
    list(build(course))
    pretend_executed(course)
    shutil.copy(course.notebook("en", LESSON), course.root / "notebooks" / "en" / "09_gone.ipynb")
    assert notebook_faults(course) == "en/09_gone.ipynb has no source"


# Rules about outputs


@pytest.mark.parametrize(
    "text",
    [
        "0.6931",
        "loss 1.234e-05",
        "took 0.5 s",
        "3.2秒",
        "12:30:01",
        "2026年11月21日",
        "/home/reader/course",
        "C:\\Users",
        "<object at 0x7f0012ab34cd>",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "100.05",
        "12345e3",
    ],
)
def test_text_that_would_change_is_found(text):
    assert list(output_rules.text_faults(text))


@pytest.mark.parametrize(
    "text",
    [
        "0.69 0.125 -1.5 1e-05 1.5e-7 .25",
        "237,952 bytes; 230400; (1200, 48); [[0. 1.] [2. 3.]]; 19.0; 100.0",
        "TensorFlow 2.21.0 on Python 3.11.4",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        "CPU:0, device 7; batch 2 x model 4; ratio 1:8; rows 0:24, 12:24",
        "True below 1e-5; accuracy 0.84; epochs 3; lessons/steps; 8 shards",
        "tf.Tensor([1 2], shape=(2,), dtype=int32)",
        "<div>a</div><br/>",
    ],
)
def test_text_that_every_run_gives_is_accepted(text):
    assert list(output_rules.text_faults(text)) == []


def output_faults(*outputs):
    return "\n".join(output_rules.output_faults(nbformat.v4.new_code_cell(outputs=list(outputs))))


def test_errors_and_stderr_do_not_stay_in_notebooks():
    assert "raised ValueError" in output_faults(
        nbformat.v4.new_output("error", ename="ValueError", evalue="x")
    )
    assert "wrote to stderr" in output_faults(nbformat.v4.new_output("stream", name="stderr", text="W0000"))


def test_numbers_count_in_text_and_volatile_things_everywhere():
    def display(mime, text):
        return nbformat.v4.new_output("display_data", data={mime: text})

    assert "0.6931" in output_faults(display("text/plain", "0.6931"))
    assert output_faults(display("image/svg+xml", '<svg width="0.6931"/>')) == ""
    assert "address" in output_faults(display("text/html", "<b>0x7f0012ab34cd</b>"))
    assert output_faults(display("image/png", "0x7f0012ab34cd")) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("loss    ≈ 0.36, ≈ 0.30", ""),
        ("loss ≈ 0.3571", ""),  # its digits are not compared
        ("≈ 168, ≈ -1.5e-07", ""),
        ("loss ≈ 0.4249 in one run, ≈ 0.43 rounded from 0.425", ""),
        ("loss ≈ 0.51", "holds ≈ 0.51, which lies in no band"),
        ("loss ≈ 0.36 ✗（0.10～0.20の範囲外）", "holds '≈ 0.36 ✗', a number outside of its band"),
        ("loss ≈ nan ✗ (outside 0.30 to 0.42)", "holds '≈ nan ✗', a number outside of its band"),
        ("took ≈ 168 s", "holds a time: '168 s'"),
    ],
)
def test_a_number_that_varies_lies_in_a_band_of_its_source(text, fault):
    printed = nbformat.v4.new_output("stream", name="stdout", text=text)
    cell = nbformat.v4.new_code_cell(outputs=[printed])
    found = list(output_rules.output_faults(cell, [(0.30, 0.425), (100, 200), (-2e-7, -1e-7)]))
    assert [fault in each for each in found] == [True] * bool(fault), found


def test_the_bands_are_those_of_the_cell_or_where_it_states_none_of_the_lesson(course):
    def prints(cell_id, text):
        change(course, "en", lambda notebook: cell(notebook, cell_id).outputs[0].update(text=text))
        return notebook_faults(course)

    edit(source_path(course), 'print("rows", 2)', 'print("rows", about(2, 1, 3))')
    list(build(course))
    pretend_executed(course)
    assert prints("printed", "rows ≈ 2.0\n") == ""
    assert "'printed' holds ≈ 0.36, which lies in no band" in prints("printed", "rows ≈ 0.36\n")
    assert "'slider' holds" not in prints("slider", "≈ 0.36, ≈ 2.0\n")
    assert "'slider' holds ≈ 0.51, which lies in no band" in prints("slider", "≈ 0.51\n")
