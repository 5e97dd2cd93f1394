"""Training programs of several processes, which a reader starts by hand, from a notebook, or on a cluster.

Each is one file, told by environment variables (TF_CONFIG, or DTensor's) which process it is.
They know nothing of who starts them: a notebook, a shell on each machine, Kubernetes and Slurm do it alike.
What they tell begins with "course: ". As everywhere in the course, TensorFlow gets few threads, so that
several processes can share a laptop; where each has a machine, set TF_NUM_INTEROP_THREADS and
TF_NUM_INTRAOP_THREADS to 0, TensorFlow's own choice.
On Slurm `lessons.lesson_11_many_processes.programs.slurm` tells each process its place.
"""
