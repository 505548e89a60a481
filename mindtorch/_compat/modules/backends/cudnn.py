"""Owns torch.backends.cudnn's switches: kept, without effect."""

from __future__ import annotations

from types import TracebackType

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None


class flags:  # noqa: N801 - torch's name
    """A context that sets switches; accepted without effect."""

    def __init__(self, **switches: object):
        self.switches = switches

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None
