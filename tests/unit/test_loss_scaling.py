"""Loss scaling: words and explorer; tests/tf holds every choice against what TensorFlow and Keras give."""

from __future__ import annotations

from tests.course import from_lesson
from tests.explored import choose, shown

LossScalingExplorer = from_lesson("custom_training.loss_scaling_explorer", "LossScalingExplorer")


def test_an_empty_replica_draws_itself_with_the_wrong_gradient_beside_the_right_one():
    assert (
        repr(LossScalingExplorer(4, 8, 5, "replica"))
        == """
Loss of 5 examples on 4 replicas
Divided by: the replica's own examples

Each replica returns
  replica 0  (2 + 3) / 2 = 2.5
  replica 1  (4 + 5) / 2 = 4.5
  replica 2  6 / 1 = 6
  replica 3  mean over no example = NaN

Loss
         4  true mean
     NaN ✗  sum of the replicas
     NaN ✗  Mean metric

Gradient
         3  true mean
      10 ✗  sum of the replicas

✗ The sum is NaN: a replica without an example returned the mean over nothing.
The gradient is 10, 3.333 times the right one, 3.
""".strip()
    )


def test_the_explorer_begins_with_the_worked_example_and_follows_clicks():
    explorer = LossScalingExplorer()
    assert explorer.scaling.losses == ((2, 3), (4, 5))
    assert shown(explorer, "told")[0].startswith("✓ The sum of the replicas is the true mean, 3.5.")
    choose(explorer, "division", "replica")
    assert shown(explorer, "told") == [
        "✗ The sum of the replicas is 7, not the true mean, 3.5."
        " The gradient is 5, 2 times the right one, 2.5."
    ]
    assert shown(explorer, "listing") == ["tf.reduce_mean(losses)"]
    choose(explorer, "batch_size", 8)
    choose(explorer, "num_examples", 7)
    choose(explorer, "num_replicas", 4)
    assert list(map(len, explorer.scaling.losses)) == [2, 2, 2, 1]
    choose(explorer, "batch_size", 4)
    assert explorer.state["num_examples"] == 4
