"""Run an estimation to its end: stopping rules, checkpoints, progress."""
