"""Torch tensors that the tests of kernels draw, and what torch gives for them."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def randn(dtype: Any, *shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def values(dtype: Any, *shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def fixed_values(dtype: Any, shape: tuple[int, ...] = (6, 5, 7)) -> Any:
    g = torch.Generator().manual_seed(3)
    if dtype == torch.bool:
        return torch.randint(0, 4, shape, generator=g) > 0
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def result_and_gradient(function: Any, x: Any) -> tuple[Any, Any, Any]:
    """Value, upstream gradient and the input's gradient, all in x's dtype."""
    wide = x.double().requires_grad_()
    y = function(wide)
    g = randn(x.dtype, *y.shape, seed=5)
    (gx,) = torch.autograd.grad(y, wide, g.double())
    return y.detach().to(x.dtype), g, gx.to(x.dtype)
