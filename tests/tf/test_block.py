"""The program of `transformer_block`: what its step exchanges, and that it trains as one device does."""

import functools

import numpy as np
import pytest

import course_lib
from benchmarks import programs
from course_lib.specs.architecture import Zero
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan
from lessons.scale.networks import transformer
from tests.course import COURSE

tf = course_lib.start_tensorflow()

pytestmark = pytest.mark.usefixtures("optimized")
NETWORK = transformer(sequence=4, features=24, heads=12, vocabulary=12, hidden=36)
SIZES = {**NETWORK.sizes, BATCH: 24}
MODEL = {"batch": "batch", "heads": "model", "hidden": "model"}
CASES = [
    ("batch 8", {"batch": "batch"}),
    ("batch 4, model 2", MODEL),
    ("batch 2, model 4", {**MODEL, "vocabulary": "model"}),
    ("batch 2, x 2, y 2", {"batch": "batch", "heads": "x", "hidden": "x", "features": "y"}),
    ("batch 3, model 2", MODEL),
    ("model 6", {"heads": "model", "hidden": "model"}),
]
OFTEN = CASES[1], CASES[3]


def program(splits):
    """Returns the program with the network of this test, and what lays it out on a real mesh."""
    names = vars(programs.program("transformer_block"))
    names["values"] = values()
    axes = {**NETWORK.variables, "tokens": (BATCH, "sequence")}
    return names, functools.partial(names["make_layouts"], axes, splits)


def values():
    draw = np.random.default_rng(0).normal
    return {
        name: draw(0, 0.2, [SIZES[axis] for axis in axes]).astype("float32")
        for name, axes in NETWORK.variables.items()
    }


@pytest.mark.parametrize(
    ("mesh", "splits"),
    [pytest.param(*case, id=case[0], marks=() if case in OFTEN else pytest.mark.drill_all) for case in CASES],
)
def test_a_step_adds_up_what_is_told_and_is_that_of_one_device(mesh, splits):
    dims = [(name, int(size)) for name, size in (dim.split() for dim in mesh.split(", "))]
    spec, (names, laid_out) = MeshSpec(dims), program(splits)
    tokens = np.random.default_rng(1).integers(0, 12, (24, 4)).astype("int32")
    losses, blocks = [], []
    for real in (None, names["dtensor"].create_mesh(dims, devices=[f"CPU:{at}" for at in range(spec.size)])):
        layouts = laid_out(real) if real else {}
        model, examples = names["Model"](layouts), [names["place"](tokens, layouts.get("tokens"))] * 2
        given = names["logits_of"], model, *examples, np.float32(0.5)
        if real is not None:
            seen = course_lib.collectives(names["train_step"], *given)
            told = [each.collective for each in NETWORK.exchanges(Plan("", spec, splits), batch_size=24)]
            assert sorted(map(str, seen)) == sorted(map(str, told))
        losses.append(float(names["train_step"](*given)))
        whole = course_lib.to_numpy if real else np.asarray
        blocks.append({name: whole(weight) for name, weight in model.weights.items()})
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    for name, value in blocks[0].items():
        np.testing.assert_allclose(blocks[1][name], value, atol=2e-6, err_msg=name)


def test_eight_devices_cannot_share_four_heads_and_the_lesson_quotes_why():
    from tensorflow.experimental import dtensor

    row = dtensor.create_mesh([("model", 8)], device_type="CPU")
    query = course_lib.shard(np.ones([32, 4, 8], "float32"), dtensor.Layout(["unsharded"] * 3, row))
    with pytest.raises(tf.errors.OpError) as refused:
        dtensor.relayout(query, dtensor.Layout(["unsharded", "model", "unsharded"], row))
    quoted = course_lib.last_line(refused.value).partition(": ")[2]
    note = next(cell for cell in COURSE.lesson("transformer_block").cells if cell.cell_id == "note-heads")
    assert f"`{quoted}`" in note.source


