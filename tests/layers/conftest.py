"""Layers are tested with the simulator's programs: its helpers are importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "simulator"))
