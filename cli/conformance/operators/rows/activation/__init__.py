"""The spec rows of the family activation."""
