"""Owns Op, the one declaration per op, and OPS, the table of them; refuses to run anything.

See docs/adding_an_op.md for how to write a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .schema import Kind, Schema, parse

MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Call:
    """One ACLNN call: op name and arguments in header order.

    An argument is a string (the schema's argument of that name; "out" or the result's name for
    results), a `Const`, or an `Expr`. `when(args)` (a dict by schema name, tensors as Geometry)
    says whether this call applies; the first that does is taken. `inplace` marks a call that
    writes to its first tensor argument.
    """

    name: str
    args: tuple[Any, ...]
    when: Callable[[dict[str, Any]], bool] | None = None
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """A literal in an ACLNN call: number, bool, string or tuple of ints."""

    value: Any


@dataclass(frozen=True, slots=True)
class Expr:
    """A value computed from the arguments (dict by schema name, tensors as Geometry)."""

    compute: Callable[[dict[str, Any]], Any]


def call(name: str, *args: Any, when: Any = None, inplace: bool = False) -> Call:
    """A Call; bare numbers, bools and tuples become `Const`, functions become `Expr`."""
    return Call(name, tuple(_argument(a) for a in args), when, inplace)


def _argument(value: Any) -> Any:
    if isinstance(value, str | Const | Expr):
        return value
    return Expr(value) if callable(value) else Const(value)


def scalar(name: str) -> Callable[[dict[str, Any]], bool]:
    """`when=scalar("other")`: the argument is a Python number."""
    return lambda args: args[name].__class__ in (bool, int, float, complex)


@dataclass(eq=False, slots=True)
class Op:
    """One op. `name` is unique: `add`, `max.dim` (name and overload)."""

    name: str
    text: str
    infer: Callable[..., Any] | None = None
    cpu: Callable[..., Any] | None = None
    cpu_inplace: Callable[..., Any] | None = None
    compute: str = "opmath"
    aclnn: tuple[Call, ...] = ()
    lower: Callable[..., Any] | None = None
    grad: Any = MISSING
    body: Callable[..., Any] | None = None
    samples: Callable[[], Sequence[Any]] | None = None
    tolerance: str = "elementary"
    surface: str = "auto"
    inplace: bool = False
    oracle: Callable[..., Any] | None = None
    _schema: Schema | None = None
    cache: dict[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = parse(self.text)
            bind = getattr(self.infer, "bind", None)
            if bind is not None:
                bind(self.positions(Kind.TENSOR, Kind.OPTIONAL_TENSOR, Kind.UNION))
        return self._schema

    def bind(self) -> None:
        """Parse the schema and tell the rule where tensors are; done once."""
        self.schema.name  # noqa: B018 - the property does both

    def positions(self, *kinds: Kind) -> tuple[int, ...]:
        """Positions of the arguments of these kinds."""
        return tuple(i for i, a in enumerate(self.schema.args) if a.kind in kinds)

    @property
    def base_name(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_view(self) -> bool:
        return self.schema.is_view

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


OPS: dict[str, Op] = {}


class DuplicateOpError(ValueError):
    """Two rows with one name; the message names it."""


def op(text: str, **fields: Any) -> Op:
    """Declare an op and put it into OPS; DuplicateOpError when its name is taken."""
    name = text[: text.index("(")].strip()
    if name in OPS:
        raise DuplicateOpError(f"op: {name} is declared twice; use an overload name ({name}.x)")
    if isinstance(fields.get("aclnn"), Call):
        fields["aclnn"] = (fields["aclnn"],)
    made = Op(name, text, **fields)
    OPS[name] = made
    return made


def composite(text: str, body: Callable[..., Any], **fields: Any) -> Op:
    """Declare an op made of other ops: dtype, gradient and every backend follow from `body`.

    `body` takes the arguments in schema order and may be called with fewer where the schema has
    defaults.
    """
    return op(text, body=body, **fields)


class Aten:
    """The ops as functions, for derivatives and bodies: `aten.where(mask, a, b)`.

    Filled lazily by the dispatcher; `aten.name` for `name.overload` is spelled `name_overload`.
    """

    _load: Callable[[str], Any] | None = None

    def publish(self, name: str, function: Any) -> None:
        """Let `aten.name` be a hand-written function."""
        self.__dict__[name] = function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._load is None:
            raise AttributeError(name)
        found = self._load(name)
        setattr(self, name, found)
        return found


aten = Aten()
