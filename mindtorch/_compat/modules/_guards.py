"""torch._guards: what libraries ask about compilation, which never happens here."""

from __future__ import annotations


def active_fake_mode() -> None:
    """None: there are no fake tensors."""


def detect_fake_mode(inputs: object = None) -> None:
    """None: there are no fake tensors."""


class TracingContext:
    """What is being compiled; there never is one."""

    @staticmethod
    def try_get() -> None:
        """None: nothing is being compiled."""
