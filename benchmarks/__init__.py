"""Measurements against named alternatives, each a ratio within one run."""
