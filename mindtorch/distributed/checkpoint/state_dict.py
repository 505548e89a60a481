"""Owns torch.distributed.checkpoint.state_dict: states of models and optimizers by names.

Names are those of the model itself: without wrappers for data parallelism or checkpoints of
activations. Tensors are in parts where the model's are, or whole where that is asked for.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mindtorch
from mindtorch import nn
from mindtorch.nn.modules.module import _IncompatibleKeys
from mindtorch.optim import Optimizer

from ..._tensor.tensor import Tensor
from .. import get_rank
from ..fsdp import FullyShardedDataParallel as Wrapped
from ._wholes import from_first, gathered, spread
from .planner_helpers import flatten_state_dict, set_element

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
Optimizers = Optimizer | Iterable[Optimizer]
State = dict[str, Any]
_CHECKPOINTED = "_checkpoint_wrapped_module."


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


def _options(options: StateDictOptions | None) -> StateDictOptions:
    """ValueError for options that need others."""
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _name(model: nn.Module, key: str) -> str:
    """A name in a model without the names of what wraps its modules."""
    inner: Any = model
    parts = []
    for part in key.replace(_CHECKPOINTED, "").split("."):
        wraps = isinstance(inner, nn.parallel.DistributedDataParallel) and part == "module"
        compiled = part == "_orig_mod" and hasattr(inner, "_orig_mod")
        if not wraps and not compiled:
            parts.append(part)
        inner = getattr(inner, part, inner if part not in ("module", "_orig_mod") else None)
        inner = getattr(inner, "_checkpoint_wrapped_module", inner)
    return ".".join(parts)


def _below(model: nn.Module, submodules: Container[nn.Module] | None) -> tuple[str, ...]:
    """How names in some modules of a model begin."""
    if not submodules:
        return ()
    warnings.warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5."
        " This feature can be achieved by manually filtering out the state_dict returned from"
        " get_state_dict.",
        FutureWarning,
        stacklevel=3,
    )
    return tuple(
        f"{_name(model, key)}." for key, module in model.named_modules() if module in submodules
    )


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: Container[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:
    """Parameters and buffers by their names within the model."""
    options, starts = _options(options), _below(model, submodules)
    state = OrderedDict((_name(model, key), v) for key, v in model.state_dict().items())
    if options.ignore_frozen_params:
        for key, p in model.named_parameters(remove_duplicate=False):
            if not p.requires_grad:
                state.pop(_name(model, key), None)
    if starts:
        pairs = [(name, v) for name, v in state.items() if name.startswith(starts)]
        if not options.keep_submodule_prefixes:
            pairs = [(name[len(_start(name, starts)) :], v) for name, v in pairs]
        state = OrderedDict(pairs)
    whole: State = gathered(state, options.full_state_dict, options.cpu_offload)
    return whole


def _start(name: str, starts: tuple[str, ...]) -> str:
    return next(s for s in starts if name.startswith(s))


def _with_prefixes(model: nn.Module, state: Mapping[Any, Any]) -> State:
    """A state by modules of the model as one by names."""
    if not state or isinstance(next(iter(state)), str):
        return dict(state)
    warnings.warn(
        "Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]``is deprecated and will be"
        " removed in 2.5. If you need this feature, please preprocess the model_state_dict to"
        " achieve the same functionality.",
        FutureWarning,
        stacklevel=3,
    )
    starts = {module: f"{_name(model, key)}." for key, module in model.named_modules()}
    return {
        f"{starts[module]}{name}": v for module, part in state.items() for name, v in part.items()
    }


def set_model_state_dict(
    model: nn.Module, model_state_dict: Mapping[Any, Any], *,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:  # fmt: skip
    """Loads a state; a model on meta takes the tensors of a full one as they are.

    RuntimeError for an empty one that no option explains.
    """
    options, state = _options(options), _with_prefixes(model, model_state_dict)
    explained = options.cpu_offload and options.full_state_dict
    explained = explained or options.ignore_frozen_params or not options.strict
    if not state and not explained and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model"
            f" state_dict is empty.rank = dist.get_rank()={get_rank()}."
        )
    if options.broadcast_from_rank0:
        state = from_first(state)
    if not state:
        return _IncompatibleKeys([], [])
    now = model.state_dict()
    keys = {_name(model, key): key for key in now}
    state = {keys.get(name, name): v for name, v in state.items()}
    assign = False
    if options.full_state_dict:
        state = spread(state, now)
        assign = any(isinstance(t, Tensor) and t.is_meta for t in now.values())
    return model.load_state_dict(state, strict=options.strict, assign=assign)


def _names(model: nn.Module) -> dict[int, str]:
    """Parameters' first names."""
    return {id(p): _name(model, key) for key, p in model.named_parameters()}


