"""Oracles of the family activation."""
