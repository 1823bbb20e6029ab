"""Values of single rows: plan, run and result."""
