"""Owns what programs import from torch.testing._internal."""
