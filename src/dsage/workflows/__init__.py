"""Calls that explain more than one run or more than one question at a time."""
