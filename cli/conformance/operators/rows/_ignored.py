"""Why header parameters change no result that is judged; operator documents say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SPEED: Final = "chooses between algorithms of one result"
RANKS: Final = "judged on a communicator of one rank; tests of the simulator compare several"
_SPEEDS: Final = """commTurn streamMode commAlg commMode innerPrecise innerPrecisionMode
cubeMathType tuningConfigOptional tuningConfig deterministic sparse topKGuess useLocking"""
_OF_RANKS: Final = """group groupEp groupTp epWorldSize epRankId tpWorldSize tpRankId worldSize
rankSize globalBs reduceOp"""
# Those that change no result in any operator; rows do not repeat them.
ANYWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(_SPEEDS.split(), SPEED),
    **dict.fromkeys(_OF_RANKS.split(), RANKS),
}


def reserved(params: str) -> dict[str, str]:
    """Parameters that no version uses."""
    return dict.fromkeys(
        params.split(), "reserved, or not used in any version: documents ask for null or 0"
    )


def one_value(params: str) -> dict[str, str]:
    """Parameters that can have one value only."""
    return dict.fromkeys(params.split(), "documents allow one value")


def saved(params: str) -> dict[str, str]:
    """Results of the forward pass that a gradient's reference does not need."""
    why = "what the forward pass saved: the reference computes it again from the other inputs"
    return dict.fromkeys(params.split(), why)


def follows(params: str) -> dict[str, str]:
    """Parameters that repeat what the call says already."""
    return dict.fromkeys(params.split(), "follows from the other arguments and from sizes")


def one_rank(params: str) -> dict[str, str]:
    """Parameters that need several ranks."""
    return dict.fromkeys(params.split(), RANKS)


def speed(params: str) -> dict[str, str]:
    """Parameters that choose an algorithm."""
    return dict.fromkeys(params.split(), SPEED)


REQUESTED: Final = "asks for a result that every sample asks for"


def requested(params: str) -> dict[str, str]:
    """Flags that ask for a result, which every sample sets."""
    return dict.fromkeys(params.split(), REQUESTED)
