"""torch.masked, torch.signal.windows and `_foreach_*_`, which no row is, against torch."""

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
VALUES = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 0]], bool)
DIM_ONLY = ("argmax", "argmin", "cumprod", "cumsum", "log_softmax", "median", "softmax", "softmin")
ANY_DIM = ("amax", "amin", "logsumexp", "mean", "prod", "std", "sum", "var")


def both(function):
    """What torch and mindtorch give for masked values, and the gradients of the values."""
    results = []
    for lib in (torch, mindtorch):
        x = lib.tensor(VALUES.tolist()).requires_grad_()
        out = function(lib, x, lib.tensor(MASK.tolist()))
        slope = lib.autograd.grad(out.sum(), x)[0] if out.requires_grad else out
        results.append((out.detach().numpy(), slope.detach().numpy()))
    return results


def agree(function):
    expected, got = both(function)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("name", [*DIM_ONLY, *ANY_DIM])
def test_masked_function_is_torchs_along_a_dimension(name):
    agree(lambda lib, x, mask: getattr(lib.masked, name)(x, 1, mask=mask))


@pytest.mark.parametrize("name", ANY_DIM)
def test_masked_reduction_is_torchs_over_all(name):
    agree(lambda lib, x, mask: getattr(lib.masked, name)(x, None, mask=mask))


def test_masked_norms_are_torchs():
    agree(lambda lib, x, mask: lib.masked.norm(x, 2.0, 1, mask=mask))
    agree(lambda lib, x, mask: lib.masked.normalize(x, 2.0, 1, mask=mask))


MASKED = """
m, m + m, m * 2, 1 + m, m - 1, m > 1, -m, m.sin(), m.to_tensor(0), m.get_data(), m.get_mask(), m.shape
m.sum(), m.sum(1), m.mean(0), m.amax(1), m.prod(), m.std(1), m.all(), m.argmax(1), m.sum((0, 1))
m[0], m[:, 1], m.t(), m.reshape(-1), m.unsqueeze(0), t.cat([m, m]), t.stack([m, m]).shape
m.softmax(1), m.add_(1), m.clone(), m.double(), t.where(m.get_mask(), m, m), m[0, 0].item()
m + M(m.get_data(), m.get_mask() | True)
M([1.0], m.get_mask())
M(m.get_data(), m.get_data())
M(m.get_data(), m.get_mask()[0])
M(m.get_data(), m.get_mask()[:, 1:])
M(m.get_data() * 1j, m.get_mask())
m.cumsum(0)
[x := M(m.get_data(), m.get_mask(), True), x.exp().sum().backward(), x.grad]
[x := t.ones(2, 3, requires_grad=True), (A(x, m.get_mask()) * 3).sum().backward(), x.grad]
[x := m.to_sparse(), x.get_data(), x.get_mask(), x.layout, x.is_sparse_coo(), x[0], x.t()]
[x := m.to_sparse_csr(), x.get_data(), x.get_mask(), x.layout, x.is_sparse_csr(), x.to_dense()]
[x := m.to_sparse(), x + x, x * 2, x.exp(), x.sum(), x.mean(), x.amax(), x.clone(), x.double(), x > 1]
[x := m.to_sparse_csr(), x * x, -x, x.sqrt(), x.prod(), x.detach()]
M(m.get_data().to_sparse(), (m.get_data() > 1).to_sparse())
M(m.get_data().to_sparse(), t.tensor([[True, True, True], [True, True, False]]).to_sparse())
M(m.get_data().to_sparse_csr(), (m.get_data() > 1).to_sparse())
M(m.get_data().to_sparse_csc(), (m.get_data() > 1).to_sparse_csc())
m.to_sparse_csr().to_sparse()
m.to_sparse() * m
m.to_sparse().sum(1)
[x := M(m.get_data(), m.get_mask(), True), (x.to_sparse_csr() * 2).to_dense().sum().backward(), x.grad]
""".strip().split("\n")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", MASKED)
def test_masked_tensors_are_torchs(line):
    said = []
    for lib in (torch, mindtorch):
        mask = lib.tensor([[True, False, True], [False, False, True]])
        make, join = lib.masked.masked_tensor, lib.masked.as_masked_tensor
        names = {"t": lib, "m": make(lib.arange(6.0).reshape(2, 3), mask), "M": make, "A": join}
        try:
            said.append(repr(eval(line, names)).replace("mindtorch.", "torch."))
        except Exception as error:
            said.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    assert said[1] == said[0]


WINDOWS = {"exponential": {"tau": 2.0}, "gaussian": {"std": 2.0}, "general_cosine":
           {"a": [0.5, 0.3, 0.2]}, "general_hamming": {"alpha": 0.6}, "kaiser": {"beta": 5.0}}  # fmt: skip


@pytest.mark.parametrize("name", mindtorch.signal.windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_window_is_torchs(name, sym):
    for size in (0, 1, 2, 7):
        options = {"sym": sym, **WINDOWS.get(name, {})}
        expected = getattr(torch.signal.windows, name)(size, **options).numpy()
        got = getattr(mindtorch.signal.windows, name)(size, **options).numpy()
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)


def test_windows_refuse_negative_sizes():
    with pytest.raises(ValueError, match="non-negative window length, got M=-1"):
        mindtorch.signal.windows.hann(-1)


def test_lists_are_written_in_place():
    x, y = mindtorch.ones(2), mindtorch.ones(3)
    mindtorch._foreach_add_([x, y], 2)
    mindtorch._foreach_mul_([x, y], [x.clone(), y.clone()])
    assert x.tolist() == [9, 9]
    with pytest.raises(RuntimeError, match="broadcast shape"):
        mindtorch._foreach_add_([x], [mindtorch.ones(4, 2)])


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool"])
def test_lists_are_not_written_what_their_dtype_cannot_hold(dtype):
    def said(lib):
        errors = []
        for name, args in (("mul", (0.5,)), ("div", (2,)), ("sqrt", ()), ("clamp_min", (1.5,)),
                           ("add", ([lib.ones(2)],)), ("maximum", ([1.5],))):  # fmt: skip
            target = lib.ones(2, dtype=getattr(lib, dtype))
            with pytest.raises(RuntimeError) as error:
                getattr(lib, f"_foreach_{name}_")([target], *args)
            errors.append((str(error.value), target.tolist()))
        return errors

    assert said(mindtorch) == said(torch)
