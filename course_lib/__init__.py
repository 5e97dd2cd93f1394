"""The library of the course: what lessons share, to draw, observe, check, train and watch.

Importing it does not import TensorFlow: each name is loaded when it is first used. The packages, from the
bottom up: `specs`, `pictures`, `code`, `strategies`, `data`, `models`, `widgets`, `training`, `watch`,
`explorers`, `exercises`, `measured`. What one lesson alone needs lies in that lesson's folder.
"""

from course_lib.lazy import face

# All that lessons import. A name that its home ends in is that module.
__getattr__, __dir__ = face(
    __name__,
    {
        "CourseError": "errors",
        "outcome": "errors",
        **dict.fromkeys(("collectives", "compare", "explain", "shard", "show"), "seen"),
        "setup": "runtime",
        "start_tensorflow": "runtime",
        "UNSHARDED": "specs.mesh",
        "MeshSpec": "specs.mesh",
        "LayoutSpec": "specs.layout",
        "numbered_tensor": "specs.sharding",
        "communication": "specs.communication",
        "product": "specs.communication",
        "step_collectives": "specs.step_communication",
        "plan": "specs.plan",
        **dict.fromkeys(
            ("Plan", "data_parallel", "model_parallel", "replicated", "spatial_parallel"), "specs.plan"
        ),
        "ImageGrid": "specs.image_grid",
        **dict.fromkeys(
            (
                "create_mesh",
                "fetch_layout",
                "layout_spec",
                "pack",
                "pack_components",
                "relayout",
                "to_layout",
                "to_numpy",
                "unpack",
            ),
            "dtensor",
        ),
        "no_combining": "combining",
        "mirrored": "strategies.making",
        "fashion": "data.fashion",
        "mnist": "data.mnist",
        "tfidf": "data.tfidf",
        "to_features": "data.images",
        "convolutional": "models.fashion",
        "placement": "models.placement",
        "CheckpointFolder": "training.checkpoints",
        "History": "training.records",
        "StepRecord": "training.records",
        "evaluate": "training.evaluate",
        "live": "watch.live",
        "training_curves": "watch.curves",
        **dict.fromkeys(("check", "predict", "reveal", "score", "yours_or_ours"), "exercises"),
    },
)
