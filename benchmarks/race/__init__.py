"""The race: SAGE values by dsage and by other packages, on the same problems in one run."""
