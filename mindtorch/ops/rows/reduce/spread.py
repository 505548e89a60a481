"""Rows of what is made of means and variances: pairs with the mean, covariance, norms, ranges."""

from __future__ import annotations

from typing import Any

from ...._tensor.tensor import Tensor
from ...samples import Arg, Sample, calls
from ...spec import aten, composite


def _forms(name: str, returns: str) -> None:
    """The forms of var and its like that say `unbiased` instead of `correction`."""

    def whole(self: Tensor, unbiased: bool = True) -> Tensor | tuple[Tensor, ...]:
        return getattr(aten, name)(self, None, correction=int(unbiased))

    def along(
        self: Tensor, dim: int, unbiased: bool = True, keepdim: bool = False
    ) -> Tensor | tuple[Tensor, ...]:
        return getattr(aten, name)(self, dim, correction=int(unbiased), keepdim=keepdim)

    composite(
        f"{name}.unbiased(Tensor self, bool unbiased=True) -> {returns}",
        whole,
        samples=calls((Arg((3, 4)), False), (Arg((2, 3)), True)),
        oracle=lambda torch: getattr(torch, name),
        tolerance="accumulated",
        surface="both" if returns == "Tensor" else "function",
    )
    composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
        f" -> {returns}",
        along,
        samples=calls((Arg((3, 4)), 1, False), (Arg((2, 3)), 0, True, True)),
        oracle=lambda torch: getattr(torch, name),
        tolerance="accumulated",
        surface="both" if returns == "Tensor" else "function",
    )


def _with_mean(name: str) -> None:
    def pair(
        self: Tensor, dim: int | None = None, correction: int = 1, keepdim: bool = False
    ) -> tuple[Tensor, ...]:
        spread = getattr(aten, name)(self, dim, correction=correction, keepdim=keepdim)
        return spread, aten.mean(self, dim, keepdim)

    composite(
        f"{name}_mean(Tensor self, int[1]? dim=None, *, Number correction=1, bool keepdim=False)"
        " -> (Tensor, Tensor)",
        pair,
        samples=calls((Arg((3, 4)),), Sample((Arg((3, 4)), 1), {"correction": 0})),
        tolerance="accumulated",
        surface="function",
    )


for _name in ("var", "std"):
    _forms(_name, "Tensor")
    _with_mean(_name)
    _forms(_name + "_mean", "(Tensor, Tensor)")


@composite(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    samples=calls((Arg((3, 4)),), Sample((Arg((2, 3)),), {"dim": 1, "keepdim": True})),
    tolerance="exact",
)
def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, ...]:
    """The smallest and the largest element, of all or along a dimension."""
    dims = () if dim is None else (dim,)
    return aten.amin(self, dims, keepdim), aten.amax(self, dims, keepdim)


@composite(
    "norm(Tensor self, Any p='fro', int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None)"
    " -> Tensor",
    samples=calls(
        (Arg((3, 4)),),
        (Arg((3, 4)), 1, 1),
        (Arg((2, 3, 4)), 3.0, (0, 2), True),
        (Arg((3, 4)), float("inf")),
    ),
    tolerance="accumulated",
    autocast="float32 on npu",
)
def norm(
    self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The vector norm of order `p` over all or some dimensions ("fro" is order 2)."""
    if p == "nuc":
        raise NotImplementedError("norm(): p='nuc' is not implemented; use linalg.matrix_norm")
    order = 2 if p in ("fro", None) else p
    return aten.linalg_vector_norm(self, order, dim, keepdim, dtype=dtype)


@composite(
    "cov(Tensor self, *, int correction=1) -> Tensor",
    samples=calls((Arg((3, 5)),), Sample((Arg((2, 4)),), {"correction": 0}), (Arg((4,)),)),
    tolerance="accumulated",
)
def cov(self: Tensor, correction: int = 1) -> Tensor:
    """The covariance matrix of rows as variables: `[N, M]` gives `[N, N]`."""
    rows = self if self.ndim > 1 else aten.unsqueeze(self, 0)
    centred = rows - aten.mean(rows, -1, True)
    products = centred @ aten.conj_of(aten.transpose(centred, -1, -2))
    scaled = products / (rows.shape[-1] - correction)
    return scaled if self.ndim > 1 else aten.reshape(scaled, ())


@composite(
    "diff(Tensor self, int n=1, int dim=-1) -> Tensor",
    samples=calls((Arg((3, 5)),), (Arg((4, 2)), 2, 0)),
    tolerance="rounded",
)
def diff(self: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """The n-th forward difference along a dimension."""
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    for _ in range(n):
        size = self.shape[dim]
        self = aten.narrow(self, dim, 1, size - 1) - aten.narrow(self, dim, 0, size - 1)
    return self
