"""Products of float32 are torch's bit for bit, where torch's BLAS is the one that was measured."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.product_bits import cases, measure

torch = pytest.importorskip("torch")

CPU = Path("/proc/cpuinfo")
KIND = CPU.read_text() if CPU.exists() else ""
# Without AVX-512 MKL has other kernels, whose sums have another order.
MEASURED = "AuthenticAMD" in KIND and "avx512f" in KIND and torch.backends.mkl.is_available()
# Least shares of equal values and equal gradients.
FLOORS = {
    "mm": (1, 0.9), "addmm": (1, 0.5), "bmm": (1, 0.9), "linear no bias": (1, 1),
    "linear no bias 3-d": (1, 1), "linear": (1, 1), "linear 3-d": (1, 1), "einsum": (0.95, 0.9),
}  # fmt: skip


@pytest.mark.skipif(not MEASURED, reason="another BLAS adds in another order")
@pytest.mark.parametrize("name", FLOORS)
def test_products_have_torchs_bits(name):
    draw, threads = np.random.default_rng(3), torch.get_num_threads()
    sizes = [1, 2, 3, 5, 8, 11, 12, 17, 32, 65, 193, 400]
    make = cases(draw, lambda: int(draw.choice(sizes)))[name]
    torch.set_num_threads(1)  # with more, BLAS gives each a part that it may sum otherwise
    try:
        rows = list(measure(make, 24, "cpu"))
    finally:
        torch.set_num_threads(threads)
    for place, floor in enumerate(FLOORS[name]):
        assert sum(row[place] for row in rows) / len(rows) >= floor
