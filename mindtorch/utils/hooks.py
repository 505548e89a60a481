"""Owns handles of registered hooks and the tap that modules hang
backward hooks on; refuses hook policy."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import Any

import mindtorch

from .._autograd.graph import MultiHandle
from .._autograd.node import Handle
from .._tensor.tensor import Tensor

__all__ = ["BackwardHook", "RemovableHandle"]

Hooks = MutableMapping[int, Any]


class _Handles(type):
    """Takes handles of tensors' and nodes' hooks for instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, Handle | MultiHandle)


class RemovableHandle(metaclass=_Handles):
    """Removes one hook from the dict it was put into; also a
    context manager that removes on exit."""

    next_id: int = 0
    id: int

    def __init__(self, hooks_dict: Hooks, *, extra_dict: Hooks | list[Hooks] | None = None) -> None:
        self.hooks_dict_ref: Callable[[], Hooks | None] = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = [] if extra_dict is None else extra_dict
        extras = extras if isinstance(extras, list) else [extras]
        self.extra_dict_ref: tuple[Callable[[], Hooks | None], ...] = tuple(
            weakref.ref(extra) for extra in extras
        )

    def remove(self) -> None:
        """Drops the hook; a second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        extras = tuple(reference() for reference in self.extra_dict_ref)
        return self.hooks_dict_ref(), self.id, extras

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extras = state
        # A dict that died before pickling is replaced by an empty one, so that remove() still
        # works.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(
            weakref.ref(OrderedDict() if extra is None else extra) for extra in extras
        )
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.remove()


Grads = tuple[Any, ...]


class BackwardHook:
    """Runs a module's full backward hooks: one tap on its outputs, one on its inputs.

    `hooks` see `(module, grad_input, grad_output)`, `pre_hooks` see `(module, grad_output)`;
    what either returns
    replaces the gradients (torch document of Module.register_full_backward_hook).
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = user_hooks
        self.pre_hooks = user_pre_hooks
        self.grad_output: Grads | None = None
        self.has_grad_input = False
        self.n_inputs = 0

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns `args` with its tensors passed through the tap
        that ends the module's backward."""
        tapped, node = _tap(args, self._leave)
        self.has_grad_input = node
        self.n_inputs = len(args)
        return tapped

    def setup_output_hook(self, result: Tensor) -> Tensor:
        """Returns `result` with its tensors passed through the tap
        that starts the module's backward."""
        wrapped = result if isinstance(result, tuple) else (result,)
        tapped, _ = _tap(wrapped, self._enter)
        return tapped if isinstance(result, tuple) else tapped[0]

    def _enter(self, grads: Grads) -> Grads:
        for hook in self.pre_hooks:
            grads = _replaced(hook(self.module, grads), grads, "Backward pre hook", "grad_output")
        self.grad_output = grads
        if not self.has_grad_input:
            self._run_without_input()
        return grads

    def _run_without_input(self) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module"
            " outputs since no inputs require gradients. See"
            " https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=5,
        )
        for hook in self.hooks:
            got = hook(self.module, (None,) * self.n_inputs, self.grad_output)
            if got is not None and not (isinstance(got, tuple) and all(g is None for g in got)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_output = None

    def _leave(self, grads: Grads) -> Grads:
        if self.grad_output is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output one. "
                "This happens because the gradient in your nn.Module flows to the Module's "
                "input without passing through the Module's output. Make sure that the "
                "output depends on the input and that the loss is computed based on the output."
            )
        for hook in self.hooks:
            result = hook(self.module, grads, self.grad_output)
            grads = _replaced(result, grads, "Backward hook", "grad_input")
        self.grad_output = None
        return grads


def _replaced(result: tuple[Tensor, ...] | None, grads: Grads, who: str, what: str) -> Grads:
    if result is None:
        return grads
    new = result if isinstance(result, tuple) else (result,)
    if len(new) != len(grads):
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(new)}, but expected {len(grads)}"
        )
    return new


def _tap(args: tuple[Any, ...], callback: Callable[[Grads], Grads]) -> tuple[tuple[Any, ...], bool]:
    """Passes the tensors of `args` through one autograd node; says whether any requires grad."""
    index = [i for i, arg in enumerate(args) if isinstance(arg, mindtorch.Tensor)]
    if not (index and mindtorch.is_grad_enabled() and any(args[i].requires_grad for i in index)):
        return args, False

    def run(grads: Grads) -> Grads:
        # Hooks see one entry per argument of the module, None where it is no tensor.
        spread: list[Any] = [None] * len(args)
        for i, grad in zip(index, grads, strict=True):
            spread[i] = grad
        new = callback(tuple(spread))
        return tuple(new[i] for i in index)

    out = list(args)
    tensors = _tap_function().apply(run, *(args[i] for i in index))
    for i, tensor in zip(index, tensors, strict=True):
        out[i] = tensor
    return tuple(out), True


_TAP: list[Any] = []


def _tap_function() -> Any:
    """The identity Function whose backward calls back; made on first use, as it needs the core."""
    if _TAP:
        return _TAP[0]

    class BackwardHookFunction(mindtorch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, run: Callable[[Grads], Grads], *tensors: Any) -> tuple[Any, ...]:
            ctx.run = run
            ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return (None, *ctx.run(grads))

    _TAP.append(BackwardHookFunction)
    return BackwardHookFunction
