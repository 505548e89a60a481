"""Oracles of the family loss."""
