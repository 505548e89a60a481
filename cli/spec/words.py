"""Owns the words of a declaration: each makes one domain or one part of its structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from . import contents
from .declaration import Overload, Pin, Relation, Table
from .domains import (
    Axes,
    Axis,
    Beside,
    By,
    Choice,
    Computed,
    Content,
    Dims,
    Domain,
    Draw,
    Forms,
    Ignored,
    InOut,
    Members,
    Only,
    Optional,
    Out,
    Repeated,
    Several,
    TensorDomain,
    TensorListDomain,
    dtype_named,
    evaluate,
)
from .errors import DeclarationError
from .sizes import Role, resolve


@dataclass(frozen=True)
class Sizes:
    """Names of sizes with their roles, or expressions of others."""

    roles: Mapping[str, Role | str]


def sizes(several: Mapping[str, Role | str] | None = None, /, **roles: Role | str) -> Sizes:
    """Sizes by name: a role, or an expression (`N="K*G"`); `{"*S": shape}` names several dims."""
    return Sizes({**(several or {}), **roles})


def require(*texts: str, refuses: int | None = 161002) -> tuple[Relation, ...]:
    """Relations that always hold; a call that breaks one is refused with `refuses`."""
    return tuple(Relation(t, "require", refuses) for t in texts)


def both(*texts: str) -> tuple[Relation, ...]:
    """Relations that are tried both ways."""
    return tuple(Relation(t, "both") for t in texts)


def pin(text: str, why: str) -> Pin:
    """Levels that are always tried together: `sparseMode=3 Sq=130`."""
    levels = {}
    for word in text.split():
        name, sign, level = word.partition("=")
        if not sign:
            raise DeclarationError(f"pin {text!r}: {word!r} is not NAME=LEVEL")
        levels[name] = level
    return Pin(levels, why)


def overload(name: str, **params: Domain) -> Overload:
    """A form of the call in which some parameters have domains of their own."""
    return Overload(name, params)


def dtypes(text: str) -> Table:
    """A table of dtypes that go together: names of parameters and results, then rows (`-` absent,
    `|` one of)."""
    head, *lines = (line.split() for line in text.strip().splitlines())
    rows: list[tuple[str, ...]] = []
    for line in lines:
        if len(line) != len(head):
            raise DeclarationError(f"dtypes(…): {' '.join(line)!r} has {len(line)} cells, "
                                   f"the head has {len(head)}")  # fmt: skip
        cells = [tuple("" if d == "-" else dtype_named(d) for d in c.split("|")) for c in line]
        rows += product(*cells)
    return Table(tuple(head), tuple(rows))


def tensor(shape: str, dtype: str = "", low: float = -2.0, high: float = 2.0, *,
           strided: bool = True, ones: str = "") -> TensorDomain:  # fmt: skip
    """A drawn tensor: jaxtyping's shape, short dtypes or the name of a parameter of the same."""
    return TensorDomain(shape, dtype, low, high, strided=strided, ones=tuple(ones.split()))


def tensors(count: str, shape: str, dtype: str = "", low: float = -2.0,
            high: float = 2.0) -> TensorListDomain:  # fmt: skip
    """A list of drawn tensors; `M@L` in the shape differs from member to member."""
    return TensorListDomain(count, tensor(shape, dtype, low, high))


def several(count: str, domain: Domain) -> Several:
    """A list of `count` values of a domain, of the same size; see `tensors` for other sizes."""
    return Several(count, domain)


def each(*domains: Domain) -> Members:
    """A list whose members have domains of their own; see `tensors` for members of one kind."""
    return Members(domains)


def number(*values: float | str) -> Choice:
    """A number: these values, the first plain; a text is an expression of sizes."""
    return Choice(values, computed=True)


integer = number


def choice(*values: Any) -> Choice:
    """One of these values: a mode, a word."""
    return Choice(values)


def flag(plain: bool = False) -> Choice:
    """True and False; the plain one first."""
    return Choice((plain, not plain))


def scalar(dtype: str, *values: float) -> Choice:
    """An aclScalar: these values, in the dtype of a parameter or a dtype."""
    return Choice(values or (1, 2, -0.5, 0), scalar=dtype)


def numbers(count: str, *values: float | str) -> Repeated:
    """An array of numbers: `count` of these values, alike or mixed."""
    return Repeated(count, Choice(values, computed=True))


ints = numbers


def array(*values: tuple[Any, ...]) -> Choice:
    """An array of numbers: one of these."""
    return Choice(values)


def axis(size: str, shape: str) -> Axis:
    """The axis of a size in a shape, from the front and from the back: `axis("A", "*B A *N")`."""
    return Axis(size, shape)


def axes(shape: str, patterns: str = "last first negative ends turned all") -> Axes:
    """An array of axes of a shape: also `middle` and `none`."""
    return Axes(shape, tuple(patterns.split()))


def optional(domain: Domain, *, iff: str = "", only: str = "") -> Optional:
    """A domain or null; `iff`: given exactly where it holds; `only`: null where it does not."""
    return Optional(domain, iff, only)


def forms(**options: Domain | None) -> Forms:
    """One of several named domains; None is null."""
    return Forms(options)


def by(param: str, options: Mapping[Any, Domain | None]) -> By:
    """The domain that another parameter decides, or its dtype: `by("bias.dtype", {"i32": …})`."""
    return By(param, options)


