"""Oracles of the family attention."""
