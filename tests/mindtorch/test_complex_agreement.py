"""Complex numbers behave as torch's: parts, conjugates, arithmetic, gradients."""

import pytest
from agreement import agree


def z(t, grad=False):
    made = t.tensor([1 + 2j, -3 + 0.5j, 2 - 1j])
    return made.requires_grad_() if grad else made


CASES = {
    "parts": lambda t: [z(t).real, z(t).imag, t.real(z(t)), t.imag(z(t)), t.ones(2).real],
    "parts alias": lambda t: [(x := z(t)).real.fill_(7) is None, x],
    "setting a part": lambda t: [(x := z(t)).__setattr__("imag", t.zeros(3)), x],
    "imag of real": lambda t: t.imag(t.ones(2)),
    "view as real": lambda t: [t.view_as_real(z(t)), t.view_as_complex(t.arange(6.0).view(3, 2))],
    "view as complex wrong": lambda t: t.view_as_complex(t.ones(3)),
    "conj": lambda t: [t.conj(t.ones(2)), t.conj(z(t)).resolve_conj(), z(t).conj().resolve_conj()],
    "abs and angle": lambda t: [z(t).abs(), t.tensor([1.0, -1.0, 0.0]).angle()],
    "arithmetic": lambda t: [z(t) * z(t), z(t) + 1, z(t) / z(t), 2j * t.ones(2)],
    "complex": lambda t: t.complex(t.ones(2), t.zeros(2)),
    "complex of ints": lambda t: t.complex(t.ones(2, dtype=t.int64), t.zeros(2)),
    "matmul": lambda t: z(t).view(1, 3) @ z(t).view(3, 1),
    "sum": lambda t: z(t).sum(),
    "equality": lambda t: z(t) == z(t),
}


@pytest.mark.parametrize("name", CASES)
def test_complex_agrees_with_torch(name):
    agree(CASES[name], digits=5)


GRADS = {
    "abs": lambda t, x: x.abs().sum(),
    "real": lambda t, x: x.real.sum(),
    "imag": lambda t, x: (x.imag * 3).sum(),
    "product": lambda t, x: (x * x).real.sum(),
    "product with real": lambda t, x: (x * t.tensor([1.0, 2.0, 3.0])).imag.sum(),
    "quotient": lambda t, x: (x / (x + 1)).real.sum(),
    "conj": lambda t, x: (x * x.conj()).real.sum(),
    "view as real": lambda t, x: (t.view_as_real(x) ** 2).sum(),
    "matmul": lambda t, x: (x.view(1, 3) @ x.view(3, 1)).real.sum(),
}


@pytest.mark.parametrize("name", GRADS)
def test_complex_gradients_agree_with_torch(name):
    def run(t):
        x = z(t, grad=True)
        GRADS[name](t, x).backward()
        return t.view_as_real(x.grad.resolve_conj())

    agree(run, digits=5)
