"""Owns lobpcg: some eigenpairs of a large symmetric matrix, from products with it.

Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001), 517-541.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import mindtorch

from .._tensor.tensor import Tensor


@dataclass(frozen=True)
class _Problem:
    """A x = e B x with a preconditioner; None are identities. Which end of the spectrum."""

    A: Tensor
    B: Tensor | None
    iK: Tensor | None
    largest: bool

    def weighted(self, x: Tensor) -> Tensor:
        """B x."""
        return x if self.B is None else self.B @ x

    def orthonormal(self, x: Tensor) -> Tensor:
        """A basis [m, <= c] of the columns of x [m, c], orthonormal by B; dependent ones go."""
        for _ in range(2):  # the second pass removes what the first one rounds
            x = x / x.norm(dim=0).clamp_min(mindtorch.finfo(x.dtype).tiny)
            values, vectors = mindtorch.linalg.eigh(x.mT @ self.weighted(x))
            least = values.max() * (30 * x.shape[-1] * mindtorch.finfo(x.dtype).eps)
            there = values > least
            x = x @ (vectors[:, there] / values[there].sqrt())
        return x

    def ritz(self, basis: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The best `count` eigenpairs within an orthonormal basis."""
        values, vectors = mindtorch.linalg.eigh(basis.mT @ (self.A @ basis))
        if self.largest:
            values, vectors = values.flip(0), vectors.flip(1)
        return values[:count], basis @ vectors[:, :count]

    def errors(self, values: Tensor, x: Tensor, residual: Tensor, norms: Tensor) -> Tensor:
        """The residual of each pair, relative to the norms of A and B."""
        return residual.norm(dim=0) / (x.norm(dim=0) * (norms[0] + values.abs() * norms[1]))

    def solve(self, x: Tensor, k: int, rounds: int, tol: float) -> tuple[Tensor, Tensor]:
        """The first k pairs from a first guess [m, n]; `rounds` of -1 go on until `tol` is met."""
        norms = mindtorch.stack([(self.A @ x).norm(), self.weighted(x).norm()]) / x.norm()
        values, x = self.ritz(self.orthonormal(x), x.shape[-1])
        step: Tensor | None = None
        for _ in range(rounds) if rounds >= 0 else itertools.count():
            residual = self.A @ x - self.weighted(x) * values
            if (self.errors(values, x, residual, norms)[:k] < tol).all():
                break
            more = residual if self.iK is None else self.iK @ residual
            more = more if step is None else mindtorch.cat([more, step], 1)
            more = more - x @ (self.weighted(x).mT @ more)
            before = x
            values, x = self.ritz(self.orthonormal(mindtorch.cat([x, more], 1)), x.shape[-1])
            step = x - before @ (self.weighted(before).mT @ x)
        return values[:k], x[:, :k]


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[..., object] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """E [..., k] and X [..., m, k] of A X = B X E, for symmetric A [..., m, m] and B.

    The largest first, or with `largest=False` the smallest. Both methods of torch are one here,
    whose basis is orthonormal; a tracker is refused. Gradients are of dense A without B.
    ValueError where m is less than 3 times the number of vectors.
    """
    if tracker is not None:
        raise NotImplementedError("torch.lobpcg: mindtorch calls no tracker")
    m = _rows(A)
    columns = _columns(m, k, n, X)
    guess = X
    if guess is None:
        guess = mindtorch.randn((*A.shape[:-1], columns), dtype=A.dtype, device=A.device)
    tol = mindtorch.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    if A.requires_grad:
        A = (A + A.mT) / 2
    pairs = []
    with mindtorch.no_grad():
        for place in itertools.product(*map(range, A.shape[:-2])):
            others = [None if t is None else (t[place] if place else t) for t in (B, iK)]
            problem = _Problem(A[place] if place else A, others[0], others[1], largest is not False)
            start = guess[place] if place else guess
            rounds = 1000 if niter is None else niter
            pairs.append(problem.solve(start, columns if k is None else k, rounds, tol))
    values, vectors = (
        mindtorch.stack(parts).reshape(*A.shape[:-2], *parts[0].shape)
        for parts in zip(*pairs, strict=True)
    )
    return _derivable(A, B, values, vectors) if A.requires_grad else (values, vectors)


def _rows(A: Tensor) -> int:
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    return A.shape[-1]


def _columns(m: int, k: int | None, n: int | None, X: Tensor | None) -> int:
    """The number of vectors: of the guess, else `n`, else `k`, else one."""
    count = next((c for c in (X.shape[-1] if X is not None else None, n, k) if c is not None), 1)
    if m < 3 * count:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than"
            f" 3 x the number of requested eigenpairs (={count})"
        )
    if X is not None and X.shape[-2] != m:
        raise AssertionError(
            f"X shape mismatch: got {X.shape}, expected {(*X.shape[:-2], m, count)}"
        )
    return count


def _derivable(A: Tensor, B: Tensor | None, e: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The same pairs as functions of A: de = x' dA x, dx the sum of v (v' dA x) / (e - e_v)."""
    with mindtorch.no_grad():
        all_values, v = mindtorch.linalg.eigh(A.detach())
        gaps = e[..., None, :] - all_values[..., :, None]
        scale = all_values.abs().amax(-1)[..., None, None]
        near = gaps.abs() <= scale * mindtorch.finfo(A.dtype).eps ** 0.5
        inverse = mindtorch.where(near, 0.0, 1 / mindtorch.where(near, 1.0, gaps))
    change = (A - A.detach()) @ x
    values = e + (x * change).sum(-2)
    vectors = x + v @ (inverse * (v.mT @ change))
    if B is not None:
        values.register_hook(_refused)
        vectors.register_hook(_refused)
    return values, vectors


def _refused(grad: Tensor) -> Tensor:
    raise ValueError("lobpcg.backward does not support backward with B != I yet.")
