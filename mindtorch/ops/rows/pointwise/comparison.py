"""Rows that compare, and logic and bitwise rows of two operands."""

from __future__ import annotations

from collections.abc import Container

from ...._compat.unsupported_dtypes import Refusal
from ...complex_parts import is_real
from ...rules import BITS, REAL, Pointwise, pointwise, refuse_meta, result_type
from ...samples import FLOATS, INTS, binary
from ...spec import aten as aten, scalar
from ...words import *


def _pair(tensor: str, number: str) -> tuple[Any, ...]:
    return (
        call(number, "self", "other", "out", when=scalar("other")),
        call(tensor, "self", "other", "out"),
    )


def compare(name: str, cpu: Callable[..., Any], aclnn: str) -> None:
    """A row `self ? other` with a bool result."""
    op(
        f"{name}(Tensor self, Tensor|Scalar other) -> Tensor",
        infer=pointwise("bool", only=None if name in ("eq", "ne") else (f"{name}_cpu", REAL)),
        cpu=cpu,
        compute="raw",  # numbers beside halves are rounded first: 0.1 equals what it became
        aclnn=_pair(f"{aclnn}Tensor", f"{aclnn}Scalar"),
        grad={},
        samples=binary(dtypes=(*FLOATS, "int64", "uint8", "bool")),
        tolerance="exact",
        inplace=True,
        casts_inplace=True,
    )


_COMPARISONS: tuple[tuple[str, Any, str], ...] = (
    ("eq", np.equal, "aclnnEq"),
    ("ne", np.not_equal, "aclnnNe"),
    ("lt", np.less, "aclnnLt"),
    ("le", np.less_equal, "aclnnLe"),
    ("gt", np.greater, "aclnnGt"),
    ("ge", np.greater_equal, "aclnnGe"),
)
for _name, _cpu, _aclnn in _COMPARISONS:
    compare(_name, _cpu, _aclnn)


def logic(name: str, cpu: Callable[..., Any], aclnn: str) -> None:
    """A row of two tensors taken as truth values."""
    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        infer=pointwise("bool"),
        cpu=cpu,
        aclnn=call(aclnn, "self", "other", "out"),
        grad={},
        samples=lambda: [
            Sample((Arg((3, 4), d), Arg((4,), d))) for d in ("bool", "float32", "int64", "uint8")
        ],
        tolerance="exact",
        inplace=True,
        casts_inplace=True,
    )


_LOGIC: tuple[tuple[str, Any, str], ...] = (
    ("logical_and", np.logical_and, "aclnnLogicalAnd"),
    ("logical_or", np.logical_or, "aclnnLogicalOr"),
    ("logical_xor", np.logical_xor, "aclnnLogicalXor"),
)
for _name, _cpu, _aclnn in _LOGIC:
    logic(_name, _cpu, _aclnn)


def bitwise(
    name: str, cpu: Callable[..., Any], tensor: str, number: str, known: Container[Dtype] = BITS
) -> None:
    """A row of two integer operands, or bool ones; shifts have integers alone."""
    kernel = f"{name.replace('bitwise_left_', 'l').replace('bitwise_right_', 'r')}_cpu"
    op(
        f"{name}(Tensor self, Tensor|Scalar other) -> Tensor",
        infer=pointwise(only=(kernel, known)),
        cpu=cpu,
        aclnn=_pair(tensor, number),
        grad={},
        samples=lambda: [
            *(Sample((Arg((3, 4), d, 0, 6), Arg((4,), d, 0, 3))) for d in INTS),
            Sample((Arg((2, 3), "int32", 0, 6), 3)),
        ],
        tolerance="exact",
        inplace=True,
        number_first=True,
    )


_BITWISE: tuple[tuple[str, Any, str], ...] = (
    ("bitwise_and", np.bitwise_and, "aclnnBitwiseAnd"),
    ("bitwise_or", np.bitwise_or, "aclnnBitwiseOr"),
    ("bitwise_xor", np.bitwise_xor, "aclnnBitwiseXor"),
)
for _name, _cpu, _aclnn in _BITWISE:
    bitwise(_name, _cpu, f"{_aclnn}Tensor", f"{_aclnn}Scalar")
bitwise("bitwise_left_shift", np.left_shift, "aclnnLeftShift", "aclnnLeftShifts", dt.INTEGERS)
bitwise("bitwise_right_shift", np.right_shift, "aclnnRightShift", "aclnnRightShift", dt.INTEGERS)


class _Alike(Pointwise):
    """Operands of one dtype, of which torch asks here."""

    def __call__(self, *args: Any) -> Geometry:
        a, b = self.operands(args)
        if a.dtype is not b.dtype:
            raise RuntimeError(f"{scalar_name(a.dtype)} did not match {scalar_name(b.dtype)}")
        return super().__call__(*args)


class _Close(_Alike):
    """Bounds from 0."""

    def __call__(self, *args: Any) -> Geometry:
        for name, bound in zip(("rtol", "atol"), args[2:4], strict=True):
            if not bound >= 0:
                raise RuntimeError(
                    f"{name} must be greater than or equal to zero, but got {bound:g}"
                )
        return super().__call__(*args)


