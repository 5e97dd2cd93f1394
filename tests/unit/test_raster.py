"""Pictures as PNG: the pixels of what the SVG says."""

import io

import numpy as np
import pytest
from PIL import Image

from course_lib.pictures.raster import to_png

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">{}</svg>'
RED, WHITE = (255, 0, 0), (255, 255, 255)


def pixels(content):
    return np.asarray(Image.open(io.BytesIO(to_png(SVG.format(content)))))


def at(image, x, y):
    """Returns the colour in the middle of a place of the SVG."""
    return tuple(image[int(1.5 * y), int(1.5 * x)])


def test_it_is_half_as_large_again():
    assert pixels("").shape == (30, 60, 3)


def test_a_rectangle_stands_where_the_groups_around_it_say():
    content = '<rect x="1" y="1" width="2" height="2" fill="#FF0000"/>'
    image = pixels(f'<g transform="translate(20 10)"><g transform="scale(2)">{content}</g></g>')
    assert at(image, 24, 14) == RED
    assert at(image, 20.5, 14) == at(image, 28, 14) == at(image, 24, 18) == WHITE


def test_a_path_takes_the_colour_of_its_group_and_its_own_opacity():
    path = '<path d="M2 2h10v10h-10zM20 2h10v10h-10z" fill-opacity="0.5"/>'
    image = pixels(f'<g fill="#FF0000">{path}</g>')
    for x in (6, 25):
        assert at(image, x, 6)[0] == 255
        assert at(image, x, 6)[1] == pytest.approx(127.5, abs=1)
    assert at(image, 16, 6) == WHITE


@pytest.mark.parametrize(("turned", "wide"), [("", True), (" rotate(-45)", False)])
def test_a_text_is_turned_as_its_group(turned, wide):
    image = pixels(f'<g transform="translate(4 18){turned}"><text font-size="8">iiii</text></g>')
    rows, columns = np.nonzero((image < 128).any(axis=2))
    assert (np.ptp(columns) > np.ptp(rows)) == wide


def test_bold_letters_have_more_ink():
    normal, bold = (
        pixels(f'<text x="2" y="15" font-size="12" font-weight="{weight}">coat</text>')
        for weight in (400, 600)
    )
    assert bold.sum() < normal.sum()
