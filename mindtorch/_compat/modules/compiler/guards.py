"""Owns what a compiled call depends on besides its graph, and why a graph is compiled again.

Strings, flags and attributes of modules that a program's code names are part of what a graph is
kept for, as in torch, whether or not another value gives another graph.
"""

from __future__ import annotations

import dis
import linecache
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import mindtorch
from mindtorch._autograd.grad_mode import LOCAL
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module
from mindtorch.ops.rules import scalar_name

_SIMPLE = (bool, int, float, str, type(None))
_HINT = (
    " (HINT: torch.compile considers integer attributes of the nn.Module to be static. If you are"
    " observing recompilation, you might want to make this integer dynamic using"
    " torch._dynamo.config.allow_unspec_int_on_nn_module = True, or convert this integer into a"
    " tensor.)"
)


class TensorFacts(NamedTuple):
    """What a graph needs of a tensor."""

    dtype: Any
    requires_grad: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class CallFacts(NamedTuple):
    """What one call depends on: values by source, and whether gradients are recorded."""

    values: dict[str, object]
    grad: bool

    def key(self, changing: Container[str]) -> tuple[tuple[str, object], ...]:
        """What a graph is kept for beside its text: flags and names, and what calls change."""
        return tuple(
            (source, value) for source, value in self.values.items()
            if source in changing or (source[-1] == "]" and type(value) in (str, bool, type(None)))
        )  # fmt: skip

    def changes(self, target: Module) -> set[str]:
        """The attributes of modules that are others than they were."""
        now = facts_of(target, {}).values
        return {s for s, value in now.items() if s[-1] != "]" and self.values.get(s) != value}


def facts_of(target: object, arguments: Mapping[str, object]) -> CallFacts:
    """The facts of a call of `target` with arguments by name."""
    values: dict[str, object] = {}
    function = getattr(type(target), "forward", None) if isinstance(target, Module) else target
    code: CodeType | None = getattr(function, "__code__", None)
    if code is not None and isinstance(target, Module) and code.co_varnames:
        _attributes(values, f"L[{code.co_varnames[0]!r}]", target)
    for name in () if code is None else code.co_names:
        value = getattr(function, "__globals__", {}).get(name, ...)
        if type(value) in _SIMPLE:
            values[f"G[{name!r}]"] = value
    for name, value in arguments.items():
        if code is None or _line_of(code, name):
            for source, fact in _parts(f"L[{name!r}]", value):
                values[source] = fact
    return CallFacts(values, LOCAL.grad)


def stride_order(tensor: Tensor) -> tuple[int, ...]:
    """The dims of more than one element, those of small strides last."""
    geom = tensor._geom
    dims = [d for d, size in enumerate(geom.shape) if size > 1]
    return tuple(sorted(dims, key=lambda d: -geom.strides[d]))


def _attributes(values: dict[str, object], source: str, module: Module) -> None:
    """Plain attributes of modules of the program's own that their `forward` names."""
    for path, inner in module.named_modules():
        code: CodeType | None = getattr(type(inner).forward, "__code__", None)
        if code is None or type(inner).__module__.startswith("mindtorch."):
            continue
        place = "".join([source, *(f"._modules[{p!r}]" for p in path.split(".") if p)])
        for name, value in vars(inner).items():
            if name in code.co_names and type(value) in _SIMPLE:
                values[f"{place}.{name}"] = value


def _parts(source: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Tensor):
        geom = value._geom
        yield source, TensorFacts(value.dtype, value.requires_grad, geom.shape, geom.strides)
    elif type(value) in _SIMPLE:
        yield source, value
    elif isinstance(value, list | tuple) and type(value) in (list, tuple):
        yield f"len({source})", len(value)
        for at, part in enumerate(value):
            yield from _parts(f"{source}[{at}]", part)
    elif type(value) is dict:
        for key, part in value.items():
            yield from _parts(f"{source}[{key!r}]", part)