def _each(optimizers: Optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _filled(optimizer: Optimizer) -> None:
    """Let an optimizer without states make them: by a step with gradients and rates of zero."""
    groups = optimizer.param_groups
    if optimizer.state or any(p.grad is not None for g in groups for p in g["params"]):
        return
    for p in (p for g in groups for p in g["params"] if p.requires_grad):
        p.grad = mindtorch.zeros_like(p)
    rates = [g.get("lr") for g in groups]
    for group in groups:
        if "lr" in group:
            zero: Any = 0.0
            group["lr"] = mindtorch.tensor(zero) if isinstance(group["lr"], Tensor) else zero
    optimizer.step(closure=None)
    for group, rate in zip(groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _by_name(model: nn.Module, optimizer: Optimizer) -> State:
    """An optimizer's state by the names of parameters; KeyError for one that the model lacks."""
    if Wrapped.fsdp_modules(model):
        return Wrapped.optim_state_dict(model, optimizer)
    names, raw = _names(model), optimizer.state_dict()
    at: dict[int, str] = {}
    for group, raw_group in zip(optimizer.param_groups, raw["param_groups"], strict=True):
        for p, place in zip(group["params"], raw_group["params"], strict=True):
            if id(p) not in names:
                raise KeyError(place)
            at[place] = names[id(p)]
    groups = [{**g, "params": [at[i] for i in g["params"]]} for g in raw["param_groups"]]
    return {"state": {at[i]: v for i, v in raw["state"].items()}, "param_groups": groups}


def get_optimizer_state_dict(
    model: nn.Module, optimizers: Optimizers, *, submodules: Container[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:  # fmt: skip
    """States by the names of parameters, and the groups that hold these names.

    With `flatten_optimizer_state_dict`, one dictionary: `state.NAME.KEY`, `param_groups.NAME.KEY`.
    """
    options = _options(options)
    _below(model, submodules)
    state: State = {"state": {}, "param_groups": []}
    for optimizer in _each(optimizers):
        _filled(optimizer)
        now = _by_name(model, optimizer)
        state["state"] |= now["state"]
        state["param_groups"] += now["param_groups"]
    if options.flatten_optimizer_state_dict:
        state = _flat(state)
    whole: State = gathered(state, options.full_state_dict, options.cpu_offload)
    return whole


def _flat(state: State) -> State:
    flat: State = {}
    for name, values in state["state"].items():
        for key, value in values.items():
            if not isinstance(value, Tensor | int | float | dict):
                raise NotImplementedError(
                    "Flattening optimizer state_dict only supports tensor, int, float, dict states"
                    f" now. Type is {type(value)}."
                )
            flat[f"state.{name}.{key}"] = value
    for group in state["param_groups"]:
        for name in group["params"]:
            options = {k: v for k, v in group.items() if k != "params"}
            flat |= {f"param_groups.{name}.{k}": v for k, v in options.items()}
    return flat


def _unflat(flat: State, now: State) -> State:
    """The state whose flat one is given, for what an optimizer has; RuntimeError where parameters
    of one group have other options."""
    state: State = {"state": {}, "param_groups": []}
    for name in now["state"]:
        start = f"state.{name}."
        state["state"][name] = {k[len(start) :]: v for k, v in flat.items() if k.startswith(start)}
    for group in now["param_groups"]:
        group_state: State = {"params": group["params"]}
        for name in group["params"]:
            for key in group:
                if key == "params":
                    continue
                value = flat[f"param_groups.{name}.{key}"]
                if group_state.setdefault(key, value) != value:
                    raise RuntimeError(
                        "All the parameters in the same parameter group should have the same saved"
                        f" param_group value. But {name}.{key} is {value} while other(s) is"
                        f" {group_state[key]}."
                    )
        state["param_groups"].append(group_state)
    return state


def set_optimizer_state_dict(
    model: nn.Module, optimizers: Optimizers, optim_state_dict: Mapping[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Loads what get_optimizer_state_dict gave; RuntimeError for a parameter without a state."""
    options, source = _options(options), dict(optim_state_dict)
    whole = options.cpu_offload and options.full_state_dict
    if not source and not whole and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim"
            f" state_dict is empty. {source}"
        )
    if options.broadcast_from_rank0:
        source = from_first(source)
    for optimizer in _each(optimizers):
        _filled(optimizer)
        if not source:
            continue
        now = _by_name(model, optimizer)
        state = source if "state" in source else _unflat(source, now)
        if options.full_state_dict:
            state = _spread(state, now)
        optimizer.load_state_dict(_by_place(model, optimizer, state, options.strict))


def _spread(state: State, now: State) -> State:
    """Whole tensors of states as those of an optimizer lie."""
    flat, paths = flatten_state_dict({"state": state["state"]})
    parts = spread(flat, flatten_state_dict({"state": now["state"]})[0])
    spread_state: State = {"state": {}, "param_groups": state["param_groups"]}
    for name, value in parts.items():
        set_element(spread_state, paths[name], value)
    return spread_state


def _by_place(model: nn.Module, optimizer: Optimizer, source: State, strict: bool) -> State:
    """A state by names as the optimizer itself loads it."""
    if all(isinstance(name, int) for name in source["state"]):
        return source
    if Wrapped.fsdp_modules(model):
        return Wrapped.optim_state_dict_to_load(model, optimizer, source)
    names = _names(model)
    settings = {name: g for g in source["param_groups"] for name in g["params"]}
    state: dict[int, Any] = {}
    groups, place = [], 0
    for group in optimizer.param_groups:
        group_state: State = {}
        places = []
        for p in group["params"]:
            name = names[id(p)]
            if name in source["state"] and p.requires_grad:
                state[place] = source["state"][name]
            elif strict and p.requires_grad:
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter"
                    " requires gradients but has no saved optimizer state. To load anyway, use"
                    " StateDictOptions(strict=False)."
                )
            group_state = group_state or settings.get(name, {})
            places.append(place)
            place += 1
        groups.append({**group_state, "params": places})
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: nn.Module, optimizers: Optimizers, *, submodules: Container[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:  # fmt: skip
    """(the state of the model, that of its optimizers)."""
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    return model_state, get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: nn.Module, optimizers: Optimizers, *, model_state_dict: Mapping[Any, Any],
    optim_state_dict: Mapping[str, Any], options: StateDictOptions | None = None,
) -> _IncompatibleKeys:  # fmt: skip
    """Loads the states of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
