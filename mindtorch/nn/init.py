"""Owns the initializations of torch.nn.init: each fills a tensor
in place, outside autograd, and gives it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch

from .._dispatch.overrides import asking_by_name
from .._random.generator import Generator
from .._tensor.tensor import Tensor
from .._tensor.types import Number

_LINEAR_NAMES = {
    "linear",
    *(f"conv{n}d" for n in (1, 2, 3)),
    *(f"conv_transpose{n}d" for n in (1, 2, 3)),
    "sigmoid",
}
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Number | None = None) -> float:
    """Gives the recommended gain of a nonlinearity; `param` is leaky_relu's slope."""
    if nonlinearity in _LINEAR_NAMES:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope = 0.01
    elif isinstance(param, int | float) and not isinstance(param, bool):
        slope = param
    else:
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


@asking_by_name
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values drawn from [a, b)."""
    with mindtorch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@asking_by_name
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values drawn from N(mean, std²)."""
    with mindtorch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with values drawn from N(mean, std²) cut to [a, b].

    Where the cut leaves much of the law, draws outside are drawn again; else uniform draws are
    kept by their density (rejection sampling, von Neumann 1951), as torch does both.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = cdf((a - mean) / std), cdf((b - mean) / std)
    with mindtorch.no_grad():
        if high - low > _WORTH_REDRAWING:
            return _redrawn(tensor, mean, std, a, b, generator)
        return _rejected(tensor, mean, std, a, b, generator)


_WORTH_REDRAWING = 0.3


def _rejected(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Tensor:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    draws = tensor.uniform_(a, b, generator=generator)
    if tensor.device.type == "meta":
        return tensor
    pending: Tensor | None = None
    while pending is None or bool(pending.any()):
        if pending is not None:
            draws = mindtorch.empty_like(tensor).uniform_(a, b, generator=generator)
            tensor.copy_(mindtorch.where(pending, draws, tensor))
        density = draws.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        level = mindtorch.empty_like(tensor).uniform_(generator=generator).log_()
        again = level.gt(density)
        pending = again if pending is None else pending & again
    return tensor


def _redrawn(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Tensor:
    tensor.normal_(mean, std, generator=generator)
    if tensor.device.type == "meta":
        return tensor
    low, high = tensor.new_tensor([a, b], device="cpu").tolist()  # as the tensor can hold them
    while True:
        outside = (tensor < low) | (tensor > high)
        if not bool(outside.any()):
            return tensor
        again = mindtorch.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(mindtorch.where(outside, again, tensor))


@asking_by_name
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with `val`."""
    with mindtorch.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    with mindtorch.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a 2-D tensor the identity."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with mindtorch.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution weight `[O, I, *]` keep its input channels."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with mindtorch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    area = math.prod(tensor.shape[2:])
    return tensor.size(1) * area, tensor.size(0) * area


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform with std gain · sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with std gain · sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


@asking_by_name
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform with std gain / sqrt(fan)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with std gain / sqrt(fan)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Makes the rows (or columns) orthonormal, by a QR decomposition of normal draws."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = mindtorch.empty((rows, cols), dtype=tensor.dtype, device=tensor.device)
    normal_(flat, 0.0, 1.0, generator)
    with mindtorch.no_grad():
        q, r = mindtorch.linalg.qr(flat.t() if rows < cols else flat)
        # Signs of R's diagonal make the decomposition unique and its law uniform.
        q = q * mindtorch.sign(r.diagonal())
        tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal, with a share `sparsity` of each column set to 0; 2-D only."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with mindtorch.no_grad():
        for col in range(cols):
            picked = mindtorch.randperm(rows)[:zeros]
            tensor[picked, col] = 0
    return tensor


def _no_grad_uniform_(
    tensor: Tensor, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    with mindtorch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: Generator | None = None
) -> Tensor:
    with mindtorch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with mindtorch.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with mindtorch.no_grad():
        return tensor.zero_()


def _deprecated(name: str, new: Callable[..., Any]) -> Callable[..., Any]:
    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    old.__name__, old.__doc__ = name, f"The older name of `{name}_`; warns."
    return old


uniform = _deprecated("uniform", uniform_)
normal = _deprecated("normal", normal_)
constant = _deprecated("constant", constant_)
eye = _deprecated("eye", eye_)
dirac = _deprecated("dirac", dirac_)
xavier_uniform = _deprecated("xavier_uniform", xavier_uniform_)
xavier_normal = _deprecated("xavier_normal", xavier_normal_)
kaiming_uniform = _deprecated("kaiming_uniform", kaiming_uniform_)
kaiming_normal = _deprecated("kaiming_normal", kaiming_normal_)
orthogonal = _deprecated("orthogonal", orthogonal_)
sparse = _deprecated("sparse", sparse_)
