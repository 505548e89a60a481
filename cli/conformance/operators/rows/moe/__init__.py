"""The spec rows of the family moe."""
