"""Renders what type checkers see of one install: its operators and functions, call by call.

The text stands in for `aclnn_bindings.call.namespace`. Types say what a call accepts
(`aclnn_bindings.call.marshal`), which is more than one C type each.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from aclnn_bindings.call.function import STATUS, python_signature
from aclnn_bindings.call.marshal import host_outputs, name_of
from aclnn_bindings.interface.abi import unqualified
from aclnn_bindings.interface.signature import Declarations, Kind, OpSignature, Param, Signature
from aclnn_bindings.runtime.words import FLOATS, INTEGERS

HEAD: Final = '''"""Written by `mindtorch-npu stubs` for {install}; do not edit.

Run it again after the install or the bindings changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, SupportsFloat, SupportsIndex

from aclnn_bindings.call.function import BoundFunction
from aclnn_bindings.call.operator import BoundOp
from aclnn_bindings.call.specs import RawHandle, ScalarSpec, TensorSpec
from aclnn_bindings.runtime.stream import Stream

class _Device(Protocol):
    @property
    def spec(self) -> TensorSpec: ...
    @property
    def address(self) -> int: ...

class _Owned(Protocol):
    @property
    def descriptor(self) -> int: ...

class _Item(Protocol):
    def item(self) -> Any: ...

class _Handled(Protocol):
    @property
    def handle(self) -> int: ...

_Raw = RawHandle | _Owned | None
_Tensor = _Device | TensorSpec | _Raw
_Tensors = Sequence[_Device | TensorSpec] | _Raw
_Scalar = complex | _Item | ScalarSpec | _Raw
_Scalars = Sequence[complex | _Item | ScalarSpec] | _Raw
_Ints = Iterable[SupportsIndex] | _Raw
_Bools = Iterable[bool | SupportsIndex] | _Raw
_Floats = Iterable[SupportsFloat | SupportsIndex] | _Raw
_Bool = bool | SupportsIndex
_Int = SupportsIndex
_Float = SupportsFloat | SupportsIndex
_Enum = str | SupportsIndex
_Text = str | bytes | None
_Handle = SupportsIndex | _Handled | RawHandle | None
'''
_SPACE: Final = """
class Namespace:
    def __init__(
        self, names: Callable[[], Collection[str]], find: Callable[[str], Any], root: Path
    ) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
"""
_TYPES: Final = {
    Kind.TENSOR: "_Tensor", Kind.TENSOR_LIST: "_Tensors", Kind.SCALAR: "_Scalar",
    Kind.SCALAR_LIST: "_Scalars", Kind.INT_ARRAY: "_Ints", Kind.BOOL_ARRAY: "_Bools",
    Kind.FLOAT_ARRAY: "_Floats", Kind.BOOL: "_Bool", Kind.ENUM: "_Enum", Kind.STRING: "_Text",
    Kind.HANDLE: "_Handle", **dict.fromkeys(INTEGERS, "_Int"), **dict.fromkeys(FLOATS, "_Float"),
}  # fmt: skip
_REFUSED: Final = (Kind.STRUCT, Kind.VARARGS)


@dataclass(frozen=True, slots=True)
class _Call:
    """One callable of an install, as a class whose `__call__` a checker reads."""

    name: str
    base: str
    params: tuple[Param, ...]
    signature: inspect.Signature
    result: str
    header: str

    @property
    def kind(self) -> str:
        """The class's name: an operator and its second phase bear the same one in C."""
        return f"_{self.base}_{self.name}"

    @property
    def passed(self) -> bool:
        """Whether the bindings pass every parameter; calls of the others are refused."""
        return all(param.kind not in _REFUSED for param in self.params)

    def lines(self) -> Iterator[str]:
        yield f"class {self.kind}({self.base}):"
        yield f"    def __call__({', '.join(self._parameters())}) -> {self.result}:"
        yield f'        """Declared in {self.header}."""'

    def _parameters(self) -> Iterator[str]:
        yield "_, /"
        types = {name_of(p, at): _TYPES.get(p.kind, "Any") for at, p in enumerate(self.params)}
        starred = False
        for name, annotation in self.signature.parameters.items():
            if annotation.kind is annotation.KEYWORD_ONLY and not starred:
                starred = True
                yield "*"
            default = "" if annotation.default is annotation.empty else " = ..."
            yield f"{name}: {types.get(name, 'Stream | None')}{default}"


def render(declared: Declarations, ops: Iterable[str], functions: Iterable[str], of: str) -> str:
    """The text for the named operators and functions of the install that `of` describes."""
    calls = {
        "Operators": [_op(declared.ops[name], declared) for name in ops],
        "Functions": [_function(declared.functions[name], declared) for name in functions],
    }
    lines = [HEAD.format(install=of), *_SPACE.splitlines()]
    for title, members in calls.items():
        passed = [call for call in members if call.passed]
        for call in passed:
            lines += ["", *call.lines()]
        lines += ["", f"class {title}(Namespace):"]
        lines += [f"    {call.name}: {call.kind}" for call in passed] or ["    ..."]
    return "\n".join(lines) + "\n"


def _op(op: OpSignature, declared: Declarations) -> _Call:
    params = (*op.params, *op.extra)
    hosts = host_outputs(params, declared)
    result_type = _result_type(params, hosts, declared)
    signature = python_signature(params, hosts, stream=True)
    return _Call(op.name, "BoundOp", params, signature, result_type or "None", op.workspace.header)


def _function(function: Signature, declared: Declarations) -> _Call:
    params = function.params
    hosts = host_outputs(params, declared)
    result_type = _result_type(params, hosts, declared)
    if function.returns in STATUS:
        result = result_type or "None"
    else:
        return_type = _value(function.returns, declared)
        result = f"tuple[{return_type}, {result_type}]" if result_type else return_type
    signature = python_signature(params, hosts)
    return _Call(function.name, "BoundFunction", params, signature, result, function.header)


def _result_type(params: Iterable[Param], hosts: Iterable[str], declared: Declarations) -> str:
    """The type of what a call returns for host outputs that are left out; "" for none."""
    types = [
        _value(param.type.removesuffix("*").strip(), declared)
        for param in params
        if param.name in hosts
    ]
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]" if types else ""


def _value(ctype: str, declared: Declarations) -> str:
    """The Python type that `aclnn_bindings.runtime.words.decode` gives for a C type."""
    bare = unqualified(ctype)
    for _ in range(32):
        if bare not in declared.typedefs:
            break
        bare = unqualified(declared.typedefs[bare])
    plain = {"void": "None", "const char *": "str", "char *": "str"}
    return plain.get(bare, "float" if bare in ("float", "double") else "int")
