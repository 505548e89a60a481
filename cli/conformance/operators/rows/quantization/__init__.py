"""The spec rows of the family quantization."""