def adam(call, gather, scatter, keep):
    """Returns a step of Adam on weights and their averages, all of which may be split.

    Args:
        call: the logits of weights, by their names, and tokens.
        gather, scatter, keep: what a weight is brought to for the passes, for the update, and afterwards.
    """

    def step(weights, averages, tokens, targets, t):
        whole = {name: gather[name](weight.read_value()) for name, weight in weights.items()}
        with tf.GradientTape() as tape:
            tape.watch(whole)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, call(whole, tokens))
            loss = tf.reduce_mean(losses)
        new = {}
        for name, gradient in tape.gradient(loss, whole).items():
            g, weight = scatter[name](gradient), scatter[name](weights[name].read_value())
            m, v = (average.read_value() for average in averages[name])
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            weight -= 0.01 * (m / (1 - 0.9**t)) / (tf.sqrt(v / (1 - 0.999**t)) + 1e-3)
            new[name] = keep[name](weight), m, v
        for name, changed in new.items():  # nothing is read any more
            for variable, value in zip((weights[name], *averages[name]), changed, strict=True):
                variable.assign(value)
        return loss

    return step


def layouts(mesh, zero):
    """Returns for each variable its layout in the passes, in the update, and between steps."""
    from tensorflow.experimental import dtensor

    data = mesh.dim_size("batch")
    for name, axes in NETWORK.variables.items():
        specs = [MODEL.get(axis) if MODEL.get(axis) in mesh.dim_names else "unsharded" for axis in axes]
        free = [at for at, axis in enumerate(axes) if specs[at] == "unsharded" and SIZES[axis] % data == 0]
        parts = [*specs]
        if zero and free:
            parts[free[-1]] = "batch"  # the first axis of `position` would take an all-to-all more
        kept = parts if zero is Zero.VARIABLES else specs
        yield name, [dtensor.Layout(each, mesh) for each in (specs, parts, kept)]


@pytest.mark.parametrize(
    ("zero", "dims"),
    [
        (Zero.STATE, {"batch": 4, "model": 2}),
        (Zero.VARIABLES, {"batch": 8}),
        pytest.param(Zero.STATE, {"batch": 8}, marks=pytest.mark.drill_all),
        pytest.param(Zero.VARIABLES, {"batch": 4, "model": 2}, marks=pytest.mark.drill_all),
    ],
    ids=str,
)
def test_a_state_that_is_split_over_the_batch_is_added_up_and_gathered_as_told(zero, dims):
    from tensorflow.experimental import dtensor

    splits = {axis: dim for axis, dim in MODEL.items() if dim in dims}
    (names, laid_out), given = program(splits), values()
    call = names["logits_of"]
    tokens = np.random.default_rng(1).integers(0, 12, (24, 4)).astype("int32")

    same = dict.fromkeys(given, tf.identity)
    one = {name: tf.Variable(value) for name, value in given.items()}
    averages = {name: [tf.Variable(0 * value) for _each in range(2)] for name, value in given.items()}
    step = tf.function(adam(call, same, same, same))
    expected = [float(step(one, averages, tokens, tokens, tf.constant(t))) for t in (1.0, 2.0, 3.0)]

    mesh = dtensor.create_mesh([*dims.items()], device_type="CPU")
    plans = dict(layouts(mesh, zero))
    moves = [
        {name: functools.partial(dtensor.relayout, layout=plan[at]) for name, plan in plans.items()}
        for at in range(3)
    ]
    split = {
        name: dtensor.DVariable(course_lib.shard(value, plans[name][2])) for name, value in given.items()
    }
    averages = {
        name: [dtensor.DVariable(course_lib.shard(0 * value, plans[name][1])) for _each in range(2)]
        for name, value in given.items()
    }
    examples = [names["place"](tokens, laid_out(mesh)["tokens"])] * 2
    seen = course_lib.collectives(adam(call, *moves), split, averages, *examples, tf.constant(1.0))
    spec = MeshSpec(dims.items())
    plan = Plan("", spec, splits)
    told = [each.collective.as_run() for each in NETWORK.exchanges(plan, 24, zero)]
    assert sorted(map(str, seen)) == sorted(map(str, told))
    step = tf.function(adam(call, *moves))
    losses = [float(step(split, averages, *examples, tf.constant(t))) for t in (1.0, 2.0, 3.0)]
    assert losses == pytest.approx(expected, rel=1e-5)
    for name, value in one.items():
        np.testing.assert_allclose(course_lib.to_numpy(split[name]), value, atol=2e-5, err_msg=name)
