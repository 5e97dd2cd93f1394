"""What works under the strategies of tf.distribute: each feature is a program, held to one device."""
