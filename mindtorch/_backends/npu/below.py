"""Owns running a device's own composition of ops without recording gradients or functionalizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._autograd.grad_mode import LOCAL, activate

_AUTOGRAD = 8  # DispatchKey.Autograd, which _dispatch owns: layers are above backends
_FUNCTIONALIZE = 16


def below_autograd(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, with the layers above the backend passed by for the ops that it calls."""

    def inside(*args: Any) -> Any:
        before = LOCAL.exclude
        LOCAL.exclude = before | _AUTOGRAD | _FUNCTIONALIZE
        activate(1)
        try:
            return run(*args)
        finally:
            LOCAL.exclude = before
            activate(-1)

    return inside
