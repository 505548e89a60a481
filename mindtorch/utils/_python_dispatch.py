"""Owns torch.utils._python_dispatch's names: whether a tensor wraps others."""

from __future__ import annotations

from typing import Any

from .._dispatch.dispatch_modes import TorchDispatchMode as TorchDispatchMode
from .._tensor.tensor import Tensor


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor is of a class that says which tensors it is made of."""
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same question about a class."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def _disable_current_modes() -> Any:
    """A context without effect: there are no modes."""
    from contextlib import nullcontext

    return nullcontext()


def _get_current_dispatch_mode() -> None:
    """None: there are no modes."""
