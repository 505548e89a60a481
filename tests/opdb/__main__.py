"""`python -m tests.opdb --device cpu|npu|meta [--name NAME] [--json FILE]`."""

from .command import main

main()
