"""Owns handles of registered hooks and the tap that modules hang
backward hooks on; refuses hook policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch

from .._autograd.handles import RemovableHandle
from .._compat.warn_once import warn

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a hook of tensors that need not be saved with them: saving warns of others."""
    vars(f)["__torch_unserializable__"] = True
    return f


def warn_if_has_hooks(tensor: mindtorch.Tensor) -> None:
    """Warn of each hook of a tensor that saving it loses."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected,"
                " you can decorate the function with @torch.utils.hooks.unserializable_hook to"
                " suppress this warning",
            )


Grads = tuple[Any, ...]


class BackwardHook:
    """Runs a module's full backward hooks: from a node on its outputs and one on its inputs.

    `user_hooks` see `(module, grad_input, grad_output)`, `user_pre_hooks` `(module, grad_output)`;
    what either returns replaces the gradients (torch document of
    Module.register_full_backward_hook).
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns `args` with its tensors passed through the node that ends the backward."""
        args, self.input_tensors_index = _apply_on_tensors(self._at_inputs, args)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """Returns a result with its tensors passed through the node that starts the backward."""
        whole = args if isinstance(args, tuple) else (args,)
        self.n_outputs = len(whole)
        whole, self.output_tensors_index = _apply_on_tensors(self._at_outputs, whole)
        return whole if isinstance(args, tuple) else whole[0]

    def _at_outputs(self, _: Grads, grad_output: Grads) -> Any:
        index = self.output_tensors_index or []
        self.grad_outputs = _spread(index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            result = hook(self.module, self.grad_outputs)
            if result is not None:
                _check_count(result, self.grad_outputs, "Backward pre hook", "grad_output")
                self.grad_outputs = result
        grads = self.grad_outputs
        if self.input_tensors_index is None:
            self._run_without_input()
        return tuple(grads[i] for i in index)

    def _run_without_input(self) -> None:
        warn(
            "Full backward hook is firing when gradients are computed with respect to module"
            " outputs since no inputs require gradients. See"
            " https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
        )
        for hook in self.user_hooks:
            got = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if got is not None and not (isinstance(got, tuple) and all(g is None for g in got)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _at_inputs(self, grad_input: Grads, _: Grads) -> Any:
        if self.grad_outputs is None:
            return None  # the gradient did not come through the module's output
        index = self.input_tensors_index or []
        grads: Any = _spread(index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            result = hook(self.module, grads, self.grad_outputs)
            if result is not None:
                _check_count(result, grads, "Backward hook", "grad_input")
                grads = result
        self.grad_outputs = None
        return tuple(grads[i] for i in index)


# As errors about a hook's result name it.
BackwardHook._at_inputs.__name__ = BackwardHook._at_outputs.__name__ = "hook"


def _spread(index: list[int], values: Grads, count: int) -> Grads:
    """One entry for each argument of the module; None where it is no tensor."""
    spread: list[Any] = [None] * count
    for i, value in zip(index, values, strict=True):
        spread[i] = value
    return tuple(spread)


def _check_count(result: Any, grads: Grads, who: str, what: str) -> None:
    if len(result) != len(grads):
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(result)}, but expected"
            f" {len(grads)}"
        )


def _apply_on_tensors(
    hook: Callable[[Grads, Grads], Any], args: tuple[Any, ...]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """`args` with its tensors passed through one node that has the hook, and which these are."""
    index = [i for i, arg in enumerate(args) if isinstance(arg, mindtorch.Tensor)]
    if not (mindtorch.is_grad_enabled() and any(args[i].requires_grad for i in index)):
        return args, None
    from mindtorch.nn.modules._functions import BackwardHookFunction  # nn stands above

    tensors = BackwardHookFunction.apply(*(args[i] for i in index))
    next(t.grad_fn for t in tensors if t.grad_fn is not None).register_hook(hook)
    out = list(args)
    for i, tensor in zip(index, tensors, strict=True):
        out[i] = tensor
    return (tuple(out) if type(args) is tuple else type(args)(*out)), index
