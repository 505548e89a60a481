"""`python -m tests.mutation build|list|run|bugs|sample|report`."""

from .command import main

main()
