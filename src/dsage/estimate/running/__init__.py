"""Run an estimation to an end: rules, checkpoints, progress."""
