"""One mesh over several processes, its clients."""
