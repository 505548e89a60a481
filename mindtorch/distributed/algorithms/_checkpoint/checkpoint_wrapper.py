"""Owns wrappers of modules whose activations are computed again, or kept on the cpu."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from mindtorch import nn
from mindtorch.autograd import graph
from mindtorch.utils.checkpoint import checkpoint

__all__ = [
    "CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper",
    "offload_wrapper",
]  # fmt: skip
_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    """How activations are computed again: `use_reentrant` of torch.utils.checkpoint."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _renamed(state: dict[str, Any], old: str, new: str) -> None:
    """Replace the beginnings of keys, in place."""
    if old == new:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in list(state):
        if key.startswith(old):
            state[new + key[len(old) :]] = state.pop(key)


class ActivationWrapper(nn.Module):
    """A module around another, whose names of parameters and states are the other's."""

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(
            lambda module, state, prefix, *_: _renamed(state, prefix + _PREFIX, prefix)
        )
        self.register_load_state_dict_pre_hook(
            lambda module, state, prefix, *_: _renamed(state, prefix, prefix + _PREFIX)
        )

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> nn.Module:
        inner: Any = self._checkpoint_wrapped_module
        part: nn.Module = inner[key]
        return part

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Those of the module inside, by its names."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), p


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs on the cpu."""

    def forward(self, *args: object, **kwargs: object) -> object:
        """That of the module inside."""
        with graph.save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes what backward needs again, by torch.utils.checkpoint or `checkpoint_fn`."""

    def __init__(
        self, mod: nn.Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., object] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            checkpoint_fn, options = checkpoint, {"use_reentrant": reentrant, **options}
        function: Callable[..., object] = checkpoint_fn
        self.checkpoint_fn: Callable[..., object] = partial(function, **options)

    def forward(self, *args: object, **kwargs: object) -> object:
        """That of the module inside."""
        inner = self._checkpoint_wrapped_module
        if self.checkpoint_impl == CheckpointImpl.REENTRANT and kwargs:
            names, count = list(kwargs), len(args)

            def call(*values: object) -> object:
                return inner(*values[:count], **dict(zip(names, values[count:], strict=True)))

            return self.checkpoint_fn(call, *args, *kwargs.values())
        return self.checkpoint_fn(inner, *args, **kwargs)


def offload_wrapper(module: nn.Module) -> nn.Module:
    """The module, with what backward needs on the cpu."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., object] | None = None, **checkpoint_fn_kwargs: object,
) -> nn.Module:  # fmt: skip
    """The module, with what backward needs computed again."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[[nn.Module], nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wrap the submodules that `check_fn` wants, in place, the innermost first."""
    for name, child in model.named_children():
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn, auto_wrap_policy)
        if auto_wrap_policy is None:
            wraps = check_fn(child)
        else:
            wraps = auto_wrap_policy(module=child, recurse=False, nonwrapped_numel=0)
        if wraps:
            setattr(model, name, checkpoint_wrapper_fn(child))
