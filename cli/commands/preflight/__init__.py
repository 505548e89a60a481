"""Finds chips that are wrong within a budget of seconds."""
