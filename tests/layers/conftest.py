"""Layers are tested with the simulator's programs: its helpers are importable here."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "simulator"))

# A job in the background of a script ignores these, and so would the programs that tests start.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
