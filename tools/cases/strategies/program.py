"""A feature of Keras under a strategy of tf.distribute, held to one device: it needs nothing of the course.

The book's page shows it with the case that a reader chooses; the table of strategies is made with it. A
strategy of several processes starts them itself, on this machine.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf

# The case: the strategy, the way to train ("fit", "train_step" or "loop"), and how many examples there are.
strategy_name, way, num_examples = "mirrored_2", "fit", 24
tolerance = 1e-4


def layers():
    return [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]


def optimizer():
    return keras.optimizers.SGD(0.05, momentum=0.9)


def loss(**reduction):
    return keras.losses.MeanSquaredError(**reduction)


def compile_with():
    return {}


def fit_with():
    return {}


def data(x, y):
    return {"x": x, "y": y, "batch_size": BATCH}


# The same for every case.
BATCH, EPOCHS = 12, 2


def examples():
    """Returns features `[num_examples, 12]` and labels `[num_examples, 1]`."""
    draw = np.random.default_rng(0)
    x = draw.random((num_examples, 12), "float32")
    return x, np.sin(3 * x.sum(axis=1, keepdims=True)) + 0.1 * np.arange(num_examples, dtype="float32")[
        :, None
    ]


def dataset(x, y):
    """Returns the examples in batches, which workers share by rows."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).with_options(options)


