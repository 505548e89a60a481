"""Owns torch.testing.assert_close."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor.dtype import bfloat16, complex64, complex128, float16, float32, float64
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from . import _utils as _utils

# dtype -> (relative, absolute), torch's defaults
_TOLERANCES = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7), complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_stride: bool = False,
    check_layout: bool = True,
    msg: Any = None,
    allow_subclasses: bool = True,
) -> None:
    """AssertionError unless both agree within torch's tolerances; containers item by item."""
    if (rtol is None) != (atol is None):
        raise ValueError("Both 'rtol' and 'atol' must be either specified or unspecified")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype,
               "check_device": check_device, "check_stride": check_stride, "msg": msg}  # fmt: skip
    if isinstance(actual, dict):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings do not match: {actual} {expected}")
        for key in actual:
            assert_close(actual[key], expected[key], **options)
        return
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        if len(actual) != len(expected):
            raise AssertionError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            )
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, **options)
        return
    _compare(_tensor(actual), _tensor(expected), **options)


def _tensor(value: Tensor | Number) -> Tensor:
    from .._functional.creation import tensor

    return value.detach() if isinstance(value, Tensor) else tensor(value)


def _compare(a: Tensor, b: Tensor, **options: Any) -> None:
    checks = (
        ("shape", True, a.shape == b.shape),
        ("device", options["check_device"], a.device is b.device),
        ("dtype", options["check_dtype"], a.dtype is b.dtype),
        ("stride", options["check_stride"], a.stride() == b.stride()),
    )
    for name, wanted, same in checks:
        if wanted and not same:
            one, two = (v.stride() if name == "stride" else getattr(v, name) for v in (a, b))
            raise AssertionError(
                _text(options, f"The values for attribute '{name}' do not match: {one} != {two}.")
            )
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        default = (0.0, 0.0)
        pairs = [_TOLERANCES.get(t.dtype, default) for t in (a, b)]
        rtol, atol = (max(p[i] for p in pairs) for i in (0, 1))
    _compare_values(a, b, rtol, atol, options)


def _compare_values(a: Tensor, b: Tensor, rtol: float, atol: float, options: Any) -> None:
    wide = np.complex128 if a.dtype.is_complex or b.dtype.is_complex else np.float64
    x, y = (t.cpu()._array.astype(wide) for t in (a, b))
    close = np.isclose(x, y, rtol, atol, options["equal_nan"])
    if close.all():
        return
    count, total = int((~close).sum()), close.size
    with np.errstate(all="ignore"):
        difference = np.abs(x - y)
        relative = difference / np.abs(y)
    raise AssertionError(
        _text(
            options,
            f"Tensor-likes are not close!\n\nMismatched elements: {count} / {total}"
            f" ({100 * count / total:.1f}%)\n"
            f"Greatest absolute difference: {np.nanmax(difference)} (up to {atol} allowed)\n"
            f"Greatest relative difference: {np.nanmax(relative)} (up to {rtol} allowed)",
        )
    )


def _text(options: Any, text: str) -> str:
    msg = options["msg"]
    return msg(text) if callable(msg) else msg or text
