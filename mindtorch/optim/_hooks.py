"""Owns an optimizer's hooks, those of one optimizer and those
of all; refuses the steps themselves."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from mindtorch.profiler import record_function
from mindtorch.utils.hooks import RemovableHandle

Hook = Callable[..., Any]

_global_pre: OrderedDict[int, Hook] = OrderedDict()
_global_post: OrderedDict[int, Hook] = OrderedDict()

KINDS = ("step_pre", "step_post", "state_dict_pre", "state_dict_post")
LOAD_KINDS = ("load_state_dict_pre", "load_state_dict_post")


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Runs `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return _add(_global_pre, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Runs `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return _add(_global_post, hook)


def _add(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a class's `step` so that hooks run around it."""

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        if "_optimizer_step_pre_hooks" not in vars(self):  # wraps another, whose step has hooks
            return step(*args, **kwargs)
        for hook in (*_global_pre.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            args, kwargs = result
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            out = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post.values()):
            hook(self, args, kwargs)
        return out

    hooked.__dict__["hooked"] = True
    return hooked


class HookedOptimizer:
    """The part of Optimizer that registers hooks."""

    # The types of hooks, for annotations.
    OptimizerPreHook: TypeAlias = Callable[
        [Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]] | None
    ]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    def _make_hooks(self) -> None:
        for kind in KINDS + LOAD_KINDS:
            self.__dict__.setdefault(f"_optimizer_{kind}_hooks", OrderedDict())

    def _patch_step_function(self) -> None:
        """Let the class's step call hooks: for what wraps an optimizer and was not made as one."""
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = with_hooks(cls.step)

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A class's step with hooks around it."""
        return with_hooks(func)

    def _hooks(self, kind: str) -> OrderedDict[int, Hook]:
        hooks: OrderedDict[int, Hook] = self.__dict__[f"_optimizer_{kind}_hooks"]
        return hooks

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is None and "_update" in cls.__dict__:  # the walk over parameters, as the class's
            walk: Any = getattr(cls, "step").__wrapped__  # noqa: B009
            step = FunctionType(walk.__code__, walk.__globals__, "step", walk.__defaults__)
            functools.update_wrapper(step, walk, assigned=("__doc__", "__annotations__"))
            step.__module__, step.__qualname__ = cls.__module__, f"{cls.__qualname__}.step"
            del step.__dict__["__wrapped__"]
        if step is not None and not getattr(step, "hooked", False):
            setattr(cls, "step", with_hooks(step))  # noqa: B010

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Runs `hook(optimizer, args, kwargs)` before step; it may give new (args, kwargs)."""
        return _add(self._hooks("step_pre"), hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Runs `hook(optimizer, args, kwargs)` after step."""
        return _add(self._hooks("step_post"), hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs `hook(optimizer)` before state_dict."""
        return _add(self._hooks("state_dict_pre"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs `hook(optimizer, state_dict)` after state_dict; what it gives replaces the dict."""
        return _add(self._hooks("state_dict_post"), hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Runs `hook(optimizer, state_dict)` before load_state_dict; what it gives is loaded."""
        return _add(self._hooks("load_state_dict_pre"), hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Runs `hook(optimizer)` after load_state_dict."""
        return _add(self._hooks("load_state_dict_post"), hook, prepend)
