"""When it is not enough to average the gradients: batch normalization, and the last, smaller batch."""
