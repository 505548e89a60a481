"""Rows of what is made of means and variances: pairs with the mean, covariance, norms, ranges."""

from __future__ import annotations

from ...._compat.warn_once import warn
from ...words import *


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
        tolerance="accumulated",
        rule="statistic",
        surface="both" if returns == "Tensor" else "function",
    )
    composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
        f" -> {returns}",
        along,
        samples=calls((Arg((3, 4)), 1, False), (Arg((2, 3)), 0, True, True)),
        tolerance="accumulated",
        rule="statistic",
        surface="both" if returns == "Tensor" else "function",
    )


def _with_mean(name: str) -> None:
    def pair(
        self: Tensor,
        dim: int | Sequence[int] | None = None,
        correction: Number | None = None,
        keepdim: bool = False,
    ) -> tuple[Tensor, ...]:
        if not (self.is_floating_point() or self.is_complex()):
            raise RuntimeError(f"{name}_mean only support floating point and complex dtypes")
        correction = 1 if correction is None else correction
        spread = getattr(aten, name)(self, dim, correction=correction, keepdim=keepdim)
        if self.device.type != "cpu" or self.dtype is not dt.float32:
            return spread, aten.mean(self, dim, keepdim)
        # One pass of float64 gives both to torch.
        return spread, aten.to(aten.mean(self, dim, keepdim, dtype=dt.float64), dt.float32)

    composite(
        f"{name}_mean(Tensor self, int[1]? dim=None, *, Number? correction=None,"
        " bool keepdim=False) -> (Tensor, Tensor)",
        pair,
        samples=calls((Arg((3, 4)),), Sample((Arg((3, 4)), 1), {"correction": 0})),
        tolerance="accumulated",
        rule="statistic",
        surface="function",
    )


for _name in ("var", "std"):
    _forms(_name, "Tensor")
    _with_mean(_name)
    _forms(_name + "_mean", "(Tensor, Tensor)")


@composite(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    unsupported={"complex": "aminmax_cpu"},
    samples=calls((Arg((3, 4)),), Sample((Arg((2, 3)),), {"dim": 1, "keepdim": True})),
)
def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, ...]:
    """The smallest and the largest element, of all or along a dimension."""
    if not self.numel():
        at = None if dim is None else wrap_dim(dim, self.ndim)
        if at is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no"
                " identity."
            )
        if not self.shape[at]:
            raise IndexError(f"aminmax: Expected reduction dim {at} to have non-zero size.")
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
    rule="statistic",
    out="expected",
    autocast="float32 on npu",
)
def norm(
    self: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
) -> Tensor:
    """The vector norm of order `p` over all or some dimensions ("fro" is order 2)."""
    if isinstance(p, str) and p != "fro":
        whole = (0, 1) if dim is None else (dim,) if isinstance(dim, int) else dim
        return aten.linalg_matrix_norm(self, p, whole, keepdim, dtype=dtype)
    order: Any = 2 if p in ("fro", None) else p
    return aten.linalg_vector_norm(self, order, dim, keepdim, dtype=dtype)


@composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    samples=calls((Arg((3, 5)),), Sample((Arg((2, 4)),), {"correction": 0}), (Arg((4,)),)),
    tolerance="accumulated",
    rule="cancelling",
)
def cov(
    self: Tensor,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of rows as variables: `[N, M]` gives `[N, N]`; with weights of M."""
    if self.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with"
            f" {self.ndim} dimensions"
        )
    if self.dtype is dt.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self if self.ndim > 1 else aten.reshape(self, (1, -1))
    if rows.dtype.category == dt.INTEGER:
        rows = aten.to(rows, dt.get_default_dtype())
    count: Any = rows.shape[1]
    weights: Any = None
    for target, name in ((fweights, "fweights"), (aweights, "aweights")):
        if target is not None:
            _check_weights(target, name, count)
            weights = target if weights is None else weights * target
    if weights is None:
        mean, scaled, total = aten.mean(rows, -1, True), rows, count
    else:
        total = aten.sum(weights)
        mean = aten.unsqueeze(aten.sum(rows * weights, 1) / total, 1)
    factor = total - correction
    if weights is not None:
        if aweights is not None and correction:
            both = aweights if fweights is None else aweights * fweights
            factor = total - correction * aten.sum(both * aweights) / total
        few = factor.device.type == "cpu" and float(factor.item()) <= 0  # no device is waited for
        factor = aten.clamp_min(factor, 0)
    else:
        few, factor = factor <= 0, max(factor, 0)
    if few:
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number"
            " of observations.",
        )
    centred = rows - mean
    scaled = centred if weights is None else centred * weights
    products = scaled @ aten.conj_of(aten.transpose(centred, 0, 1))
    return aten.squeeze(products / factor if weights is not None else _over(products, factor))


def _over(products: Tensor, count: float) -> Tensor:
    """Divided by a number that may be zero."""
    return products / aten.full((), count, dtype=products.dtype, device=products.device)


def _check_weights(weights: Tensor, name: str, count: int) -> None:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with"
            f" {weights.ndim} dimensions"
        )
    whole = name == "fweights"
    if whole == (weights.dtype.category >= 2):
        raise RuntimeError(
            f"cov(): expected {name} to have {'integral' if whole else 'floating point'} dtype but"
            f" got {name} with {_scalar_name(weights)} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input"
            f" but got {weights.numel()} != {count}"
        )
    if weights.device.type != "meta" and bool(aten.any(weights < 0).item()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def _scalar_name(t: Tensor) -> str:
    from ...rules import scalar_name

    return scalar_name(t.dtype)


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    samples=calls((Arg((3, 5)),), (Arg((4, 2)), 2, 0), (Arg((3,)), 1, -1, Arg((1,)), Arg((2,)))),
    tolerance="composite",
)
def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th forward difference along a dimension."""
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    at = wrap_dim(dim, self.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n and (prepend is not None or append is not None):
        for end in (t for t in (prepend, append) if t is not None):
            if end.ndim != self.ndim:
                raise RuntimeError(
                    "diff expects prepend or append to be the same dimension as input"
                )
            for d, (size, have) in enumerate(zip(self.shape, end.shape, strict=True)):
                if d != at and size != have:
                    raise RuntimeError(
                        "diff expects the shape of tensor to prepend or append to match that of"
                        " input except along the differencing dimension; input.size("
                        f"{d}) = {size}, but got tensor.size({d}) = {have}"
                    )
        self = aten.cat([t for t in (prepend, self, append) if t is not None], at)
    if not n:
        return aten.clone(self)
    for _ in range(min(n, self.shape[at])):
        size = self.shape[at]
        if not size:
            break
        after, before = aten.narrow(self, at, 1, size - 1), aten.narrow(self, at, 0, size - 1)
        self = aten.logical_xor(after, before) if self.dtype is dt.bool else after - before
    return self


@composite(
    "frobenius_norm(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    samples=calls(
        (Arg((3, 4)), 1), (Arg((2, 3, 4), "float64"), (0, 2), True), (Arg((3, 2), "complex64"), 0),
        Sample((Arg((2, 2, 2)), (0, 1, 2)), error=True),
    ),
    tolerance="accumulated",
    rule="statistic",
    surface="function",
)  # fmt: skip
def frobenius_norm(self: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along one or two dimensions."""
    if isinstance(dim, Sequence) and len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return aten.linalg_vector_norm(self, 2, dim, keepdim)
