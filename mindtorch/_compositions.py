"""Owns small functions of torch that are a few ops each, and settings of threads and precision."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ._functional import surface
from ._tensor import Tensor
from .ops.spec import aten

_settings: dict[str, Any] = {"precision": "highest", "threads": 1}
_PRECISIONS = ("highest", "high", "medium")


@surface(method=False, internal=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Kept without effect: float32 products are of full precision. RuntimeError for other words."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of {', '.join(_PRECISIONS)}")
    _settings["precision"] = precision


@surface(method=False, internal=False)
def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was given."""
    return str(_settings["precision"])


@surface(method=False, internal=False)
def set_num_threads(int: int) -> None:
    """Kept without effect: numpy and ACL choose their threads. RuntimeError below 1."""
    if int < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    _settings["threads"] = int


@surface(method=False, internal=False)
def get_num_threads() -> int:
    """What set_num_threads was given; 1 before."""
    return int(_settings["threads"])


@surface()
def deg2rad(input: Tensor) -> Any:
    """Degrees as radians."""
    return aten.mul(input, math.pi / 180)


@surface()
def rad2deg(input: Tensor) -> Any:
    """Radians as degrees."""
    return aten.mul(input, 180 / math.pi)


@surface()
def logit(input: Tensor, eps: float | None = None) -> Any:
    """log(x / (1 - x)), x clamped to [eps, 1 - eps] where `eps` is given."""
    x = input if eps is None else aten.clamp(input, eps, 1 - eps)
    return aten.log(aten.div(x, aten.rsub(x, 1)))


@surface()
def vdot(input: Tensor, other: Tensor) -> Any:
    """The dot product of `[n]` tensors, the first conjugated."""
    return aten.dot(aten.conj_of(input), other)


@surface()
def argwhere(input: Tensor) -> Any:
    """Indices of the elements that are not zero, `[count, ndim]`."""
    return aten.nonzero(input)


@surface(method=False)
def column_stack(tensors: Any) -> Any:
    """Tensors as columns, side by side; 0-d and 1-d ones are one column each."""
    columns = [x if x.ndim > 1 else aten.reshape(x, (x.numel(), 1)) for x in tensors]
    return aten.cat(columns, 1)


@surface()
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of nearly equal size, or cut at the indices given."""
    size, given = input.shape[dim], indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, int):
        if given < 1:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        small, more = divmod(size, given)
        given = [i * small + min(i, more) for i in range(1, given)]
    cuts = [0, *(slice(c).indices(size)[1] for c in given), size]
    return tuple(
        aten.narrow(input, dim, start, max(0, end - start)) for start, end in pairwise(cuts)
    )


def _at_least(rank: int, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        return tuple(_at_least(rank, (x,)) for x in tensors[0])
    if len(tensors) != 1:
        return tuple(_at_least(rank, (x,)) for x in tensors)
    x = tensors[0]
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return aten.unsqueeze(x, -1)
    if rank == 3 and x.ndim == 1:
        return aten.reshape(x, (1, -1, 1))
    return aten.reshape(x, (1,) * (rank - x.ndim) + tuple(x.shape))


@surface(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor, with one dimension where it has none."""
    return _at_least(1, tensors)


@surface(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor, with leading dimensions up to two."""
    return _at_least(2, tensors)


@surface(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor, with dimensions up to three: `[1, n, 1]`, `[n, m, 1]`."""
    return _at_least(3, tensors)


@surface(function=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal; NotImplementedError for `wrap`."""
    if wrap:
        raise NotImplementedError("fill_diagonal_: wrap=True is not supported, fill two parts")
    aten.diagonal(self).fill_(fill_value)
    return self


@surface(function=False)
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """torch.transpose, in place; NotImplementedError for a tensor that records gradients."""
    if self.requires_grad:
        raise NotImplementedError(
            "transpose_: the tensor requires grad, whose history cannot follow; use transpose"
        )
    self.data = aten.transpose(self, dim0, dim1)
    return self


@surface(function=False)
def t_(self: Tensor) -> Tensor:
    """torch.t, in place."""
    return self if self.ndim < 2 else transpose_(self, 0, 1)


Tensor.swapaxes_ = Tensor.swapdims_ = transpose_  # type: ignore[attr-defined]
