"""Owns torch.ops: operators by namespace, name and overload, `torch.ops.aten.add.Tensor`.

`aten` holds the rows. Other namespaces hold what torch.library defines; a name that nobody
defined is an AttributeError, as in torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from .._tensor.loading import load
from .._tensor.subclass import DOOR
from .._tensor.text_files import text_beside
from .function_schema import FunctionSchema, function_schema
from .spec import OPS, aten, overloads

Tag = Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy",
    start=0,
    module="torch",
)
Tag.__doc__ = "What torch.library says of operators."

# namespace → name → overload → the function that runs.
DEFINED: dict[str, dict[str, dict[str, Callable[..., Any]]]] = {}


class OpOverload:
    """One overload of an operator: callable."""

    def __init__(self, packet: OpOverloadPacket, overload: str, run: Callable[..., Any]):
        self.overloadpacket = packet
        self._overloadname = overload
        self._run = run
        self.namespace: str = packet.namespace
        self._opname: str = packet.__name__
        self.__name__: str = f"{packet.__name__}.{overload}"

    @cached_property
    def tags(self) -> list[Any]:
        """What torch says of the operator; for one of the program's own, what that says."""
        return _tags_of(self) if self.namespace == "aten" else []

    @property
    def _schema(self) -> FunctionSchema:
        schema = SCHEMAS.get(self.name())
        return _schema_of_row(self) if schema is None else schema

    @property
    def op(self) -> OpOverload:
        return self

    @property
    def is_view(self) -> bool:
        """Whether a result is memory of an argument that the operator does not write."""
        return self._schema._parts.is_view

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if (seen := DOOR["hand_over_operator"](self, args, kwargs)) is not NotImplemented:
            return seen
        try:
            return self._run(*args, **kwargs)
        except TypeError:
            if self.namespace == "aten":
                self._refuse(args, kwargs)
            raise

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """RuntimeError, in torch's words, where the call does not fit the schema."""
        try:
            schema = self._schema
        except AttributeError:
            return
        schema.bind(args, kwargs)

    def name(self) -> str:
        """`namespace::name.overload`."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{end}"

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', "
            f"overload='{self._overloadname}')>"
        )

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


@cache
def _overload_names() -> dict[str, list[str]]:
    """torch's overloads of operators that have others than `default` and, for functions, `out`."""
    lines = text_beside(__file__, "aten_overload_names.txt").splitlines()[1:]
    rows = [(kinds.split(), names.split()) for kinds, _, names in (s.partition(":") for s in lines)]
    return {name: kinds for kinds, names in rows for name in names}


@cache
def _tagged() -> list[tuple[Tag, frozenset[str]]]:
    """torch's tags in its order, each with the overloads that have it."""
    lines = [line.split() for line in text_beside(__file__, "aten_tags.txt").splitlines()[1:]]
    return [(Tag[tag], frozenset(names)) for tag, *names in lines]


def _tags_of(overload: OpOverload) -> list[Tag]:
    name = overload.__name__.removesuffix(".default")
    tags = [tag for tag, names in _tagged() if name in names]
    out = bool(written_by(overload._opname, overload._overloadname))
    tags += [Tag.out] * out + [Tag.pt2_compliant_tag]
    return sorted(tags, key=lambda tag: str(tag.name))


# Overloads that write into what their callers give under other names than `out`.
_OUT_NAMES = {
    "aminmax.out": "min max", "cummax.out": "values indices", "cummin.out": "values indices",
    "frexp.Tensor_out": "mantissa exponent", "linalg_eigh.eigvals": "eigvals eigvecs",
    "linalg_qr.out": "Q R", "linalg_slogdet.out": "sign logabsdet", "linalg_svd.U": "U S Vh",
    "max.dim_max": "max max_values", "min.dim_min": "min min_indices",
}  # fmt: skip
_OF_TWO = frozenset(("dim_values", "values", "values_stable"))


def written_by(name: str, overload: str) -> tuple[str, ...]:
    """The keywords of the tensors that an overload writes into; none for other overloads."""
    if (names := _OUT_NAMES.get(f"{name}.{overload}")) is not None:
        return tuple(names.split())
    if overload in _OF_TWO:
        return "values", "indices"
    return ("out",) if "out" in overload.split("_") else ()


