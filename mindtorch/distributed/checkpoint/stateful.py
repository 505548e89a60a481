"""Owns Stateful: objects that say what of them a checkpoint holds."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has state_dict and load_state_dict: modules, optimizers, and others of one's own."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint is to hold."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what a checkpoint held."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
