"""The scale-out explorer: what fits, which mesh dimension leaves the node, and the figures in words."""

import pytest

from tests.course import from_lesson
from tests.explored import choose, nodes, pieces, shown, text_of

ScaleOutExplorer = from_lesson("how_long.explorer", "ScaleOutExplorer")


def chosen(**choices):
    explorer = ScaleOutExplorer()
    for name, value in choices.items():
        choose(explorer, name, value)
    return explorer


def test_the_text_says_what_is_chosen_how_many_fit_and_what_each_costs():
    lines = repr(ScaleOutExplorer()).splitlines()
    assert lines[:7] == [
        "The best plans for many devices",
        "18 billion parameters on 64 A100; a batch of 512, microbatches: 8",
        "✓ 131 of 413 plans fit into 80 GB. The fastest of them:",
        "1. batch ↗ 8 × x 8",
        "   batch ↗ splits examples; x splits heads, hidden units, vocabulary",
        "   20.6 s: computing 17.3 s, over batch ↗ 386 ms, over x 2.93 s",
        "   ✓ 48.7 GB of 80 GB: variables 4.71 GB, gradients 4.71 GB, optimizer 28.3 GB, activations 11.0 GB",
    ]
    assert lines[3 + 5 * 4 + 3].startswith("Modelled, not measured: products reach 54 %")


def test_what_fits_and_what_does_not_is_told():
    # Variables and gradients of 2 bytes, optimizer 12: 146e9 x 16 bytes on 8 devices are 290 GB for each.
    explorer = chosen(network="146", devices=8)
    assert "✗ None of 103 plans fits into 80 GB. These need the least:" in shown(explorer, "verdict")[0]
    figures = [note.split("✗ ")[1].split(" GB of 80 GB")[0] for note in shown(explorer, "notes")[:-1]]
    sizes = [float(each.replace(",", "")) for each in figures]
    assert (len(sizes), [290, *sizes]) == (5, sorted([290, *sizes]))
    # 1.77e9 parameters fit whole: 24 x 12 x 2304^2 in blocks, 2 x 51200 x 2304 at both ends.
    explorer = chosen(network="1.7", devices=8)
    assert "✓ 103 of 103 plans fit into 80 GB." in shown(explorer, "verdict")[0]
    assert "variables 3.54 GB, gradients 3.54 GB, optimizer 21.2 GB" in shown(explorer, "notes")[0]


@pytest.mark.parametrize(
    ("cluster", "devices", "first"),
    [
        ("A100", 64, "1. batch ↗ 8 × x 8"),  # nodes of 8: `x` fills one
        ("A100", 4096, "1. batch ↗ 64 × x ↗ 16 × y 4"),  # `y` and half a pair of `x` fill one
        ("TPU v5e", 512, "1. batch ↗ 16 × x 2 × y 16"),  # 256 in a pod: 8 of `batch`
    ],
)
def test_a_mesh_dimension_that_leaves_the_node_is_marked(cluster, devices, first):
    best, *_others = pieces(chosen(cluster=cluster, devices=devices).view, "panel")
    assert text_of(best[2]) == first


def test_the_bar_of_the_slowest_plan_is_full_and_a_page_has_one_batch():
    *_others, last, _key = pieces(ScaleOutExplorer().view, "fits")
    seconds, _memory = (each for each in nodes(last) if each[0] == "g" and "stroke" in each[1])
    assert sum(float(part[1]["width"]) for part in seconds[2:]) == pytest.approx(280, abs=0.1)
    assert ScaleOutExplorer().settled({"examples": 4096}, page=True) == {"examples": 512}
