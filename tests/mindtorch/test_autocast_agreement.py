"""Autocast gives torch's dtypes and gradients on cpu; GradScaler scales and skips as torch's."""

import pytest
from agreement import agree

CASES = {
    "matmul": lambda t: t.ones(2, 3) @ t.ones(3, 4),
    "mixed matmul": lambda t: t.ones(2, 3, dtype=t.bfloat16) @ t.ones(3, 4),
    "add stays": lambda t: t.ones(2) + t.ones(2),
    "add promotes": lambda t: t.ones(2, dtype=t.bfloat16) + t.ones(2),
    "double stays": lambda t: t.ones(2, 2, dtype=t.float64) @ t.ones(2, 2, dtype=t.float64),
    "linear": lambda t: t.nn.functional.linear(t.ones(2, 3), t.ones(4, 3), t.ones(4)),
    "loss": lambda t: t.nn.functional.mse_loss(t.ones(2, dtype=t.bfloat16), t.zeros(2)),
    "softmax": lambda t: (t.ones(2, 2) @ t.ones(2, 2)).softmax(-1),
    "nested off": lambda t: off(t),
    "state": lambda t: (t.is_autocast_enabled("cpu"), str(t.get_autocast_dtype("cpu"))),
}


def off(t):
    with t.autocast("cpu", enabled=False):
        return t.ones(2, 3) @ t.ones(3, 4)


@pytest.mark.parametrize("name", CASES)
def test_autocast_agrees_with_torch(name):
    def run(t):
        with t.autocast("cpu", dtype=t.bfloat16):
            return CASES[name](t)

    agree(run)


def test_gradients_come_back_in_the_dtype_of_the_leaf():
    def run(t):
        w = t.full((3, 2), 0.5).requires_grad_()
        with t.amp.autocast("cpu", dtype=t.bfloat16):
            y = t.ones(4, 3) @ w
        y.float().sum().backward()
        return w.grad, y

    agree(run)


def test_decorated_functions_run_under_autocast():
    def run(t):
        @t.autocast("cpu", dtype=t.bfloat16)
        def product(a):
            return a @ a

        return product(t.ones(2, 2)), t.is_autocast_enabled("cpu")

    agree(run)
