"""The spec rows of the family collective."""
