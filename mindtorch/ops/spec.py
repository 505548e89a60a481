"""Owns Op, the one declaration per op, and OPS, the table of them; refuses to run anything.

See docs/adding_an_op.md for how to write a row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from .._compat.unsupported_dtypes import Lacks
from .costs import Count, elements
from .schema import Kind, Schema, parse

if TYPE_CHECKING:
    from ._aten import Aten  # rendered from the rows for type checkers

MISSING: Any = object()
F = TypeVar("F", bound=Callable[..., Any])


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


def call(
    name: str, *args: Any, when: Callable[..., Any] | None = None, inplace: bool = False
) -> Call:
    """A Call; bare numbers, bools and tuples become `Const`, functions become `Expr`."""
    return Call(name, tuple(_argument(a) for a in args), when, inplace)


def _argument(value: Any) -> Any:
    if isinstance(value, str | Const | Expr):
        return value
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
    """One op. `name` is unique: `add`, `max.dim` (name and overload).

    `autocast` says what autocast does: "lower" (run in its dtype), "float32", or "float32 on npu"
    or "on cpu" where torch's lists differ; empty: nothing. `casts_inplace`: the in-place form
    writes into any dtype. `overlaps`: it may write where elements share memory, since it writes
    one value. `apart`: what it writes, in place or to `out=`, may share no memory with what it
    reads. `unbounded`: a view that may reach past its storage, which is then refused.
    `surface` names the places where users find it, separated by blanks: "function" (torch.name),
    "method" (Tensor.name), "nn" (torch.nn.functional.name; "nn_" its form that writes, for a row
    with an argument `inplace`), a word of SPACES (torch.linalg.name, for rows called linalg_name);
    "both" is function and method, "none" is nowhere. `tolerance` is a class of the judge's table,
    `rule` one of its rules where the class has other numbers for this op. `cost` counts its bytes
    and operations (`costs.py`). `unsampled` says why a row has no samples. `absent` names what a
    device lacks to run it, by device type. `variadic`: its function takes the tensors of its list
    one by one too. `refuses(args, outs)` gives, for a plan, what looks at the values of its
    numbers at each call, or None. `lacks`: dtypes that torch's cpu refuses here
    (`_compat/unsupported_dtypes.py`). `fixed_shape`: sizes of its samples' inputs
    belong together, so that no check changes them; `layout_bound`: it reads storage itself, so that
    layouts change its results. `ties`: where elements tie, any of their indices is right.
    `number_first`: a function whose first operand may be a Python number. `exact_scalar`: beside
    halves a second operand without dimensions keeps its digits. `out`: what `out=` of
    another dtype does (`_dispatch/out_dtypes.py`); empty: cast.
    """

    name: str
    text: str
    infer: Callable[..., Any] | None = None
    cpu: Callable[..., Any] | None = None
    cpu_inplace: Callable[..., Any] | None = None
    cpu_plain: Callable[..., Any] | None = None
    compute: str = "opmath"
    aclnn: tuple[Call, ...] = ()
    lower: Callable[..., Any] | None = None
    grad: Any = MISSING
    body: Callable[..., Any] | None = None
    samples: Callable[[], Sequence[Any]] | None = None
    unsampled: str = ""
    absent: dict[str, str] = field(default_factory=dict)
    variadic: bool = False
    refuses: Callable[..., Callable[..., None] | None] | None = None
    lacks: Lacks = field(default_factory=dict)
    fixed_shape: bool = False
    layout_bound: bool = False
    ties: bool = False
    number_first: bool = False
    exact_scalar: bool = False
    out: str = ""
    tolerance: str = "elementary"
    rule: str = ""
    cost: Count = elements
    surface: str = "auto"
    inplace: bool = False
    autocast: str = ""
    casts_inplace: bool = False
    overlaps: bool = False
    unbounded: bool = False
    apart: bool = False
    family: str = "custom"
    oracle: Callable[..., Any] | None = None
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
    def places(self) -> frozenset[str]:
        """Where users find the op: any of "function", "method", "nn", and words of SPACES."""
        words = set(self.surface.split())
        if "auto" in words:
            takes_self = self.text.partition("(")[2].startswith(("Tensor self", "Tensor(a) self"))
            words |= {"none"} if "." in self.name else {"both" if takes_self else "function"}
        if "both" in words:
            words |= {"function", "method"}
        return frozenset(words - {"auto", "both", "none"})

    @property
    def is_view(self) -> bool:
        return self.schema.is_view

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


OPS: dict[str, Op] = {}
# Modules of torch whose functions are rows that begin with the module's name: `linalg_inv`.
SPACES = ("linalg", "fft", "special")


class DuplicateOpError(ValueError):
    """Two rows with one name; the message names it."""


def op(text: str, **fields: Any) -> Op:
    """Declare an op and put it into OPS; DuplicateOpError when its name is taken."""
    name = text[: text.index("(")].strip()
    if name in OPS:
        raise DuplicateOpError(f"op: {name} is declared twice; use an overload name ({name}.x)")
    if isinstance(fields.get("aclnn"), Call):
        fields["aclnn"] = (fields["aclnn"],)
    if fields.get("tolerance") == "composite" and (fields.get("body") or fields.get("lower")):
        fields.setdefault("rule", "stepwise")
    row = Op(name, text, **fields)
    row.family = _family(sys._getframe(1).f_globals["__name__"])
    OPS[name] = row
    return row


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
        op(text, body=fn, **fields).family = family
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


aten: Aten = LazyAten()  # type: ignore[assignment]  # each name is found at its first use
