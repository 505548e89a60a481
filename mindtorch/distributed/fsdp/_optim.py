"""Owns states of optimizers over flat parts: whole tensors by names of parameters, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindtorch import nn
from mindtorch.optim import Optimizer

from ..._tensor.tensor import Tensor
from ._flat import FlatUnit

State = dict[str, Any]
_PREFIX = "_fsdp_wrapped_module."


def _units(model: nn.Module) -> Iterator[tuple[str, FlatUnit]]:
    """(how names begin, unit) of each wrapped module."""
    for name, m in model.named_modules():
        unit = vars(m).get("_unit")
        if isinstance(unit, FlatUnit) and unit.pieces:
            yield f"{name}.".replace(_PREFIX, "") if name else "", unit


def _named(model: nn.Module) -> dict[int, list[str]]:
    """The names of what each parameter of an optimizer holds."""
    names: dict[int, list[str]] = {}
    within: set[int] = set()
    for start, unit in _units(model):
        each = [f"{start}{piece.name}" for piece in unit.pieces]
        if unit.original:
            for name, (_, p) in zip(each, unit.slices(), strict=True):
                names[id(p)] = [name]
        else:
            names[id(unit.flat)] = each
        within |= {id(p) for p in unit.learned()}
    for name, p in nn.Module.named_parameters(model):
        if id(p) not in within:
            names[id(p)] = [name.replace(_PREFIX, "")]
    return names


def whole_state(model: nn.Module, optim: Optimizer, state: State | None) -> State:
    """By names, with whole tensors, in every process."""
    state = optim.state_dict() if state is None else state
    at = _places(optim)
    whole: dict[str, State] = {}
    for start, unit in _units(model):
        states = [state["state"].get(at.get(id(p)), {}) for p in unit.learned()]
        for key in dict.fromkeys(key for s in states for key in s):
            flat = _is_of(states[0][key], unit.learned()[0])
            gathered = None
            if flat:
                gathered = unit.gathered(unit.joined([s[key] for s in states]))
            for i, piece in enumerate(unit.pieces):
                values_of = whole.setdefault(f"{start}{piece.name}", {})
                value = states[i if unit.original else 0][key]
                if gathered is not None:
                    value = gathered[piece.start : piece.end].view(piece.shape)
                values_of[key] = _copy(value)
    names = _named(model)
    for group in optim.param_groups:
        for p in group["params"]:
            (name, *more) = names[id(p)]
            if not more and name not in whole and at[id(p)] in state["state"]:
                whole[name] = state["state"][at[id(p)]]
    groups = [
        {**raw, "params": [n for p in group["params"] for n in names[id(p)]]}
        for raw, group in zip(state["param_groups"], optim.param_groups, strict=True)
    ]
    return {"state": whole, "param_groups": groups}


def _is_of(value: object, part: Tensor) -> bool:
    """Whether a state has an element for each of a part."""
    return isinstance(value, Tensor) and value.ndim > 0 and value.numel() == part.numel()


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _places(optim: Optimizer) -> dict[int, int]:
    """Parameters' places in an optimizer."""
    every = [p for group in optim.param_groups for p in group["params"]]
    return {id(p): i for i, p in enumerate(every)}


def local_state(model: nn.Module, optim: Optimizer, state: State) -> State:
    """The parts of this process, by places."""
    at, names = _places(optim), _named(model)
    parts: dict[int, State] = {}
    for start, unit in _units(model):
        each = [state["state"].get(f"{start}{piece.name}", {}) for piece in unit.pieces]
        learned = unit.learned()
        for key in dict.fromkeys(key for s in each for key in s):
            first = each[0][key]
            flat = isinstance(first, Tensor) and first.numel() == unit.pieces[0].end
            values = first
            if flat and first.ndim:
                values = unit.own(unit.flattened([s[key] for s in each]))
            for piece, p in zip(unit.pieces, learned, strict=False):
                value = values
                if unit.original and flat and first.ndim:
                    begin, end = unit.range_of(piece)
                    value = values[begin:end].view(p.shape)
                parts.setdefault(at[id(p)], {})[key] = _copy(value)
    for p in (p for group in optim.param_groups for p in group["params"]):
        (name, *more) = names[id(p)]
        if not more and at[id(p)] not in parts and name in state["state"]:
            parts[at[id(p)]] = state["state"][name]
    groups = [
        {**raw, "params": [at[id(p)] for p in group["params"]]}
        for raw, group in zip(state["param_groups"], optim.param_groups, strict=True)
    ]
    return {"state": parts, "param_groups": groups}
