"""Training: runs that yield records, can be stopped after any of them, and resume to the bit."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "CheckpointFolder": "checkpoints",
        "SGD": "optimizers.sgd",
        "Settings": "settings",
        "StrategyTrainer": "strategy_trainer",
        "TrainingRun": "run",
        "train": "run",
    },
)
