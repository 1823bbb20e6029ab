"""Benchmarks against named alternatives, measured in the same run."""
