"""Hyper-connections (mHC) of residual streams."""

from __future__ import annotations

from ....spec import *
from ._words import *

_MHC: Final = Rule("gradient", "Xie et al.: mHC, manifold-constrained hyper-connections, 2025; "
                   "op-plugin documents npu_mhc_pre and npu_mhc_post", specials=False)  # fmt: skip
_STREAMS: Final = sizes({"*B": leading(5, "2x3", 1, 65)}, n=heads(4, 6, 8),
                        D=row(32, 1, 5, 257))  # fmt: skip
_HALVES: Final = "f16 bf16"


@spec("aclnnMhcPre", _MHC, _STREAMS, x=tensor("*B n D", _HALVES),
      phi=tensor("n*n+2*n n*D", "f32", -0.2, 0.2), alpha=tensor("3", "f32", 0.1, 1),
      bias=tensor("n*n+2*n", "f32"), gammaOptional=optional(tensor("n D", "f32", 0.5)),
      normEps=number(1e-6, 0.25), hcEps=number(1e-6, 0.25), hIn=out("x"), hPost=out("f32"),
      hRes=out("f32"), invRmsOptional=out("f32"), hMixOptional=out("f32"),
      hPreOptional=out("f32"))  # fmt: skip
def mhc_pre(
    x: Array, phi: Array, alpha: Array, bias: Array, gammaOptional: Array | None, normEps: float,
    hcEps: float,
) -> tuple[Array, ...]:  # fmt: skip
    """Streams [..., n, D] weighed by sigmoids of their normed mixture of n, n and n^2 parts."""
    *lead, n, _ = x.shape
    flat = x.reshape(*lead, -1)
    inverse = (np.square(flat).mean(-1) + normEps) ** -0.5
    mix = (flat if gammaOptional is None else flat * gammaOptional.reshape(-1)) @ phi.T
    scale = np.repeat(alpha, [n, n, n * n])
    h = mix * inverse[..., None] * scale + bias
    pre = 1 / (1 + np.exp(-h[..., :n])) + hcEps
    post = 2 / (1 + np.exp(-h[..., n : 2 * n]))
    rest = h[..., 2 * n :].reshape(*lead, n, n)
    return (pre[..., None] * x).sum(-2), post, rest, inverse, mix, pre


_SINKHORN: Final = Rule("gradient", "Sinkhorn, Knopp 1967; op-plugin document npu_mhc_sinkhorn",
                        specials=False)  # fmt: skip
_SQUARES: Final = sizes({"*B": leading(3, "2x3", 1, 65)}, n=heads(4, 6, 8))
_EPS: Final = 1e-6


@spec("aclnnMhcSinkhorn", _SINKHORN, _SQUARES, x=tensor("*B n n", "f32"),
      eps=number(_EPS, 0.25), numIters=integer(1, 2, 20), output=out("x"), normOut=out("f32"),
      sumOut=out("f32"))  # fmt: skip
def sinkhorn(x: Array, eps: float, numIters: int) -> tuple[Array, Array, Array]:
    """Softmax of rows, then columns; rows and columns in turn for what is left of `numIters`.

    Beside it norms and sums of all steps, [2 rounds, rows, columns, batch] and without rows or
    columns.
    """
    shape, x = x.shape, x.reshape(-1, *x.shape[-2:])
    e = np.exp(x - x.max(-1, keepdims=True))
    sums, norms = [e.sum(-1)], [e / e.sum(-1, keepdims=True) + eps]
    for axis in (-2, *(-1, -2) * (numIters - 1)):
        sums.append(norms[-1].sum(axis) + eps)
        norms.append(norms[-1] / np.expand_dims(sums[-1], axis))
    return (
        norms[-1].reshape(shape),
        np.moveaxis(np.stack(norms), 1, -1),
        np.moveaxis(np.stack(sums), 1, -1),
    )


def _balanced(which: int) -> Domain:
    """Norms or sums of all steps of some logits."""

    def make(_rng: Generator, _pattern: str, draw: Draw) -> Array:
        logits = draw.generator("logits").uniform(-2, 2, (draw["B"], draw["n"], draw["n"]))
        return sinkhorn(logits, _EPS, draw["I"])[which]

    return content(make, "saved", "f32", shape=("2*I n n B", "2*I n B")[which - 1])


@spec("aclnnMhcSinkhornBackward", _SINKHORN,
      sizes(B=batch(3, 1, 5), n=heads(4, 6, 8), I=members(1, 3, 2)),
      gradOutput=tensor("B n n", "f32"), normOut=_balanced(1), sumOut=_balanced(2),
      out=out("gradOutput"))  # fmt: skip
def sinkhorn_grad(gradOutput: Array, normOut: Array, sumOut: Array) -> Array:
    """Each division by a sum takes from the gradient its mean, weighed by the result."""
    g, steps = gradOutput, np.moveaxis(normOut, -1, 1)
    sums = np.moveaxis(sumOut, -1, 1)
    for k in range(len(steps) - 1, 0, -1):
        axis = -2 if k % 2 else -1
        y = steps[k]
        g = (g - (g * y).sum(axis, keepdims=True)) / np.expand_dims(sums[k], axis)
    p = steps[0] - _EPS
    return p * (g - (g * p).sum(-1, keepdims=True))


_MIXED: Final[dict[str, Domain]] = {
    "x": tensor("*B n D", _HALVES), "hRes": tensor("*B n n", "f32"),
    "hOut": tensor("*B D", "x"), "hPost": tensor("*B n", "f32"),
}  # fmt: skip


@spec("aclnnMhcPost", _MHC, _STREAMS, **_MIXED | {"hRes": optional(_MIXED["hRes"])},
      out=out("x"))  # fmt: skip
def mhc_post(x: Array, hRes: Array | None, hOut: Array, hPost: Array) -> Array:
    """Streams are mixed by a matrix, and take a share each of what the layer gives."""
    mixed = x if hRes is None else np.swapaxes(hRes, -1, -2) @ x
    return mixed + hPost[..., None] * hOut[..., None, :]


@spec("aclnnMhcPostBackward", replace(_MHC, source="op-plugin test npu_mhc_post_backward"),
      _STREAMS, gradOutput=tensor("*B n D", "x"), **_MIXED, gradX=out("x"), gradHRes=out("f32"),
      gradHOut=out("hOut"), gradHPost=out("f32"))  # fmt: skip
def mhc_post_backward(
    gradOutput: Array, x: Array, hRes: Array, hOut: Array, hPost: Array
) -> tuple[Array, Array, Array, Array]:
    return (
        hRes @ gradOutput,
        x @ np.swapaxes(gradOutput, -1, -2),
        (hPost[..., None] * gradOutput).sum(-2),
        (gradOutput * hOut[..., None, :]).sum(-1),
    )
