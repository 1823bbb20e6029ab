"""Estimation: the average surplus of every feature over orderings, its errors, when to stop."""
