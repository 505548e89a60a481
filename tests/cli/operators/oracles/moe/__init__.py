"""Oracles of the family moe."""
