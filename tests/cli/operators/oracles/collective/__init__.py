"""Oracles of the family collective."""
