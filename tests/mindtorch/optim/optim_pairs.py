"""The same small problem in torch and in mindtorch, stepped side by side by the same optimizer."""

from typing import Any

import numpy as np
import pytest

import mindtorch

torch: Any = pytest.importorskip("torch", reason="torch is the oracle of these tests")

START = [np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.array([0.5, -2.0], np.float32)]
TARGET = [np.full((2, 3), 0.3, np.float32), np.array([1.0, 1.0], np.float32)]


def params(library: Any) -> list[Any]:
    return [library.nn.Parameter(library.from_numpy(a.copy())) for a in START]


def loss(library: Any, values: list[Any]) -> Any:
    total = 0.0
    for value, target in zip(values, TARGET, strict=True):
        difference = value - library.from_numpy(target.copy())
        total = total + (difference * difference).sum() + (value**4).sum() * 0.1
    return total


def run(library: Any, make: Any, steps: int) -> tuple[list[np.ndarray], Any, list[float]]:
    """Gives (final values, optimizer, losses)."""
    values = params(library)
    optimizer = make(library.optim, values)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        out = loss(library, values)
        out.backward()
        losses.append(float(out.detach()))
        return out

    for _ in range(steps):
        optimizer.step(closure)
    return [value.detach().numpy() for value in values], optimizer, losses


def assert_states_match(mine: Any, theirs: Any) -> None:
    assert mine["param_groups"] == theirs["param_groups"]
    assert mine["state"].keys() == theirs["state"].keys()
    for key, expected in theirs["state"].items():
        found = mine["state"][key]
        assert list(found) == list(expected)
        for name, value in expected.items():
            if isinstance(value, torch.Tensor):
                assert str(found[name].dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
                np.testing.assert_allclose(
                    found[name].detach().numpy(), value.detach().numpy(), rtol=1e-4, atol=1e-6
                )


def compare(make: Any, steps: int = 6, rtol: float = 1e-5) -> None:
    expected, their_optimizer, their_losses = run(torch, make, steps)
    found, my_optimizer, my_losses = run(mindtorch, make, steps)
    np.testing.assert_allclose(my_losses, their_losses, rtol=rtol * 10)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)
    assert_states_match(my_optimizer.state_dict(), their_optimizer.state_dict())
