"""Owns Declaration: what an operator may be given, checked when it is made; draws calls from it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from .domains import (
    NULL,
    Beside,
    By,
    Computed,
    Content,
    Dims,
    Domain,
    Ignored,
    InOut,
    Only,
    Out,
    TensorDomain,
    dtype_named,
    evaluate,
    everywhere,
    is_result,
)
from .errors import DeclarationError, near
from .expressions import expression
from .factors import Factor
from .sizes import KNOWN, Role, dims_of, parts_of, resolve, volume
from .values import DTYPES, TensorValue, short_name

LAYOUTS: Final = ("contiguous", "transposed", "sliced", "stepped", "expanded", "reversed")
OUT_LAYOUTS: Final = ("contiguous", "transposed", "sliced", "stepped", "reversed")
# Elements of one tensor at quick and at full: a size is cut to its plain level beyond.
MOST_ELEMENTS: Final = (1 << 17, 1 << 20)
_LONG: Final = frozenset(DTYPES.values())
# Of a parameter that a version lacks.
_ABSENT: Final = "the header has no such parameter"
# Factors that are no parameters; a parameter of such a name is a factor with an underscore.
_OWN_FACTORS: Final = frozenset(("dtype", "types", "values", "to", "overload"))


def factor_named(param: str) -> str:
    """The factor of a parameter."""
    return f"{param}_" if param in _OWN_FACTORS else param


def _content_dtypes(domain: Domain) -> Sequence[str]:
    """The dtypes of a content that may have several."""
    every = (d.dtypes() for d in everywhere(domain) if isinstance(d, Content))
    return next((d for d in every if len(d) > 1), ())


@dataclass(frozen=True)
class Relation:
    """An expression over sizes and parameters. `kind` "require": it always holds, and a call in
    which it does not is refused with `refuses` (None: undefined, never drawn); "both": calls in
    which it holds and calls in which it does not are drawn."""

    text: str
    kind: str
    refuses: int | None = None


@dataclass(frozen=True)
class Pin:
    """Levels that are always tried together, and why."""

    levels: Mapping[str, str]
    why: str


@dataclass(frozen=True)
class Overload:
    """A form of the call with domains of its own for some parameters."""

    name: str
    params: Mapping[str, Domain]


@dataclass(frozen=True)
class Table:
    """Dtypes that go together: rows of parameter name -> dtypes ("" absent, `|` alternatives
    expanded)."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @cache  # noqa: B019 - tables live as long as the rows
    def of(self, dtype: str, main: str) -> Sequence[Mapping[str, str]]:
        """The rows in which the main parameter has `dtype`."""
        at = self.names.index(main)
        return [dict(zip(self.names, r, strict=True)) for r in self.rows if r[at] == dtype]


