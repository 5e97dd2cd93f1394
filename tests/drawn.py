"""What tests read out of pictures."""

from __future__ import annotations

from xml.etree import ElementTree

from course_lib.pictures.figures import Figure

SVG = "{http://www.w3.org/2000/svg}"


def tree(thing) -> ElementTree.Element:
    """Returns the SVG of a figure, or of what draws itself."""
    return ElementTree.fromstring((thing if isinstance(thing, Figure) else thing.picture()).svg)


def elements(thing, tag: str = "", class_: str = "") -> list[ElementTree.Element]:
    """Returns the elements of a picture of one kind, of one class, or both."""
    return [
        each
        for each in tree(thing).iter()
        if tag in ("", each.tag.removeprefix(SVG)) and class_ in ("", each.get("class"))
    ]


def words(element: ElementTree.Element) -> list[str]:
    """Returns the texts in a piece of a picture."""
    return [each.text for each in element.iter(f"{SVG}text")]
