"""What an estimation adds up: means over units, sums by row, the first level, the history."""