@dataclass(frozen=True, eq=False)
class Declaration:
    """What an operator may be given: a domain for each header parameter, sizes, relations."""

    name: str
    params: Mapping[str, Domain]
    sizes: Mapping[str, Role | str] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    pins: tuple[Pin, ...] = ()
    overloads: tuple[Overload, ...] = ()
    table: Table | None = None
    fills: tuple[str, ...] = ("normal",)
    strided: bool = True

    def __post_init__(self) -> None:
        self._check()

    # --- what it is checked for -----------------------------------------------------------------

    @cached_property
    def inputs(self) -> Mapping[str, Domain]:
        """The parameters that are given, not written alone."""
        return {n: d for n, d in self.params.items() if not is_result(d)}

    @cached_property
    def outs(self) -> Mapping[str, Domain]:
        """The results by header name: `out(…)` and what is written in place."""
        return {n: d for n, d in self.params.items() if is_result(d) or isinstance(d, InOut)}

    @cached_property
    def drawn_dtypes(self) -> tuple[str, ...]:
        """The results whose dtypes differ from call to call: by the table, or by a mode."""
        table = self.table.names if self.table else ()
        results = {n: d for n, d in self.outs.items() if is_result(d)}
        return tuple(n for n, d in results.items()
                     if n in table or (isinstance(d, By) and d.decides_dtypes))  # fmt: skip

    def _all_domains(self) -> Iterator[tuple[str, Domain]]:
        for params in (self.params, *(o.params for o in self.overloads)):
            for name, domain in params.items():
                yield from ((name, d) for d in everywhere(domain))

    @cached_property
    def used_sizes(self) -> dict[str, Role | str]:
        """The sizes that shapes and expressions read, in order of use: a role, or an expression."""
        order: dict[str, Role | str] = {}

        def use(name: str, where: str) -> None:
            if name in order or name in self.params:
                return
            role = self.sizes.get(name) or KNOWN.get(name)
            if role is None:
                raise DeclarationError(
                    f"{self.name}: {where} reads {name!r}, which is neither a parameter nor a "
                    f"size{near(name, (*self.params, *self.sizes))}; name it in sizes(…)"
                )
            order[name] = role
            if isinstance(role, str):
                for inner in sorted(expression(role).names):
                    use(inner, f"size {name}")

        for param, domain in self._all_domains():
            for shape in domain.shapes():
                for part in parts_of(shape):
                    for size in sorted(part.names):
                        use(size, f"the shape {shape!r} of {param}")
            for text in domain.expressions():
                for size in sorted(expression(text).names):
                    use(size, f"{text!r} of {param}")
        for relation in self.relations:
            for size in sorted(expression(relation.text).names):
                use(size, f"{relation.text!r}")
        return order

    def _check(self) -> None:
        used = self.used_sizes  # each expression is parsed
        unused = [n for n in self.sizes if n not in used]
        if unused:
            raise DeclarationError(f"{self.name}: no shape and no relation reads the size "
                                   f"{unused[0]!r}{near(unused[0], used)}")  # fmt: skip
        for overload in self.overloads:
            for param in overload.params:
                if param not in self.params:
                    raise DeclarationError(f"{self.name}: overload {overload.name!r} speaks of "
                                           f"{param!r}{near(param, self.params)}")  # fmt: skip
        for param, domain in self._all_domains():
            for dtype in domain.dtypes():
                if (
                    dtype
                    and dtype not in DTYPES
                    and dtype not in self.params
                    and (dtype not in _LONG)
                ):
                    raise DeclarationError(
                        f"{self.name}: {param} has the dtype {dtype!r}, which is neither a dtype "
                        f"nor a parameter{near(dtype, (*DTYPES, *self.params))}"
                    )
        if self.table:
            for param in self.table.names:
                if param not in self.params:
                    raise DeclarationError(f"{self.name}: dtypes(…) has a column {param!r}"
                                           f"{near(param, self.params)}")  # fmt: skip
        known = {f.name for f in self.factors((), True)} if self.pins else set()
        for pin in self.pins:
            for factor in pin.levels:
                if factor not in known:
                    raise DeclarationError(f"{self.name}: pin sets {factor!r}"
                                           f"{near(factor, known)}")  # fmt: skip

    def bind(self, parameters: Sequence[str]) -> None:
        """DeclarationError where the parameters are not those of a header, in its order."""
        names = [n for n, d in self.params.items() if not isinstance(d, Beside)]
        header = list(parameters)
        if names == header:
            return
        for name in names:
            if name not in header:
                raise DeclarationError(f"{self.name}: the header has no parameter {name!r}"
                                       f"{near(name, header)}")  # fmt: skip
        missing = [n for n in header if n not in names]
        if missing:
            raise DeclarationError(f"{self.name}: no domain for the header's {missing[0]!r}")
        raise DeclarationError(f"{self.name}: parameters stand in the order {' '.join(names)}, the "
                               f"header's is {' '.join(header)}")  # fmt: skip

    def without(self, names: Iterable[str]) -> Declaration:
        """That of a version whose header lacks parameters: they keep their plain values, and
        overloads that speak of them are none of its forms."""
        missing = frozenset(names)
        plain = self.draw({})
        params = {n: Only(plain[n], _ABSENT) if n in missing else d
                  for n, d in self.params.items()}  # fmt: skip
        overloads = tuple(o for o in self.overloads if missing.isdisjoint(o.params))
        pins = tuple(p for p in self.pins if not missing & set(p.levels))
        other = object.__new__(Declaration)
        other.__dict__.update({f.name: getattr(self, f.name) for f in fields(self)})
        other.__dict__.update(params=params, overloads=overloads, pins=pins)
        return other

    # --- what it varies -------------------------------------------------------------------------

    @cached_property
    def main(self) -> str:
        """The parameter whose dtype is under test: the first drawn tensor; where there is none, the
        first content that may have several dtypes."""
        for name, domain in self.params.items():
            if any(not t.dtype or t.dtype.split()[0] in DTYPES for t in domain.tensors()):
                return name
        return next((n for n, d in self.inputs.items() if _content_dtypes(d)), "")

    def domain(self, name: str, overload: str = "") -> Domain:
        """The domain of a parameter in an overload."""
        return self._domains[overload][name][0]

    def plain_level(self, name: str, overload: str = "") -> str:
        """The plain level of a parameter in an overload."""
        return self._domains[overload][name][1]

    @cached_property
    def _domains(self) -> Mapping[str, Mapping[str, tuple[Domain, str]]]:
        """By overload: each parameter's domain and its plain level."""
        every = {"": self.params, **{o.name: {**self.params, **o.params} for o in self.overloads}}
        return {o: {n: (d, d.levels(False)[0]) for n, d in params.items()}
                for o, params in every.items()}  # fmt: skip

    def dtypes(self, claimed: Sequence[str] = ()) -> tuple[str, ...]:
        """Dtypes under test: of the table or of the main tensor, those that are claimed."""
        dtypes_: tuple[str, ...] = ()
        if self.table and self.main in self.table.names:
            at = self.table.names.index(self.main)
            dtypes_ = tuple(dict.fromkeys(r[at] for r in self.table.rows))
        elif self.main:
            domain = self.params[self.main]
            local = next((t.dtype.split() for t in domain.tensors()), _content_dtypes(domain))
            dtypes_ = tuple(dtype_named(d) for d in local)
        if not dtypes_:
            return tuple(claimed)
        return tuple(d for d in dtypes_ if d in claimed) if claimed else dtypes_

    def factors(self, claimed: Sequence[str], full: bool) -> list[Factor]:
        """Everything that differs from call to call."""
        factors_: list[Factor] = []
        if self.overloads:
            factors_.append(Factor("overload", tuple(o.name for o in self.overloads)))
        for name, role in self.used_sizes.items():
            if not isinstance(role, str):
                factors_.append(Factor(name, role.levels(full)))
        for name, domain in self.inputs.items():
            every = [domain, *(o.params[name] for o in self.overloads if name in o.params)]
            levels = dict.fromkeys(level for d in every for level in d.levels(full))
            factors_.append(Factor(factor_named(name), tuple(levels)))
        dtypes = self.dtypes(claimed)
        if dtypes:
            factors_.append(Factor("dtype", tuple(sorted(dtypes, key=lambda d: d != "float32"))))
            if self.table:
                most = max(len(self.table.of(d, self.main)) for d in dtypes)
                factors_.append(Factor("types", tuple(map(str, range(most)))))
        factors_.append(Factor("values", self.fills))
        if self.strided:
            factors_ += self._layouts()
        if self.strided and not any(getattr(d, "dynamic", False) for d in self.outs.values()):
            factors_.append(Factor("to", OUT_LAYOUTS))
        return [f for f in factors_ if len(f.levels) > 1 or f.name in ("dtype",)]

    def _layouts(self) -> Iterator[Factor]:
        for name, domain in self.inputs.items():
            inner = everywhere(domain)
            if any(isinstance(d, TensorDomain) and d.strided for d in inner):
                yield Factor(f"layout.{name}", LAYOUTS)
            elif any(isinstance(d, Content) for d in inner):
                yield Factor(f"layout.{name}", ("contiguous", "sliced", "stepped"))

    def unvaried(self) -> Mapping[str, str]:
        """Parameters with one level, with the reason: "" where none is stated."""
        silent: dict[str, str] = {}
        for name, domain in self.inputs.items():
            every = [domain, *(o.params[name] for o in self.overloads if name in o.params)]
            if len({level for d in every for level in d.levels(True)}) > 1:
                continue
            inner = [d for e in every for d in everywhere(e)]
            if any(isinstance(d, TensorDomain | Content | Computed | Dims) for d in inner):
                continue
            reasons = [d.why for d in inner if isinstance(d, Only | Ignored)]
            if reasons == [_ABSENT]:
                continue
            silent[name] = reasons[0] if reasons else ""
        return silent

    # --- calls ----------------------------------------------------------------------------------

    def draw(self, levels: Mapping[str, str], dtype: str = "", seed: int = 0) -> ConcreteCall:
        """The call of these levels; what they lack is plain."""
        return ConcreteCall(self, levels, dtype, seed)