class OpOverloadPacket:
    """An operator with its overloads as attributes; calling it chooses one."""

    def __init__(self, namespace: str, name: str, run: Callable[..., Any]):
        self.namespace = namespace
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._run = run

    def overloads(self) -> list[str]:
        """The overloads' names."""
        if self.namespace != "aten":
            return list(DEFINED[self.namespace][self.__name__])
        in_place = self.__name__[-1] == "_"
        names = _overload_names().get(self.__name__)
        return ["default", "out"][: 2 - in_place] if names is None else list(names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if (seen := DOOR["hand_over_operator"](self, args, kwargs)) is not NotImplemented:
            return seen
        overloads = DEFINED.get(self.namespace, {}).get(self.__name__, ())
        if len(overloads) < 2:
            return self._run(*args, **kwargs)
        errors = []
        for name in overloads:
            overload = getattr(self, name)
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(f"{error}\n\n")
            else:
                return overload(*args, **kwargs)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            + "".join(errors)
        )

    def _writes_into(self, overload: str) -> Callable[..., Any] | None:
        """What runs an overload with `out=`; None for other overloads."""
        names = written_by(self.__name__, overload)
        if not names or self.__name__ not in OPS:
            return None

        def into(*args: Any, **kwargs: Any) -> Any:
            outs = tuple(kwargs.pop(n) for n in names if n in kwargs)
            return DOOR["into"](OPS[self.__name__], args, kwargs, outs)

        return into

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        defined: Mapping[str, Callable[..., Any]]
        if self.namespace == "aten":
            defined = {o: self._writes_into(o) or self._run for o in self.overloads()}
            if f"{self.__name__}.{overload}" in OPS:
                defined[overload] = self._run
        else:
            defined = DEFINED[self.namespace][self.__name__]
        run = defined.get(overload)
        if run is None:
            raise AttributeError(
                f"The underlying op of '{self.namespace}.{self.__name__}' has no overload"
                f" name '{overload}'"
            )
        entry = OpOverload(self, overload, run)
        setattr(self, overload, entry)
        return entry

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


# What finds operators of torch that are there to be refused.
REFUSING: list[Callable[[str], Callable[..., Any] | None]] = []


# Modules that put operators into a namespace, loaded when one of it is first asked for.
_ELSEWHERE = {"quantized": "mindtorch.ao.quantization._quantized_ops"}


# Operators of Python's signs that graphs hold.
_SIGNS = frozenset(("__and__", "__or__", "__xor__"))


class _OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name: str):
        self.name = name
        self.__name__: str = f"torch.ops.{name}"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") and name not in _SIGNS:
            raise AttributeError(name)
        load()  # an operator may be the first thing that a program asks for
        if self.name in _ELSEWHERE:
            import_module(_ELSEWHERE.pop(self.name))
            if name in vars(self):
                operator: OpOverloadPacket = vars(self)[name]
                return operator
        run = _aten(name) if self.name == "aten" else _defined(self.name, name)
        if run is None and self.name == "aten":
            run = next(filter(None, (find(name) for find in REFUSING)), None)
        if run is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        entry = OpOverloadPacket(self.name, name, run)
        setattr(self, name, entry)
        return entry

    def __dir__(self) -> list[str]:
        load()
        if self.name == "aten":
            return sorted({op.partition(".")[0] for op in OPS})
        return sorted(object.__dir__(self))  # those that were asked for, as in torch

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


def _defined(namespace: str, name: str) -> Callable[..., Any] | None:
    overloads = DEFINED.get(namespace, {}).get(name)
    return None if overloads is None else next(iter(overloads.values()))


def _aten(name: str) -> Callable[..., Any] | None:
    """A row's function; the writing form where the name ends in `_`."""
    from .aten_forms import FORMS

    if name in FORMS:
        return FORMS[name]
    plain = name.removesuffix("_")
    try:
        if name.startswith("_foreach_") and plain != name:
            write = DOOR["published"](name)
            return None if write is None else _giving_none(write)
        if plain != name and plain in OPS:
            return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)
        run = getattr(aten, name)
        row = next((op for op in overloads(name)), None)
        return run if row is None or row.text[-2:] != "[]" else _listing(run)
    except AttributeError:
        return None


def _giving_none(run: Callable[..., Any]) -> Callable[..., None]:
    def write(*args: Any, **kwargs: Any) -> None:
        run(*args, **kwargs)

    return write


def _listing(run: Callable[..., Any]) -> Callable[..., Any]:
    """A row of several tensors, as torch's operators give them: a list."""
    return lambda *args, **kwargs: list(run(*args, **kwargs))


# Schemas of the operators that torch.library defines, by `namespace::name.overload`.
SCHEMAS: dict[str, FunctionSchema] = {}


