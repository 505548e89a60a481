"""torch._jit_internal: marks for a compiler, which give what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from .jit import export, ignore, is_scripting, unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]
F = TypeVar("F", bound=Callable[..., Any])


def _copy_to_script_wrapper(fn: F) -> F:
    """`fn`."""
    return fn


_overload = _overload_method = _copy_to_script_wrapper


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """One function or the other, by an argument that is true or false."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    choose.__name__ = func_name
    return choose
