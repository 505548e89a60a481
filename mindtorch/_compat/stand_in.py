"""Owns whether mindtorch stands in for torch in this process (`mindtorch.as_torch`, `exec`)."""

ACTIVE = False
