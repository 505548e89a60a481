"""Owns TestSpec files of the vendor's test kit: a class for each operator, and what is read of it.

`golden` and `third_party` are dotted names, functions, or classes to be made and called;
`third_party` may be a dict of them by framework. They take torch tensors and numbers in the
header's order, by name where they name them, and return a list of results. Of the keywords that
the kit adds, those that they take are given. `customize_inputs` takes the list of input tensors
and returns it changed; `compare` takes a result and its reference, and returns whether they agree,
or that and a text; `tolerance` names a standard for each dtype.

Source: the documents of the public repository cann/ops-test-kit (test_spec README), 2026-10.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np

from aclnn_bindings.interface.signature import Direction, OpSignature

from ...judge import STANDARDS, standards
from ...judge.formats import FORMATS
from ...judge.precision import numpy_dtype
from ...judge.standards import Tolerances
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


# The kit's names of standards in `tolerance`, and what may stand beside them.
_STANDARDS: Final = {"mix_tolerance": "mixed", "binary_equal": "binary"}
_NUMBERS: Final = {"rtol": "relative", "ptol": "share", "atol": "absolute"}
_FRAMEWORKS: Final = ("torch", "numpy", "tensorflow")


class SpecReference:
    """One class, as a reference: numpy arrays by header name in, arrays out; with its inputs'
    changes, its second witness, its comparison and its standards."""

    def __init__(self, operator: str, spec: type) -> None:
        self.operator, self.spec = operator, spec
        self.golden = self._member("golden")
        if self.golden is None:
            raise DeclarationError(f"{spec.__name__} of {operator} has no golden")
        self.customize = self._member("customize_inputs")
        self.compare = self._member("compare")
        self.third_party = self._member("third_party")
        self.tolerance = self._tolerance()

    def _member(self, name: str) -> Any:
        value = inspect.getattr_static(self.spec, name, None)
        return value.__func__ if isinstance(value, staticmethod | classmethod) else value

    def _tolerance(self) -> dict[str, tuple[str, Tolerances]]:
        """Standard and numbers by dtype; DeclarationError for a standard that is not known."""
        stated = self._member("tolerance") or {}
        table: dict[str, tuple[str, Tolerances]] = {}
        for key, words in stated.items():
            dtype = str(key).removeprefix("torch.")
            name = str(words.get("standard", standards.default(dtype)))
            name = _STANDARDS.get(name, name)
            if name not in STANDARDS:
                known = ", ".join(STANDARDS)
                raise DeclarationError(f"{self.spec.__name__}: tolerance of {dtype}: no standard "
                                       f"is called {name!r}; there are {known}")  # fmt: skip
            numbers = {field: words[word] for word, field in _NUMBERS.items() if word in words}
            table[dtype] = (name, Tolerances(**numbers))
        return table

    def bound(self, signature: OpSignature) -> Any:
        """A function whose parameters are the header's inputs."""
        names = [p.name for p in signature.params if p.direction is not Direction.OUT]

        def reference(**values: Any) -> Any:
            return _call(self.golden, {n: values.get(n) for n in names})

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(n, kind) for n in names]
        setattr(reference, "__signature__", inspect.Signature(parameters))  # noqa: B010
        setattr(reference, _KIT, self)
        if self.customize is not None:
            setattr(reference, "changed_inputs", self.changed)  # noqa: B010 - infer.py reads it
        return reference

    def changed(self, inputs: Sequence[Any]) -> list[Any]:
        """The input arrays as `customize_inputs` wants them; DeclarationError for another form."""
        returned = self.customize([_tensor(v) for v in inputs])
        if not isinstance(returned, list | tuple) or len(returned) != len(inputs):
            raise DeclarationError(f"{self.spec.__name__}.customize_inputs must return a list of "
                                   f"{len(inputs)} tensors, as it gets")  # fmt: skip
        return [as_numpy(v) for v in returned]

    def agrees(self, got: Any, expected: Any) -> tuple[bool, str]:
        """What `compare` says of one result."""
        answer = self.compare(_tensor(got), _tensor(expected))
        passed, text = answer if isinstance(answer, tuple) else (answer, "")
        return bool(passed), str(text)

    def witness(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The results of `third_party`."""
        third = self.third_party
        if isinstance(third, dict):
            third = next((third[name] for name in _FRAMEWORKS if name in third), None)
        if third is None:
            raise DeclarationError(f"{self.spec.__name__}.third_party has none of "
                                   f"{', '.join(_FRAMEWORKS)}")  # fmt: skip
        return _call(third, values)


_KIT: Final = "kit_spec"


def kit_spec(reference: Any) -> SpecReference | None:
    """The class that a reference comes from; None for a reference of another kind."""
    spec = getattr(reference, _KIT, None)
    return spec if isinstance(spec, SpecReference) else None


def _call(function: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
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
    return tuple(as_numpy(r) for r in many)


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
    array = np.array(value)
    if array.dtype.kind != "V":
        return torch.from_numpy(array)
    raw = torch.from_numpy(array.view(f"u{array.itemsize}"))  # bfloat16, float8: no numpy's
    return raw.view(getattr(torch, array.dtype.name))


def as_numpy(value: Any) -> Any:
    """A result of numpy, torch or jax as numpy has it."""
    if isinstance(value, list | tuple):
        return [as_numpy(v) for v in value]
    if not hasattr(value, "detach"):
        return np.asarray(value)
    name = str(value.dtype).removeprefix("torch.")
    if name not in FORMATS or numpy_dtype(name).kind != "V":
        return value.detach().numpy()
    torch: Any = importlib.import_module("torch")
    raw = value.detach().view(getattr(torch, f"uint{8 * value.element_size()}"))
    return raw.numpy().view(numpy_dtype(name))
