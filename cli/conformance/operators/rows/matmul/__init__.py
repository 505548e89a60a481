"""The spec rows of the family matmul."""
