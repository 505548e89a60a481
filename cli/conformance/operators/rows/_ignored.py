"""Why header parameters change no result that is judged; operator documents say so."""

from __future__ import annotations

from typing import Final

SPEED: Final = "chooses between algorithms of one result"
RANKS: Final = "judged on a communicator of one rank; tests of the simulator compare several"
