"""What people do with importances: calls that are built on :func:`dsage.explain`."""
