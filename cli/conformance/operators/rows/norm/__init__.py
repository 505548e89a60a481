"""The spec rows of the family norm."""
