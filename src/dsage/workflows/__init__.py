"""Workflows: what people do with importances beyond one call of ``dsage.explain``."""
