"""Owns torch.distributions.constraints: which values a parameter or a sample may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor

__all__ = [  # noqa: RUF022 (as in torch)
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "independent", "integer_interval", "interval",
    "half_open_interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "MixtureSameFamilyConstraint", "multinomial", "nonnegative", "nonnegative_integer",
    "one_hot", "positive", "positive_semidefinite", "positive_definite", "positive_integer",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


def _computed(function: Callable[[Any], int]) -> Any:
    """A property in the place of a class's attribute."""
    return property(function)


class Constraint:
    """A region; `check` says for each event whether it lies inside."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Bool, of the batch's shape."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A constraint known only with a distribution's parameters; so may be what it says of them.

    NotImplementedError for what was left out of `is_discrete` and `event_dim`.
    """

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = _computed(lambda self: self._stated("is_discrete"))
    event_dim = _computed(lambda self: self._stated("event_dim"))

    def _stated(self, name: str) -> int:
        value: int | None = getattr(self, "_" + name)
        if value is None:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(
        self, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint that depends on parameters."""

    def __init__(
        self,
        fn: Callable[[Any], Constraint] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Constraint]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    """Whether a constraint is known only with a distribution's parameters."""
    return isinstance(constraint, _Dependent)


def _constraints(cseq: Iterable[Constraint]) -> list[Constraint]:
    """The list of them; AssertionError for what is none."""
    constraints = list(cseq)
    if not all(isinstance(c, Constraint) for c in constraints):
        raise AssertionError("All elements of cseq must be Constraint instances")
    return constraints


class _IndependentConstraint(Constraint):
    """A constraint over the last dimensions together."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        if not isinstance(base_constraint, Constraint):
            kind = type(base_constraint).__name__
            raise AssertionError(f"base_constraint must be a Constraint, got {kind}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = _computed(lambda self: self.base_constraint.is_discrete)
    event_dim = _computed(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            result = result.all(-1)
        return result

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: its component's."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint

    is_discrete = _computed(lambda self: self.base_constraint.is_discrete)
    event_dim = _computed(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        return self.base_constraint.check(value)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _IntegerInterval(Constraint):
    lower_bound: Tensor | float
    upper_bound: Tensor | float

    is_discrete = True

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        inside = (value >= self.lower_bound) & (value <= self.upper_bound)
        return (value % 1 == 0) & inside

    def __repr__(self) -> str:
        return f"IntegerInterval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _IntegerLessThan(Constraint):
    is_discrete = True

    def __init__(self, upper_bound: Tensor | float):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(Constraint):
    is_discrete = True

    def __init__(self, lower_bound: Tensor | float):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)

    def __repr__(self) -> str:
        return f"IntegerGreaterThan(lower_bound={self.lower_bound})"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(Constraint):
    def __init__(self, lower_bound: Tensor | float):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value

    def __repr__(self) -> str:
        return f"GreaterThan(lower_bound={self.lower_bound})"


class _GreaterThanEq(_GreaterThan):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value

    def __repr__(self) -> str:
        return f"GreaterThanEq(lower_bound={self.lower_bound})"


class _LessThan(Constraint):
    def __init__(self, upper_bound: Tensor | float):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound

    def __repr__(self) -> str:
        return f"LessThan(upper_bound={self.upper_bound})"


class _Interval(Constraint):
    lower_bound: Tensor | float
    upper_bound: Tensor | float

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)

    def __repr__(self) -> str:
        return f"Interval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _HalfOpenInterval(_Interval):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)

    def __repr__(self) -> str:
        return "HalfOpen" + super().__repr__()


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Tensor | float):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        lower = (value.tril() == value).flatten(-2).all(-1)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: rows of length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = mindtorch.finfo(value.dtype).eps * value.size(-1) * 10
        length = mindtorch.linalg.norm(value.detach(), dim=-1)
        return (length - 1).abs().le(tolerance).all(-1) & super().check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return mindtorch.full(value.shape[:-2], square, dtype=mindtorch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        near = (value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()
        return super().check(value) & near.flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return symmetric & (mindtorch.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return symmetric & (mindtorch.linalg.eigvalsh(value) > 0).all(-1)


class _Cat(Constraint):
    """Constraints of parts, in order along a dimension."""

    def __init__(
        self, cseq: Iterable[Constraint], dim: int = 0, lengths: Iterable[int] | None = None
    ):
        self.cseq: list[Constraint] = _constraints(cseq)
        self.lengths: list[int] = list(lengths) if lengths is not None else [1] * len(self.cseq)
        self.dim = dim

    is_discrete = _computed(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = _computed(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        parts, at = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            parts.append(constraint.check(value.narrow(self.dim, at, length)))
            at += length
        return mindtorch.cat(parts, self.dim)


class _Stack(Constraint):
    """One constraint for each place of a dimension."""

    cseq: list[Constraint]
    dim: int

    def __init__(self, cseq: Iterable[Constraint], dim: int = 0):
        self.cseq, self.dim = _constraints(cseq), dim

    is_discrete = _computed(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = _computed(lambda self: max(c.event_dim for c in self.cseq) + (self.dim < 0))

    def check(self, value: Tensor) -> Tensor:
        parts = [c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)]
        return mindtorch.stack(parts, self.dim)


cat = _Cat
stack = _Stack
independent = _IndependentConstraint
dependent = _Dependent()
dependent_property = _DependentProperty
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
integer_less_than = _IntegerLessThan
integer_greater_than = _IntegerGreaterThan
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
