"""Owns how far a result is from its reference, as numbers; refuses to say whether that is good."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from .formats import Format
from .precision import Array, format_of, name_of, rounded, spacing, wide

# Upper ends of the error histogram's buckets, in ULP; the last bucket is beyond all of them.
BUCKETS: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1024.0)
_TINY: Final = 1e-7  # the ecosystem rule's guard of its denominator


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element that is furthest off: its index, what came, what was expected."""

    index: tuple[int, ...]
    got: str
    expected: str
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measure:
    """Errors of one result. ULP are of the tested dtype at the reference; `bias` is the mean signed
    error in ULP, `lean` the same away from zero (+) or towards it (-), over `leaning` different
    results; `signs` counts zeros of the other sign; `histogram` counts elements
    per bucket of BUCKETS, then beyond, then not finite.
    """

    elements: int
    different: int = 0
    nonfinite: int = 0
    max_ulp: float = 0.0
    mean_ulp: float = 0.0
    bias: float = 0.0
    lean: float = 0.0
    leaning: int = 0
    signs: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    mean_relative: float = 0.0
    root_mean_square: float = 0.0
    ratio: float | None = None
    histogram: tuple[int, ...] = ()
    worst: WorstElement | None = None

    @property
    def exact(self) -> bool:
        return self.different == 0 and self.nonfinite == 0 and self.signs == 0

    def as_json(self) -> dict[str, Any]:
        """Plain data; infinities as text, because JSON has none."""
        data = {name: getattr(self, name) for name in self.__slots__}
        for name, value in data.items():
            if value.__class__ is float and not math.isfinite(value):
                data[name] = str(value)
        if self.worst is not None:
            data["worst"] = asdict(self.worst)
        return data


@dataclass(frozen=True, slots=True)
class Errors:
    """Element-wise material for rules: results and references as flat float64 arrays."""

    got: Any
    golden: Any
    absolute: Any
    ulp: Any
    nonfinite: int
    form: Format


def same(got: Array, expected: Array) -> Array:
    """Element-wise equality of values where NaN equals NaN and zeros equal whatever their sign."""
    equal = got == expected
    if got.dtype.kind in "fc" or name_of(got) == "bfloat16":
        equal |= np.isnan(got) & np.isnan(expected)
    return equal


def identical(got: Array, expected: Array) -> Array:
    """Element-wise equality bit for bit, but that NaN equals NaN whatever its payload."""
    equal = same(got, expected)
    if got.dtype.kind == "c":
        return (
            equal
            & (_signs(got.real) == _signs(expected.real))
            & (_signs(got.imag) == _signs(expected.imag))
        )
    if got.dtype.kind == "f" or name_of(got) == "bfloat16":
        return equal & (_signs(got) == _signs(expected))
    return equal


def _signs(array: Array) -> Array:
    """Sign bits of zeros; False elsewhere."""
    with np.errstate(all="ignore"):
        return np.signbit(array.astype(np.float64)) & (array == 0)


def _zeros(golden: Array) -> Array:
    """Where a reference is zero itself: one that only rounds to zero may do so from either side."""
    if golden.dtype.kind == "c":
        return (golden.real == 0) | (golden.imag == 0)
    return golden == 0


def errors(got: Array, golden: Array, dtype: str) -> Errors | None:
    """Errors of a float result against `golden` (float64 or complex128); None for other dtypes.

    A position counts as `nonfinite` when NaN or an infinity stands where the reference, rounded to
    `dtype`, has something else, or the other way round.
    """
    form = format_of(dtype)
    if form is None or golden.dtype.kind not in "fc":
        return None
    with np.errstate(all="ignore"):
        near = wide(rounded(golden, dtype)).reshape(-1)
        have, exact = wide(got).reshape(-1), wide(golden).reshape(-1)
        finite = np.isfinite(near) & np.isfinite(have)
        clash = ~finite & ~same(have, near)
        off = np.where(finite, have - exact, 0.0)
        # A reference that rounds to a finite number but lies beyond the format stays comparable.
        # Both parts of a complex number are measured against its modulus.
        size = np.repeat(np.abs(golden).reshape(-1), 2) if golden.dtype.kind == "c" else exact
        ulp = np.where(finite, off / spacing(np.where(finite, size, 0.0), form), 0.0)
    return Errors(have, exact, np.abs(off), ulp, int(clash.sum()), form)


