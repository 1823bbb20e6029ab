"""Fitted models from files."""

from dsage.models.files.load import load_model

__all__ = ["load_model"]
