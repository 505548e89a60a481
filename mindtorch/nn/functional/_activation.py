"""Owns the activations of nn.functional; each is one row or a short composition of rows."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch
from mindtorch._tensor import Tensor

from .. import _aten as aten


def _one(name: str, input: Tensor, inplace: bool, *args: Any) -> Any:
    if inplace:
        return aten.inplace(name, input, *args)
    return getattr(aten, name)(input, *args)


def relu(input: Tensor, inplace: bool = False) -> Any:
    """max(x, 0), elementwise."""
    return aten.inplace("relu", input) if inplace else aten.relu(input)


def relu_(input: Tensor) -> Any:
    """relu in place."""
    return aten.inplace("relu", input)


def relu6(input: Tensor, inplace: bool = False) -> Any:
    """min(max(x, 0), 6), elementwise."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """Clamps to [min_val, max_val]; ValueError when they cross."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _one("hardtanh", input, inplace, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh in place."""
    return hardtanh(input, min_val, max_val, True)


def gelu(input: Tensor, approximate: str = "none") -> Any:
    """x Φ(x); `approximate="tanh"` takes the tanh form."""
    if approximate == "none":
        return aten.gelu(input)
    return aten.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Any:
    """x sigmoid(x)."""
    return aten.inplace("silu", input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Any:
    """x tanh(softplus(x))."""
    if aten.has("mish"):
        return _one("mish", input, inplace)
    result = input * mindtorch.tanh(softplus(input))
    return input.copy_(result) if inplace else result


def sigmoid(input: Tensor) -> Any:
    """1 / (1 + exp(-x))."""
    return aten.sigmoid(input)


def tanh(input: Tensor) -> Any:
    """Hyperbolic tangent."""
    return aten.tanh(input)


def logsigmoid(input: Tensor) -> Any:
    """log(sigmoid(x))."""
    if aten.has("log_sigmoid"):
        return aten.log_sigmoid(input)
    return -softplus(-input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x where x > 0, else negative_slope · x."""
    return _one("leaky_relu", input, inplace, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Any:
    """leaky_relu in place."""
    return leaky_relu(input, negative_slope, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where x > 0, else alpha (exp(x) - 1)."""
    return _one("elu", input, inplace, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Any:
    """elu in place."""
    return elu(input, alpha, True)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def selu_(input: Tensor) -> Any:
    """selu in place."""
    return selu(input, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Any:
    """celu in place."""
    return celu(input, alpha, True)


def selu(input: Tensor, inplace: bool = False) -> Any:
    """scale · elu(x, alpha), with the constants of self-normalizing networks."""
    return _one("elu", input, inplace, _SELU_ALPHA, _SELU_SCALE)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)); RuntimeError for alpha 0."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _one("elu", input, inplace, alpha, 1.0, 1.0 / alpha)


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """x relu6(x + 3) / 6."""
    return _one("hardswish", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """relu6(x + 3) / 6."""
    return _one("hardsigmoid", input, inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta; linear where beta x > threshold."""
    return aten.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Any:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Any:
    """x - tanh(x)."""
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x shrunk towards 0 by lambd, 0 inside; RuntimeError for a negative lambd."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    if aten.has("softshrink"):
        return aten.softshrink(input, lambd)
    return input - input.clamp(-lambd, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x where |x| > lambd, else 0."""
    if aten.has("hardshrink"):
        return aten.hardshrink(input, lambd)
    return input.masked_fill((input >= -lambd) & (input <= lambd), 0)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """x where x > threshold, else value."""
    if aten.has("threshold"):
        return _one("threshold", input, inplace, threshold, value)
    mask = input <= threshold
    return input.masked_fill_(mask, value) if inplace else input.masked_fill(mask, value)


def threshold_(input: Tensor, threshold_: float, value: float) -> Any:
    """threshold in place."""
    return threshold(input, threshold_, value, True)


def prelu(input: Tensor, weight: Tensor) -> Any:
    """x where x >= 0, else weight · x; weight `[1]` or one entry per channel (dim 1)."""
    channels = weight.numel()
    if channels != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        found = input.size(1) if input.dim() >= 2 else 1
        if found != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter "
                f"numbers = {channels} and channel size = {found}."
            )
    if weight.dim() == 1 and input.dim() != 1:
        shape = [1] * input.dim()
        if input.dim() >= 2:
            shape[1] = channels
        weight = weight.reshape(shape)
    if aten.has("_prelu_kernel"):
        return aten._prelu_kernel(input, weight)
    return mindtorch.where(input > 0, input, weight * input)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """Leaky relu; in training its slope is drawn from [lower, upper] for each element."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = mindtorch.empty_like(input).uniform_(lower, upper)
    result = mindtorch.where(input > 0, input, input * slope)
    return input.copy_(result) if inplace else result


def glu(input: Tensor, dim: int = -1) -> Any:
    """Splits in two along `dim`: a · sigmoid(b); RuntimeError for an odd size."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if aten.has("glu"):
        return aten.glu(input, dim)
    size = input.size(dim)
    if size % 2:
        at = dim % input.dim()
        raise RuntimeError(f"Halving dimension must be even, but dimension {at} is size {size}")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def _softmax_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(x) over its sum along `dim`; `dtype` casts first."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax of -x."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """log(softmax(x)) along `dim`; `dtype` casts first."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Draws from the Gumbel-softmax distribution; `hard` gives
    one-hot samples with soft gradients."""
    gumbels = -mindtorch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = mindtorch.zeros_like(logits).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft
