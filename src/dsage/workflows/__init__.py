"""Workflows around :func:`dsage.explain`: comparisons, cross-validation, selection and others."""
