"""Owns how what was traced runs again: with what the trace read of tensors kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.graph import NotLowered
from mindtorch._compat.torchscript.unit import LoweredFunction
from mindtorch.nn.modules.module import Module
from mindtorch.utils._pytree import tree_map

from . import state
from .decisions import Decisions, call
from .failures import interpreted

TABLES = ("_parameters", "_buffers", "_modules")


def of_trace(lowered: LoweredFunction | NotLowered | None) -> LoweredFunction:
    """What a trace recorded; NotLowered where it recorded nothing that can be shown."""
    if not isinstance(lowered, LoweredFunction):
        raise lowered or NotLowered("nothing was recorded of this trace")
    return lowered


def of_frozen(name: str) -> Callable[..., object]:
    """A method of a traced module: the frozen module's result."""

    def method(self: Module, *args: object, **kwargs: object) -> object:
        target = self.__dict__["_frozen"]
        called = target if name == "forward" else getattr(target, name)
        return replayed(called, self.__dict__["_traces"][name], args, kwargs)

    method.__name__ = name
    return method


def frozen(module: Module, memo: dict[int, Module] | None = None) -> Module:
    """A module of the same class with the same parameters, whose flags stay as they are."""
    memo = {} if memo is None else memo
    if id(module) not in memo:
        twin = memo[id(module)] = object.__new__(type(module))
        twin.__dict__.update(module.__dict__)
        twin.__dict__.update({n: copy.copy(module.__dict__[n]) for n in TABLES})
        for name, child in twin._modules.items():
            twin._modules[name] = None if child is None else frozen(child, memo)
    return memo[id(module)]


def replayed(
    function: Callable[..., Any],
    decisions: Decisions,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """The result of a traced function."""
    with interpreted(traced=True), state.tracing():  # what asks is answered as in the trace
        if not decisions.values:
            return tree_map(_as_tensor, function(*args, **kwargs))
        with decisions.replay():
            return call(function, decisions, args, kwargs)


def _as_tensor(value: object) -> object:
    """A size that a traced function gives, which is a tensor in a trace."""
    return mindtorch.tensor(value) if isinstance(value, int | float) else value
