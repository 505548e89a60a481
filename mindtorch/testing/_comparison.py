"""Owns torch.testing.assert_close: what agrees within which tolerance, and how it says what not."""

from __future__ import annotations

import math
import unittest
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from .._functional.creation import tensor
from .._tensor import dtype as dtypes
from .._tensor.eight_bits import readable
from .._tensor.tensor import Tensor
from .._tensor.types import Array, Number

Comparable: TypeAlias = (
    "Tensor | Array | Number | Sequence[Comparable] | Mapping[str, Comparable] | None"
)
Message: TypeAlias = "str | Callable[[str], str] | None"
Tolerances: TypeAlias = tuple[float, float]

# dtype -> (relative, absolute), torch's defaults; dtypes that are not here must be equal.
_TOLERANCES: dict[dtypes.dtype, Tolerances] = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7), dtypes.complex32: (1e-3, 1e-5),
}  # fmt: skip
_NUMBERS = {float: dtypes.float64, complex: dtypes.complex128}
_RELAXED = {float: dtypes.float32, complex: dtypes.complex64}
_KINDS = (Tensor, np.ndarray)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is asked for, and the path of keys and positions to the item at hand."""

    tolerances: Tolerances | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool
    allow_subclasses: bool
    msg: Message
    path: tuple[str, ...] = ()
    relaxed: bool = False  # as torch's own tests compare: 1 with 1.0, numbers with tensors of one

    def at(self, key: object) -> _Terms:
        return replace(self, path=(*self.path, f"[{key!r}]"))

    def differ(self, text: str) -> AssertionError:
        """The error that says `text`, where in the containers, and what the caller wants said."""
        text = self.placed(text)
        return AssertionError(self.msg(text) if callable(self.msg) else self.msg or text)

    def placed(self, text: str) -> str:
        """`text`, and where in the containers."""
        if not self.path:
            return text
        return f"{text}\n\nThe failure occurred for item {''.join(self.path)}"

    def of(self, *kinds: dtypes.dtype) -> Tolerances:
        if self.tolerances is not None:
            return self.tolerances
        return default_tolerances(*kinds)


def assert_close(
    actual: Comparable,
    expected: Comparable,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """AssertionError unless `|actual - expected| <= atol + rtol * |expected|` for every element.

    Tensors, numpy arrays and numbers, and containers of them item by item. Without tolerances each
    dtype has its own; integers and bools must be equal, at any size. TypeError: values that cannot
    be compared with each other; ValueError: one tolerance without the other.
    (torch.testing.assert_close, torch 2.13.)
    """
    if (rtol is None) != (atol is None):
        absent = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}."
        )
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    terms = _Terms(tolerances, equal_nan, check_device, check_dtype, check_layout, check_stride,
                   allow_subclasses, msg)  # fmt: skip
    _compare(actual, expected, terms)


def _compare(actual: Comparable, expected: Comparable, terms: _Terms) -> None:
    if terms.relaxed and (actual is None) is (expected is None):
        actual, expected = _relaxed(actual, expected)
    if all(isinstance(v, int | float | complex | np.generic) for v in (actual, expected)):
        actual, expected = (
            v.item() if isinstance(v, np.generic) else v for v in (actual, expected)
        )
    match actual, expected:
        case Mapping(), Mapping():
            _compare_mappings(actual, expected, terms)
        case (list() | tuple(), list() | tuple()):
            _compare_sequences(actual, expected, terms)
        case (None, _) | (_, None):
            if actual is not expected:
                raise terms.differ(f"None mismatch: {actual} is not {expected}")
        case (bool(), bool()):
            if actual is not expected:
                raise terms.differ(f"Booleans mismatch: {actual} is not {expected}")
        case (int() | float() | complex(), int() | float() | complex()):
            if terms.check_dtype and not terms.relaxed and type(actual) is not type(expected):
                types = f"{type(actual)} != {type(expected)}"
                raise terms.differ(f"The (d)types do not match: {types}.")
            numbers = _RELAXED if terms.relaxed else _NUMBERS
            kinds = [numbers.get(type(v), dtypes.int64) for v in (actual, expected)]
            _compare_numbers(actual, expected, terms.of(*kinds), terms)
        case _ if _comparable(actual, expected, terms):
            _compare_tensors(_tensor(actual), _tensor(expected), terms)
        case _ if terms.relaxed:
            _compare_objects(actual, expected, terms)
        case _:
            raise TypeError(
                terms.placed(
                    "No comparison pair was able to handle inputs of type "
                    f"{type(actual)} and {type(expected)}."
                )
            )


def _relaxed(actual: Comparable, expected: Comparable) -> tuple[Comparable, Comparable]:
    """Both as they are compared: of a number and a tensor of one element, two numbers; as bools
    where either is; a sequence beside a tensor as one."""
    pair = [list(v) if isinstance(v, range) else v for v in (actual, expected)]
    pair = [v.item() if isinstance(v, np.generic) else v for v in pair]
    plain = [isinstance(v, int | float | complex) for v in pair]
    if any(plain):
        for at, value in enumerate(pair):
            if isinstance(value, _KINDS):
                count = value.size if isinstance(value, np.ndarray) else value.numel()
                if count > 1:
                    kind = "boolean" if isinstance(pair[1 - at], bool) else "number"
                    raise ValueError(
                        f"Only single element tensor-likes can be compared against a {kind}. Got"
                        f" {count} elements instead."
                    )
                item = value.item()
                pair[at] = item if isinstance(pair[1 - at], bool) else item + 0
        if any(isinstance(v, bool) for v in pair):
            pair = [bool(v) if isinstance(v, int | float | complex) else v for v in pair]
    elif isinstance(pair[0], _KINDS) != isinstance(pair[1], _KINDS):
        pair = [tensor(v) if isinstance(v, list | tuple) else v for v in pair]
    if any(isinstance(v, Tensor) for v in pair):
        pair = [tensor(v) if isinstance(v, np.ndarray) else v for v in pair]
    return pair[0], pair[1]


def _compare_objects(actual: object, expected: object, terms: _Terms) -> None:
    """What has no elements is equal or not, as unittest says."""
    kinds = ((str | bytes, "String"), (set, "Set"), (type, "Type"), (object, "Object"))
    name = next(n for k, n in kinds if isinstance(actual, k) and isinstance(expected, k))
    try:
        unittest.TestCase().assertEqual(actual, expected)  # noqa: PT009 - for its text
    except AssertionError as error:
        raise terms.differ(f"{name} comparison failed: {error}") from None


def assert_allclose(
    actual: Comparable, expected: Comparable, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """assert_close of values alone: of any dtype and device."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future"
        " release. Please use `torch.testing.assert_close()` instead. You can find detailed upgrade"
        " instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    pair = [v if isinstance(v, Tensor) else tensor(v) for v in (actual, expected)]
    if rtol is None and atol is None:
        kinds = [_ALL_CLOSE.get(t.dtype, (0.0, 0.0)) for t in pair]
        rtol, atol = max(k[0] for k in kinds), max(k[1] for k in kinds)
    assert_close(*pair, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, msg=msg or None)  # fmt: skip


