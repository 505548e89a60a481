"""Autocast gives torch's dtypes and gradients on cpu; GradScaler scales and skips as torch's."""

import pickle

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
    "dot stays": lambda t: (t.ones(2).dot(t.ones(2)), t.ones(2, 2).mv(t.ones(2))),
    "losses in float32": lambda t: [
        getattr(t.nn.functional, name)(*(t.full((2, 2), 0.5, dtype=t.bfloat16),) * arity).dtype
        for name, arity in (
            ("l1_loss", 2),
            ("kl_div", 2),
            ("binary_cross_entropy_with_logits", 2),
            ("hinge_embedding_loss", 2),
            ("soft_margin_loss", 2),
            ("triplet_margin_loss", 3),
        )
    ],
    "matrices in float32": lambda t: [
        getattr(t.linalg, name)(t.eye(2, dtype=t.bfloat16)).dtype
        for name in ("inv", "cholesky", "svdvals", "eigvalsh", "cond", "eigvals")
    ],
    "other matrices in float32": lambda t: [
        (
            t.linalg.lstsq(e, e)[0].dtype,
            t.linalg.eig(e)[0].dtype,
            t.cholesky_inverse(e).dtype,
            t.pinverse(e).dtype,
            t.cholesky_solve(e, e).dtype,
            t.linalg.householder_product(e, e[0]).dtype,
            t.fft.fft(e).dtype,
            t.fft.irfft(t.fft.rfft(e)).dtype,
            t.linalg.vecdot(e.float(), e).dtype,
        )
        for e in (t.eye(2, dtype=t.bfloat16),)
    ],
    "pads and pools in float32": lambda t: (
        [
            t.nn.functional.pad(
                t.ones((1,) * 2 + (3,) * n, dtype=t.bfloat16), (1,) * 2 * n, mode
            ).dtype
            for mode in ("reflect", "replicate")
            for n in (1, 2, 3)
        ]
        + [
            getattr(t.nn.functional, f"{name}{n}d")(
                t.ones((1,) * 2 + (4,) * n, dtype=t.bfloat16), 2
            ).dtype
            for name in ("max_pool", "adaptive_avg_pool")
            for n in (1, 2, 3)
        ]
    ),
    "cross entropy of two in float32": lambda t: t.nn.functional.binary_cross_entropy(
        t.full((2,), 0.5, dtype=t.bfloat16), t.ones(2)
    ),
    "distances in float32": lambda t: t.cdist(t.eye(2, dtype=t.bfloat16), t.eye(2)),
    "functions remember": lambda t: squared(t),
    "softmax": lambda t: (t.ones(2, 2) @ t.ones(2, 2)).softmax(-1),
    "nested off": lambda t: off(t),
    "depth and cache": lambda t: deep(t),
    "state": lambda t: (t.is_autocast_enabled("cpu"), str(t.get_autocast_dtype("cpu"))),
}


def deep(t):
    with t.autocast("cpu", cache_enabled=False):
        inside = t.autocast_increment_nesting(), t.autocast_decrement_nesting()
        return inside, t.is_autocast_cache_enabled(), t.is_autocast_enabled()


def off(t):
    with t.autocast("cpu", enabled=False):
        return t.ones(2, 3) @ t.ones(3, 4)


def squared(t):
    """A Function's product under autocast, and what its backward runs under."""
    seen = []

    class Square(t.autograd.Function):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a):
            return a @ a

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(t.is_autocast_enabled("cpu"))
            return grad

    y = Square.apply(t.ones(2, 2, requires_grad=True))
    with t.autocast("cpu", enabled=False):
        y.sum().backward()
    return y.dtype, seen


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


SCALER = {
    "twice": lambda s, o: (s.unscale_(o), s.unscale_(o)),
    "unused": lambda s, o: type(s)("cpu").update(),
    "a word": lambda s, o: s.update("a"),
    "two numbers": lambda s, o: s.update(o.param_groups[0]["params"][0].detach()),
    "pickled within a step": lambda s, o: (s.unscale_(o), pickle.dumps(s)),
    "a step": lambda s, o: (s.step(o), s.update(), s.state_dict(), s._growth_tracker),
    "an overflow": lambda s, o: (o.param_groups[0]["params"][0].grad.mul_(float("inf")),
                                 s.step(o), s.update(), s.state_dict(), s._scale),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALER)
def test_scalers_agree_with_torch(name):
    def run(t):
        p = t.ones(2, requires_grad=True)
        scaler, optimizer = t.amp.GradScaler("cpu"), t.optim.SGD([p], 0.5)
        scaler.scale(p.sum()).backward()
        try:
            return [str(SCALER[name](scaler, optimizer)), p]
        except Exception as error:
            return type(error).__name__, str(error)

    agree(run)
