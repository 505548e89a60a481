"""Owns what counts as torch's result: class, dtype, shape, and values where there are any."""

from typing import Any

import numpy as np
import torch

# dtype -> (relative, absolute times the largest magnitude): several roundings in any order.
LIMITS = {
    "torch.float16": (1e-2, 2e-3),
    "torch.bfloat16": (5e-2, 2e-2),
    "torch.float32": (2e-4, 2e-5),
    "torch.float64": (1e-6, 1e-7),
    "torch.complex64": (2e-4, 2e-5),
    "torch.complex128": (1e-6, 1e-7),
}


class Different(AssertionError):
    """What differs from torch."""


def compare(got: Any, expected: Any, values: bool = True, what: str = "result") -> None:
    """Different unless `got` (mindtorch's) is what `expected` (torch's) is."""
    if isinstance(expected, torch.Tensor):
        _tensors(got, expected, values, what)
    elif isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            raise Different(f"{what}: {type(got).__name__}, expected {len(expected)} results")
        for i, (a, b) in enumerate(zip(got, expected, strict=True)):
            compare(a, b, values, f"{what} {i}")
    elif isinstance(expected, torch.dtype | torch.device | torch.layout):
        if str(got) != str(expected):
            raise Different(f"{what}: {got}, expected {expected}")
    elif isinstance(expected, bool | int | float | complex):
        same = got == expected or (got != got and expected != expected)
        if values and not same and not np.isclose(got, expected, 1e-4, 1e-5):
            raise Different(f"{what}: {got!r}, expected {expected!r}")


def _tensors(got: Any, expected: torch.Tensor, values: bool, what: str) -> None:
    if not hasattr(got, "dtype") or not hasattr(got, "shape"):
        raise Different(f"{what}: {type(got).__name__}, expected a tensor")
    if str(got.dtype) != str(expected.dtype):
        raise Different(f"{what}: dtype {got.dtype}, expected {expected.dtype}")
    if tuple(got.shape) != tuple(expected.shape):
        raise Different(f"{what}: shape {tuple(got.shape)}, expected {tuple(expected.shape)}")
    if values and got.device.type != "meta":
        _values(host(got), host(expected), LIMITS.get(str(expected.dtype)), what)


def host(t: Any) -> Any:
    """The elements as a numpy array; bfloat16 as float32."""
    plain = t.detach().cpu()
    if str(plain.layout) != "torch.strided":
        plain = plain.to_dense()
    if isinstance(plain, torch.Tensor) and torch._is_zerotensor(plain):
        plain = torch.zeros(plain.shape, dtype=plain.dtype)
    if plain.is_complex():
        plain = plain.resolve_conj()
    if str(plain.dtype) == "torch.bfloat16":
        plain = plain.float()
    return np.array(plain.numpy())


def _values(got: Any, expected: Any, limit: tuple[float, float] | None, what: str) -> None:
    with np.errstate(all="ignore"):
        if limit is None:
            close = got == expected
        else:
            wide = np.complex128 if expected.dtype.kind == "c" else np.float64
            a, b = got.astype(wide), expected.astype(wide)
            finite = np.abs(b[np.isfinite(b)])
            largest = max(1.0, float(finite.max())) if finite.size else 1.0
            close = np.abs(a - b) <= limit[1] * largest + limit[0] * np.abs(b)
            close |= (a == b) | (np.isnan(a) & np.isnan(b))
            if wide is np.complex128:
                close |= np.isinf(a) & np.isinf(b)
    if not np.all(close):
        at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(close)))
        raise Different(
            f"{what}: {np.atleast_1d(got)[at]!r} at {at}, expected {np.atleast_1d(expected)[at]!r}"
            f" ({int(np.size(close) - np.sum(close))} of {np.size(close)} differ)"
        )
