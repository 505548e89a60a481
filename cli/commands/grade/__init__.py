"""Grades one operator that is not trusted."""
