"""What `a_run` claims and does not show: its steps are Keras's, and what its notes say of checkpoints."""

import ast
import re

import numpy as np
import pytest

import course_lib
from tests.course import COURSE, program

tf = course_lib.start_tensorflow()


@pytest.fixture(scope="module")
def a_run():
    made = program("a_run")
    made.train_x, made.train_y = made.train_x[:331], made.train_y[:331]  # five steps an epoch
    made.held_out_x, made.held_out_y = made.held_out_x[:16], made.held_out_y[:16]
    made.STEPS_PER_EPOCH = 5
    return made


def test_eight_devices_under_a_schedule_are_keras_on_one(a_run, tmp_path):
    layers = [tf.keras.layers.Dense(48, "relu"), tf.keras.layers.Dense(2)]
    keras_model = tf.keras.Sequential([tf.keras.Input((1200,)), *layers])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    keras_model.compile(optimizer=tf.keras.optimizers.Adam(3e-3), loss=loss)
    keras_model.set_weights([a_run.values[name] for name in ("W1", "b1", "W2", "b2")])
    expected = []
    for step in range(12):
        keras_model.optimizer.learning_rate = 3e-3 * (12 - step) / 12
        rows = a_run.rows_of(step)
        expected.append(float(loss(a_run.train_y[rows], keras_model(a_run.train_x[rows]))))
        keras_model.train_on_batch(a_run.train_x[rows], a_run.train_y[rows])
    run = a_run.train_and_save(a_run.Model(a_run.layouts), a_run.layouts, 12, str(tmp_path))
    losses = [record["loss"] for record in run if "loss" in record]
    np.testing.assert_allclose(losses, expected, atol=1e-4)


def test_an_epoch_has_no_row_twice_and_the_next_has_another_order(a_run):
    first, second = (np.concatenate([a_run.rows_of(epoch * 5 + at) for at in range(5)]) for epoch in (0, 1))
    assert len(set(first)) == len(set(second)) == 320
    assert list(first) != list(second)


def test_what_the_note_says_to_do_refuses_data_that_are_cut_short(a_run, tmp_path):
    (note,) = [cell for cell in COURSE.lesson("a_run").cells if cell.cell_id == "note-power"]
    code = re.findall(r"```python\n(.+?)```", note.source, re.S)[0].replace("return path", "whole = True")
    path = tf.train.Checkpoint(model=a_run.Model(a_run.layouts)).write(str(tmp_path / "ckpt"))
    data = max(tmp_path.glob("*.data*"), key=lambda file: file.stat().st_size)
    written = data.read_bytes()
    for share in (1, 0.9, 0.5, 0):
        data.write_bytes(written[: int(share * len(written))])
        exec(code, here := {"tf": tf, "path": path})
        assert ("whole" in here) == (share == 1)


@pytest.mark.parametrize("split", [False, True])
def test_an_asynchronous_checkpoint_holds_what_was_there_when_it_was_asked_for(a_run, split, tmp_path):
    layout = a_run.layouts["x" if split else "W1"]
    values = np.random.default_rng(0).normal(size=(1200, 48)).astype("float32")
    variable = a_run.variable(values, layout)
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=3)
    for number in range(3):
        variable.assign(variable + np.float32(number))
        saved = course_lib.to_numpy(variable.read_value())
        path = manager.save(options=tf.train.CheckpointOptions(enable_async=True))
        variable.assign(variable + np.float32(100))
    checkpoint.sync()
    restored = a_run.variable(np.zeros_like(values), layout)
    tf.train.Checkpoint(v=restored).read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(course_lib.to_numpy(restored.read_value()), saved)


@pytest.mark.parametrize(("kind", "traces"), [(np.float32, 1), (float, 3)])
def test_a_python_number_is_traced_anew_for_each_value(a_run, kind, traces):
    rows, model = a_run.rows_of(0), a_run.Model(dict.fromkeys(a_run.layouts))
    before = a_run.train_step.experimental_get_tracing_count()
    for rate in (3e-3, 2e-3, 1e-3):
        a_run.train_step(model, a_run.train_x[rows], a_run.train_y[rows], np.float32(1), kind(rate))
    assert a_run.train_step.experimental_get_tracing_count() - before == traces


def test_the_program_that_the_notebook_writes_is_the_plain_program():
    (cell,) = [cell for cell in COURSE.lesson("a_run").cells if cell.cell_id == "program"]
    first, _newline, written = cell.source.partition("\n")
    assert first == "%%writefile a_run_program.py"
    plain = (COURSE.root / "notebooks/plain/a_run.py").read_text()
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(plain))
