"""The spec rows of the family loss."""
