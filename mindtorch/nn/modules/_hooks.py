"""Owns a module's call hooks, their registration and the hooked
call; refuses the plain call (module.py)."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from mindtorch.utils.hooks import BackwardHook, RemovableHandle

from ..._tensor.tensor import Tensor

Hook = Callable[..., Any]

# Hooks of every module, in torch's order: global ones run before a module's own.
GLOBAL: dict[str, OrderedDict[int, Hook]] = {
    name: OrderedDict()
    for name in (
        "forward_pre",
        "forward",
        "backward_pre",
        "backward",
        "buffer_registration",
        "module_registration",
        "parameter_registration",
    )
}
GLOBAL_ALWAYS_CALLED: OrderedDict[int, bool] = OrderedDict()
GLOBAL_WITH_KWARGS: OrderedDict[int, bool] = OrderedDict()
# The hooks that make a call take the slow path; one list, so that the plain call tests one name.
GLOBAL_CALL_HOOKS: list[OrderedDict[int, Hook]] = [
    GLOBAL[name] for name in ("forward_pre", "forward", "backward_pre", "backward")
]

_global_parameter_registration_hooks = GLOBAL["parameter_registration"]
_global_buffer_registration_hooks = GLOBAL["buffer_registration"]
_global_module_registration_hooks = GLOBAL["module_registration"]
_global_forward_hooks = GLOBAL["forward"]
_global_forward_pre_hooks = GLOBAL["forward_pre"]
_global_backward_hooks = GLOBAL["backward"]
_global_backward_pre_hooks = GLOBAL["backward_pre"]

OWN_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def add_hook(
    hooks: OrderedDict[int, Any],
    hook: Any,
    *marks: tuple[OrderedDict[int, bool], bool],
    prepend: bool = False,
) -> RemovableHandle:
    """Puts `hook` into `hooks` and its id into each marked dict whose flag is set."""
    handle = RemovableHandle(hooks, extra_dict=[where for where, _ in marks])
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for where, on in marks:
        if on:
            where[handle.id] = True
    return handle


def run_registration_hooks(kind: str, module: Any, name: str, value: Any) -> Any:
    """Lets the global registration hooks of `kind` replace `value`."""
    for hook in GLOBAL[kind].values():
        replaced = hook(module, name, value)
        value = value if replaced is None else replaced
    return value


class HookedCall:
    """The part of Module that registers call hooks and runs a call through them."""

    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Runs `hook(module, args[, kwargs])` before forward; what
        it returns replaces the arguments."""
        mark = (self._forward_pre_hooks_with_kwargs, with_kwargs)
        return add_hook(self._forward_pre_hooks, hook, mark, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Runs `hook(module, args[, kwargs], output)` after forward;
        what it returns replaces the output."""
        return add_hook(
            self._forward_hooks,
            hook,
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
            prepend=prepend,
        )

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs `hook(module, grad_output)` when the gradients of the outputs are known."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs `hook(module, grad_input, grad_output)` when the
        gradients of the inputs are known."""
        return self._register_backward(hook, full=True, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Deprecated by torch for register_full_backward_hook; here it is run as a full hook."""
        return self._register_backward(hook, full=False, prepend=False)

    def _register_backward(self, hook: Hook, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._run_hooked(args, kwargs, called)
        except Exception:
            self._run_always_called(args, kwargs, called)
            raise

    def _run_hooked(
        self, args: tuple[Tensor, ...] | tuple[int, ...], kwargs: dict[str, Any], called: set[int]
    ) -> Any:
        args, kwargs = self._run_pre_hooks(args, kwargs)
        taps = self._backward_taps()
        if taps is not None:
            args = taps.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for key, hook, with_kwargs in self._all_forward_hooks():
            called.add(key)
            got = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = result if got is None else got
        if taps is None:
            return result
        if not isinstance(result, tuple) and not hasattr(result, "requires_grad"):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
        return taps.setup_output_hook(result)

    def _backward_taps(self) -> BackwardHook | None:
        full = [*GLOBAL["backward"].values(), *self._backward_hooks.values()]
        pre = [*GLOBAL["backward_pre"].values(), *self._backward_pre_hooks.values()]
        return BackwardHook(self, full, pre) if full or pre else None

    def _run_pre_hooks(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        for hook in GLOBAL["forward_pre"].values():
            args = _as_args(hook(self, args), args)
        for key, hook in tuple(self._forward_pre_hooks.items()):
            if key not in self._forward_pre_hooks_with_kwargs:
                args = _as_args(hook(self, args), args)
                continue
            got = hook(self, args, kwargs)
            if got is None:
                continue
            if not (isinstance(got, tuple) and len(got) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {got}."
                )
            args, kwargs = got
        return args, kwargs

    def _all_forward_hooks(self) -> Iterable[tuple[int, Hook, bool]]:
        for key, hook in tuple(GLOBAL["forward"].items()):
            yield key, hook, key in GLOBAL_WITH_KWARGS
        for key, hook in tuple(self._forward_hooks.items()):
            yield key, hook, key in self._forward_hooks_with_kwargs

    def _run_always_called(
        self, args: tuple[int, ...], kwargs: dict[str, Any], called: set[int]
    ) -> None:
        """Runs the hooks registered with always_call after forward or another hook raised."""
        for key, hook, with_kwargs in self._all_forward_hooks():
            always = key in self._forward_hooks_always_called or key in GLOBAL_ALWAYS_CALLED
            if not always or key in called:
                continue
            try:
                hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
            except Exception as error:
                # The first failure is the one the caller must see (torch warns here as well).
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception "
                    f"that was silenced as another error was raised in forward: {error!s}",
                    stacklevel=2,
                )


def _as_args(result: Any, args: Any) -> Any:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Registers a forward pre-hook on every module."""
    return add_hook(GLOBAL["forward_pre"], hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Registers a forward hook on every module."""
    marks = ((GLOBAL_WITH_KWARGS, with_kwargs), (GLOBAL_ALWAYS_CALLED, always_call))
    return add_hook(GLOBAL["forward"], hook, *marks)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Registers a backward pre-hook on every module."""
    return add_hook(GLOBAL["backward_pre"], hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Registers a backward hook on every module."""
    return add_hook(GLOBAL["backward"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs `hook(module, name, buffer)` at each register_buffer."""
    return add_hook(GLOBAL["buffer_registration"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs `hook(module, name, child)` at each add_module."""
    return add_hook(GLOBAL["module_registration"], hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs `hook(module, name, parameter)` at each register_parameter."""
    return add_hook(GLOBAL["parameter_registration"], hook)
