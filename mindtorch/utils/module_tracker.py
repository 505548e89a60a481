"""Owns ModuleTracker: which modules the running operator belongs to, in forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from .._autograd.grad_mode import LOCAL
from .._tensor.tensor import Tensor
from ..nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """`with ModuleTracker() as tracker:`; `tracker.parents` are the names of modules around a call.

    A module that is called by the program has its class's name, one inside it `Outer.child`.
    """

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._entered: WeakSet[Module] = WeakSet()
        self._forward = {"Global"}
        self._backward = {"Global"}
        self._task: object = None
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return LOCAL.task is not None

    @property
    def parents(self) -> set[str]:
        """Names of the modules that the running forward or backward call is part of."""
        if not self.is_bw:
            return self._forward
        if self._task is not LOCAL.task:
            self._task, self._backward = LOCAL.task, {"Global"}
        return self._backward

    def _name(self, module: Module) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._entered:
            self._entered.add(module)
            for child_name, child in module.named_children():
                self._names[child] = f"{name}.{child_name}"
                self._name(child)  # a list is not called, but names what is in it
        return name

    def _on_gradient(self, values: object, change: str, name: str) -> None:
        """Enter or leave a module of the backward pass when these tensors' gradients are there."""
        for leaf in tree_leaves(values):
            if isinstance(leaf, Tensor) and leaf.requires_grad:
                leaf.register_hook(self._changer(change, name))

    def _changer(self, change: str, name: str) -> Callable[[Tensor], None]:
        def hook(_: Tensor) -> None:
            getattr(self.parents, change)(name)

        return hook

    def _enter(self, module: Module, inputs: object) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._on_gradient(inputs, "discard", name)

    def _leave(self, module: Module, _: object, outputs: object) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._on_gradient(outputs, "add", name)

    def __enter__(self) -> ModuleTracker:
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
