"""Which strategy suits a situation, and the rule that decides it."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.errors import CourseError
from course_lib.i18n import _

CPU, GPU, GPUS, TPU = "CPU", "GPU", "GPUs", "TPU"
FIT, CUSTOM_LOOP = "fit", "custom loop"
KERAS_3, TF_KERAS = "Keras 3", "tf_keras"
MIRRORED_VARIABLES, CENTRAL_VARIABLES = "on each device", "on the CPU"

DEFAULT, ONE_DEVICE, MIRRORED = "default strategy", "OneDeviceStrategy", "MirroredStrategy"
CENTRAL_STORAGE, TPU_STRATEGY = "CentralStorageStrategy", "TPUStrategy"
MULTI_WORKER, PARAMETER_SERVER = "MultiWorkerMirroredStrategy", "ParameterServerStrategy"


@dataclass(frozen=True)
class Situation:
    """What a training is to run on, and how.

    >>> Situation("GPUs").advice.strategy
    'MirroredStrategy'
    >>> Situation("GPUs", several_machines=True, synchronous=False).advice.strategy
    'ParameterServerStrategy'

    Attributes:
        devices: what one machine has to compute on: "CPU", "GPU" for one, "GPUs" for several, or "TPU".
        several_machines: whether more than one machine takes part.
        synchronous: whether all wait for each other in every step.
        variables: "on each device", or "on the CPU" for several GPUs of one machine in synchronous training.
        loop: "fit" of Keras, or a "custom loop".
        keras: "Keras 3", which `tf.keras` is, or "tf_keras", which is Keras 2.

    Raises:
        CourseError: no strategy trains asynchronously on TPUs.
    """

    devices: str = CPU
    several_machines: bool = False
    synchronous: bool = True
    variables: str = MIRRORED_VARIABLES
    loop: str = FIT
    keras: str = KERAS_3

    def __post_init__(self) -> None:
        if self.devices == TPU and not self.synchronous:
            raise CourseError(
                _("No strategy trains asynchronously on TPUs."),
                allowed=_("synchronous training on TPUs; asynchronous training on CPUs and GPUs"),
                cure=_("Choose synchronous training, or other devices."),
            )

    @property
    def advice(self) -> Advice:
        """The strategy that suits, and why."""
        strategy = _strategy(self)
        at_risk = (self.loop, self.keras) == (FIT, KERAS_3)
        fails = at_risk and strategy in (MULTI_WORKER, PARAMETER_SERVER)
        loop = CUSTOM_LOOP if fails else self.loop
        return Advice(strategy, _rule(strategy), loop, _warning(strategy) if at_risk else "")


def has_choice_of_variables(
    devices: str, several_machines: bool, synchronous: bool, **_others: object
) -> bool:
    """Returns whether there is a choice of where variables are."""
    return devices == GPUS and synchronous and not several_machines


@dataclass(frozen=True)
class Advice:
    """The strategy that suits a situation.

    Attributes:
        strategy: its name.
        rule: why it is this one.
        loop: how to train: as asked, or "custom loop" where Keras 3's `fit` fails.
        warning: what does not work as asked, or nothing.
    """

    strategy: str
    rule: str
    loop: str
    warning: str = ""


def _strategy(situation: Situation) -> str:
    """Returns the first strategy whose rule holds; `_rule` says these rules in words."""
    decided = {
        TPU_STRATEGY: situation.devices == TPU,
        PARAMETER_SERVER: not situation.synchronous,
        MULTI_WORKER: situation.several_machines,
        CENTRAL_STORAGE: situation.variables == CENTRAL_VARIABLES,
        MIRRORED: situation.devices == GPUS,
        ONE_DEVICE: situation.devices == GPU,
        DEFAULT: True,
    }
    return next(strategy for strategy, holds in decided.items() if holds)


def _rule(strategy: str) -> str:
    return {
        TPU_STRATEGY: _("TPUs have a strategy of their own, for one host and for several."),
        PARAMETER_SERVER: _(
            "Only this strategy trains asynchronously: variables are on servers, and each worker takes its"
            " steps without waiting for the others."
        ),
        MULTI_WORKER: _(
            "Several machines that train synchronously each hold all variables and add up their gradients in"
            " every step."
        ),
        CENTRAL_STORAGE: _(
            "Several GPUs of one machine compute, while the variables are on the CPU, once. This strategy is"
            " experimental."
        ),
        MIRRORED: _(
            "Several GPUs of one machine that train synchronously each hold all variables and add up their"
            " gradients in every step."
        ),
        ONE_DEVICE: _(
            "One GPU: everything is placed on it. The code is that for several GPUs, so it can be tried out"
            " before it is distributed."
        ),
        DEFAULT: _(
            "There is nothing to distribute over: without a strategy of your own the default one is in"
            " force, and passes everything through."
        ),
    }[strategy]


def _warning(strategy: str) -> str:
    """Returns what is wrong with `fit` of Keras 3 under a strategy; this lesson asks what its wrong loss is.

    Source: the table of strategies that `make results` makes by running each case.
    """
    if strategy in (MULTI_WORKER, PARAMETER_SERVER):
        return _(
            "`fit` of Keras 3 fails under {strategy}. A custom loop works, and so does `fit` of tf_keras.",
            strategy=strategy,
        )
    if strategy == CENTRAL_STORAGE:
        return _(
            "Under {strategy}, hold `fit` of Keras 3 against one device: not all of it is right. A loop"
            " without metrics works, and so does `fit` of tf_keras.",
            strategy=strategy,
        )
    return ""
