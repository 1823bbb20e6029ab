"""Searches for the graph that scores best."""
