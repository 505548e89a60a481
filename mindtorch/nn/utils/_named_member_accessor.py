"""Owns torch.nn.utils._named_member_accessor: tensors of a module by their dotted names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..._tensor.tensor import Tensor
from ..modules.module import Module

_MISSING: Any = object()


def swap_tensor(
    module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Tensor | None:
    """Put `tensor` where the module has one called `name`; the one that was there."""
    _check(module, name, tensor)
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            _put(table, name, tensor)
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not None and tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before if before is not _MISSING else None


def _put(table: Any, name: str, tensor: Tensor | None) -> None:
    if tensor is None:
        del table[name]
    else:
        table[name] = tensor


def _check(module: Module, name: str, tensor: Tensor | None) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Put `tensor` where the module has one called `name`."""
    swap_tensor(module, name, tensor, allow_missing=True)


class NamedMemberAccessor:
    """Tensors of a module and of those inside it, by names like `layers.0.weight`."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Module:
        """The module called `name`; this one for the empty name."""
        if not name:
            return self.module
        prefix, _, attribute = name.rpartition(".")
        home = self.get_submodule(prefix)
        inner = getattr(home, attribute, _MISSING)
        if inner is _MISSING:
            raise AttributeError(f"{home._get_name()} has no attribute `{attribute}`")
        if not isinstance(inner, Module):
            raise TypeError(f"submodule `{name}`: {inner} is not an instance of torch.nn.Module")
        return inner

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module where `path` says; the one that was there."""
        prefix, _, name = path.rpartition(".")
        home = self.get_submodule(prefix)
        before = home._modules[name]
        assert before is not None
        home._modules[name] = value
        return before

    def get_tensor(self, name: str) -> Tensor:
        """The tensor called `name`; AttributeError or TypeError where there is none."""
        prefix, _, attribute = name.rpartition(".")
        value = getattr(self.get_submodule(prefix), attribute)
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
        return value

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor where `name` says."""
        self.swap_tensor(name, value, allow_missing=True)

    def swap_tensor(
        self, name: str, value: Tensor | None, allow_missing: bool = False
    ) -> Tensor | None:
        """Put a tensor where `name` says; the one that was there."""
        prefix, _, attribute = name.rpartition(".")
        return swap_tensor(self.get_submodule(prefix), attribute, value, allow_missing)

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Tensor | None], list[str]]:
        """Put many; those that were there, and the names that were not."""
        before, missing = {}, []
        for name, value in named_tensors.items():
            was = self.swap_tensor(name, value, allow_missing=True)
            before[name] = was
            if was is None:
                missing.append(name)
        if missing and not allow_missing:
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names that the module has and `keys` lacks, and the other way round."""
        names = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(names - set(keys)), sorted(set(keys) - names)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters, then names and buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Names and modules."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)
