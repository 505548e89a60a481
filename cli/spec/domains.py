"""Owns domains: what one parameter of an operator may be given.

A domain has levels (texts, the first is the plain one) and makes a value of a level, in a call
whose sizes and other parameters are known (`Draw`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.random import Generator

from .errors import DeclarationError
from .expressions import expression
from .sizes import parts_of, resolve, volume
from .values import DTYPES, Elements, ScalarValue, TensorValue

NULL: Final = "null"
PRESENT: Final = "given"


class Draw(Protocol):
    """One call as it is drawn: sizes (`N`, `*B`) and parameters by name, each made when read."""

    def __getitem__(self, name: str) -> Any: ...
    def dtype(self, name: str, default_: str) -> str: ...
    def generator(self, name: str) -> Generator: ...
    def chosen(self, factor: str, default: str) -> str: ...


class Domain:
    """What a parameter may be. Subclasses say how a level becomes a value."""

    def levels(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002 - most have one list
        """The levels, plain first."""
        return (PRESENT,)

    def settle(self, draw: Draw, level: str) -> str:  # noqa: ARG002
        """The level that `level` means in this call."""
        levels_ = self.all_levels
        return level if level in levels_ else levels_[zlib.crc32(level.encode()) % len(levels_)]

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """The levels of full, made once."""
        return self.levels(True)

    def value(self, draw: Draw, name: str, level: str) -> Any:
        """The value of a level."""
        raise NotImplementedError

    def expressions(self) -> tuple[str, ...]:
        """Expressions over sizes and parameters that it reads."""
        return ()

    def shapes(self) -> tuple[str, ...]:
        """Shape strings that it reads."""
        return ()

    def dtypes(self) -> tuple[str, ...]:
        """Dtypes, or names of parameters that have them."""
        return ()

    def within(self) -> tuple[Domain, ...]:
        """Domains that it is made of."""
        return ()

    def tensors(self) -> tuple[TensorDomain, ...]:
        """The drawn tensors in it, at any depth."""
        return tuple(t for d in self.within() for t in d.tensors())


@dataclass(frozen=True)
class TensorDomain(Domain):
    """A drawn tensor. `dtype`: short names of which one is drawn, or of a parameter that has the
    same; "": the dtype under test. A range other than the usual one is kept whatever values are
    under test. `ones` are the ways in which broadcast dims may be reduced."""

    shape: str
    dtype: str = ""
    low: float = -2.0
    high: float = 2.0
    empty: bool = False
    strided: bool = True
    ones: tuple[str, ...] = ()

    def levels(self, full: bool) -> tuple[str, ...]:
        broadcast = any(p.broadcast for p in parts_of(self.shape))
        every = ("first", "last", "middle", "lower", "ones", "scalar")
        ways = self.ones or every[: None if full else 4]
        return (PRESENT, *ways) if broadcast else (PRESENT,)

    def value(self, draw: Draw, name: str, level: str) -> TensorValue:
        return self.member(draw, name, level, 0)

    def member(self, draw: Draw, name: str, level: str, index: int) -> TensorValue:
        """The value as one member of a list."""
        dims = resolve(self.shape, draw, index, "" if level == PRESENT else level)
        fill = (self.low, self.high) == (-2.0, 2.0)
        return TensorValue(dims, draw.dtype(name, self.dtype), self.low, self.high, fill=fill,
                           layout=draw.chosen(f"layout.{name}", "contiguous"))  # fmt: skip

    def shapes(self) -> tuple[str, ...]:
        return (self.shape,)

    def dtypes(self) -> tuple[str, ...]:
        return tuple(self.dtype.split())

    def tensors(self) -> tuple[TensorDomain, ...]:
        return (self,)


def evaluate(text: str, draw: Draw) -> Any:
    """The value of an expression in a call."""
    return expression(text)(draw)


@dataclass(frozen=True)
class TensorListDomain(Domain):
    """A list of drawn tensors: `count` members, each of a shape in which `M@L` differs."""

    count: str
    member: TensorDomain

    def levels(self, full: bool) -> tuple[str, ...]:
        return self.member.levels(full)

    def value(self, draw: Draw, name: str, level: str) -> list[TensorValue]:
        many = int(evaluate(self.count, draw))
        return [self.member.member(draw, name, level, i) for i in range(many)]

    def expressions(self) -> tuple[str, ...]:
        return (self.count,)

    def within(self) -> tuple[Domain, ...]:
        return (self.member,)


@dataclass(frozen=True)
class _ListMember:
    """A draw as the member of a list sees it: its random stream is its own."""

    draw: Draw
    index: int

    def __getitem__(self, name: str) -> Any:
        return self.draw[name]

    def dtype(self, name: str, default_: str) -> str:
        return self.draw.dtype(name, default_)

    def generator(self, name: str) -> Generator:
        return self.draw.generator(f"{name}.{self.index}")

    def chosen(self, factor: str, default: str) -> str:
        return self.draw.chosen(factor, default)


@dataclass(frozen=True)
class Several(Domain):
    """A list of `count` values of one domain, which differ in their elements."""

    count: str
    domain: Domain

    def levels(self, full: bool) -> tuple[str, ...]:
        return self.domain.levels(full)

    def settle(self, draw: Draw, level: str) -> str:
        return self.domain.settle(draw, level)

    def value(self, draw: Draw, name: str, level: str) -> list[Any]:
        many = int(evaluate(self.count, draw))
        return [self.domain.value(_ListMember(draw, i), name, level) for i in range(many)]

    def expressions(self) -> tuple[str, ...]:
        return (self.count,)

    def within(self) -> tuple[Domain, ...]:
        return (self.domain,)


@dataclass(frozen=True)
class Members(Domain):
    """A list whose members have domains of their own."""

    domains: tuple[Domain, ...]

    def levels(self, full: bool) -> tuple[str, ...]:
        return tuple(dict.fromkeys(level for d in self.domains for level in d.levels(full)))

    def value(self, draw: Draw, name: str, level: str) -> list[Any]:
        return [d.value(_ListMember(draw, i), name, d.settle(draw, level))
                for i, d in enumerate(self.domains)]  # fmt: skip

    def within(self) -> tuple[Domain, ...]:
        return self.domains


@dataclass(frozen=True)
class Content(Domain):
    """A tensor or an array of integers that means something: `make(generator, pattern, draw)`
    gives its elements, `patterns` name the ways in which they may lie; `alike` says why elements
    along an axis are the same in every call."""

    make: Callable[[Generator, str, Draw], Any]
    patterns: tuple[str, ...]
    dtype: str = "i64"
    reads: tuple[str, ...] = ()
    shape_strings: tuple[str, ...] = ()
    length: str = ""
    alike: str = ""

    def levels(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002
        return self.patterns

    def value(self, draw: Draw, name: str, level: str) -> TensorValue:
        def elements() -> Any:
            return np.asarray(self.make(draw.generator(name), level, draw))

        dims = self._dims(draw)
        whole = elements() if dims is None else None
        layout = draw.chosen(f"layout.{name}", "contiguous")
        # Elements that differ cannot lie at one place.
        layout = "stepped" if layout == "expanded" else layout
        return TensorValue(
            tuple(whole.shape) if whole is not None else dims or (), draw.dtype(name, self.dtype),
            values=Elements(elements, whole), layout=layout, fixed=self._fixed)  # fmt: skip

    @cached_property
    def _fixed(self) -> bool:
        """Whether no size decides the shape."""
        shapes = self.shape_strings
        return bool(shapes) and not any(p.names for s in shapes for p in parts_of(s))

    def _dims(self, draw: Draw) -> tuple[int, ...] | None:
        """The shape, where it is known without the elements."""
        if self.shape_strings:
            return resolve(self.shape_strings[0], draw)
        return (int(evaluate(self.length, draw)),) if self.length else None

    def expressions(self) -> tuple[str, ...]:
        return self.reads

    def shapes(self) -> tuple[str, ...]:
        return self.shape_strings

    def dtypes(self) -> tuple[str, ...]:
        return tuple(self.dtype.split())


@dataclass(frozen=True)
class Choice(Domain):
    """One of some values; a text that is an expression of sizes where `computed` says so."""

    options: tuple[Any, ...]
    computed: bool = False
    scalar: str = ""

    def levels(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(dict.fromkeys(str(o).replace(" ", "") for o in self.options))

    def value(self, draw: Draw, name: str, level: str) -> Any:  # noqa: ARG002
        option = self.options[self.all_levels.index(level)]
        if self.computed and isinstance(option, str):
            option = evaluate(option, draw)
        return ScalarValue(option, self.scalar) if self.scalar else option

    def expressions(self) -> tuple[str, ...]:
        return tuple(o for o in self.options if isinstance(o, str)) if self.computed else ()


@dataclass(frozen=True)
class Repeated(Domain):
    """An array of numbers: `count` of one domain, alike, or differing from place to place in the
    order of the domain or against it."""

    count: str
    each: Choice

    def levels(self, full: bool) -> tuple[str, ...]:
        inner = self.each.levels(full)
        return (*inner, "mixed", "turned") if len(inner) > 1 else inner

    def value(self, draw: Draw, name: str, level: str) -> tuple[Any, ...]:
        many, inner = int(evaluate(self.count, draw)), self.each.levels(True)
        if level not in ("mixed", "turned"):
            return (self.each.value(draw, name, level),) * many
        order = inner if level == "mixed" else inner[::-1]
        return tuple(self.each.value(draw, name, order[i % len(order)]) for i in range(many))

    def expressions(self) -> tuple[str, ...]:
        return (self.count, *self.each.expressions())


@dataclass(frozen=True)
class Axis(Domain):
    """Where a size stands among the dims of a shape, counted from the front or from the back."""

    size: str
    shape: str

    def levels(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002
        return ("front", "back")

    def value(self, draw: Draw, name: str, level: str) -> int:  # noqa: ARG002
        ranks = [len(draw[f"*{p.text}"]) if p.several else 1 for p in parts_of(self.shape)]
        at = [p.text for p in parts_of(self.shape)].index(self.size)
        before, behind = sum(ranks[:at]), sum(ranks[at:])
        return -behind if level == "back" and behind else before

    def shapes(self) -> tuple[str, ...]:
        return (self.shape,)


@dataclass(frozen=True)
class Axes(Domain):
    """Several axes of a shape, by pattern (see `axes`)."""

    shape: str
    patterns: tuple[str, ...]

    def levels(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002
        return self.patterns

    def value(self, draw: Draw, name: str, level: str) -> tuple[int, ...]:  # noqa: ARG002
        rank = len(resolve(self.shape, draw))
        last = max(rank - 1, 0)
        axes: dict[str, tuple[int, ...]] = {
            "last": (last,), "first": (0,), "middle": (rank // 2,), "negative": (-1,),
            "ends": (0, last) if last else (0,), "turned": (-1, 0) if last else (0,),
            "all": tuple(range(rank)), "none": (),
        }  # fmt: skip
        return axes[level]

    def shapes(self) -> tuple[str, ...]:
        return (self.shape,)


@dataclass(frozen=True)
class Optional(Domain):
    """A domain or null. `iff`: given exactly where it holds; `only`: null where it does not."""

    domain: Domain
    iff: str = ""
    only: str = ""

    def levels(self, full: bool) -> tuple[str, ...]:
        inner = self.domain.levels(full)
        return inner if self.iff else (NULL, *inner)

    def settle(self, draw: Draw, level: str) -> str:
        if self.iff:
            level = self._some(level) if evaluate(self.iff, draw) else NULL
        if self.only and not evaluate(self.only, draw):
            level = NULL
        return NULL if level == NULL else self.domain.settle(draw, level)

    def _some(self, level: str) -> str:
        return self.domain.levels(True)[0] if level == NULL else level

    def value(self, draw: Draw, name: str, level: str) -> Any:
        return None if level == NULL else self.domain.value(draw, name, level)

    def expressions(self) -> tuple[str, ...]:
        return tuple(e for e in (self.iff, self.only) if e)

    def within(self) -> tuple[Domain, ...]:
        return (self.domain,)


@dataclass(frozen=True)
class Forms(Domain):
    """One of several named domains; None is null."""

    options: Mapping[str, Domain | None]

    def _levels(self, full: bool) -> dict[str, tuple[str, str]]:
        known: dict[str, tuple[str, str]] = {}
        for name, domain in self.options.items():
            inner = domain.levels(full) if domain is not None else (NULL,)
            for level in inner:
                known[name if level in (PRESENT, NULL) else f"{name}.{level}"] = (name, level)
        return known

    def levels(self, full: bool) -> tuple[str, ...]:
        return tuple(self._levels(full))

    @cached_property
    def _all_forms(self) -> dict[str, tuple[str, str]]:
        return self._levels(True)

    def value(self, draw: Draw, name: str, level: str) -> Any:
        form, inner = self._all_forms[level]
        domain = self.options[form]
        return None if domain is None else domain.value(draw, name, inner)

    def within(self) -> tuple[Domain, ...]:
        return tuple(d for d in self.options.values() if d is not None)


@dataclass(frozen=True)
class By(Domain):
    """The domain that another parameter, a mode, decides; or its dtype: `x.dtype`."""

    param: str
    options: Mapping[Any, Domain | None]

    def levels(self, full: bool) -> tuple[str, ...]:
        every = [d.levels(full) if d is not None else (NULL,) for d in self.options.values()]
        return tuple(dict.fromkeys(level for inner in every for level in inner))

    @property
    def decides_dtypes(self) -> bool:
        """Whether the options are results of stated dtypes."""
        return any(d in DTYPES for o in self.options.values() if isinstance(o, Out)
                   for d in o.dtypes())  # fmt: skip

    def branch(self, draw: Draw) -> Domain | None:
        """The domain that the mode of a call decides."""
        mode = draw[self.param]
        if mode not in self.options:
            raise DeclarationError(f"{self.param} = {mode!r} has no entry in by(…)")
        return self.options[mode]

    def settle(self, draw: Draw, level: str) -> str:
        branch = self.branch(draw)
        return NULL if branch is None else branch.settle(draw, level)

    def value(self, draw: Draw, name: str, level: str) -> Any:
        branch = self.branch(draw)
        return None if branch is None else branch.value(draw, name, level)

    def within(self) -> tuple[Domain, ...]:
        return tuple(d for d in self.options.values() if d is not None)


@dataclass(frozen=True)
class Computed(Domain):
    """What sizes and other parameters fix: an expression."""

    text: str
    why: str = ""

    def value(self, draw: Draw, name: str, level: str) -> Any:  # noqa: ARG002
        return evaluate(self.text, draw)

    def expressions(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True)
class Dims(Domain):
    """An array of integers: the dims of a shape string."""

    shape: str

    def value(self, draw: Draw, name: str, level: str) -> tuple[int, ...]:  # noqa: ARG002
        return resolve(self.shape, draw)

    def shapes(self) -> tuple[str, ...]:
        return (self.shape,)


@dataclass(frozen=True)
class Only(Domain):
    """One value, with the reason why no other is tried."""

    constant: Any
    why: str

    def value(self, draw: Draw, name: str, level: str) -> Any:  # noqa: ARG002
        return self.constant


@dataclass(frozen=True)
class Around(Domain):
    """A domain that has something more to say of another."""

    domain: Domain

    def levels(self, full: bool) -> tuple[str, ...]:
        return self.domain.levels(full)

    def value(self, draw: Draw, name: str, level: str) -> Any:
        return self.domain.value(draw, name, level)

    def within(self) -> tuple[Domain, ...]:
        return (self.domain,)


@dataclass(frozen=True)
class Ignored(Around):
    """A domain that is varied and must change no result, with the reason."""

    why: str


@dataclass(frozen=True)
class Beside(Around):
    """What the reference takes and the header lacks, such as the size of a result."""


@dataclass(frozen=True)
class InOut(Around):
    """A tensor that the operator reads and writes."""

    def settle(self, draw: Draw, level: str) -> str:
        return self.domain.settle(draw, level)


@dataclass(frozen=True)
class Whole(Around):
    """What an operator writes in place: a value that would broadcast has no room for the result,
    and settles as the largest."""

    def settle(self, draw: Draw, level: str) -> str:
        every = (self.domain.settle(draw, other) for other in (level, *self.all_levels))
        return max(dict.fromkeys(every), key=lambda v: self._room(draw, v))

    def _room(self, draw: Draw, level: str) -> tuple[int, int]:
        dims = getattr(self.domain.value(draw, "", level), "shape", ())
        return volume(dims), len(dims)


@dataclass(frozen=True)
class Out(Domain):
    """A result: its dtype, or the name of what has it (`a|b`: b where a is null); `only`: null
    where that does not hold; `format` an aclFormat; `dynamic`: its size follows from values, and
    the operator lays it out."""

    dtype: str
    shape: str = ""
    only: str = ""
    format: str = ""
    dynamic: bool = False

    def dtypes(self) -> tuple[str, ...]:
        return tuple(self.dtype.split("|"))

    def expressions(self) -> tuple[str, ...]:
        return (self.only,) if self.only else ()

    def shapes(self) -> tuple[str, ...]:
        return (self.shape,) if self.shape else ()


def is_result(domain: Domain) -> bool:
    """Whether a domain is a result, whatever decides its dtype."""
    options = domain.options.values() if isinstance(domain, By) else (domain,)
    return all(isinstance(d, Out) for d in options)


def dtype_named(name: str) -> str:
    """The dtype of a short or long name."""
    return DTYPES.get(name, name)


def everywhere(domain: Domain) -> tuple[Domain, ...]:
    """The domain and all that it is made of."""
    return (domain, *(d for inner in domain.within() for d in everywhere(inner)))
