"""Owns a module's call hooks, their registration and the hooked
call; refuses the plain call (module.py)."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
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
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
GLOBAL_WITH_KWARGS: OrderedDict[int, bool] = OrderedDict()
GLOBAL_IS_FULL: dict[str, bool] = {}  # which kind the hooks of every module are, once chosen
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
        """Runs `hook(module, grad_input, grad_output)` of the last node that forward made alone.

        torch deprecates it for register_full_backward_hook.
        """
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
        results: list[Any] = [None]
        try:
            return self._run_hooked(args, kwargs, called, results)
        except Exception:
            self._run_always_called(args, kwargs, called, results)
            raise

    def _run_hooked(
        self, args: tuple[Tensor, ...] | tuple[int, ...], kwargs: dict[str, Any],
        called: set[int], results: list[Any],
    ) -> Any:  # fmt: skip
        args, kwargs = self._run_pre_hooks(args, kwargs)
        full, old = self._get_backward_hooks()
        pre = [*GLOBAL["backward_pre"].values(), *self._backward_pre_hooks.values()]
        taps = BackwardHook(self, full, pre) if full or pre else None
        if taps is not None:
            args = taps.setup_input_hook(args)
        result = results[0] = self.forward(*args, **kwargs)
        for key, hook, with_kwargs in self._all_forward_hooks():
            called.add(key)
            got = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = results[0] = result if got is None else got
        if taps is not None:
            if not isinstance(result, Tensor | tuple):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple"
                    f" of Tensors but received {type(result)}",
                    stacklevel=4,
                )
            result = taps.setup_output_hook(result)
        if old:
            self._hook_last_node(old, args, result)
        return result

    def _get_backward_hooks(self) -> tuple[list[Hook], list[Hook]]:
        """The full hooks, and those of the older kind; a module's own come after all modules'."""
        full: list[Hook] = []
        old: list[Hook] = []
        for is_full, hooks in (
            (GLOBAL_IS_FULL.get("backward"), GLOBAL["backward"]),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            (old if is_full is False else full).extend(hooks.values())
        return full, old

    def _hook_last_node(self, hooks: list[Hook], args: Any, result: Any) -> None:
        """Puts hooks of the older kind on the node that made the result, with torch's warnings."""
        first = result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        node: Any = first.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(partial(hook, self))
        text = _why_incomplete(args, result, node)
        if text:
            warnings.warn(text, FutureWarning, stacklevel=5)

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
        self, args: tuple[int, ...], kwargs: dict[str, Any], called: set[int], results: list[Any]
    ) -> None:
        """Runs the hooks registered with always_call after forward or another hook raised.

        `results` holds what forward and the hooks before gave, None where forward raised.
        """
        for key, hook, with_kwargs in self._all_forward_hooks():
            always = (
                key in self._forward_hooks_always_called
                or key in _global_forward_hooks_always_called
            )
            if not always or key in called:
                continue
            try:
                more = (kwargs, *results) if with_kwargs else results
                hook(self, args, *more)
            except Exception as error:
                # The first failure is the one the caller must see (torch warns here as well).
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception "
                    f"that was silenced as another error was raised in forward: {error!s}",
                    stacklevel=2,
                )


_OLD_HOOKS = "Using non-full backward hooks on a Module that does not {0} is deprecated and will be"
_OLD_HOOK = "Using a non-full backward hook when {0} is deprecated and will be removed in future"
_INSTEAD = "Please use register_full_backward_hook to get the documented behavior."


def _why_incomplete(args: Any, result: Any, node: Any) -> str:
    """What torch warns of where a hook of the older kind does not see all gradients."""
    rest = " removed in future versions. This hook will be missing some of the {0}. " + _INSTEAD
    tuples = []
    for value, what, lost in (
        (result, "return a", "grad_output"), (args, "take as input a", "grad_input"),
    ):  # fmt: skip
        values = (value,) if isinstance(value, Tensor) else value
        if not (isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)):
            kind = f"{what} single Tensor or a tuple of Tensors"
            return _OLD_HOOKS.format(kind) + rest.format(lost)
        tuples.append({v.grad_fn for v in values if v.grad_fn is not None})
    out_nodes, in_nodes = tuples
    lost = " versions. This hook will be missing some {0}."
    if not out_nodes or out_nodes.isdisjoint({node}):
        return _OLD_HOOK.format("outputs are nested in python data structure") + lost.format(
            "grad_output"
        )
    if len(out_nodes) > 1:
        why = "outputs are generated by different autograd Nodes"
        return f"{_OLD_HOOK.format(why)}{lost.format('grad_output')} {_INSTEAD}"
    if in_nodes != {to for to, _ in node.next_functions}:
        why = "the forward contains multiple autograd Nodes"
        return f"{_OLD_HOOK.format(why)}{lost.format('grad_input')} {_INSTEAD}"
    return ""


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
    marks = ((GLOBAL_WITH_KWARGS, with_kwargs), (_global_forward_hooks_always_called, always_call))
    return add_hook(GLOBAL["forward"], hook, *marks)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Registers a backward pre-hook on every module."""
    return add_hook(GLOBAL["backward_pre"], hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Registers a backward hook on every module."""
    return _register_global_backward(hook, True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Registers a backward hook of the older kind on every module."""
    return _register_global_backward(hook, False)


def _register_global_backward(hook: Hook, full: bool) -> RemovableHandle:
    if GLOBAL_IS_FULL.setdefault("backward", full) is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module"
            " hook. Please use only one of them."
        )
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
