"""Gives `re` with possessive quantifiers, by which no header makes the parser slow.

Python has them since 3.11; before, the package `regex` has, under the same names.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    import re
else:
    import regex as re

__all__ = ["re"]
