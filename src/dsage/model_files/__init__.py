"""Fitted models from files."""

from dsage.model_files.load import load_model

__all__ = ["load_model"]