def measure(
    got: Array, golden: Array, dtype: str, scale: Array | None = None, accumulator: str = "float32",
    known: Errors | None = None, one_sign: float = 1.0,
) -> Measure:  # fmt: skip
    """The Measure of a result of `dtype` against its reference, of one shape.

    `scale`, the same op on absolute values, makes the componentwise ratio; `accumulator` is the
    precision that sums are kept in: "float32" or "output"; `known` are the result's `errors`,
    where they are known; `one_sign` divides the ratio of elements in which nothing cancels.
    """
    if not got.size:
        return Measure(0, ratio=0.0 if scale is not None else None)
    deviations = known or errors(got, golden, dtype)
    if deviations is None:
        return _counted(got, golden)
    ratio = None if scale is None else componentwise(deviations, scale, accumulator, one_sign)
    return _measured(got, golden, dtype, deviations, ratio)


def rounds_to(got: Array, golden: Array, dtype: str) -> bool:
    """Whether a result is its reference rounded once, bit for bit."""
    if format_of(dtype) is None or golden.dtype.kind not in "fc":
        return bool(same(got, golden).all())
    near = rounded(golden, dtype)
    if near.dtype.itemsize == got.dtype.itemsize and (
        np.ascontiguousarray(near).tobytes() == np.ascontiguousarray(got).tobytes()
    ):
        return True
    return bool(identical(got, near).all())


def _counted(got: Array, golden: Array) -> Measure:
    unequal = ~same(got, golden)
    count = int(unequal.sum())
    if not count:
        return Measure(int(got.size))
    at = int(np.argmax(unequal))
    return Measure(int(got.size), count, worst=_worst(at, got, golden))


def _measured(
    got: Array, golden: Array, dtype: str, deviations: Errors, ratio: float | None
) -> Measure:
    near = rounded(golden, dtype)
    unequal = ~same(got, near)
    different = int(unequal.sum())
    signs = int((~unequal & ~identical(got, near) & _zeros(golden)).sum())
    lean, leaning = _lean(deviations)
    distance = np.abs(deviations.ulp)
    with np.errstate(all="ignore"):
        relative = deviations.absolute / (np.abs(deviations.golden) + _TINY)
        relative[~np.isfinite(relative)] = 0.0
    at = _worst_position(deviations, unequal, got)
    return Measure(
        elements=int(got.size),
        different=different,
        nonfinite=deviations.nonfinite,
        max_ulp=float(distance.max()),
        mean_ulp=float(distance.mean()),
        bias=float(deviations.ulp.mean()),
        lean=lean,
        leaning=leaning,
        signs=signs,
        max_absolute=float(deviations.absolute.max()),
        max_relative=float(relative.max()),
        mean_relative=float(relative.mean()),
        root_mean_square=float(np.sqrt(np.square(deviations.absolute).mean())),
        ratio=ratio,
        histogram=_histogram(distance, deviations.nonfinite),
        worst=_worst(at, got, golden) if different or signs else None,
    )


def _lean(deviations: Errors) -> tuple[float, int]:
    """(mean error in ULP away from zero, how many different inexact references it rests on)."""
    if deviations.form.digits > 11:
        return 0.0, 0  # wider results are judged by ULP, where half of one is the bound
    normal = np.isfinite(deviations.golden) & (
        np.abs(deviations.golden) >= 2.0**deviations.form.lowest
    )
    normal &= np.isfinite(deviations.got) & (np.abs(deviations.golden) <= deviations.form.largest)
    golden, at = np.unique(deviations.golden[normal], return_index=True)
    if not golden.size:
        return 0.0, 0
    away = (deviations.ulp[normal] * np.sign(deviations.golden[normal]))[at]
    inexact = rounded(golden, deviations.form.name).astype(np.float64) != golden
    return (float(away[inexact].mean()), int(inexact.sum())) if inexact.any() else (0.0, 0)


