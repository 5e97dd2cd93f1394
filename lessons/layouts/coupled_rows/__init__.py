"""When it is not enough to average the gradients: batch normalisation, and the last, smaller batch."""
