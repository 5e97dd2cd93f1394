"""The program of a training under the strategy that suits a situation, without this library.

Source: https://www.tensorflow.org/guide/distributed_training
"""

from __future__ import annotations

from collections.abc import Callable

from course_lib.code.choices import REQUIREMENTS
from course_lib.i18n import _
from lessons.lesson_09_strategies import strategy as strategies
from lessons.lesson_09_strategies.strategy import Advice, Situation
from lessons.lesson_09_strategies.writing import comment, function, program, requirement, section

REQUIREMENT = REQUIREMENTS["TensorFlow"]
TF_KERAS_REQUIREMENT = "tf-keras>=2.20,<2.22"

Sections = list[str]


def code_of(situation: Situation) -> str:
    """Returns a program that trains as a situation asks: one unit, 100 equal examples, two epochs.

    It runs as it stands, also on a machine with CPUs alone: two virtual ones then stand in for several GPUs.
    Only TPUs nothing stands in for, and a cluster needs `TF_CONFIG` on each of its machines.
    """
    return "".join(sections_of(situation))


def sections_of(situation: Situation) -> tuple[str, ...]:
    """Returns the parts of `code_of`, each with the empty lines after it: many situations have equal ones."""
    advice = situation.advice
    return program(
        [
            *_imports(advice),
            *_MAKERS[advice.strategy](),
            _data(advice),
            *(_fit(advice) if advice.loop == strategies.FIT else _custom_loop(advice)),
        ]
    )


def _imports(advice: Advice) -> Sections:
    if advice.situation.keras == strategies.KERAS_3:
        return [requirement(f'"{REQUIREMENT}"', "import tensorflow as tf", "from tensorflow import keras")]
    packages = f'"{REQUIREMENT}" "{TF_KERAS_REQUIREMENT}"'
    return [requirement(packages, "import tensorflow as tf", "import tf_keras as keras")]


def _default() -> Sections:
    return [section("strategy = tf.distribute.get_strategy()")]


def _one_device() -> Sections:
    return [
        section(
            comment(_("A device that does not exist is accepted, and CPU:0 used.")),
            'gpus = tf.config.list_logical_devices("GPU")',
            'device = "GPU:0" if gpus else "CPU:0"',
            "strategy = tf.distribute.OneDeviceStrategy(device)",
        )
    ]


def _several_gpus() -> str:
    return section(
        comment(_("Where there are no GPUs, two virtual CPUs stand in for them.")),
        'gpus = tf.config.list_physical_devices("GPU")',
        "if not gpus:",
        '    cpu = tf.config.list_physical_devices("CPU")[0]',
        "    virtual = [tf.config.LogicalDeviceConfiguration()] * 2",
        "    tf.config.set_logical_device_configuration(cpu, virtual)",
        'kind = "GPU" if gpus else "CPU"',
        "devices = [each.name for each in tf.config.list_logical_devices(kind)]",
    )


def _mirrored() -> Sections:
    return [
        _several_gpus(),
        section(
            comment(_("NCCL adds up on GPUs; without them, one of the devices does.")),
            "ops = None if gpus else tf.distribute.ReductionToOneDevice()",
            "strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)",
        ),
    ]


def _central_storage() -> Sections:
    return [
        _several_gpus(),
        section(
            "strategy = tf.distribute.experimental.CentralStorageStrategy(",
            '    compute_devices=devices, parameter_device="CPU:0"',
            ")",
        ),
    ]


def _multi_worker() -> Sections:
    return [
        section(
            comment(_("Start it on each machine, with TF_CONFIG set, such as:")),
            *_tf_config('{"worker": ["host0:12345", "host1:12345"]}'),
            comment(_("Without TF_CONFIG it is the only worker.")),
            "strategy = tf.distribute.MultiWorkerMirroredStrategy()",
        )
    ]


def _parameter_server() -> Sections:
    return [
        section(
            comment(_("Start it once for each task, with TF_CONFIG set, such as:")),
            *_tf_config('{"chief": ["host0:12345"], "ps": ["host1:12345"],', '"worker": ["host2:12345"]}'),
            comment(_("The chief, which coordinates, ends; stop the others then.")),
            "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
            'if resolver.task_type in ("worker", "ps"):',
            "    server = tf.distribute.Server(",
            "        resolver.cluster_spec(),",
            "        job_name=resolver.task_type,",
            "        task_index=resolver.task_id,",
            '        protocol="grpc",',
            "    )",
            "    server.join()",
            "strategy = tf.distribute.ParameterServerStrategy(resolver)",
        )
    ]


def _tf_config(cluster: str, *more: str) -> Sections:
    task = "chief" if more else "worker"
    lines = [f'{{"cluster": {cluster}', *(f" {line}" for line in more)]
    lines[-1] += ","
    return [f"#   {line}" for line in [*lines, f' "task": {{"type": "{task}", "index": 0}}}}']]


