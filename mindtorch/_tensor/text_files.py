"""Owns reading the tables that lie as text beside modules, without pathlib: it takes longer to
import than most of them to read."""

import os


def text_beside(module: str, name: str) -> str:
    """The text of the file `name` in the folder of a module's `__file__`."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as file:
        return file.read()