# Those of assert_allclose, which are older.
_ALL_CLOSE = {
    dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8),
}  # fmt: skip


def assert_equal(
    actual: Comparable, expected: Comparable, tolerances: Tolerances | None, equal_nan: bool,
    device: bool, dtype: bool, layout: bool, stride: bool, msg: Message,
) -> None:  # fmt: skip
    """AssertionError unless torch's own tests would take both as equal."""
    _compare(actual, expected, _Terms(
        tolerances, equal_nan, device, dtype, layout, stride, True, msg, relaxed=True
    ))  # fmt: skip


def default_tolerances(*inputs: Tensor | dtypes.dtype) -> Tolerances:
    """The largest (rtol, atol) of the dtypes of some tensors, or of dtypes."""
    kinds = [v.dtype if isinstance(v, Tensor) else v for v in inputs]
    pairs = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _comparable(actual: object, expected: object, terms: _Terms) -> bool:
    """Whether both are tensors, or both arrays; of one class where subclasses may not meet."""
    for kind in (Tensor, np.ndarray):
        if isinstance(actual, kind) and isinstance(expected, kind):
            return terms.allow_subclasses or type(actual) is type(expected)
    return False


def _tensor(value: Comparable) -> Tensor:
    return value.detach() if isinstance(value, Tensor) else tensor(value)