def _tpu() -> Sections:
    return [
        section(
            comment(_("On Colab no address is needed; connecting clears the TPU's memory.")),
            "resolver = tf.distribute.cluster_resolver.TPUClusterResolver()",
            "tf.config.experimental_connect_to_cluster(resolver)",
            "tf.tpu.experimental.initialize_tpu_system(resolver)",
            "strategy = tf.distribute.TPUStrategy(resolver)",
        )
    ]


def _data(advice: Advice) -> str:
    lines = [
        "global_batch = 5 * strategy.num_replicas_in_sync",
        "features, labels = tf.ones([100, 1]), tf.ones([100, 1])",
        "examples = tf.data.Dataset.from_tensor_slices((features, labels))",
    ]
    if advice.strategy == strategies.PARAMETER_SERVER:
        batch = "examples.shuffle(100).repeat().batch(global_batch)"
        lines += ["steps_per_epoch = 100 // global_batch"]
    else:
        whole = ", drop_remainder=True" if advice.strategy == strategies.TPU_STRATEGY else ""
        batch = f"examples.batch(global_batch{whole})"
    about = comment(_("Five examples for each replica in every step."))
    return section(about, *lines, f"dataset = {batch}")


def _fit(advice: Advice) -> Sections:
    served = advice.strategy == strategies.PARAMETER_SERVER
    steps = ", steps_per_epoch=steps_per_epoch" if served else ""
    evaluate = "model.evaluate(dataset, steps=steps_per_epoch)" if served else "model.evaluate(dataset)"
    return [
        section(
            comment(_("Model and optimizer are made in the strategy's scope.")),
            "with strategy.scope():",
            *_model(),
            '    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")',
            f"model.fit(dataset, epochs=2{steps})",
            evaluate,
        )
    ]


def _model() -> Sections:
    return ["    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])"]


def _custom_loop(advice: Advice) -> Sections:
    return [
        section(
            comment(_("Model and optimizer are made, and built, in the strategy's scope.")),
            "with strategy.scope():",
            *_model(),
            "    optimizer = keras.optimizers.SGD(0.1)",
            "    optimizer.build(model.trainable_variables)",
            '    squared_error = keras.losses.MeanSquaredError(reduction="none")',
        ),
        function(
            "replica_step(features, labels)",
            _("Trains on one replica's part of a batch."),
            "with tf.GradientTape() as tape:",
            "    losses = squared_error(labels, model(features, training=True))",
            "    loss = tf.nn.compute_average_loss(",
            "        losses, global_batch_size=global_batch",
            "    )",
            "gradients = tape.gradient(loss, model.trainable_variables)",
            "optimizer.apply_gradients(",
            "    zip(gradients, model.trainable_variables, strict=True)",
            ")",
            "return loss",
        ),
        *(_scheduled() if advice.strategy == strategies.PARAMETER_SERVER else _every_batch()),
    ]


def _every_batch() -> Sections:
    return [
        _step("train_step(features, labels)", "(features, labels)"),
        section(
            "batches = strategy.experimental_distribute_dataset(dataset)",
            "for epoch in range(2):",
            "    for features, labels in batches:",
            "        loss = train_step(features, labels)",
            '    print(f"epoch {epoch}: loss {float(loss):.4f}")',
        ),
    ]


def _scheduled() -> Sections:
    return [
        _step("train_step(iterator)", "next(iterator)"),
        section(
            comment(_("Each worker makes the data set for itself; nobody waits.")),
            "coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)",
            "batches = iter(coordinator.create_per_worker_dataset(dataset))",
            "for epoch in range(2):",
            "    for _step in range(steps_per_epoch):",
            "        loss = coordinator.schedule(train_step, args=(batches,))",
            "    coordinator.join()",
            '    print(f"epoch {epoch}: loss {float(loss.fetch()):.4f}")',
        ),
    ]


def _step(head: str, arguments: str) -> str:
    return "@tf.function\n" + function(
        head,
        _("Trains on a batch, and returns its loss."),
        f"losses = strategy.run(replica_step, args={arguments})",
        'return strategy.reduce("SUM", losses, axis=None)',
    )


_MAKERS: dict[str, Callable[[], Sections]] = {
    strategies.DEFAULT: _default,
    strategies.ONE_DEVICE: _one_device,
    strategies.MIRRORED: _mirrored,
    strategies.CENTRAL_STORAGE: _central_storage,
    strategies.MULTI_WORKER: _multi_worker,
    strategies.PARAMETER_SERVER: _parameter_server,
    strategies.TPU_STRATEGY: _tpu,
}
