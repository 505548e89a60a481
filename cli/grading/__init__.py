"""Grades an operator that is not trusted: what is launched where, what came, what it is worth."""
