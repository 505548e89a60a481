"""Oracles of the family norm."""
