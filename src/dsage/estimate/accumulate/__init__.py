"""What is known so far: sums over units, risks by rows, the first level, the history."""
