"""`python -m tests.mutation build|list|run|score|sample|survivors|report`."""

from .command import main

main()
