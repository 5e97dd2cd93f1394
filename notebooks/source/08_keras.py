# %% [markdown]
# # 8. DTensor and Keras
#
# The layers of the lessons before were written by hand, with a layout for each variable.
# Keras has layers ready to use.
# Do they take layouts, and does `fit` train them?
#
# After this lesson you can
#
# - give Keras's layers their layouts, one by one and by patterns of names;
# - train such a model with a step of your own, and compare it with one device;
# - find a layout that Keras never used, though no error said so;
# - say what each Keras distributes today, and choose one.
#
# **Time:** 40 minutes.
# **You need to know:** lesson 3 (a training step) and lesson 5 (layouts of consecutive layers).
#
# > **Where this was run.** TensorFlow 2.21, tf_keras 2.21 and Keras 3 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor and tf_keras's part of it are experimental: their names may change.
#
# ## Two Kerases
#
# There are two.
# `tf.keras` is Keras 3 since TensorFlow 2.16.
# Keras 2 lives on as a package of its own, `tf_keras`, and its layers take DTensor's layouts.
# Both can be imported side by side.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% arguments-text [markdown]
# ## A layout for each variable of a layer
#
# A `Dense` layer has two variables, `kernel` and `bias`.
# For each there is an argument that takes a layout: `kernel_layout` and `bias_layout`.
# The mesh has the dimensions `batch` 4 × `model` 2, as in lesson 5.
# The pictures are made from the layouts that the variables really have.

# %% layers
import keras
import numpy as np
import tf_keras
from IPython.display import display

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from course_lib.dtensor import create_mesh, pack, to_layout, to_numpy, unpack
from course_lib.exercises import check, predict, reveal, score
from course_lib.keras_layouts import shardings

tf = course_lib.start_tensorflow()
