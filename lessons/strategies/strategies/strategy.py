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
_FIT_FAILS = MULTI_WORKER, PARAMETER_SERVER  # of Keras 3


@dataclass(frozen=True)
class Situation:
    """What a training is to run on, and how.

    >>> Situation("GPUs").strategy
    'MirroredStrategy'
    >>> Situation("GPUs", several_machines=True, synchronous=False).strategy
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
    def strategy(self) -> str:
        """The name of the strategy that suits."""
        return _chosen(self)[0]

    @property
    def rule(self) -> str:
        """Why it is this one."""
        return _chosen(self)[1]

    @property
    def advised_loop(self) -> str:
        """How to train: as asked, or with a custom loop where Keras 3's `fit` fails."""
        return CUSTOM_LOOP if self._is_at_risk and self.strategy in _FIT_FAILS else self.loop

    @property
    def warning(self) -> str:
        """What does not work as asked, or nothing; this lesson asks what the wrong loss is.

        Source: the table of strategies that `make results` makes by running each case.
        """
        if not self._is_at_risk:
            return ""
        if self.strategy in _FIT_FAILS:
            return _(
                "`fit` of Keras 3 fails under {strategy}. A custom loop works, and so does `fit` of"
                " tf_keras.",
                strategy=self.strategy,
            )
        if self.strategy == CENTRAL_STORAGE:
            return _(
                "Under {strategy}, hold `fit` of Keras 3 against one device: not all of it is right. A loop"
                " without metrics works, and so does `fit` of tf_keras.",
                strategy=self.strategy,
            )
        return ""

    @property
    def _is_at_risk(self) -> bool:
        return (self.loop, self.keras) == (FIT, KERAS_3)


def has_choice_of_variables(
    devices: str, several_machines: bool, synchronous: bool, **_others: object
) -> bool:
    """Returns whether there is a choice of where variables are."""
    return devices == GPUS and synchronous and not several_machines


def _chosen(situation: Situation) -> tuple[str, str]:  # noqa: PLR0911 - a rule each
    """Returns the strategy that suits, and why: the first rule that holds."""
    if situation.devices == TPU:
        return TPU_STRATEGY, _("TPUs have a strategy of their own, for one host and for several.")
    if not situation.synchronous:
        return PARAMETER_SERVER, _(
            "Only this strategy trains asynchronously: variables are on servers, and each worker takes its"
            " steps without waiting for the others."
        )
    if situation.several_machines:
        return MULTI_WORKER, _(
            "Several machines that train synchronously each hold all variables and add up their gradients in"
            " every step."
        )
    if situation.variables == CENTRAL_VARIABLES:
        return CENTRAL_STORAGE, _(
            "Several GPUs of one machine compute, while the variables are on the CPU, once. This strategy is"
            " experimental."
        )
    if situation.devices == GPUS:
        return MIRRORED, _(
            "Several GPUs of one machine that train synchronously each hold all variables and add up their"
            " gradients in every step."
        )
    if situation.devices == GPU:
        return ONE_DEVICE, _(
            "One GPU: everything is placed on it. The code is that for several GPUs, so it can be tried out"
            " before it is distributed."
        )
    return DEFAULT, _(
        "There is nothing to distribute over: without a strategy of your own the default one is in"
        " force, and passes everything through."
    )
