"""Kernels of fft: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("n", [4, 7, 10])
@pytest.mark.parametrize(("norm", "name"), [(1, "backward"), (2, "forward"), (3, "ortho")])
def test_real_signals_are_transformed(sim: Any, n: int, norm: int, name: str) -> None:
    x = noise(2, 7, 3)
    expected = torch.view_as_real(torch.fft.rfft(x, n, 1, name)).contiguous()
    accepted(sim, "aclRfft1D", x, n, 1, norm, Out(expected, tolerance=1e-5))


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_short_time_transforms_equal_torch(sim: Any, onesided: bool, normalized: bool) -> None:
    x, window = noise(2, 20), torch.hann_window(6)
    expected = torch.stft(x, 8, 3, 6, window, False, normalized=normalized, onesided=onesided,
                          return_complex=True).contiguous()  # fmt: skip
    args = (8, 3, 6, normalized, onesided)
    accepted(sim, "aclStft", x, window, Out(expected, tolerance=1e-5), *args, True)
    pairs = torch.view_as_real(expected).contiguous()
    accepted(sim, "aclStft", x, window, Out(pairs, tolerance=1e-5), *args, False)
