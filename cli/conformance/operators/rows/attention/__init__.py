"""The spec rows of the family attention."""
