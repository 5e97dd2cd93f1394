"""The book's column of code: 72 characters, also beside both sidebars, and no button over them.

That no line of a lesson is longer, `tools.checks` says.
"""

from __future__ import annotations

import pytest

WINDOWS = (1100, 1200)  # the narrowest that is promised, and the narrowest with both sidebars
# Cells and solutions. The setup is the build's, and may install from a long address.
WRITTEN = ".cell:not(.tag_setup) > .cell_input pre, details .highlight-python pre"
CODE = f"[...document.querySelectorAll('{WRITTEN}')]"
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
WRITE = f"(text) => {CODE}.forEach((code) => {{ code.textContent = text; }})"
CUT = f"""{CODE}.filter((code) => code.scrollWidth > code.clientWidth)
  .map((code) => code.textContent.slice(0, 80))"""
# For each button whether it ends above the first line of its code.
ABOVE = """[...document.querySelectorAll(".copy-button")].map((button) => {
  const text = document.createRange();
  text.selectNodeContents(button.parentNode.querySelector("pre"));
  return button.getBoundingClientRect().bottom <= text.getClientRects()[0].top;
})"""


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_72_characters_fit_in_a_cell_and_in_a_solution_and_no_button_covers_them(
    page, small_address, language, width
):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{small_address}{language}/fixture.html", wait_until="networkidle")
    page.evaluate(OPEN)
    assert page.locator(".bd-sidebar-secondary").is_visible() == (width == 1200)
    for length, fits in ((72, True), (120, False)):
        page.evaluate(WRITE, "x" * length)
        assert len(page.evaluate(CUT)) == (0 if fits else page.evaluate(f"{CODE}.length"))
        assert set(page.evaluate(ABOVE)) == {True}
