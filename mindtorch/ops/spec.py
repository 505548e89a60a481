"""Owns Op, the one declaration per op, and OPS, the table of them; refuses to run anything.

See docs/adding_an_op.md for how to write a row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from .fields import (
    AclnnCall,
    Api,
    Const,
    Dtypes,
    Expr,
    Kernels,
    ListOf,
    Testing,
    Writes,
    grouped,
)  # fmt: skip
from .schema import ArgKind, Schema, names_in, parse

MISSING: Any = object()
F = TypeVar("F", bound=Callable[..., Any])


def call(
    name: str, *args: Any, when: Callable[..., Any] | None = None, inplace: bool = False
) -> AclnnCall:
    """A Call; bare numbers, bools and tuples become `Const`, functions become `Expr`, tuples of
    names become `ListOf`. Without `args`, those of the row's schema, then its results."""
    return AclnnCall(name, tuple(_argument(a) for a in args), when, inplace)


def _argument(value: Any) -> Any:
    if isinstance(value, str | Const | Expr):
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return ListOf(value)
    return Expr(value) if callable(value) else Const(value)


@dataclass(frozen=True, slots=True)
class Derivative:
    """A derivative whose parameters are said beside it: `reads` are their names, in order.

    For functions made by other functions, whose own parameter names say nothing.
    """

    fn: Callable[..., Any]
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoNumbers:
    """A condition that reads no Python number: a plan for other numbers need not ask it again."""

    test: Callable[[dict[str, Any]], bool]

    def __call__(self, args: dict[str, Any]) -> bool:
        return self.test(args)


def in_dtypes(name: str, *dtypes: str) -> NoNumbers:
    """`when=in_dtypes("self", "float32")`: the tensor's dtype is one of these."""
    names = frozenset(f"torch.{d}" for d in dtypes)
    return NoNumbers(lambda args: str(args[name].dtype) in names)


# What most of CANN's kernels of networks take (their documents' lists for Atlas A2).
SHORT_FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class IsNumber:
    """Whether an argument is a Python number, whatever its value."""

    name: str

    def __call__(self, args: dict[str, Any]) -> bool:
        return args[self.name].__class__ in (bool, int, float, complex)

    def and_where(self, other: NoNumbers) -> Both:
        """This, where another condition holds too."""
        return Both(self, other)


@dataclass(frozen=True, slots=True)
class Both:
    """Two conditions, neither of which reads a number's value."""

    first: IsNumber
    second: NoNumbers

    def __call__(self, args: dict[str, Any]) -> bool:
        return self.first(args) and self.second(args)


def scalar(name: str) -> IsNumber:
    """`when=scalar("other")`: the argument is a Python number."""
    return IsNumber(name)


@dataclass(eq=False, slots=True)
class Op:
    """One op. What every call reads stands here; the rest in groups (`fields.py`)."""

    # Unique: `add`, `max.dim` (name and overload).
    name: str
    # The schema as it is declared.
    text: str
    # The folder of the row under `ops/rows`; "custom" outside of it.
    family: str
    kernels: Kernels
    dtypes: Dtypes
    writes: Writes
    api: Api
    testing: Testing
    # Geometries of the arguments -> those of the results.
    infer: Callable[..., Any] | None = None
    # A function of tensors made of other ops, run without autograd where a kernel is lacking.
    lower: Callable[..., Any] | None = None
    # A composite's function of tensors: dtype, gradient and every backend follow from it.
    body: Callable[..., Any] | None = None
    # Argument -> its derivative; {}: not differentiable; MISSING: torch has none either.
    grad: Any = MISSING
    _schema: Schema | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    # How a form of an op is written; the dispatcher's, set where it is made.
    write: ClassVar[Callable[[Op, str], Any]]

    def entry(self, form: str) -> Callable[..., Any]:
        """The op as a function, made on first use. Forms: see `_dispatch/entry.py`."""
        if form not in self.cache:
            self.cache[form] = Op.write(self, form)
        return self.cache[form]

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = parse(self.text)
            bind = getattr(self.infer, "bind", None)
            if bind is not None:
                bind(self.positions(ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.UNION))
        return self._schema

    def bind(self) -> None:
        """Parse the schema and tell the rule where tensors are; done once."""
        self.schema.name  # noqa: B018 - the property does both

    def positions(self, *kinds: ArgKind) -> tuple[int, ...]:
        """Positions of the arguments of these kinds."""
        return tuple(i for i, a in enumerate(self.schema.args) if a.kind in kinds)

    @property
    def base_name(self) -> str:
        return self.name.partition(".")[0]

    @property
    def places(self) -> frozenset[str]:
        """Where users find the op: any of "function", "method", "nn", and words of SPACES."""
        words = set(self.api.surface.split())
        if "auto" in words:
            words.add(self._usual_place())
        if "both" in words:
            words |= {"function", "method"}
        return frozenset(words - {"auto", "both", "none"})

    def _usual_place(self) -> str:
        space = self.name.partition("_")[0]
        if space in SPACES:
            return space
        if self.name.startswith("_") or self.base_name.endswith("_backward"):
            return "none"
        if self.family == "nn":
            return "nn"
        takes_self = self.text.partition("(")[2].startswith(("Tensor self", "Tensor(a) self"))
        return "both" if takes_self else "function"

    @property
    def is_view(self) -> bool:
        return self.schema.is_view

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


