"""Owns the exit codes of every command."""

from typing import Final

OK: Final = 0
PROBLEMS: Final = 1
USAGE: Final = 2
NOTHING: Final = 3
REGRESSIONS: Final = 4
DEFECT: Final = 70
INTERRUPTED: Final = 130
