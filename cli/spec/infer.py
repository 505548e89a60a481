"""Owns guesses of what an operator may be given: from a header and from what a bare reference
accepts. What is guessed is said: see `Inferred.assumed`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from .declaration import Declaration
from .domains import Choice, Computed, Domain, Ignored, Only, Optional, Out, TensorDomain
from .errors import DeclarationError, near
from .row import Reference, Row, Rule, read_by
from .values import ScalarValue, TensorValue

# Shapes that tensors of a call may have together, the likely ones first.
_TOGETHER: Final[Mapping[int, tuple[tuple[str, ...], ...]]] = {
    1: (("*S",), ("*B N",), ("M N",), ("B C H W",)),
    2: (("*#S", "*#S"), ("*S", "*S"), ("*B N", "N"), ("M K", "K N"), ("B M K", "B K N")),
    3: (("*S", "*S", "*S"), ("*B N", "N", "N"), ("M K", "K N", "N"), ("*B N", "*B N", "N")),
    4: (("*S",) * 4, ("*B N", "*B N", "N", "N"), ("*B N", "N", "N", "N")),
}
_SINGLE: Final = ("*S", "*B N", "N", "M K", "K N")
_MOST_TRIALS: Final = 400
_FLOATS: Final = ("f32", "f16", "bf16")


class InferenceError(DeclarationError):
    """Nothing that was tried is accepted by the reference; the message shows its own error."""


def inferred_row(signature: Any, reference: Reference) -> Row:
    """A row for a bare function: header parameters by name in, results in header order out.

    `signature` is the operator's (`params` with `name`, `kind`, `direction`, `optional`, `dtypes`).
    """
    params = list(signature.params)
    known = read_by(reference)
    names = [p.name for p in params]
    for name in known:
        if name not in names:
            raise DeclarationError(f"{signature.name}: the reference takes {name!r}, which the "
                                   f"header does not have{near(name, names)}")  # fmt: skip
    outs = results_of(signature, reference)
    if not outs:
        raise DeclarationError(f"{signature.name}: the header has no result that the reference "
                               "does not take as an input")  # fmt: skip
    guess = _DomainSearch(signature.name, params, outs, reference, known).run()
    rule = Rule("composite", "a function of one's own", values="normal opposed")
    return Row((signature.name,), rule, guess, reference, reference.__module__, inferred=True)


def results_of(signature: Any, reference: Reference) -> list[Any]:
    """The parameters that a bare reference gives: what is written and no input of it."""
    known = read_by(reference)
    return [p for p in signature.params if _is_out(p) and p.name not in known]


def _is_out(param: Any) -> bool:
    return str(getattr(param.direction, "value", param.direction)).lower() in ("out", "output")


class _DomainSearch:
    def __init__(
        self, name: str, params: Sequence[Any], outs: Sequence[Any], reference: Reference,
        known: Mapping[str, inspect.Parameter],
    ) -> None:  # fmt: skip
        self.name, self.params, self.outs = name, params, outs
        self.reference, self.known = reference, known
        self.last: Exception | None = None

    def run(self) -> Declaration:
        """The first declaration whose plain call the reference accepts."""
        tensors = [p.name for p in self.params if p.name in self.known and _kind(p) == "tensor"]
        for shapes in _shapes(len(tensors)):
            domains = self._domains(dict(zip(tensors, shapes, strict=True)))
            try:
                results = self._call(Declaration(self.name, domains))
            except (DeclarationError, KeyError):
                raise
            except Exception as error:
                self.last = error
                continue
            return self._with_results(domains, results)
        raise InferenceError(f"{self.name}: the reference accepts none of the shapes that were "
            f"tried; declare it with @spec. Its last error: "
            f"{type(self.last).__name__}: {self.last}") from self.last  # fmt: skip

    def _call(self, declaration: Declaration) -> tuple[Any, ...]:
        draw = declaration.draw({})
        arguments = {n: _host(draw[n]) for n in self.known}
        if (change := getattr(self.reference, "changed_inputs", None)) is not None:
            tensors = [n for n, v in arguments.items() if isinstance(v, np.ndarray)]
            arguments.update(zip(tensors, change([arguments[n] for n in tensors]), strict=True))
        with np.errstate(all="ignore"):
            results = self.reference(**arguments)
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(self.outs):
            raise DeclarationError(
                f"{self.name}: the reference gives {len(results)} results, the header has "
                f"{len(self.outs)}: {', '.join(p.name for p in self.outs)}")  # fmt: skip
        return results

    def _domains(self, shapes: Mapping[str, str]) -> dict[str, Domain]:
        domains: dict[str, Domain] = {}
        for param in self.params:
            if param in self.outs:
                domains[param.name] = Out(next(iter(shapes), "") or "f32")
            elif param.name in shapes:
                domains[param.name] = self._tensor(param, shapes, next(iter(shapes)))
            else:
                domains[param.name] = _plain_domain(param, self.known.get(param.name))
        return domains

    def _tensor(self, param: Any, shapes: Mapping[str, str], first: str) -> Domain:
        dtype = " ".join(_FLOATS) if param.name == first else first
        tensor = TensorDomain(shapes[param.name], dtype)
        nullable = self.known[param.name].default is None
        return Optional(tensor) if nullable else tensor

    def _with_results(self, domains: dict[str, Domain], results: Sequence[Any]) -> Declaration:
        """The declaration with the dtypes that results came in."""
        for param, value in zip(self.outs, results, strict=True):
            kind = np.asarray(value).dtype.kind
            if kind in "iub":
                domains[param.name] = Out("bool" if kind == "b" else "i64")
        return Declaration(self.name, domains, fills=("normal", "opposed"))


def _shapes(count: int) -> Iterator[tuple[str, ...]]:
    yield from _TOGETHER.get(count, ())
    for i, shapes in enumerate(product(_SINGLE, repeat=count)):
        if i < _MOST_TRIALS:
            yield shapes


def _kind(param: Any) -> str:
    return str(getattr(param.kind, "value", param.kind)).lower()


def _host(value: Any) -> Any:
    if isinstance(value, TensorValue):
        rng = np.random.default_rng(7)
        return rng.uniform(value.low, value.high, value.shape)
    return value.value if isinstance(value, ScalarValue) else value


def _plain_domain(param: Any, known: inspect.Parameter | None) -> Domain:
    """A domain for what is no drawn tensor: by its kind and the reference's default."""
    kind = _kind(param)
    default: Any = known.default if known is not None else inspect.Parameter.empty
    has = default is not inspect.Parameter.empty and default is not None
    if kind in ("tensor", "tensor list", "tensor_list"):
        return Only(None, "the reference does not take it")
    domain: Domain
    if kind == "bool":
        domain = Choice((bool(default), not default) if has else (False, True))
    elif kind in ("double", "float", "scalar"):
        domain = Choice((float(default), float(default) * 2 + 1) if has else (0.5, 1.0, 2.0))
    elif kind in ("int64", "int32", "int8", "int16", "uint64"):
        domain = Choice((int(default),) if has else (1, 0, 2))
    elif kind == "string":
        domain = Choice((default if has else "",))
    else:
        domain = Only(default if has else None, "assumed: only the default of the reference")
    return domain if known is not None else Ignored(domain, "the reference does not take it")


def assumed(declaration: Declaration) -> list[str]:
    """What a report says of a guess: each parameter with its levels or shape."""
    lines = []
    for name, domain in declaration.params.items():
        shapes = [t.shape for t in domain.tensors()]
        levels = [level for level in domain.levels(False) if level not in ("given",)]
        if shapes:
            dtypes = "/".join(declaration.dtypes()) if name == declaration.main else ""
            lines.append(f"{name}: shape [{shapes[0]}] {dtypes}".rstrip())
        elif not isinstance(domain, Out | Computed):
            lines.append(f"{name}: {', '.join(levels) or 'one value'}")
    return lines
