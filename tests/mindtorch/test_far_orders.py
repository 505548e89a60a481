"""Functions at far orders and dtypes end soon, with the values of torch or an error."""

import numpy as np
import pytest

import mindtorch


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_polygamma_of_any_order_ends(device: str) -> None:
    x = mindtorch.tensor([0.5], device=device)
    for n in (171, 10**4, 10**9, 2**40):
        sign = 1 if n % 2 else -1
        assert mindtorch.special.polygamma(n, x).item() == sign * float("inf")


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_orders_below_zero_and_at_infinity_agree_with_torch(device: str) -> None:
    torch = pytest.importorskip("torch")
    points = [-20.25, -2.25, -1.75, -0.75, -0.5, 0.0, 0.5, 5.0, float("inf"), float("nan")]
    for n in (1, 2, 3, 8, 11):
        expected = torch.special.polygamma(n, torch.tensor(points))
        result = mindtorch.special.polygamma(n, mindtorch.tensor(points, device=device))
        np.testing.assert_allclose(result.cpu().numpy(), expected.numpy(), rtol=2e-5)


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_zeta_far_below_zero_ends(device: str) -> None:
    x = mindtorch.tensor([-1e6 - 0.5, float("-inf")], device=device)
    result = mindtorch.special.zeta(mindtorch.tensor(2.0, device=device), x)
    assert result.tolist() == [pytest.approx(np.pi**2, rel=1e-5), float("inf")]
