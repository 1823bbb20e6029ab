"""Accumulators of an estimation: means over units, sums by row, the first level, the history."""