def _isclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    close = np.equal(self, other)
    if self.dtype.kind in "fc":
        if equal_nan:
            close |= np.isnan(self) & np.isnan(other)
        near = np.abs(self - other) <= atol + np.abs(rtol * other)
        close |= near & np.isfinite(self - other)
    elif rtol or atol:
        wide = self.astype(np.float64), other.astype(np.float64)
        close |= np.abs(wide[0] - wide[1]) <= atol + np.abs(rtol * wide[1])
    return close


# Pairs that are equal, close, apart by more than one bound, infinite or nothing at all.
_INF, _NAN = float("inf"), float("nan")
_NEAR = (
    [1.0, 1.0, 1.0, 100.0, 1e-9, 0.0, _INF, -_INF, _INF, _NAN, _NAN, 1000.0],
    [1.0, 1.000005, 1.1, 100.6, 0.0, -0.0, _INF, -_INF, 1.0, _NAN, 1.0, 1009.0],
)


def _close_by_distance(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """isclose of complex numbers, by how far apart they are."""
    apart = aten.abs(self - other)
    close: Tensor = aten.isfinite(apart) & (apart <= aten.abs(other) * rtol + atol)
    close = close | (self == other)
    return close | (aten.isnan(self) & aten.isnan(other)) if equal_nan else close


op(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08,"
    " bool equal_nan=False) -> Tensor",
    summary="Whether elements are within `atol + rtol * |other|`.",
    infer=_Close("bool"),
    cpu=_isclose,
    aclnn=call("aclnnIsClose", when=is_real),
    lower=_close_by_distance,
    grad={},
    samples=lambda: [
        *(Sample((Arg((3, 4), d), Arg((3, 4), d))) for d in ("float32", "float64", "int64")),
        *(
            Sample((Arg((12,), values=_NEAR[0]), Arg((12,), values=_NEAR[1])), options)
            for options in ({}, {"rtol": 0.01, "atol": 0.5}, {"equal_nan": True})
        ),
    ],
    tolerance="exact",
)


def _allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(aten.all(aten.isclose(self, other, rtol, atol, equal_nan)).item())


def _equal(self: Tensor, other: Tensor) -> bool:
    if self.device.type == "meta":
        refuse_meta("equal")
    if self.shape != other.shape:
        return False
    return bool(aten.all(self == other).item())


composite(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08,"
    " bool equal_nan=False) -> bool",
    _allclose,
    summary="Whether all elements are within `atol + rtol * |other|`.",
    grad={},
    samples=calls((Arg((2, 3)), Arg((2, 3))), (Arg((2, 3)), Arg((2, 3), low=-1))),
)
composite(
    "equal(Tensor self, Tensor other) -> bool",
    _equal,
    summary="Whether shapes and elements are equal.",
    grad={},
    samples=calls((Arg((2, 3)), Arg((2, 3))), (Arg((2, 3)), Arg((3, 2)))),
)


_FEW, _FEW_PAIRS = 1 << 7, 1 << 12  # elements, and pairs of them, that are compared all at once


def _isin_cpu(elements: Array, test_elements: Array) -> Array:
    pairs = elements.size * test_elements.size
    if elements.size <= _FEW and 0 < pairs <= _FEW_PAIRS:
        return np.logical_or.reduce(elements[..., None] == test_elements.reshape(-1), -1)
    return np.isin(elements, test_elements)


op(
    "_isin(Tensor elements, Tensor test_elements) -> Tensor",
    infer=lambda elements, test_elements: elements.fresh(dtype=dt.bool),
    cpu=_isin_cpu,
    lower=lambda elements, test_elements: aten.any(
        aten.eq(elements[..., None], test_elements.reshape(-1)), -1
    ),
    grad={},
    samples=calls((Arg((3, 4), "int64", 0, 5), Arg((3,), "int64", 0, 5)), (Arg((2, 3)), Arg((2,)))),
    oracle=lambda torch: torch.isin,
)


@composite(
    "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False,"
    " bool invert=False) -> Tensor",
    unsupported={"bool complex": Refusal("Unsupported input type encountered for isin(): {dtype}")},
    surface="function",
    samples=calls(
        (Arg((3, 4), "int64", 0, 5), Arg((3,), "int64", 0, 5)),
        (Arg((2, 3)), 0.5),
        (Arg((3,), "int64", 0, 5), Arg((0,), "int64")),
    ),
    out="expected",
)
def isin(
    elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among `test_elements`; or, inverted, is not."""
    if not isinstance(elements, Tensor):
        elements = aten.tensor(elements, dtype=test_elements.dtype, device=test_elements.device)
    if isinstance(test_elements, Tensor):
        if elements.dtype is not test_elements.dtype:
            dtype = result_type((elements._geom, test_elements._geom))
            elements, test_elements = aten.to(elements, dtype), aten.to(test_elements, dtype)
        hits = aten._isin(elements, test_elements)
    else:
        hits = aten.eq(elements, test_elements)
    return aten.logical_not(hits) if invert else hits