def equals(text: str) -> Computed:
    """What sizes and other parameters fix."""
    return Computed(text)


def dims(shape: str) -> Dims:
    """An array of integers: the dims of a shape, such as layer norm's normalizedShape."""
    return Dims(shape)


def only(value: Any, why: str) -> Only:
    """One value, with the reason why no other is tried."""
    return Only(value, why)


def null(why: str) -> Only:
    """Null alone, with the reason."""
    return Only(None, why)


def ignored(why: str, domain: Domain) -> Ignored:
    """Varied, and must change no result; with the reason."""
    return Ignored(domain, why)


def beside(domain: Domain) -> Beside:
    """What the header lacks and the call still decides: the size that a result is given."""
    return Beside(domain)


def inout(domain: Domain) -> InOut:
    """A tensor that the operator reads and writes: an input and a result."""
    return InOut(domain)


def out(dtype: str, shape: str = "", *, only: str = "", format: str = "",
        dynamic: bool = False) -> Out:  # fmt: skip
    """A result: its dtype, or the name of what has it (where a mode decides, `by(…)` of several);
    `dynamic`: of as many elements as values say."""
    return Out(dtype, shape, only, format, dynamic)


def content(make: Callable[..., Any], patterns: str, dtype: str = "i64", *, shape: str = "",
            reads: tuple[str, ...] = (), alike: str = "") -> Content:  # fmt: skip
    """Elements of one's own: `make(generator, pattern, draw)` for each of the patterns; `alike`:
    why they never differ along an axis."""
    shapes = (shape,) if shape else ()
    return Content(make, tuple(patterns.split()), dtype, reads, shapes, alike=alike)


def parts(count: str, *, of: str, form: str = "sizes", dtype: str = "i64",
          patterns: str = "") -> Content:  # fmt: skip
    """`count` lengths that sum to `of`: as "sizes", as "ends" (cumulative), or as "starts" (from 0,
    one more than lengths)."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        lengths_ = contents.lengths(
            rng, pattern, int(evaluate(count, draw)), int(evaluate(of, draw))
        )
        if form == "sizes":
            return lengths_
        return np.cumsum(lengths_) if form == "ends" else np.concatenate([[0], np.cumsum(lengths_)])

    length = f"{count} + 1" if form == "starts" else count
    return Content(make, tuple(patterns.split()) or contents.PARTS, dtype, (count, of),
                   length=length)  # fmt: skip


def index(shape: str, into: str, dtype: str = "i64", patterns: str = "") -> Content:
    """Indices into [0, into)."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        return contents.indices(rng, pattern, resolve(shape, draw), int(evaluate(into, draw)))

    return Content(make, tuple(patterns.split()) or contents.INDICES, dtype, (into,), (shape,))


def slots(shape: str, into: str, dtype: str = "i64", hole: int | None = None,
          patterns: str = "") -> Content:  # fmt: skip
    """Places in [0, into), none twice; `hole` may stand for none."""
    local = [p for p in contents.SLOTS if p != "holes" or hole is not None]

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        size = int(evaluate(into, draw))
        return contents.slots(rng, pattern, resolve(shape, draw), size, hole)

    return Content(make, tuple(patterns.split()) or tuple(local), dtype, (into,), (shape,))


def routing(shape: str, into: str, dtype: str = "i32", patterns: str = "") -> Content:
    """Experts of tokens: [..., k] into [0, into)."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        return contents.routing(rng, pattern, resolve(shape, draw), int(evaluate(into, draw)))

    return Content(make, tuple(patterns.split()) or contents.ROUTING, dtype, (into,), (shape,))


def mask(shape: str, dtype: str = "bool", patterns: str = "") -> Content:
    """A mask: 1 where masked."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        return contents.mask(rng, pattern, resolve(shape, draw))

    return Content(make, tuple(patterns.split()) or contents.MASKS, dtype, (), (shape,))


def causal(shape: str, dtype: str = "bool") -> Content:
    """The mask of what lies above the diagonal, whatever it is applied to."""

    def make(_rng: np.random.Generator, _pattern: str, draw: Draw) -> Any:
        return contents.above_diagonal(resolve(shape, draw))

    return Content(make, ("causal",), dtype, (), (shape,))


def scalar_tensor(dtype: str, *values: float, shape: str = "1") -> Content:
    """A number in a tensor, of one element: these values, the first plain."""

    def make(_rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        return np.full(resolve(shape, draw), float(pattern))

    return Content(make, tuple(map(str, values)), dtype, (), (shape,))


def bits(count: str, ones: str) -> Content:
    """One bit an element, in bytes: a share of about `ones` of them is 1."""

    def make(rng: np.random.Generator, _pattern: str, draw: Draw) -> Any:
        many = int(evaluate(f"ceil({count}, 8)", draw))
        return np.packbits(rng.random((many, 8)) < float(evaluate(ones, draw)), axis=1)[:, 0]

    return Content(make, ("random",), "u8", (count, ones), length=f"ceil({count}, 8)")


def permutation(count: str, dtype: str = "i64") -> Content:
    """0 to count - 1 in some order."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Any:
        return contents.permutation(rng, pattern, int(evaluate(count, draw)))

    return Content(make, contents.PATTERNS["permutation"], dtype, (count,), length=count)
