"""Owns torch.nn.utils.prune: parameters masked by what a method leaves of them.

`name` becomes `name_orig` (a parameter) times `name_mask` (a buffer) before each forward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import mindtorch

from ..._compat.method_names import written_out
from ..._tensor.tensor import Tensor
from ..modules.module import Module


def _count(amount: float, size: int) -> int:
    """How many to prune: an int is a number, a float a share; ValueError out of range."""
    if not isinstance(amount, int | float):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return amount


def _left(mask: Tensor, kind: str, dim: int) -> Any:
    """An index of what a mask leaves: of elements, of the slices along `dim`, or of everything."""
    if kind == "global":
        return ...
    if kind == "unstructured":
        return mask == 1
    if dim < -mask.ndim:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {mask.ndim}")
    others = [d for d in range(mask.ndim) if d != dim % mask.ndim]
    slices: list[Any] = [slice(None)] * mask.ndim
    slices[dim] = (mask.sum(dim=others) if others else mask) != 0
    return tuple(slices)


def _mask_after(method: Any, scores: Tensor, mask: Tensor) -> Tensor:
    """The mask that a method leaves of another: it looks only at what that one leaves."""
    after = mask.to(scores.dtype).clone()
    index = _left(after, method.PRUNING_TYPE, getattr(method, "dim", 0))
    after[index] = method.compute_mask(scores[index], after[index])
    return after


class BasePruningMethod(ABC):
    """A method: `compute_mask(t, default_mask)` says what stays; PRUNING_TYPE what it looks at."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What stays of `default_mask`, by the values of `t`."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter times its mask."""
        original = getattr(module, self._tensor_name + "_orig")
        mask = getattr(module, self._tensor_name + "_mask")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prune a parameter of a module by this method, after those that did so before.

        TypeError for a tensor that is neither a parameter nor pruned.
        """
        hooks = module._forward_pre_hooks
        keys = [k for k, h in hooks.items()
                if isinstance(h, BasePruningMethod) and h._tensor_name == name]  # fmt: skip
        before: Any = [hooks.pop(key) for key in keys]  # gone for good where this fails, as torch's
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        value = getattr(module, name)
        scores = importance_scores if importance_scores is not None else value
        if before:
            old = before[0]
            active: Any = old if isinstance(old, PruningContainer) else PruningContainer(old)
            active.add_pruning_method(method)
        if scores.shape != value.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got"
                f" {scores.shape} vs {value.shape}"
            )
        if before:
            default = getattr(module, name + "_mask")
        else:
            active, default = method, mindtorch.ones_like(value)
            module.register_parameter(name + "_orig", value)
            del module._parameters[name]
        try:
            with mindtorch.no_grad():
                mask = active.compute_mask(scores, default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, active.apply_mask(module))
        except Exception:
            if not before:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        module.register_forward_pre_hook(active)
        return active

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """The tensor masked, without a module."""
        mask = mindtorch.ones_like(t) if default_mask is None else default_mask
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got"
                f" {scores.shape} vs {t.shape}"
            )
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Module) -> None:
        """Leave the pruned values as the parameter."""
        original = module._parameters.pop(self._tensor_name + "_orig")
        assert original is not None
        original.data = getattr(module, self._tensor_name).detach()
        del module._buffers[self._tensor_name + "_mask"]
        delattr(module, self._tensor_name)
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after another."""

    def __init__(self, *methods: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Put a method after those that are there; TypeError for what is none, ValueError for
        another parameter's."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        name = getattr(self, "_tensor_name", method._tensor_name)
        if method._tensor_name != name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{name}' to"
                f" PruningContainer. Found '{method._tensor_name}'"
            )
        self._tensor_name = name
        inner = getattr(method, "_pruning_methods", (method,))
        self._pruning_methods += tuple(inner)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What the latest method leaves of the mask of those before it."""
        return _mask_after(self._pruning_methods[-1], t, default_mask)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape"
                f" {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


@written_out("__init__")
class _Unstructured(BasePruningMethod):
    def __init__(self, amount: float):
        _count(amount, 1 << 62)
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Prune the lowest scores."""
        mask = default_mask.clone().reshape(-1)
        count = _count(self.amount, t.numel())
        if count:
            mask[self._scores(t).reshape(-1).topk(k=count, largest=False)[1]] = 0
        return mask.reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return -mindtorch.rand_like(t)  # the largest draws go


class L1Unstructured(_Unstructured):
    """Prunes the elements of least magnitude."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` of least n-norm."""

    amount: float
    dim: int

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1):
        _count(amount, 1 << 62)
        self.amount, self.n, self.dim = amount, n, dim

    def _scores(self, t: Tensor) -> Tensor:
        others = [d for d in range(t.ndim) if d != self.dim % t.ndim]
        return mindtorch.norm(t, p=self.n, dim=others)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        keep = mindtorch.ones(size, dtype=default_mask.dtype, device=t.device)
        if count:
            keep[self._scores(t).topk(k=count, largest=False)[1]] = 0
        shape = [-1 if d == self.dim % t.ndim else 1 for d in range(t.ndim)]
        return default_mask * keep.reshape(shape)


class RandomStructured(LnStructured):
    """Prunes slices along `dim` at random."""

    def __init__(self, amount: float, dim: int = -1):
        super().__init__(amount, 2, dim)

    def _scores(self, t: Tensor) -> Tensor:
        return mindtorch.rand(t.shape[self.dim], device=t.device)


def identity(module: Module, name: str) -> Module:
    """Prune nothing of `name`: it gets its mask of ones; gives the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of `name` at random; gives the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of `name` of least magnitude (or score); gives the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of `name` along `dim` at random; gives the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of `name` along `dim` of least n-norm; gives the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune `name` by a mask of its shape; gives the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters together by one unstructured method; TypeError for another."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name) for module, name in parameters]
    method = pruning_method(**kwargs)
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method'
            f" {pruning_method} of type {pruning_method.PRUNING_TYPE}"
        )
    selection: Mapping[tuple[Module, str], Tensor] = importance_scores or {}
    scores = [selection.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in pairs]
    masks = [getattr(m, n + "_mask", mindtorch.ones_like(getattr(m, n))) for m, n in pairs]
    whole = mindtorch.cat([m.reshape(-1) for m in masks])
    mask = _mask_after(method, mindtorch.cat(scores), whole)
    at = 0
    for module, name in pairs:
        value = getattr(module, name)
        custom_from_mask(module, name, mask=mask[at : at + value.numel()].reshape(value.shape))
        at += value.numel()


def _hook_of(module: Module, name: str) -> Any:
    return next((k for k, h in module._forward_pre_hooks.items()
                 if isinstance(h, BasePruningMethod) and h._tensor_name == name), None)  # fmt: skip


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a parameter permanent; ValueError where it is not pruned."""
    key = _hook_of(module, name)
    if key is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    method: Any = module._forward_pre_hooks.pop(key)
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, child in module.named_modules()
        for hook in child._forward_pre_hooks.values()
    )


__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
           "PruningContainer", "RandomStructured", "RandomUnstructured",
           "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured",
           "ln_structured", "random_structured", "random_unstructured", "remove"]  # fmt: skip
