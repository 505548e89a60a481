"""Owns policies of which modules within a module are wrapped, and wrapping by a context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mindtorch import nn

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap",
    "lambda_auto_wrap_policy", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy",
    "wrap",
]  # fmt: skip


def always_wrap_policy(*args: object, **kwargs: object) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int,
    lambda_fn: Callable[[nn.Module], bool],
) -> bool:  # fmt: skip
    """The modules of which a function says so."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int,
    transformer_layer_cls: set[type[nn.Module]],
) -> bool:  # fmt: skip
    """The modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:  # fmt: skip
    """The modules with so many elements that are not wrapped within; lists of modules never."""
    leaves = {nn.MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    without = exclude_wrap_modules
    without = {nn.ModuleList, nn.ModuleDict} if without is None else without
    if nonwrapped_numel < min_num_params:
        return False
    return not isinstance(module, tuple(leaves if recurse else without))


vars(size_based_auto_wrap_policy).update(
    EXCLUDE_WRAP_MODULES={nn.ModuleList, nn.ModuleDict}, FORCE_LEAF_MODULES={nn.MultiheadAttention}
)


def _or_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int,
    policies: Iterable[Callable[..., bool]],
) -> bool:  # fmt: skip
    """The modules that any of some policies takes."""
    each = [p(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for p in policies]
    return any(each)


class ModuleWrapPolicy:
    """The modules of some classes."""

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module: nn.Module, recurse: bool, *args: object, **_: object) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """The modules of which a function gives True, or a dictionary of options of their own."""

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: nn.Module, recurse: bool, *args: object, **_: object) -> Any:
        """Whether, or with which options; ValueError for what is neither."""
        answer = recurse or self._lambda_fn(module)
        if not isinstance(answer, bool | dict):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but"
                f" it returned {answer}"
            )
        return answer


def wrapped_within(
    module: nn.Module, policy: Callable[..., Any], make: Callable[..., nn.Module],
    ignored: set[nn.Module], top: bool = True,
) -> tuple[nn.Module, int]:  # fmt: skip
    """The module, or what is around it, and how many elements are wrapped; from the leaves on."""
    numel = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    total = 0
    for name, child in module.named_children():
        if child not in ignored:
            inner, count = wrapped_within(child, policy, make, ignored, top=False)
            setattr(module, name, inner)
            total += count
    if top:
        return module, total
    answer = policy(module=module, recurse=False, nonwrapped_numel=numel - total)
    if not answer:
        return module, total
    return make(module, **(answer if isinstance(answer, dict) else {})), numel


_OPEN: list[tuple[Callable[..., nn.Module], dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps."""
    _OPEN.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _OPEN.pop()


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """The module, wrapped where `enable_wrap` is open."""
    if not _OPEN:
        return module
    make, options = _OPEN[-1]
    return make(module, **{**options, **wrap_overrides})