class ConcreteCall:
    """One call: sizes and parameters by name, each made when first read."""

    def __init__(
        self, declaration: Declaration, levels: Mapping[str, str], dtype: str, seed: int
    ) -> None:
        self.declaration, self.seed = declaration, seed
        self.levels = levels
        self.overload = levels.get("overload") or (
            declaration.overloads[0].name if declaration.overloads else ""
        )
        self.main_dtype = (
            dtype or levels.get("dtype", "") or next(iter(declaration.dtypes()), "float32")
        )
        self.known: dict[str, Any] = {}
        self.settled: dict[str, str] = {}
        self._row = self._table_row()

    def _table_row(self) -> Mapping[str, str]:
        table, main = self.declaration.table, self.declaration.main
        if table is None:
            return {}
        rows = table.of(self.main_dtype, main)
        if not rows:
            return {}
        at = int(self.levels.get("types", "0")) % len(rows)
        self.settled["types"] = str(at)
        return rows[at]

    def __getitem__(self, name: str) -> Any:
        try:
            return self.known[name]
        except KeyError:
            value = self.known[name] = self._make(name)
            return value

    def _make(self, name: str) -> Any:
        if name in self.declaration.params:
            return self._value(name)
        if name.endswith(".dtype"):
            return short_name(self.dtype(name.removesuffix(".dtype"), ""))
        role = self.declaration.used_sizes.get(name)
        if role is None:
            raise DeclarationError(f"{self.declaration.name}: nothing is called {name!r}")
        if isinstance(role, str):
            return evaluate(role, self)
        level = self.levels.get(name, role.plain)
        self.settled[name] = level
        dims = dims_of(level)
        return dims if name.startswith("*") else dims[0]

    def _value(self, name: str) -> Any:
        domain = self.declaration.domain(name, self.overload)
        if name not in self.declaration.inputs:
            raise DeclarationError(
                f"{self.declaration.name}: {name} is a result; no input reads it"
            )
        factor = factor_named(name)
        level = self.levels.get(factor) or self.declaration.plain_level(name, self.overload)
        cell = self._row.get(name)
        level = NULL if cell == "" else domain.settle(self, level)
        self.settled[factor] = level
        return None if cell == "" else domain.value(self, name, level)

    def dtype(self, name: str, declared_: str) -> str:
        """The dtype of a parameter: of the table, of another parameter, stated, under test."""
        if self._row.get(name):
            return self._row[name]
        first, *_ = declared_.split() or [""]
        if name == self.declaration.main or not first:
            return self.main_dtype
        if first in self.declaration.params:
            return self._dtype_of(first)
        return dtype_named(first)

    def _dtype_of(self, param: str) -> str:
        if param == self.declaration.main:
            return self.main_dtype
        value = self[param]
        first = value[0] if isinstance(value, list) and value else value
        return str(getattr(first, "dtype", self.main_dtype))

    def result_dtypes(self) -> dict[str, str]:
        """The dtypes of results that the table or a mode states, as `y.dtype`."""
        known: dict[str, str] = {}
        for name in self.declaration.drawn_dtypes:
            domain = self.declaration.outs[name]
            branch = domain.branch(self) if isinstance(domain, By) else None
            if isinstance(branch, Out):
                known[f"{name}.dtype"] = self.dtype(name, branch.dtype)
            elif self._row.get(name):
                known[f"{name}.dtype"] = self._row[name]
        return known

    def result_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of results that the declaration states, as `y.shape`."""
        shapes = ((n, d.shape) for n, d in self.declaration.outs.items() if isinstance(d, Out))
        return {f"{name}.shape": resolve(shape, self) for name, shape in shapes if shape}

    def generator(self, name: str) -> Generator:
        """A random stream of one parameter."""
        levels = (f"{k}={v}" for k, v in sorted(self.levels.items()) if not k.startswith("layout"))
        key = "/".join((self.declaration.name, name, *levels))
        return np.random.default_rng([self.seed, zlib.crc32(key.encode())])

    def chosen(self, factor: str, default: str) -> str:
        """The level of a factor that is no parameter."""
        return self.levels.get(factor, default)

    def values(self) -> dict[str, Any]:
        """Every parameter that is given, by header name."""
        return {name: self[name] for name in self.declaration.inputs}

    def actual(self) -> dict[str, str]:
        """The levels as this call has them: modes decide what others mean."""
        self.values()
        levels_ = {**self.levels, **self.settled}
        if self.overload:
            levels_["overload"] = self.overload
        return levels_

    def holds(self) -> Relation | None:
        """The first requirement that the call breaks."""
        for relation in self.declaration.relations:
            if relation.kind == "require" and not evaluate(relation.text, self):
                return relation
        return None

    def elements(self) -> int:
        """Elements of the largest tensor whose shape sizes decide."""
        sizes = [0]
        for value in self.values().values():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, TensorValue) and not one.fixed:
                    sizes.append(volume(one.shape))
        return max(sizes)
