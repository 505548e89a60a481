"""Oracles of the family matmul."""
