"""Functions at far orders and dtypes end soon, with the values of torch or an error."""

from __future__ import annotations

import pytest

import mindtorch


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_polygamma_of_any_order_ends(device: str) -> None:
    x = mindtorch.tensor([0.5], device=device)
    for n in (171, 10**4, 10**9, 2**40):
        sign = 1 if n % 2 else -1
        assert mindtorch.special.polygamma(n, x).item() == sign * float("inf")


@pytest.mark.parametrize("make", ["randn", "rand", "zeros", "ones", "empty"])
def test_tensors_of_halves_of_complex_numbers_are_refused_by_name(make: str) -> None:
    with pytest.raises(NotImplementedError, match="complex32"):
        mindtorch.zeros(1).add(getattr(mindtorch, make)(3, dtype=mindtorch.complex32))
