"""Reverse-mode differentiation: nodes, saved tensors, the engine and its user surface."""
