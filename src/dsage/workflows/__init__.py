"""What people do with importances: workflows around :func:`dsage.explain`."""
