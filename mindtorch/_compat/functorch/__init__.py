"""Owns functorch's names: torch.func by its older name, which torch's distribution brings too.

Each warns of its successor, as torch does.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import func
from ..._tensor.tensor import Tensor
from ...fx.experimental.proxy_tensor import make_fx as make_fx
from ...nn.modules.module import Module
from ...version import __version__ as __version__

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble",
           "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "make_functional", "make_functional_with_buffers", "make_fx", "vjp", "vmap"]  # fmt: skip


def _deprecated(function: Callable[..., Any], successor: str = "") -> Callable[..., Any]:
    name = function.__name__.lstrip("_")
    text = (
        "We've integrated functorch into PyTorch. As the final step of the integration,"
        f" `functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future"
        f" version of PyTorch >= 2.3. Please use `torch.{successor or 'func.' + name}` instead; see"
        " the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more details"
        " https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    warned.__name__ = warned.__qualname__ = name
    return warned


functionalize = _deprecated(func.functionalize)
grad = _deprecated(func.grad)
grad_and_value = _deprecated(func.grad_and_value)
hessian = _deprecated(func.hessian)
jacfwd = _deprecated(func.jacfwd)
jacrev = _deprecated(func.jacrev)
jvp = _deprecated(func.jvp)
vjp = _deprecated(func.vjp)
vmap = _deprecated(func.vmap, "vmap")


def _bare(model: Module) -> Module:
    """A copy of a model whose parameters and buffers are on the meta device, as in torch; what the
    model has in two places is one tensor in the copy."""
    bare, firsts = copy.deepcopy(model).to("meta"), dict[int, Tensor]()
    for named in (model.named_parameters, model.named_buffers):
        for name, value in named(remove_duplicate=False):
            owner, _, leaf = name.rpartition(".")
            holder = bare.get_submodule(owner)
            setattr(holder, leaf, firsts.setdefault(id(value), getattr(holder, leaf)))
    return bare


class FunctionalModule(Module):
    """What make_functional gives: called with parameters, then what the model takes."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params, strict=False))
        return func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """What make_functional_with_buffers gives: called with parameters and buffers first."""

    def __init__(
        self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]
    ) -> None:
        super().__init__(stateless_model, param_names)
        self.buffer_names = buffer_names

    def forward(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        names = (*self.param_names, *self.buffer_names)
        state = dict(zip(names, (*params, *buffers), strict=False))
        return func.functional_call(self.stateless_model, state, args, kwargs)


def _parameters(
    model: Module, disable_autograd_tracking: bool
) -> tuple[tuple[str, ...], tuple[Tensor, ...]]:
    """Names and copies of the parameters of a model."""
    pairs = dict(copy.deepcopy(model).named_parameters())
    if disable_autograd_tracking:
        for value in pairs.values():
            value.requires_grad_(False)
    return tuple(pairs), tuple(pairs.values())


def _make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A function of a model's parameters, and these; RuntimeError for a model with buffers."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use"
            " make_functional_with_buffers(model) instead."
        )
    names, params = _parameters(model, disable_autograd_tracking)
    return FunctionalModule(_bare(model), names), params


def _make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of a model's parameters and buffers, and these."""
    names, params = _parameters(model, disable_autograd_tracking)
    buffers = dict(copy.deepcopy(model).named_buffers())
    function = FunctionalModuleWithBuffers(_bare(model), names, tuple(buffers))
    return function, params, tuple(buffers.values())


def _combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of the parameters and buffers of models of one kind, and these, stacked."""
    name = "combine_state_for_ensemble"
    try:
        params, buffers = func.stack_module_state(models)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace("stack_module_state", name)) from None
    first = FunctionalModuleWithBuffers(_bare(models[0]), tuple(params), tuple(buffers))
    stacked = [tuple(v.detach() for v in part.values()) for part in (params, buffers)]
    return first, stacked[0], stacked[1]


make_functional = _deprecated(_make_functional, "func.functional_call")
make_functional_with_buffers = _deprecated(_make_functional_with_buffers, "func.functional_call")
combine_state_for_ensemble = _deprecated(_combine_state_for_ensemble, "func.stack_module_state")
