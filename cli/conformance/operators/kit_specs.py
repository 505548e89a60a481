"""Owns TestSpec files of the vendor's test kit: a class for each operator, whose `golden` is read.

`golden` is a dotted name, a function, or a class to be made and called. It takes torch tensors and
numbers in the header's order, by name where it names them, and returns a list of results. Of the
keywords that the kit adds, those that it takes are given.

Source: the documents of the public repository cann/ops-test-kit (test_spec README), 2026-10.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.signature import Direction, OpSignature

from ...spec.errors import DeclarationError

_SUFFIX: Final = "TestSpec"
_EXTRAS: Final = ("tensor_dtypes", "tensor_formats", "scalar_dtypes", "short_soc_version",
                  "testcase_name", "use_torch")  # fmt: skip


def classes(module: ModuleType) -> Iterator[tuple[str, type]]:
    """The operators of a file with their classes: those that `__spec__` names, then those named
    after an operator."""
    named = vars(module).get("__spec__")
    listed: Mapping[str, str] = named if isinstance(named, dict) else {}
    for operator, name in listed.items():
        value = getattr(module, str(name), None)
        if not isinstance(value, type):
            raise DeclarationError(f"__spec__ names {name!r} for {operator}: no such class")
        yield str(operator), value
    for name, value in vars(module).items():
        operator = name[:1].lower() + name[1:].removesuffix(_SUFFIX)
        if name.endswith(_SUFFIX) and isinstance(value, type) and operator not in listed:
            yield operator, value


class SpecReference:
    """The `golden` of one class, as a reference: numpy arrays by header name in, arrays out."""

    def __init__(self, operator: str, spec: type) -> None:
        golden = inspect.getattr_static(spec, "golden", None)
        golden = golden.__func__ if isinstance(golden, staticmethod | classmethod) else golden
        if golden is None:
            raise DeclarationError(f"{spec.__name__} of {operator} has no golden")
        self.operator, self.golden = operator, golden

    def bound(self, signature: OpSignature) -> Any:
        """A function whose parameters are the header's inputs."""
        names = [p.name for p in signature.params if p.direction is not Direction.OUT]

        def reference(**values: Any) -> Any:
            return self._call({n: values.get(n) for n in names})

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(n, kind) for n in names]
        setattr(reference, "__signature__", inspect.Signature(parameters))  # noqa: B010
        return reference

    def _call(self, values: Mapping[str, Any]) -> Any:
        function = self.golden
        if isinstance(function, str):
            module, _, name = function.rpartition(".")
            function = getattr(importlib.import_module(module), name)
        elif isinstance(function, type):
            function = function()
        accepts = _parameters(function)
        tensors = {n: _tensor(v) for n, v in values.items()}
        extras = {n: True if n == "use_torch" else None for n in _EXTRAS if n in accepts}
        if set(tensors) - {"self"} <= set(accepts):
            first = [tensors.pop("self")] if "self" in tensors else []
            results = function(*first, **tensors, **extras)
        else:
            results = function(*tensors.values(), **extras)
        many = results if isinstance(results, list | tuple) else [results]
        return tuple(_array(r) for r in many)


def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin of torch
        return ()


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensor(v) for v in value]
    if not isinstance(value, np.ndarray):
        return value
    torch: Any = importlib.import_module("torch")
    return torch.from_numpy(np.array(value))


def _array(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_array(v) for v in value]
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)
