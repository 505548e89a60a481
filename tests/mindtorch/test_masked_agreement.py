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


def test_masked_tensors_are_refused_by_name():
    with pytest.raises(AttributeError, match="pass mask= to the functions"):
        mindtorch.masked.masked_tensor  # noqa: B018


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
