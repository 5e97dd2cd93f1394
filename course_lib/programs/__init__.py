"""Training programs of several processes, which a reader starts by hand, from a notebook, or on a cluster.

Each is one file, told by environment variables (TF_CONFIG, or DTensor's) which process it is:

    python -m course_lib.programs.multi_worker --steps 20 --checkpoints DIR
    python -m course_lib.programs.parameter_server --steps 60
    python -m course_lib.programs.multi_client --steps 20 --checkpoints DIR

On Slurm `course_lib.programs.slurm` tells them.
"""
