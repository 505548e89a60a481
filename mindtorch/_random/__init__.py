"""Generators and the numbers that torch draws from them."""
