"""Values of single rows."""
