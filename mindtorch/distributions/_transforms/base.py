"""Owns Transform: a map of values with an inverse and a volume.

A transform knows its `domain`, its `codomain` and log |det dy/dx|, summed over the last
`domain.event_dim` dimensions.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ..._tensor.tensor import Tensor
from ..._tensor.types import Shape
from .. import constraints


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return value if dims == 0 else value.reshape((*value.shape[: value.dim() - dims], -1)).sum(-1)


class Transform:
    """A map `y = t(x)`; `t.inv(y)` goes back. With `cache_size=1` the last pair is remembered."""

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: weakref.ref[Transform] | None = None
        if cache_size:
            self._cached_x_y: tuple[Tensor | None, Tensor | None] = None, None
        super().__init__()  # of a class beside this one: transforms may be modules

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_inv": None}

    if TYPE_CHECKING:

        @property
        def bijective(self) -> bool:
            """Whether each y has one x."""
    else:
        bijective = False

    if TYPE_CHECKING:  # a subclass may set them on itself or on each of its instances

        @property
        def domain(self) -> constraints.Constraint:
            """Where x may lie."""

        @property
        def codomain(self) -> constraints.Constraint:
            """Where y lies."""

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse map; its own inverse is this one."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Tensor | int:
        """1 where the map increases, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._cached_x_y[0] and self._cached_x_y[1] is not None:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._cached_x_y[1] and self._cached_x_y[0] is not None:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape of y by that of x."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of x by that of y."""
        return shape


class _InverseTransform(Transform):
    def __init__(self, forward: Transform):
        super().__init__(forward._cache_size)
        self._forward = forward

    @property
    def domain(self) -> constraints.Constraint:
        return self._forward.codomain

    @property
    def codomain(self) -> constraints.Constraint:
        return self._forward.domain

    @property
    def bijective(self) -> bool:
        return self._forward.bijective

    @property
    def sign(self) -> Tensor | int:
        return self._forward.sign

    @property
    def inv(self) -> Transform:
        return self._forward

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._forward.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"_InverseTransform({self._forward!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._forward.forward_shape(shape)
