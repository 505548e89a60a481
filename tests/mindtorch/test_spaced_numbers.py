"""Evenly spaced numbers on cpu are torch's to the last bit, of every length and dtype."""

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

FUSED = getattr(torch.backends.cpu, "get_cpu_capability", str)() in ("AVX2", "AVX512")
LENGTHS = (0, 1, 2, 3, 5, 15, 16, 17, 25, 64, 500, 5000)
ENDS = ((0, 1), (0.1, 0.7), (-4, 4), (1.5, 4.5), (4.5, -1.5), (0, 3.14159265))
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32")


def equal(make, dtype):
    ours, theirs = (make(t, getattr(t, dtype)).double().numpy() for t in (mindtorch, torch))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(not FUSED, reason="torch fuses products with sums where the processor can")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_spaced_numbers_are_torchs(name, dtype):
    for steps in LENGTHS:
        for ends in ENDS:
            equal(lambda t, d, e=ends, n=steps: getattr(t, name)(*e, n, dtype=d), dtype)


@pytest.mark.skipif(not FUSED, reason="torch fuses products with sums where the processor can")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_ranges_of_broken_steps_are_torchs(dtype):
    for n in LENGTHS:
        for start, step in ((0.1, 0.37), (0, 0.1), (1, -0.013)):
            end = start + step * (n - 0.5) if n else start
            equal(lambda t, d, a=(start, end, step): t.arange(*a, dtype=d), dtype)
