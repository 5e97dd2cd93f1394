"""What every explorer promises, in a notebook and in its table for pages."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from course_lib import CourseError
from course_lib.explorers.experiment import Experiment
from course_lib.i18n import languages, set_language
from course_lib.widgets.base import key, table_file
from course_lib.widgets.controls import Field, leads_to, with_value
from tests.explored import choose, options, press, shown, whole
from tools.book.explorers import widgets

ROOT = Path(__file__).resolve().parents[2]
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
EXPLORERS = {maker.__name__: maker for maker in widgets().values() if isinstance(maker, type)}
# What a page may ask a browser to load: most of it is drawings, of which an option more makes many.
MOST_VIEWS, MOST_BYTES = 600, 650_000
each_explorer = pytest.mark.parametrize("name", EXPLORERS)


def states_on_a_page(explorer) -> dict[str, dict]:
    """Returns every state that clicks on a page lead to, by its key."""
    states, waiting = {}, [explorer.page_first()]
    while waiting:
        state = waiting.pop()
        if key(state) not in states:
            states[key(state)] = state
            waiting += explorer.next_states(state)
        assert states[key(state)] == state
    return states


@functools.cache
def table_of(name: str) -> dict:
    """Returns the first table of an explorer for English pages, which takes seconds to make."""
    return next(EXPLORERS[name]().page_tables())[1]


@each_explorer
def test_the_table_of_a_page_has_what_python_shows_for_every_choice(name):
    explorer = EXPLORERS[name]()
    table, states, first = table_of(name), states_on_a_page(explorer), explorer.page_first()
    own = [code for code, state in states.items() if explorer.page_part(state) == explorer.page_part(first)]
    assert sorted(table["keys"]) == sorted(own)
    for place, code in list(enumerate(table["keys"]))[:: max(len(own) // 60, 1)]:
        view = whole(table, table["views"][place])
        assert view == explorer.page_tree(states[code])
        # The module finds the next view by the place of the input among all inputs.
        for (path, value, _changes), after in zip(options(view), table["leads_to"][place], strict=True):
            reached = explorer.page_settled(with_value(states[code], tuple(path), value))
            if isinstance(after, int):
                assert table["keys"][after] == key(reached)
            else:
                file = table_file(explorer.name, "en", explorer.page_part(reached))
                assert table["files"][after[0]] == file != table["files"][0]
    assert len(table["keys"]) <= MOST_VIEWS
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < MOST_BYTES


@each_explorer
def test_every_option_on_a_page_leads_to_another_view_but_the_one_that_is_chosen(name):
    table = table_of(name)
    for place, view in enumerate(table["views"]):
        changing = [changes for _path, _value, changes in options(whole(table, view))]
        assert any(changing)
        assert [after != place for after in table["leads_to"][place]] == changing


@each_explorer
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_no_choice_breaks_it_and_what_it_shows_is_plain_json(name, data):
    explorer = EXPLORERS[name]()
    for _choice in range(5):
        groups = explorer.controls(explorer.state)
        control = data.draw(st.sampled_from([control for group in groups for control in group.controls]))
        values = st.sampled_from(leads_to(control) or [None])
        if isinstance(control, Field):
            numbers = st.integers(1, 4) | st.sampled_from([None, -1, 0, 2.5, 17, 9999, 10**30])
            values = st.text() if control.kind == "text" else numbers
        choose(explorer, *control.path, data.draw(values))
        assert json.loads(json.dumps(explorer.view)) == explorer.view


@each_explorer
def test_a_page_gets_a_still_picture_that_leads_into_the_table(name):
    explorer = EXPLORERS[name]()
    text = explorer.to_html()
    (file, first) = re.match('<course-explorer data-table="(.*?)" data-first="(.*?)">', text).groups()
    assert file == table_file(explorer.name, "en", explorer.page_part(explorer.page_first()))
    assert first in table_of(name)["keys"]
    assert not re.search("<(button|input|script)", text)
    assert len(text.encode()) < 40_000


@each_explorer
def test_it_speaks_every_language(name):
    english = EXPLORERS[name]()
    for language in languages()[1:]:
        set_language(language)
        explorer = EXPLORERS[name]()
        html = explorer.to_html()
        questions = {group.heading for group in explorer.controls(explorer.state)}
        set_language("en")
        alike = questions & {group.heading for group in english.controls(english.state)}
        assert alike <= {"Keras", "Transformer"}
        assert explorer.view[1]["aria-label"] != english.title
        assert f'.{language}.json"' in html
        assert explorer.view[1]["lang"] == language


@each_explorer
def test_jupyter_gets_widget_element_and_a_text_that_follows_from_the_arguments(name, monkeypatch):
    explorer = EXPLORERS[name]()
    data, _metadata = DisplayFormatter().format(explorer)
    assert set(data) == {"text/plain", "text/html", WIDGET_MIME}
    assert data["text/html"] == explorer.to_html() == EXPLORERS[name]().to_html()
    assert data["text/plain"] == repr(explorer)
    assert repr(explorer).startswith(explorer.title)
    monkeypatch.setitem(sys.modules, "google.colab", object())
    assert set(explorer._repr_mimebundle_()[0]) == {"text/plain", WIDGET_MIME}


@each_explorer
def test_what_changes_nothing_is_answered_all_the_same(name, monkeypatch):
    explorer, answers = EXPLORERS[name](), []
    monkeypatch.setattr(explorer, "send", answers.append)
    name, value = next(iter(explorer.state.items()))
    choose(explorer, name, value)
    assert answers == [{"kind": "answered"}]


each_experiment = pytest.mark.parametrize(
    "name", [name for name, maker in EXPLORERS.items() if issubclass(maker, Experiment)]
)


def experiment(name, observe=None):
    """Returns an explorer with a button, in which something is chosen."""
    explorer = EXPLORERS[name](observe)
    if "batch_size" in explorer.state:
        choose(explorer, "batch_size", 64)
    return explorer


@each_experiment
def test_a_press_says_that_it_works_then_what_failed_and_the_next_one_tries_again(name):
    said, failures = [], [RuntimeError("odd [Op:Add]"), CourseError("No device.", allowed="a device")]

    def fails(*_choice):
        said.extend(shown(explorer, "verdict"))
        raise failures.pop()

    explorer = experiment(name, fails)
    press(explorer)
    assert shown(explorer, "verdict")[0].startswith("✗ No device.\n  Allowed: a device")
    press(explorer)
    assert shown(explorer, "verdict") == ["✗ RuntimeError: odd"]
    assert said == [explorer.waiting] * 2


@each_experiment
def test_what_has_run_is_not_run_again_but_times_are_measured_anew(name, monkeypatch):
    calls = []
    explorer = experiment(name, list)
    monkeypatch.setattr(explorer, "result", lambda state: calls.append(state) or "a result")
    monkeypatch.setattr(explorer, "verdict", lambda result: f"✓ {result}")
    monkeypatch.setattr(explorer, "above", lambda state, result: [])
    for _press in range(2):
        press(explorer)
        assert shown(explorer, "verdict") == ["✓ a result"]
    assert len(calls) == (2 if explorer.repeats else 1)


@each_experiment
def test_without_a_function_the_button_says_what_it_needs(name):
    explorer = experiment(name)
    (why,) = shown(explorer, "why")
    assert why.startswith(f"The button needs a function: {name}(")


def test_no_explorer_needs_tensorflow():
    code = (
        "import sys; from tools.book.explorers import widgets;"
        "[make()._repr_mimebundle_() for name, make in widgets().items() if name != 'runs'];"  # curves
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'tensorflow', 'matplotlib'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
