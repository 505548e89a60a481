"""Owns the exit codes of every command.

A command that was asked to judge, and judged nothing or less than it was asked, ends with
NOT_JUDGED and says the reason: a missing verdict is not a pass.
"""

from typing import Final

OK: Final = 0
PROBLEMS: Final = 1
USAGE: Final = 2
NOTHING: Final = 3
REGRESSIONS: Final = 4
NOT_JUDGED: Final = 5
DEFECT: Final = 70
INTERRUPTED: Final = 130
