"""Scores of a node and its parents, one file a family of distributions."""
