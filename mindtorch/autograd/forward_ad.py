"""torch.autograd.forward_ad: dual numbers, a value and its derivative along one direction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from .._autograd.forward import plain, refuse_sizes, refuse_whole, set_tangent, tangent_of
from .._autograd.grad_mode import LOCAL, MODES, ContextDecorator
from .._tensor.tensor import Tensor
from ..ops.spec import aten

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]  # fmt: skip

# Each level has a number of its own: tangents of a level that ended are not seen again.
_numbers = itertools.count(1)


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return 0 if LOCAL.dual else -1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begin the level on this thread; RuntimeError inside another one."""
    if LOCAL.dual:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    MODES.active += 1
    LOCAL.dual = next(_numbers)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are gone."""
    if level is not None and (level or not LOCAL.dual):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is"
            " not supported."
        )
    if not LOCAL.dual:
        raise RuntimeError("Dual level must be a positive number.")
    LOCAL.dual = 0
    MODES.active -= 1


class dual_level(ContextDecorator):  # noqa: N801 - torch's name
    """The level in which derivatives are carried forward; it does not nest."""

    def steps(self) -> Iterator[int]:
        level = enter_dual_level()
        try:
            yield level
        finally:
            exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are carried."""
    return LOCAL.carries


class _set_fwd_grad_enabled(ContextDecorator):  # noqa: N801 - torch's name
    """Whether tangents are carried inside a level, and inside what torch.func carries forward."""

    def __init__(self, mode: bool):
        self.mode = mode

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)

    def steps(self) -> Iterator[None]:
        before = LOCAL.dual, LOCAL.carries, LOCAL.grad
        moves = bool(LOCAL.forwards) and LOCAL.forwards[-1] is LOCAL.transforms[-1]
        try:
            LOCAL.dual, LOCAL.carries = LOCAL.dual if self.mode else 0, self.mode
            LOCAL.grad = LOCAL.grad and (self.mode or not moves)
            yield
        finally:
            LOCAL.dual, LOCAL.carries, LOCAL.grad = before


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, of the same shape; gradients flow through both.

    RuntimeError outside a level, of another shape, or for a tensor that has a tangent;
    ValueError for integers.
    """
    if not LOCAL.dual or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to"
            " enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        value.is_floating_point()  # AttributeError for what is no tensor
        refuse_whole(name, value)
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the"
            " same level 0 is not supported."
        )
    if tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not"
            " supported."
        )
    refuse_sizes(tensor, tangent)
    with plain():
        dual: Tensor = aten.alias(tensor)
    if dual.grad_fn is not None:
        dual.grad_fn.label = "ViewBackward0"
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value, a view of `tensor` without its tangent, and the tangent."""
    if not LOCAL.dual or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    with plain():
        primal: Tensor = aten.alias(tensor)
    if primal.grad_fn is not None:
        primal.grad_fn.label = "Identity"
    set_tangent(primal, None)
    return UnpackedDualTensor(primal, tangent)