@cache
def _line_of(code: CodeType, name: str) -> int:
    """Where a name is read first; 0 where it is not."""
    line = 0
    for step in dis.get_instructions(code):
        line = step.starts_line or line
        if step.argval == name and step.opname.startswith("LOAD"):
            return line
    return 0


def reasons(
    target: object,
    earlier: Sequence[CallFacts],
    now: CallFacts,
    sizes: Mapping[str, list[int | None]],
) -> str:
    """Why no earlier graph serves, the latest first, as torch lists it; "" where unknown."""
    lines = ""
    for at, facts in reversed(list(enumerate(earlier))):
        if why := _difference(target, facts, now, sizes):
            lines += f"\n    - 0/{at}: {why}"
    return lines and f"\n    triggered by the following guard failure(s):{lines}"


def _difference(
    target: object, old: CallFacts, new: CallFacts, sizes: Mapping[str, list[int | None]]
) -> str:
    if old.grad != new.grad:
        return "GLOBAL_STATE changed: grad_mode "
    for source, value in old.values.items():
        other = new.values.get(source, ...)
        if isinstance(value, TensorFacts) and isinstance(other, TensorFacts):
            name = source.removeprefix("L['").removesuffix("']")
            text = _of_tensors(name, value, other, sizes.get(f"L_{name}_"))
            if text:
                return text
        elif isinstance(value, TensorFacts):
            continue
        elif type(value) is not type(other) or value != other:
            return _of_values(target, source, value)
    return ""


def _of_tensors(
    name: str, old: TensorFacts, new: TensorFacts, fixed: list[int | None] | None
) -> str:
    if old.dtype is not new.dtype:
        kinds = scalar_name(old.dtype), scalar_name(new.dtype)
        return f"tensor '{name}' dtype mismatch. expected {kinds[0]}, actual {kinds[1]}"
    if old.requires_grad != new.requires_grad:
        expected = int(old.requires_grad)
        return f"tensor '{name}' requires_grad mismatch. expected requires_grad={expected}"
    if len(old.shape) != len(new.shape):
        ranks = f"expected {len(old.shape)}, actual {len(new.shape)}"
        return f"tensor '{name}' rank mismatch. {ranks}"
    for kind, mine, theirs in (
        ("size", old.shape, new.shape),
        ("stride", old.strides, new.strides),
    ):
        for at, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            may_change = fixed is not None and len(fixed) == len(mine) and None in fixed[at:]
            if a != b and not may_change:
                return f"tensor '{name}' {kind} mismatch at index {at}. expected {a}, actual {b}"
    return ""


def _of_values(target: object, source: str, value: object) -> str:
    """`k == 2`, with the line that reads it."""
    test = f"{source} == {value!r}"
    function = getattr(type(target), "forward", target) if isinstance(target, Module) else target
    code: CodeType | None = getattr(function, "__code__", None)
    _, _, name = source.rpartition(".") if source[-1] not in "])" else ("", "", "")
    name = name or source.partition("['")[2].partition("'")[0]  # of an argument or a global
    line = 0 if code is None else _line_of(code, name)
    local = source.partition("L['")[2].partition("']")[0]  # as the program names it
    padded = f"{test:<60}".replace(f"L['{local}']", local)
    if code is None or not line:
        return padded.rstrip()
    text = linecache.getline(code.co_filename, line).strip()
    base = os.path.dirname(mindtorch.__file__)
    common = os.path.commonpath([os.path.abspath(code.co_filename), base])
    place = os.path.abspath(code.co_filename)[len(common) + 1 :]
    hint = _HINT if "." in source and type(value) is int else ""
    return (
        f"{padded}  # {text}  # {place}:{line} in {code.co_name}{hint}\n"
        f"    - User stack trace:\n"
        f'    -   File "{code.co_filename}", line {line}, in {code.co_name}\n'
        f"    -     {text}"
    )
