"""Owns functional_call: a module's forward with other tensors
in place of its own, put back after."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from ..._tensor.tensor import Tensor
from ..modules.module import Module
from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """torch.func.functional_call by its deprecated name."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be"
        " removed in a future version of PyTorch. Please use `torch.func.functional_call` instead"
        " which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls `module` with the tensors of a dict (or several) under their dotted names."""
    many = isinstance(parameters_and_buffers, tuple | list)
    if not (many or isinstance(parameters_and_buffers, dict)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, "
            f"but got {type(parameters_and_buffers)}"
        )
    if many:
        if not all(isinstance(mapping, dict) for mapping in parameters_and_buffers):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        names = [name for mapping in parameters_and_buffers for name in mapping]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is"
                " ambiguous"
            )
        merged = {
            name: value for mapping in parameters_and_buffers for name, value in mapping.items()
        }
    else:
        merged = parameters_and_buffers
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, merged, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: MutableMapping[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """The module has these tensors inside of the context; the mapping gets those of its end.

    `stack_weights` changes nothing.
    """
    slots = dict(_slots(module))
    if strict:
        _check(module, set(parameters_and_buffers), set(slots))
    changes = {name: value for name, value in parameters_and_buffers.items() if name in slots}
    if tie_weights:
        _add_tied(slots, changes)
    originals = {name: slots[name][0][slots[name][1]] for name in changes}
    accessor, others = NamedMemberAccessor(module), {}
    try:
        for name, value in parameters_and_buffers.items():
            if name not in slots:
                others[name] = accessor.swap_tensor(name, value, allow_missing=True)
        for name, value in changes.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            where, key = slots[name]
            where[key] = value
        yield
    finally:
        for name, before in others.items():
            accessor.swap_tensor(name, before, allow_missing=True)
        for name, value in originals.items():
            where, key = slots[name]
            if name in parameters_and_buffers:  # the module may have set another one
                parameters_and_buffers[name] = where[key]
            where[key] = value


def _slots(module: Module) -> Iterator[tuple[str, tuple[dict[str, Any], str]]]:
    for path, owner in module.named_modules(remove_duplicate=False):
        for where in (owner._parameters, owner._buffers):
            for key in where:
                yield (f"{path}.{key}" if path else key), (where, key)


def _add_tied(slots: dict[str, Any], changes: dict[str, Any]) -> None:
    """A tensor that stands under several names is replaced under all of them."""
    owners: dict[int, list[str]] = {}
    for name in changes:
        owners.setdefault(id(slots[name][0][slots[name][1]]), []).append(name)
    for names in owners.values():
        if any(changes[name] is not changes[names[0]] for name in names):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied."
                " Consider using tie_weights=False"
            )
    by_tensor = {key: changes[names[0]] for key, names in owners.items()}
    for name, (where, key) in slots.items():
        if name not in changes and where[key] is not None and id(where[key]) in by_tensor:
            changes[name] = by_tensor[id(where[key])]


def _check(module: Module, replaced: set[str], names: set[str]) -> None:
    problems = []
    if replaced - names:
        problems.append(
            "Unexpected key(s): " + ", ".join(map(repr, sorted(replaced - names))) + "."
        )
    if names - replaced:
        problems.append("Missing key(s): " + ", ".join(map(repr, sorted(names - replaced))) + ".")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )
