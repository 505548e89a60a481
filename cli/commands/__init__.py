"""Owns the commands: one folder each, with its `command.py`; `main` finds them by name."""
