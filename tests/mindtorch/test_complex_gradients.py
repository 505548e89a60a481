"""Gradients of complex numbers: what they are multiplied by is conjugated, as torch has it."""

import numpy as np
import pytest

import mindtorch

oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

# Of a matrix `a`, another `b` and images `x`, `w`; `t` is the library.
CALLS = {
    "add": lambda t, a, b, x, w: t.add(a, b, alpha=2 - 1j),
    "addmm": lambda t, a, b, x, w: t.addmm(a, b, a, beta=1 + 2j, alpha=0.5j),
    "baddbmm": lambda t, a, b, x, w: t.baddbmm(a[None], b[None], a[None], beta=1j, alpha=1 - 1j),
    "cholesky": lambda t, a, b, x, w: t.linalg.cholesky(a @ a.mH + 3 * t.eye(3)),
    "conv2d": lambda t, a, b, x, w: t.nn.functional.conv2d(x, w),
    "conv_transpose2d": lambda t, a, b, x, w: t.nn.functional.conv_transpose2d(x, w, stride=2),
    "ldexp": lambda t, a, b, x, w: t.ldexp(a, b),
    "logaddexp": lambda t, a, b, x, w: t.logaddexp(a, b),
    "logsumexp": lambda t, a, b, x, w: t.logsumexp(a * 4, 1),
    "pow": lambda t, a, b, x, w: a**b,
    "pow of a number": lambda t, a, b, x, w: (1 + 2j) ** b,
    "pow by a number": lambda t, a, b, x, w: a ** (2 - 1j),
    "qr": lambda t, a, b, x, w: t.linalg.qr(a)[1].abs(),
    "sgn": lambda t, a, b, x, w: t.sgn(a),
    "sinc": lambda t, a, b, x, w: t.sinc(a),
    "slogdet": lambda t, a, b, x, w: t.linalg.slogdet(a)[0],
}


def gradients(library, call):
    drawn = np.random.default_rng(1)
    leaves = []
    for shape in ((3, 3), (3, 3), (2, 2, 4, 4), (2, 2, 2, 2)):
        numbers = drawn.standard_normal(shape) + 1j * drawn.standard_normal(shape)
        leaves.append(library.tensor(numbers, requires_grad=True))
    result = call(library, *leaves)
    weights = drawn.standard_normal(tuple(result.shape)) + 1j
    loss = (result * library.tensor(weights)).sum().real
    found = library.autograd.grad(loss, leaves, allow_unused=True)
    return [None if g is None else g.resolve_conj().numpy() for g in found]


@pytest.mark.parametrize("name", CALLS)
def test_the_gradient_is_torchs(name):
    for got, expected in zip(
        gradients(mindtorch, CALLS[name]), gradients(oracle, CALLS[name]), strict=True
    ):
        assert (got is None) == (expected is None)
        if expected is not None:
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
