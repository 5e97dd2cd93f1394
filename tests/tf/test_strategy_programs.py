"""The programs of the strategy explorer that run on CPUs, as they stand, on two virtual ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from tests.unit.test_strategy import code_of, situations

tf = start_tensorflow()

RUN_HERE = [
    each
    for each in situations()
    if each.synchronous and not each.several_machines and each.devices in ("CPU", "GPU", "GPUs")
]


@pytest.fixture(autouse=True)
def two_devices(monkeypatch):
    """Gives a program two of the devices of these tests: TensorFlow has started, so it gets no own ones."""
    devices = tf.config.list_logical_devices("CPU")[:2]
    asked = []
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices if kind == "CPU" else [])
    monkeypatch.setattr(
        tf.config, "set_logical_device_configuration", lambda _cpu, virtual: asked.append(len(virtual))
    )
    return asked


def oracle(batch_size: int, weight: float) -> tuple[float, float]:
    """Returns weight and bias after two epochs on 100 examples (1, 1): plain gradient descent in NumPy."""
    features = labels = np.ones(100)
    bias = 0.0
    for start in [*range(0, 100, batch_size)] * 2:
        part = slice(start, start + batch_size)
        error = weight * features[part] + bias - labels[part]
        weight -= 0.1 * 2 * np.mean(error * features[part])
        bias -= 0.1 * 2 * np.mean(error)
    return weight, bias


def short(situation):
    """Returns a situation, for the weekly drill unless it is in Keras 3 or mirrored."""
    is_short = situation.keras == "Keras 3" or situation.strategy == "MirroredStrategy"
    return situation if is_short else pytest.param(situation, marks=pytest.mark.drill_all)


@pytest.mark.parametrize("situation", map(short, RUN_HERE), ids=repr)
def test_it_trains_as_one_device_does(situation, two_devices, capsys):
    code = code_of(situation)
    # The initial weight is drawn at random: the oracle must know it.
    code = code.replace("keras.layers.Dense(1)", 'keras.layers.Dense(1, kernel_initializer="ones")')
    names: dict = {}
    exec(compile(code, "program", "exec"), names)
    strategy, model = names["strategy"], names["model"]
    replicas = 2 if situation.devices == "GPUs" else 1
    assert (strategy.num_replicas_in_sync, names["global_batch"]) == (replicas, 5 * replicas)
    assert two_devices == ([2] if replicas == 2 else [])
    expected = {"default strategy": "_DefaultDistributionStrategy"}.get(situation.strategy)
    if expected is None:
        assert type(strategy).__name__ == situation.strategy
    kernel, bias = (np.asarray(value).item() for value in model.get_weights())
    assert (kernel, bias) == pytest.approx(oracle(5 * replicas, weight=1.0), abs=1e-6)
    if situation.loop == "custom loop":
        losses = re.findall(r"epoch (\d): loss (\S+)", capsys.readouterr().out)
        assert [epoch for epoch, _loss in losses] == ["0", "1"]