# One rounding of a factor: HFLOAT32 has 12 significant bits (aclnnMatmul document), float16 11.
_UNITS: Final = {"hfloat32": 2.0**-12, "float16": 2.0**-11}


def componentwise(
    deviations: Errors, scale: Array, accumulator: str = "float32", one_sign: float = 1.0
) -> float:
    """max |e| / (u_out |g| + u_acc scale): LAPACK's DMMCH form, aware of cancellation and length.

    `u_acc` is that of float32 for 16-bit results of matrix units; of the output where every
    addition is written to memory; of HF32 or float16 where factors are rounded to it. Elements of
    at least half their scale count `1 / one_sign`.
    """
    inner = _UNITS.get(accumulator) or min(deviations.form.unit, 2.0**-24)
    inner = deviations.form.unit if accumulator == "output" else inner
    weight = np.abs(scale).reshape(-1).astype(np.float64)
    # Both parts of a complex number are measured against its modulus.
    weight = np.repeat(weight, deviations.golden.size // max(weight.size, 1))
    with np.errstate(all="ignore"):
        bound = deviations.form.unit * np.abs(deviations.golden) + inner * weight
        least = np.ldexp(1.0, deviations.form.lowest - deviations.form.digits)
        bound = np.maximum(bound, max(least, 5e-324))  # float64's would be 0
        ratio = np.where(np.isfinite(bound), deviations.absolute / bound, 0.0)
        ratio = np.where(2 * np.abs(deviations.golden) > weight, ratio / one_sign, ratio)
    return float(ratio.max()) if ratio.size else 0.0


def _histogram(distance: Array, nonfinite: int) -> tuple[int, ...]:
    places = np.searchsorted(np.array(BUCKETS), distance, side="left")
    counts = np.bincount(places, minlength=len(BUCKETS) + 1)
    return (*(int(n) for n in counts), nonfinite)


def _worst_position(deviations: Errors, unequal: Array, got: Array) -> int:
    parts = 2 if got.dtype.kind == "c" else 1
    if not unequal.any():
        near = (
            rounded(deviations.golden.reshape(got.shape), deviations.form.name)
            if parts == 1
            else got
        )
        return int(np.argmax(~identical(got, near).reshape(-1)))
    if deviations.nonfinite:
        with np.errstate(all="ignore"):
            broken = unequal.reshape(-1) & ~np.isfinite(wide(got).reshape(-1, parts)).all(-1)
            broken = broken if broken.any() else unequal.reshape(-1)
        return int(np.argmax(broken))
    return int(np.argmax(np.abs(deviations.ulp))) // parts


def _worst(at: int, got: Array, golden: Array) -> WorstElement:
    index = tuple(int(i) for i in np.unravel_index(at, got.shape)) if got.ndim else ()
    have = got.reshape(-1)[at]
    return WorstElement(index, f"{text(have)} {bits(have)}".strip(), text(golden.reshape(-1)[at]))


def text(value: Any) -> str:
    """A number, short and exact enough to compare by eye."""
    if np.asarray(value).dtype.kind in "iub":
        return str(value.item() if hasattr(value, "item") else value)
    number = complex(value) if np.asarray(value).dtype.kind == "c" else float(value)
    return f"{number:.9g}"


def bits(value: Any) -> str:
    """`0x3f800000`: the bits of a number, so that it can be put in again; "" for bool."""
    array = np.asarray(value).reshape(-1)[:1]
    size = array.dtype.itemsize
    if array.dtype == np.bool_ or array.dtype.kind == "c" or size not in (1, 2, 4, 8):
        return ""
    return f"0x{int(array.view(f'u{size}')[0]):0{2 * size}x}"