# The tolerance of a folder's rows; of the others "elementary".
_TOLERANCES = {
    "create": "composite", "matrix": "composite", "move": "exact", "reduce": "exact",
    "special": "composite", "view": "exact",
}  # fmt: skip
_DIRECT = frozenset(("infer", "lower", "body", "grad"))
OPS: dict[str, Op] = {}
_OVERLOADS: dict[str, list[Op]] = {}  # by base name
# Modules of torch whose functions are rows that begin with the module's name: `linalg_inv`.
SPACES = ("linalg", "fft", "special")


class DuplicateOpError(ValueError):
    """Two rows with one name; the message names it."""


def op(text: str, **fields: Any) -> Op:
    """Declare an op and put it into OPS; DuplicateOpError when its name is taken.

    `fields` are those of Op and of its groups (`fields.py`), by name; TypeError for others.
    """
    return _declare(text, _family(sys._getframe(1).f_globals["__name__"]), **fields)


def _declare(text: str, family: str, **fields: Any) -> Op:
    row = make(text, family, **fields)
    if row.name in OPS:
        raise DuplicateOpError(
            f"op: {row.name} is declared twice; use an overload name ({row.name}.x)"
        )
    OPS[row.name] = row
    _OVERLOADS.setdefault(row.base_name, []).append(row)
    return row


def overloads(base: str) -> list[Op]:
    """The rows called `base` or `base.overload`, in the order of their declaration."""
    return [op for op in _OVERLOADS.get(base, ()) if OPS.get(op.name) is op]


def make(text: str, family: str, **fields: Any) -> Op:
    """An op outside of OPS; TypeError for a field that no op has."""
    if calls := fields.get("aclnn"):
        calls = (calls,) if isinstance(calls, AclnnCall) else calls
        fields["aclnn"] = tuple(c if c.args else _usual_call(c, text) for c in calls)
    fields.setdefault("tolerance", _TOLERANCES.get(family, "elementary"))
    if fields.get("tolerance") == "composite" and (fields.get("body") or fields.get("lower")):
        fields.setdefault("rule", "stepwise")
    name = text[: text.index("(")].strip()
    return Op(name, text, family, **grouped(fields, _DIRECT))


def _usual_call(call: AclnnCall, text: str) -> AclnnCall:
    return AclnnCall(call.name, names_in(text), call.when, call.inplace)


def _family(module: str) -> str:
    """The room of the module that declares a row: pointwise, matrix …; custom outside of rows."""
    _, rows, rest = module.partition(".ops.rows.")
    return rest.partition(".")[0] if rows else "custom"


@overload
def composite(text: str, body: Callable[..., Any], **fields: Any) -> Op: ...
@overload
def composite(text: str, **fields: Any) -> Callable[[F], F]: ...
def composite(text: str, body: Callable[..., Any] | None = None, **fields: Any) -> Any:
    """Declare an op made of other ops: dtype, gradient and every backend follow from `body`.

    `body` takes the arguments in schema order and may be called with fewer where the schema has
    defaults. Without it, a decorator of a body, which stays the function that it is.
    """
    family = _family(sys._getframe(1).f_globals["__name__"])

    def declare(fn: F) -> F:
        _declare(text, family, body=fn, **fields)
        return fn

    if body is None:
        return declare
    declare(body)
    return OPS[text[: text.index("(")].strip()]


class LazyAten:
    """The ops as functions, for derivatives and bodies: `aten.where(mask, a, b)`.

    Filled lazily by the dispatcher; `aten.name` for `name.overload` is spelled `name_overload`.
    """

    load: ClassVar[Any] = None

    def publish(self, name: str, function: Callable[..., Any]) -> None:
        """Let `aten.name` be a hand-written function."""
        self.__dict__[name] = function

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or self.load is None:
            raise AttributeError(name)
        entry = self.load(name)
        setattr(self, name, entry)
        return entry


if TYPE_CHECKING:
    from . import _aten  # rendered from the rows

    aten = _aten
else:
    aten = LazyAten()  # each name is found at its first use
