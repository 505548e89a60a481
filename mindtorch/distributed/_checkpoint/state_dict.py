"""Owns torch.distributed.checkpoint.state_dict: states of models and optimizers by names.

Models are whole in every process here: the options that gather shards ask for what is so anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mindtorch
from mindtorch import nn
from mindtorch.nn.modules.module import _IncompatibleKeys
from mindtorch.optim import Optimizer

from .. import broadcast_object_list, get_world_size, is_initialized

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
Optimizers = Optimizer | Iterable[Optimizer]


@dataclass
class StateDictOptions:
    """What a state holds and how it is loaded; see torch's document of the same name."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
        if self.flatten_optimizer_state_dict:
            raise NotImplementedError("StateDictOptions: flatten_optimizer_state_dict is not here")


def _inside(model: nn.Module) -> nn.Module:
    """The model that DistributedDataParallel holds."""
    while isinstance(model, nn.parallel.DistributedDataParallel):
        model = model.module
    return model


def _offloaded(state: Any, options: StateDictOptions) -> Any:
    """The state, its tensors on the cpu where that is asked for."""
    from mindtorch.utils._pytree import tree_map_only

    if not options.cpu_offload:
        return state
    return tree_map_only(mindtorch.Tensor, lambda t: t.cpu(), state)


def _from_first(state: Any, options: StateDictOptions) -> Any:
    """The state of the first process where that is asked for."""
    if not options.broadcast_from_rank0 or not is_initialized() or get_world_size() == 1:
        return state
    whole = [state]
    broadcast_object_list(whole, 0)
    return whole[0]


def get_model_state_dict(
    model: nn.Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Parameters and buffers by their names within the model."""
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict: submodules: ask the submodule itself")
    options, inside = options or StateDictOptions(), _inside(model)
    state = OrderedDict(inside.state_dict())
    if options.ignore_frozen_params:
        for name, p in inside.named_parameters():
            if not p.requires_grad:
                state.pop(name, None)
    return _offloaded(state, options)


def set_model_state_dict(
    model: nn.Module, model_state_dict: Mapping[str, Any], *,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:  # fmt: skip
    """Loads a state; a model on meta takes the tensors of a full one as they are."""
    options, inside = options or StateDictOptions(), _inside(model)
    state = _from_first(model_state_dict, options)
    if not state:
        return _IncompatibleKeys([], [])
    homeless = any(t.is_meta for t in inside.state_dict().values())
    assign = options.full_state_dict and homeless
    return inside.load_state_dict(state, strict=options.strict, assign=assign)


def _names(model: nn.Module) -> dict[int, str]:
    return {id(p): name for name, p in _inside(model).named_parameters()}


def _each(optimizers: Optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: nn.Module, optimizers: Optimizers, *, submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """States by the names of parameters, and the groups that hold these names."""
    names = _names(model)
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _each(optimizers):
        for group in optimizer.param_groups:
            names_here = [names[id(p)] for p in group["params"]]
            options_here = {k: v for k, v in group.items() if k != "params"}
            state["param_groups"].append({**options_here, "params": names_here})
            for p, name in zip(group["params"], names_here, strict=True):
                if p in optimizer.state:
                    state["state"][name] = dict(optimizer.state[p])
    return _offloaded(state, options or StateDictOptions())


def set_optimizer_state_dict(
    model: nn.Module, optimizers: Optimizers, optim_state_dict: Mapping[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Loads what get_optimizer_state_dict gave; KeyError for a parameter of none of its groups."""
    message = _from_first(optim_state_dict, options or StateDictOptions())
    names = _names(model)
    settings = {name: g for g in message["param_groups"] for name in g["params"]}
    for optimizer in _each(optimizers):
        state: dict[int, Any] = {}
        groups, at = [], 0
        for group in optimizer.param_groups:
            names_here = [names[id(p)] for p in group["params"]]
            places = list(range(at, at + len(names_here)))
            at += len(names_here)
            groups.append({**settings[names_here[0]], "params": places} if names_here else group)
            state |= {
                i: message["state"][name]
                for i, name in zip(places, names_here, strict=True)
                if name in message["state"]
            }
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(
    model: nn.Module, optimizers: Optimizers, *, submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """(the state of the model, that of its optimizers)."""
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    return model_state, get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: nn.Module, optimizers: Optimizers, *, model_state_dict: Mapping[str, Any],
    optim_state_dict: Mapping[str, Any], options: StateDictOptions | None = None,
) -> _IncompatibleKeys:  # fmt: skip
    """Loads the states of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
