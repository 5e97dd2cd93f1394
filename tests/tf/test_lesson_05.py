"""What lesson 05 says and its program does: collectives of each scheme, and checkpoints between all."""

import ast
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import course_lib
from course_lib import collectives, outcome
from course_lib.dtensor import to_numpy

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("optimized")

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "notebooks/plain/05_model_and_spatial.py"
LESSON = ROOT / "lessons/lesson_05_model_and_spatial/lesson.py"
WHOLE = dtensor.UNSHARDED


def defined(source, *names):
    """Returns the functions, classes and tables of these names, as text without comments."""
    found = {}
    for node in ast.parse(source).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for name in [getattr(node, "name", None), *(getattr(each, "id", None) for each in targets)]:
            if name in names:
                found[name] = found.get(name, "") + ast.unparse(node)
    return found


@pytest.fixture(scope="module")
def program():
    """What the program defines, without its training."""
    tree = ast.parse(PROGRAM.read_text())
    tree.body = [node for node in tree.body if not isinstance(node, (ast.For, ast.Expr))]
    names = {}
    exec(compile(tree, str(PROGRAM), "exec"), names)
    return SimpleNamespace(**names)


def model_and_batch(program, scheme, rows=64, **layouts):
    layouts = {**program.LAYOUTS[scheme], **layouts}
    batch = [program.place(each[:rows], layouts[name]) for name, each in data(program)]
    return program.MLP(program.values, layouts), *batch


def data(program):
    return ("x", program.train_x), ("y", program.train_y)


def test_lesson_and_program_have_the_same_code():
    names = ["SPLITS", "MESHES", "make_layouts", "LAYOUTS", "MLP", "train_step", "train", "values"]
    lesson = LESSON.read_text().replace("await ", "")
    assert defined(lesson, *names) == defined(PROGRAM.read_text(), *names)
    assert len(defined(lesson, *names)) == len(names)


@pytest.mark.parametrize(
    ("scheme", "rows", "count", "payload"),
    [
        ("data", 64, 10, 231_760),
        ("model", 64, 11, 116_016),
        ("spatial", 64, 12, 61_616),
        ("data", 1_024, 10, 231_760),
        ("model", 1_024, 11, 117_936),
        ("spatial", 1_024, 12, 111_536),
    ],
)
def test_collectives_of_a_step_under_each_scheme(program, scheme, rows, count, payload):
    found = collectives(program.train_step, *model_and_batch(program, scheme, rows), 1e-2)
    assert (len(found), sum(each.payload_bytes for each in found)) == (count, payload)
    if scheme == "model":
        assert [each.payload_bytes for each in found if "model" in each.mesh_dims] == [2 * rows]
    if scheme == "spatial":
        assert [each.payload_bytes for each in found if "feature" in each.mesh_dims] == [48 * rows]


def test_a_whole_second_weight_costs_an_all_reduce_on_the_way_back_and_never_changes_the_loss(program):
    mesh = program.LAYOUTS["model"]["x"].mesh
    losses = []
    for spec, count, sent in [(["model", WHOLE], 11, [128]), ([WHOLE, WHOLE], 12, [128, 384])]:
        model, x, y = model_and_batch(program, "model", W2=dtensor.Layout(spec, mesh))
        found = collectives(program.train_step, model, x, y, 1e-2)
        assert len(found) == count
        assert [each.payload_bytes for each in found if "model" in each.mesh_dims] == sent
        losses.append([float(program.train_step(model, x, y, 1e-2)[0]) for _step in range(3)])
    np.testing.assert_allclose(*losses, atol=1e-5)


def test_columns_over_the_same_dimension_gather_and_rows_over_another_are_refused(program):
    mesh = program.LAYOUTS["model"]["x"].mesh
    model, x, _y = model_and_batch(program, "model")

    first = model.W1.read_value()

    def exchanged(spec):
        second = program.place(program.values["W2"], dtensor.Layout(spec, mesh))
        return collectives(lambda *each: tf.nn.relu(each[0] @ each[1]) @ each[2], x, first, second)

    assert list(map(str, exchanged([WHOLE, "model"]))) == ["all-reduce over model, 3072 bytes"]
    assert "Contracting dimension for matmul" in outcome(exchanged, ["batch", WHOLE])


def test_a_checkpoint_of_any_scheme_restores_under_any_to_the_bit(program, tmp_path):
    zeros = {name: 0 * value for name, value in program.values.items()}
    for writer, reader in itertools.product(program.LAYOUTS, repeat=2):
        path = tmp_path / writer
        if not path.with_suffix(".index").exists():
            tf.train.Checkpoint(model=program.MLP(program.values, program.LAYOUTS[writer])).write(str(path))
        model = program.MLP(zeros, program.LAYOUTS[reader])
        tf.train.Checkpoint(model=model).read(str(path)).assert_consumed()
        for name, saved in program.values.items():
            found = getattr(model, name)
            np.testing.assert_array_equal(found.numpy() if reader == "one" else to_numpy(found), saved)


def test_a_checkpoint_holds_each_block_once_and_no_mesh(program, tmp_path):
    prefix = str(tmp_path / "weights")
    tf.train.Checkpoint(model=program.MLP(program.values, program.LAYOUTS["spatial"])).write(prefix)
    sizes = [file.stat().st_size for file in tmp_path.glob("*.data-*")]
    assert sum(size >= 57_600 for size in sizes) == 4
    assert sum(sizes) < 1.05 * sum(value.nbytes for value in program.values.values())
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert all(word not in content for word in (b"feature", b"sharding", b"layout", b"CPU:"))
