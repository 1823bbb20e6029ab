"""Partial orders of the features, and the orderings that respect them."""