def _compare_mappings(
    actual: Mapping[str, Comparable], expected: Mapping[str, Comparable], terms: _Terms
) -> None:
    if actual.keys() != expected.keys():
        missing, more = (sorted(a.keys() - b.keys()) for a, b in ((expected, actual),
                                                                   (actual, expected)))  # fmt: skip
        raise terms.differ(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {missing}\n"
            f"Additional keys in the actual mapping: {more}"
        )
    for key in actual:
        _compare(actual[key], expected[key], terms.at(key))


def _compare_sequences(
    actual: Sequence[Comparable], expected: Sequence[Comparable], terms: _Terms
) -> None:
    if len(actual) != len(expected):
        raise terms.differ(
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        )
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        _compare(a, b, terms.at(i))


def _compare_numbers(
    actual: Number, expected: Number, tolerances: Tolerances, terms: _Terms
) -> None:
    rtol, atol = tolerances
    if actual == expected or (terms.equal_nan and actual != actual and expected != expected):
        return
    difference = abs(actual - expected)
    if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    relative = difference / abs(expected) if expected else math.inf
    head, bounds = _head("Scalars", tolerances)
    raise terms.differ(
        f"{head}\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{bounds[0]}\n"
        f"Relative difference: {relative}{bounds[1]}"
    )


def _head(what: str, tolerances: Tolerances) -> tuple[str, tuple[str, str]]:
    """What is wrong, and what is allowed absolutely and relatively."""
    rtol, atol = tolerances
    if not (rtol or atol):
        return f"{what} are not equal!", ("", "")
    return f"{what} are not close!", (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")


def _compare_tensors(a: Tensor, b: Tensor, terms: _Terms) -> None:
    one, two = a.layout, b.layout
    if terms.check_layout and one != two:
        raise terms.differ(f"The values for attribute 'layout' do not match: {one} != {two}.")
    if one != two:
        a, b = (t if str(t.layout) == "torch.strided" else t.to_dense() for t in (a, b))
    checks: tuple[tuple[str, bool, Callable[[Tensor], object]], ...] = (
        ("shape", True, lambda t: t.shape),
        ("is_quantized", True, lambda t: t.is_quantized),
        ("qscheme()", a.is_quantized and b.is_quantized, lambda t: t.qscheme()),
        ("stride()", terms.check_stride and str(one) == "torch.strided", lambda t: t.stride()),
        ("device", terms.check_device, lambda t: t.device),
        ("dtype", terms.check_dtype, lambda t: t.dtype),
    )
    for name, enabled, read in checks:
        if enabled and (one := read(a)) != (two := read(b)):
            raise terms.differ(f"The values for attribute '{name}' do not match: {one} != {two}.")
    if a.is_meta or b.is_meta:
        return
    tolerances = terms.of(a.dtype, b.dtype)
    for x, y, allowed, what in _parts(a, b, tolerances, terms):
        _compare_elements(x, y, allowed, terms, what)


# What is compared in turn, and by which tolerances; the last is what messages call it.
Parts: TypeAlias = list[tuple[Tensor, Tensor, Tolerances, str]]


def _parts(a: Tensor, b: Tensor, tolerances: Tolerances, terms: _Terms) -> Parts:
    """The parts of tensors of one layout: indices are equal, values are close."""
    if a.is_quantized:
        return [(a.dequantize(), b.dequantize(), tolerances, "Quantized {}")]
    layout = str(a.layout)
    if layout == "torch.jagged":
        return [(a.values(), b.values(), tolerances, "")]
    if layout == "torch.strided":
        return [(a, b, tolerances, "")]
    name = "COO" if a.is_sparse else layout[-3:].upper()
    counts = {"sparse dimensions": "sparse_dim", "specified values": "_nnz"}
    for what, method in counts.items():
        one, two = (getattr(t, method)() for t in (a, b))
        if one != two:
            raise terms.differ(
                f"The number of {what} in sparse {name} tensors does not match: {one} != {two}"
            )
    indices = ("_indices",) if a.is_sparse else _INDICES[layout[-1]]
    values = "_values" if a.is_sparse else "values"
    parts: Parts = [
        (getattr(a, part)(), getattr(b, part)(), (0.0, 0.0), f"Sparse {name} {part.lstrip('_')}")
        for part in indices
    ]
    return [*parts, (getattr(a, values)(), getattr(b, values)(), tolerances,
                     f"Sparse {name} values")]  # fmt: skip


_INDICES = {"r": ("crow_indices", "col_indices"), "c": ("ccol_indices", "row_indices")}


def _compare_elements(
    a: Tensor, b: Tensor, tolerances: Tolerances, terms: _Terms, what: str
) -> None:
    x, y = (readable(t.cpu()._array) for t in (a, b))
    if a.dim() == 0:
        _compare_numbers(x.item(), y.item(), tolerances, terms)
        return
    close, difference, relative = _distances(*_widened(x, y), tolerances, terms.equal_nan)
    if not close.all():
        # Shown in the inputs' dtype, as torch computes them; judged in a wider one.
        differences = [difference, relative]
        if a.dtype is b.dtype and a.is_floating_point():
            differences = [d.astype(x.dtype).astype(d.dtype) for d in differences]
        what = what.format("tensor-likes") or "Tensor-likes"
        if a.is_floating_point() and a.element_size() == 1:
            raise terms.differ(_first_mismatch(close, what))
        raise terms.differ(_described(close, differences, tolerances, what))


def _widened(x: Array, y: Array) -> tuple[Array, Array]:
    """Both in a dtype that holds the values of both; integers stay integers."""
    if all(a.dtype.kind in "biu" for a in (x, y)):
        wide = np.dtype(object) if np.uint64 in (x.dtype, y.dtype) else np.dtype(np.int64)
    else:
        kinds = [a.dtype if a.dtype.kind in "fc" else np.dtype(np.float32) for a in (x, y)]
        wide = np.result_type(np.float32, *(k for k in kinds if k.itemsize >= 4))
    return x.astype(wide), y.astype(wide)


def _distances(
    x: Array, y: Array, tolerances: Tolerances, equal_nan: bool
) -> tuple[Array, Array, Array]:
    """Which elements are close, and how far the others are apart, absolutely and relatively."""
    rtol, atol = tolerances
    close = np.asarray(x == y)
    with np.errstate(all="ignore"):
        difference = abs(x - y)
        if x.dtype.kind in "fc":
            close |= np.isfinite(difference) & (difference <= atol + rtol * abs(y))
            if equal_nan:
                close |= np.isnan(x) & np.isnan(y)
        elif rtol or atol:
            close |= difference <= atol + rtol * abs(y)
        difference = np.where(close, np.zeros_like(difference), difference)
        size = abs(y).astype(difference.dtype if difference.dtype.kind == "f" else np.float32)
        relative = np.where(close, 0, difference.astype(size.dtype) / size)
    return close, difference, relative


def _mismatches(close: Array) -> str:
    count = int((~close).sum())
    return f"Mismatched elements: {count} / {close.size} ({100 * count / close.size:.1f}%)"


def _first_mismatch(close: Array, what: str) -> str:
    """The text for elements of eight bits, of which torch computes no differences."""
    where = tuple(int(i) for i in np.unravel_index(int(np.argmin(close)), close.shape))
    return (
        f"{what} are not 'equal'!\n\n{_mismatches(close)}\nThe first mismatched element is at index"
        f" {where}."
    )


def _described(
    close: Array, distances: list[Array], tolerances: Tolerances, what: str = "Tensor-likes"
) -> str:
    """The text for elements that are not close; `distances` are absolute and relative."""
    head, bounds = _head(what, tolerances)
    lines = [f"{head}\n", _mismatches(close)]
    for name, apart, bound in zip(("absolute", "relative"), distances, bounds, strict=True):
        # As torch takes the greatest: the first NaN, if there is one.
        flat = int(np.argmax(apart))
        where = tuple(int(i) for i in np.unravel_index(flat, apart.shape))
        value = apart.reshape(-1)[flat]
        value = value.item() if isinstance(value, np.generic) else value
        lines.append(f"Greatest {name} difference: {value} at index {where}{bound}")
    return "\n".join(lines)
