"""Evaluate games on several processors or machines."""
