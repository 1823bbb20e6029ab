"""The experiments of "Efficient SAGE Estimation via Causal Structure Learning", and some beyond."""