@cache
def declarations() -> dict[str, str]:
    """torch's overloads, `add.Tensor`, by name: their declarations without results."""
    lines = text_beside(__file__, "aten_overloads.txt").splitlines()[1:]
    rows = (line.partition(": ") for line in lines)
    return {head: head + rest for heads, _, rest in rows for head in heads.split()}


def _writing(text: str) -> str:
    """A declaration of the form that writes to its first tensor."""
    return re.sub(r"Tensor(\(a\))? self", "Tensor(a!) self", text, count=1)


def _schema_of_row(overload: OpOverload) -> FunctionSchema:
    """A row's schema in the words of one of torch's overloads."""
    name, kind = overload.overloadpacket.__name__, overload._overloadname
    end = "" if kind == "default" else f".{kind}"
    if not (outs := written_by(name, kind)):
        return function_schema("aten", f"{name}{end}{_declared(name, kind)}")
    parts = [p for p in kind.split("_") if p not in ("out", "values", name)]
    arguments, _, results = _declared(name, "_".join(parts) or "default").rpartition(" -> ")
    lists = results == "Tensor[]"
    marks = [f"Tensor({letter}!){'[]' * lists}" for letter in "abc"[: len(outs)]]
    arguments = arguments[:-1] + ", *" * ("*" not in arguments)
    arguments += "".join(f", {mark} {out}" for mark, out in zip(marks, outs, strict=True)) + ")"
    names = [r.partition(" ")[2] for r in results.strip("()").split(", ")]
    values = [f"{m} {n}".strip() for m, n in zip(marks, names, strict=False)]
    several = f"({', '.join(values)})"
    results = "()" if lists else values[0] if len(outs) == 1 else several
    return function_schema("aten", f"{name}{end}{arguments} -> {results}")


def _declared(name: str, kind: str) -> str:
    """Arguments and results of an overload that is given no memory for them."""
    plain = name.removesuffix("_")
    end = "" if kind == "default" else f".{kind}"
    row = next((OPS[n] for n in (f"{plain}.{kind}", plain, name) if n in OPS), None)
    if row is None or (end and row.name != f"{plain}{end}" and f"{plain}{end}" in declarations()):
        text = declarations().get(f"{name}{end}", declarations().get(f"{plain}{end}"))
        if text is None:
            raise AttributeError(f"aten.{name}.{kind} has no schema: it is no row")
        results = "Tensor" if row is None else row.text.rpartition(" -> ")[2]
        results = "Tensor(a)" if name == "detach" else results
        text = text[text.index("(") :]
        text = text.replace("Tensor ", "Tensor(a) ", 1) if "(a)" in results else text
        rest = f"{text} -> {results}"
    else:
        rest = row.text[row.text.index("(") :].replace(
            "Tensor|Scalar", "Scalar" if kind == "Scalar" else "Tensor"
        )
        if kind == "Scalar":  # which takes alpha by position too
            rest = rest.replace("*, Scalar alpha", "Scalar alpha")
    if plain == name:
        return rest
    if rest.startswith("(Tensor[] self"):
        return rest.replace("Tensor[]", "Tensor(a!)[]", 1).rpartition("->")[0] + "-> ()"
    return _writing(rest).rpartition("->")[0] + "-> Tensor(a!)"


def define(
    namespace: str,
    name: str,
    overload: str,
    run: Callable[..., Any],
    schema: FunctionSchema | None = None,
) -> OpOverload:
    """Put an operator into torch.ops."""
    end = "" if overload == "default" else f".{overload}"
    if schema is not None:
        SCHEMAS[f"{namespace}::{name}{end}"] = schema
    DEFINED.setdefault(namespace, {}).setdefault(name, {})[overload] = run
    space = NAMESPACES.setdefault(namespace, _OpNamespace(namespace))
    vars(space).pop(name, None)
    entry = getattr(getattr(space, name), overload)
    assert isinstance(entry, OpOverload)
    return entry


NAMESPACES: dict[str, _OpNamespace] = {}


def namespace(name: str) -> _OpNamespace:
    """`torch.ops.name`."""
    return NAMESPACES.setdefault(name, _OpNamespace(name))


# Libraries of compiled operators that Python stands in for: folder of the file → what declares.
STANDING_IN: dict[str, Callable[[], None]] = {}


def load_library(path: str) -> None:
    """Declare the operators of a library that has a Python form here; OSError for others."""
    folder = os.path.basename(os.path.dirname(os.fspath(path)))
    if folder not in STANDING_IN:
        raise OSError(
            f"torch.ops.load_library: {path} is built against torch's C++, which is not here"
        )
    STANDING_IN[folder]()
