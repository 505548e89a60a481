"""Owns torch.backends.cpu: what the processor can do."""

from __future__ import annotations

from functools import cache

# What torch's kernels of a name need, best first, as /proc/cpuinfo spells it.
_NEEDS = {
    "AVX512": {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"},
    "AVX2": {"avx2", "fma"},
}


@cache
def get_cpu_capability() -> str:
    """AVX512, AVX2 or DEFAULT: the widest instructions that the processor has."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        flags = []
    return next((name for name, needed in _NEEDS.items() if needed <= set(flags)), "DEFAULT")
