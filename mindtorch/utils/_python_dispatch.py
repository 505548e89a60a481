"""Owns torch.utils._python_dispatch's names: whether a tensor wraps others."""

from __future__ import annotations

from typing import Any

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


class TorchDispatchMode:
    """Refused on entry: calls do not pass through Python functions of a mode."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        raise NotImplementedError(
            f"{type(self).__name__}: mindtorch has no __torch_dispatch__ modes; a"
            " torch.overrides.TorchFunctionMode sees calls of torch's functions"
        )

    def __exit__(self, *exc: object) -> None:
        return None


def _disable_current_modes() -> Any:
    """A context without effect: there are no modes."""
    from contextlib import nullcontext

    return nullcontext()


def _get_current_dispatch_mode() -> None:
    """None: there are no modes."""
