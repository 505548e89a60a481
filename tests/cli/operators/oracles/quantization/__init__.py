"""Oracles of the family quantization."""
