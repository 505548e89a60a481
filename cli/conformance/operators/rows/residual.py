"""Hyper-connections (mHC) of residual streams."""

from __future__ import annotations

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const, f16, spec, t, take
from ._defaults import FINITE_GRADIENT


@spec("aclnnMhcPre",
      "hIn:x hPost:float32 hRes:float32 invRmsOptional:float32 hMixOptional:float32 "
      "hPreOptional:float32", **FINITE_GRADIENT, dtypes=("float16", "bfloat16"),
      source="Xie et al.: mHC, manifold-constrained hyper-connections, 2025; op-plugin document "
      "npu_mhc_pre", samples=[
          take(x=f16(5, 4, 32), phi=t(24, 128, low=-0.2, high=0.2), alpha=t(3, low=0.1, high=1),
               bias=t(24), gammaOptional=g, normEps=1e-6, hcEps=1e-6)
          for g in (None, t(4, 32, low=0.5))])  # fmt: skip
def mhc_pre(
    x: Array, phi: Array, alpha: Array, bias: Array, gammaOptional: Array | None, normEps: float,
    hcEps: float,
) -> tuple[Array, ...]:  # fmt: skip
    """Streams [T, n, D] weighed by sigmoids of their normed mixture of n, n and n^2 parts."""
    tokens, n, _ = x.shape
    flat = x.reshape(tokens, -1)
    inverse = (np.square(flat).mean(-1) + normEps) ** -0.5
    mix = (flat if gammaOptional is None else flat * gammaOptional.reshape(-1)) @ phi.T
    scale = np.repeat(alpha, [n, n, n * n])
    h = mix * inverse[:, None] * scale + bias
    pre = 1 / (1 + np.exp(-h[:, :n])) + hcEps
    post = 2 / (1 + np.exp(-h[:, n : 2 * n]))
    rest = h[:, 2 * n :].reshape(tokens, n, n)
    return np.einsum("tn,tnd->td", pre, x), post, rest, inverse, mix, pre


@spec("aclnnMhcSinkhorn", "output:x",
      uncovered="normOut sumOut",
      **FINITE_GRADIENT, dtypes=("float32",),
      source="Sinkhorn, Knopp 1967; op-plugin document npu_mhc_sinkhorn", samples=[
          take(x=t(3, 4, 4), eps=1e-6, numIters=i) for i in (1, 2, 20)])  # fmt: skip
def sinkhorn(x: Array, eps: float, numIters: int) -> Array:
    """Softmax of rows, then columns; rows and columns in turn for what is left of `numIters`."""
    y = np.exp(x - x.max(-1, keepdims=True))
    y = y / y.sum(-1, keepdims=True) + eps
    for axis in (-2, *(-1, -2) * (numIters - 1)):
        y = y / (y.sum(axis, keepdims=True) + eps)
    return y


def _sinkhorn(x: Array, rounds: int) -> tuple[Array, Array]:
    """Norms and sums of all steps, [2 rounds, rows, columns, batch] and without rows or columns."""
    e = np.exp(x - x.max(-1, keepdims=True))
    sums, norms = [e.sum(-1)], [e / e.sum(-1, keepdims=True) + 1e-6]
    for axis in (-2, *(-1, -2) * (rounds - 1)):
        sums.append(norms[-1].sum(axis) + 1e-6)
        norms.append(norms[-1] / np.expand_dims(sums[-1], axis))
    return np.moveaxis(np.stack(norms), 1, -1), np.moveaxis(np.stack(sums), 1, -1)


def _balanced(rounds: int) -> dict[str, Arg]:
    norms, sums = _sinkhorn(t(3, 4, 4).array().astype(np.float64), rounds)
    return {"gradOutput": t(3, 4, 4, low=-1), "normOut": const(norms, "float32"),
            "sumOut": const(sums, "float32")}  # fmt: skip


@spec("aclnnMhcSinkhornBackward", "out:gradOutput", tolerance="gradient",
      specials=False, dtypes=("float32",), source="Sinkhorn, Knopp 1967; op-plugin document "
      "npu_mhc_sinkhorn", samples=lambda: [take(**_balanced(r)) for r in (1, 3)])  # fmt: skip
def sinkhorn_grad(gradOutput: Array, normOut: Array, sumOut: Array) -> Array:
    """Each division by a sum takes from the gradient its mean, weighed by the result."""
    g, steps = gradOutput, np.moveaxis(normOut, -1, 1)
    sums = np.moveaxis(sumOut, -1, 1)
    for k in range(len(steps) - 1, 0, -1):
        axis = -2 if k % 2 else -1
        y = steps[k]
        g = (g - (g * y).sum(axis, keepdims=True)) / np.expand_dims(sums[k], axis)
    p = steps[0] - 1e-6
    return p * (g - (g * p).sum(-1, keepdims=True))


@spec("aclnnMhcPost", "out:x", dtypes=("float16", "bfloat16"), **FINITE_GRADIENT,
      source="Xie et al.: mHC: Manifold-Constrained Hyper-Connections, 2025; op-plugin test "
      "npu_mhc_post", samples=[
          take(x=f16(*lead, 4, 32), hRes=t(*lead, 4, 4), hOut=f16(*lead, 32), hPost=t(*lead, 4))
          for lead in ((5,), (2, 3))])  # fmt: skip
def mhc_post(x: Array, hRes: Array, hOut: Array, hPost: Array) -> Array:
    """Streams are mixed by a matrix, and take a share each of what the layer gives."""
    return np.swapaxes(hRes, -1, -2) @ x + hPost[..., None] * hOut[..., None, :]


@spec(
    "aclnnMhcPostBackward",
    "gradX:x gradHRes:float32 gradHOut:hOut gradHPost:float32",
    dtypes=("float16", "bfloat16"),
    **FINITE_GRADIENT,
    source="op-plugin test npu_mhc_post_backward",
    samples=[
        take(
            gradOutput=f16(*lead, 4, 32),
            x=f16(*lead, 4, 32),
            hRes=t(*lead, 4, 4),
            hOut=f16(*lead, 32),
            hPost=t(*lead, 4),
        )
        for lead in ((5,), (2, 3))
    ],
)
def mhc_post_backward(
    gradOutput: Array, x: Array, hRes: Array, hOut: Array, hPost: Array
) -> tuple[Array, Array, Array, Array]:
    return (
        hRes @ gradOutput,
        x @ np.swapaxes(gradOutput, -1, -2),
        (hPost[..., None] * gradOutput).sum(-2),
        (gradOutput * hOut[..., None, :]).sum(-1),
    )
