"""Grading is tested on the simulator: its helpers are importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "simulator"))