class OwnStep(keras.Sequential):
    """A model whose training step is written by hand."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(x, y, prediction)
            scaled = self.optimizer.scale_loss(loss)  # where the optimizer scales, as for float16
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        told = loss * tf.distribute.get_strategy().num_replicas_in_sync  # `compute_loss` has divided by it
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(told, sample_weight=tf.shape(y)[0])
            else:
                metric.update_state(y, prediction)
        return {metric.name: metric.result() for metric in self.metrics}


def make_model(kind=None):
    """Returns a model with the same initial weights each time."""
    keras.utils.set_random_seed(1)
    return (kind or keras.Sequential)([keras.Input((12,)), *layers()])


def fit(strategy, kind=None, weights=None):
    """Trains with `fit`; returns what it told and the weights. Examples may count by weights."""
    x, y = examples()
    with strategy.scope():
        model = make_model(kind)
        model.compile(optimizer(), loss(), **compile_with())
    given = {"epochs": EPOCHS, "shuffle": False, "verbose": 0} | data(x, y) | fit_with()
    if weights is not None:
        given = weighted(given, weights, {"x": x, "y": y, "batch_size": BATCH})
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        given["steps_per_epoch"] = -(-num_examples // BATCH)
    told = model.fit(**given).history
    return {**told, "weights": model.get_weights()}


def weighted(given, weights, arrays):
    """Returns what `fit` is given, with weights of the examples; as arrays if it was given otherwise."""
    if isinstance(given["x"], tf.data.Dataset):
        weights = tf.data.Dataset.from_tensor_slices(weights).batch(BATCH).repeat()

        def weigh(batch, weight):
            return (*batch[:2], weight * batch[2] if len(batch) > 2 else weight)

        return given | {"x": tf.data.Dataset.zip(given["x"], weights).map(weigh)}
    if not isinstance(given["x"], (np.ndarray, dict)):
        given = given | arrays
    return given | {"sample_weight": weights * given.get("sample_weight", 1)}


def train_step(strategy):
    """Trains with `fit`, and a training step of its own."""
    return fit(strategy, OwnStep)


def parts_count_alike(num_replicas):
    """Trains on one device with `fit`, each example weighted so that the parts of a batch count alike."""
    sizes = [min(BATCH, num_examples - start) for start in range(0, num_examples, BATCH)]
    parts = [[len(part) for part in np.array_split(range(size), num_replicas)] for size in sizes]
    weights = [
        size / num_replicas / part for size, each in zip(sizes, parts) for part in each for _ in range(part)
    ]
    return fit(tf.distribute.get_strategy(), weights=np.array(weights, "float32"))


def loop(strategy):
    """Trains with a loop of its own; returns the loss of each step and the weights."""
    x, y = examples()
    with strategy.scope():
        model, update, loss_of = make_model(), optimizer(), loss(reduction="none")
        update.build(model.trainable_variables)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = loss_of(y, model(x, training=True))
            average = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(average, model.trainable_variables)
        update.apply_gradients(zip(gradients, model.trainable_variables))
        return average

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        # One after the other, so that the result doesn't depend on which worker is faster.
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        batches = list(dataset(x, y).as_numpy_iterator()) * EPOCHS
        told = [float(coordinator.schedule(step, args=(batch,)).fetch()) for batch in batches]
    else:
        batches = strategy.experimental_distribute_dataset(dataset(x, y))
        told = [float(step(batch)) for _ in range(EPOCHS) for batch in batches]
    return {"loss": told, "weights": model.get_weights()}


def run(strategy):
    """Trains in the chosen way."""
    return {"fit": fit, "train_step": train_step, "loop": loop}[way](strategy)


def promised(strategy):
    """Returns what is right: the same on one device."""
    return run(strategy)


# -- strategies

TASKS = {"workers_2": ["worker 0", "worker 1"], "servers_2": ["chief 0", "worker 0", "worker 1", "ps 0"]}


def make_strategy():
    """Returns the strategy of the case."""
    name, _, number = strategy_name.partition("_")
    devices = [f"CPU:{device}" for device in range(int(number) if number.isdigit() else 2)]
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    return {
        "central": lambda: tf.distribute.experimental.CentralStorageStrategy(devices, "CPU:0"),
        "one": lambda: tf.distribute.OneDeviceStrategy("CPU:1"),
        "workers": tf.distribute.MultiWorkerMirroredStrategy,
        "servers": lambda: tf.distribute.ParameterServerStrategy(
            tf.distribute.cluster_resolver.TFConfigClusterResolver()
        ),
    }[name]()


def start_tasks(names):
    """Runs this program once for each task of a cluster; returns the exit status of the first task."""
    cluster = {}
    for name in names:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cluster.setdefault(name.split()[0], []).append(f"127.0.0.1:{free.getsockname()[1]}")
    processes = []
    for name in names:
        task = {"type": name.split()[0], "index": int(name.split()[1])}
        variables = {**os.environ, "TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
        out = None if not processes else subprocess.DEVNULL
        processes.append(subprocess.Popen([sys.executable, *sys.argv], env=variables, stdout=out, stderr=out))
    status = processes[0].wait()
    for other in processes[1:]:
        other.kill()
    return status


def serve():
    """Serves the coordinator, if this process is a worker or a parameter server of one."""
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "chief" in config.get("cluster", {}) and config["task"]["type"] != "chief":
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        tf.distribute.Server(
            resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc"
        ).join()


# -- what is compared


def found():
    """Returns whether the strategy gives what is right, and what differs by how much."""
    try:
        strategy = make_strategy()
    except Exception as error:
        return refused(error)
    right = promised(tf.distribute.get_strategy())
    try:
        given = run(strategy)
    except Exception as error:
        return refused(error)
    differences = {name: difference(given.get(name, []), each) for name, each in right.items()}
    verdict = "equal" if is_small(differences) else "different"
    if verdict == "different" and way != "loop" and num_examples % BATCH:
        alike = parts_count_alike(strategy.num_replicas_in_sync)
        if difference(given.get("weights", []), alike.get("weights", [None])) <= tolerance:
            verdict = "unequal parts"  # as every `fit`
    if verdict == "different" and strategy_name == "servers_2" and way == "fit":
        first, *_, last = given.get("loss", [0, 0])
        verdict = "asynchronous" if last < first else verdict
    return {"verdict": verdict, "difference": differences}


def refused(error):
    """Returns what is told of an error."""
    return {"verdict": "refused", "message": f"{type(error).__name__}: {error}"}


def is_small(differences):
    """Returns whether all are within the tolerance; nan is not."""
    return all(each <= tolerance for each in differences.values())


def difference(given, right):
    """Returns the largest difference between numbers in the same place, against the largest right one."""
    given, right = tf.nest.flatten(given), tf.nest.flatten(right)
    if len(given) != len(right) or any(np.shape(a) != np.shape(b) for a, b in zip(given, right)):
        return float("inf")
    numbers = [np.zeros(0), *(np.ravel(each).astype("float64") for each in right)]
    apart = [np.zeros(1), *(np.abs(np.ravel(each) - number) for each, number in zip(given, numbers[1:]))]
    largest = np.max(np.abs(np.concatenate(numbers)), initial=1.0)
    return float(np.max(np.concatenate(apart)) / largest)  # nan, if one of them is


if __name__ == "__main__":
    if strategy_name in TASKS and "TF_CONFIG" not in os.environ:
        sys.exit(start_tasks(TASKS[strategy_name]))
    serve()
    if strategy_name not in TASKS:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    print(json.dumps(found()))
