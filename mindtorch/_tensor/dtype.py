"""Owns the element types; refuses to know where elements live."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from functools import cache
from math import log2, log10
from typing import Any, NoReturn

import numpy as np

from .._compat.class_names import CClass, name_in_errors

BOOL, INTEGER, FLOAT, COMPLEX = 0, 1, 2, 3

# Types that numpy lacks and ml_dtypes has, with their sizes in bytes.
_ML_DTYPES = {
    "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
}  # fmt: skip


# Types that are only named: code tabulates them, no tensor has one. Sizes in bytes.
_NAMED = {"qint32": 4, "bits16": 2}
# Two halves: numpy has no such number, see eight_bits.
_PAIR = [("real", "<f2"), ("imag", "<f2")]


_ABBREVIATED = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u"}


class dtype(metaclass=CClass):  # noqa: N801 - torch's name
    """An element type: identity is equality.

    `itemsize` is in bytes; `category` is BOOL < INTEGER < FLOAT < COMPLEX; `acl` is the ACL name
    without its prefix (aclDataType, CANN); `np` the numpy dtype that stores it.
    """

    __slots__ = ("_name", "acl", "category", "itemsize", "legacy", "np", "rank")
    np: Any
    itemsize: builtins.int

    def __init__(
        self,
        name: str,
        np_name: str,
        category: builtins.int,
        rank: builtins.int,
        acl: str,
        old: str,
    ):
        self._name = name
        self.category: builtins.int = category
        self.rank: builtins.int = rank
        self.acl: str = acl
        self.legacy: str = old
        if not np_name:
            self.itemsize = _NAMED.get(name, 1)
        elif np_name in _ML_DTYPES:
            self.itemsize = _ML_DTYPES[np_name]
        else:
            self.np = np.dtype(_PAIR if np_name == "complex32" else np_name)
            self.itemsize = self.np.itemsize

    def __getattr__(self, attribute: str) -> Any:
        """Import ml_dtypes when one of its types is first stored: it costs 7 ms."""
        if attribute != "np":
            raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")
        if self in NAMED:
            raise NotImplementedError(f"torch.{self._name}: mindtorch has no tensors of this type")
        import ml_dtypes

        stored = {"float4_e2m1fn_x2": "uint8"}.get(self._name)
        self.np = np.dtype(stored or getattr(ml_dtypes, self._name))
        return self.np

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name

    @property
    def abbr(self) -> str:
        """The name as torch's tools shorten it: "f32", "i64", "b8"."""
        name, kind = self._name.replace("_", ""), self._name.rstrip("0123456789")
        if self is bool:
            return "b8"
        if name.startswith("bits"):
            return f"b{name[4:]}" + "x1" * ("x" not in name)
        if kind not in _ABBREVIATED or self in NAMED:
            return name.replace("float", "f") if kind != name else name
        return name.replace(kind, _ABBREVIATED[kind])

    @property
    def is_floating_point(self) -> builtins.bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> builtins.bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> builtins.bool:
        if self._name.startswith(("qint", "quint", "bits")):
            raise RuntimeError("isSignedType not supported for quantized types")
        return self is not bool and not self._name.startswith("uint")

    def to_real(self) -> dtype:
        return {complex64: float32, complex128: float64, complex32: float16}.get(self, self)

    def to_complex(self) -> dtype:
        pairs = {float32: complex64, bfloat16: complex64, float64: complex128, float16: complex32}
        if self.category != COMPLEX and self not in pairs:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.legacy}")
        return pairs.get(self, self)


# The `rank` orders types inside a category for promotion; float16 and bfloat16 share theirs.
bool = dtype("bool", "bool", BOOL, 0, "BOOL", "Bool")
uint8 = dtype("uint8", "uint8", INTEGER, 0, "UINT8", "Byte")
int8 = dtype("int8", "int8", INTEGER, 0, "INT8", "Char")
int16 = short = dtype("int16", "int16", INTEGER, 1, "INT16", "Short")
int32 = int = dtype("int32", "int32", INTEGER, 2, "INT32", "Int")
int64 = long = dtype("int64", "int64", INTEGER, 3, "INT64", "Long")
float16 = half = dtype("float16", "float16", FLOAT, 0, "FLOAT16", "Half")
bfloat16 = dtype("bfloat16", "bfloat16", FLOAT, 0, "BFLOAT16", "BFloat16")
float32 = float = dtype("float32", "float32", FLOAT, 1, "FLOAT", "Float")
float64 = double = dtype("float64", "float64", FLOAT, 2, "DOUBLE", "Double")
complex64 = cfloat = dtype("complex64", "complex64", COMPLEX, 1, "COMPLEX64", "ComplexFloat")
complex128 = cdouble = dtype("complex128", "complex128", COMPLEX, 2, "COMPLEX128", "ComplexDouble")

# Pairs of halves: stored as they are, computed as complex64.
complex32 = chalf = dtype("complex32", "complex32", COMPLEX, 0, "COMPLEX32", "ComplexHalf")

# Types that are stored, copied, cast and viewed; few operators take them, as in torch.
uint16 = dtype("uint16", "uint16", INTEGER, 1, "UINT16", "UInt16")
uint32 = dtype("uint32", "uint32", INTEGER, 2, "UINT32", "UInt32")
uint64 = dtype("uint64", "uint64", INTEGER, 3, "UINT64", "UInt64")
float8_e4m3fn = dtype("float8_e4m3fn", "float8_e4m3fn", FLOAT, -1, "FLOAT8_E4M3FN", "Float8_e4m3fn")
float8_e5m2 = dtype("float8_e5m2", "float8_e5m2", FLOAT, -1, "FLOAT8_E5M2", "Float8_e5m2")
float8_e4m3fnuz = dtype(
    "float8_e4m3fnuz", "float8_e4m3fnuz", FLOAT, -1, "DT_UNDEFINED", "Float8_e4m3fnuz"
)
float8_e5m2fnuz = dtype(
    "float8_e5m2fnuz", "float8_e5m2fnuz", FLOAT, -1, "DT_UNDEFINED", "Float8_e5m2fnuz"
)
float8_e8m0fnu = dtype(
    "float8_e8m0fnu", "float8_e8m0fnu", FLOAT, -1, "FLOAT8_E8M0", "Float8_e8m0fnu"
)
float4_e2m1fn_x2 = dtype(
    "float4_e2m1fn_x2", "float4_e2m1fn_x2", FLOAT, -1, "FLOAT4_E2M1", "Float4_e2m1fn_x2"
)
NAMED = tuple(
    dtype(name, "", INTEGER, -1, "DT_UNDEFINED",
          re.sub("^q(u?)int", lambda m: f"Q{m[1].upper()}Int", name))
    for name in (
        "qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16",
        "bits1x8", "bits2x4", "bits4x2", *(f"{sign}int{n}" for n in range(1, 8)
                                          for sign in ("", "u")),
    )
)  # fmt: skip
QUANTIZED = NAMED[:5]
UNSIGNED = (uint16, uint32, uint64)
STORED = (*UNSIGNED, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz,
          float8_e8m0fnu, float4_e2m1fn_x2)  # fmt: skip

ALL = (bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64,
       complex128)  # fmt: skip
INTEGERS = frozenset(d for d in ALL if d.category == INTEGER)
_BY_NAME = {d._name: d for d in (*ALL, complex32, *STORED)}
_BY_NUMPY: dict[np.dtype[Any], dtype] = {}  # what from_numpy_dtype gave: names are slow
_default = float32


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats (torch.get_default_dtype)."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats; TypeError for a non-floating one."""
    global _default
    if d.__class__ is not dtype:
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if d.category != FLOAT:
        raise TypeError("only floating-point types are supported as the default type")
    if d.itemsize == 1:
        raise TypeError(f"couldn't find storage object {d.legacy}Storage")
    _default = d


PYTHON: dict[object, dtype] = {
    builtins.bool: bool, builtins.int: int64, builtins.float: float64, complex: complex128,
}  # fmt: skip


def of_python(value: Any) -> Any:
    """The dtype that `bool`, `int`, `float` or `complex` stands for; any other value itself."""
    return PYTHON.get(value, value) if value.__class__ is type else value


def refuse_no_dtype(value: object, name: str, argument: str, position: builtins.int = 1) -> dtype:
    """A dtype, or that of a class of Python's numbers; TypeError in torch's words for others."""
    value = of_python(value)
    if isinstance(value, dtype):
        return value
    place = f" (position {position})" if position else ""
    raise TypeError(
        f"{name}(): argument '{argument}'{place} must be torch.dtype, not {type(value).__name__}"
    )


def resolve(value: Any, name: str, other: dtype | None = None) -> dtype:
    """The dtype that `name` was given as `dtype=`; `other`, or the default one, for None."""
    if value is None:
        return other or _default
    return value if value.__class__ is dtype else refuse_no_dtype(value, name, "dtype", 0)


def from_numpy_dtype(d: Any) -> dtype:
    """The dtype that stores numpy dtype `d`; TypeError where torch has none, ValueError for a
    byte order that is not this machine's."""
    if (known := _BY_NUMPY.get(d) if d.__class__ is np.dtype else None) is not None:
        return known
    if not np.dtype(d).isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion"
            " between byte orders is currently not supported."
        )
    known = complex32 if d == complex32.np else _BY_NAME.get(np.dtype(d).name)
    if known is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np.dtype(d).type.__name__}. The only"
            " supported types are: float64, float32, float16, complex64, complex128, int64, int32,"
            " int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    _BY_NUMPY[np.dtype(d)] = known
    return known


def to_numpy_dtype(d: dtype) -> np.dtype[Any]:
    """The numpy dtype that stores `d`."""
    return d.np


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype both convert to, by torch's table (torch.promote_types)."""
    a = refuse_no_dtype(type1, "promote_types", "type1")
    b = refuse_no_dtype(type2, "promote_types", "type2", 2)
    return _promoted(a, b)


@cache
def _promoted(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a in STORED or b in STORED:
        return _promote_stored(a, b)
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.category == COMPLEX and low is float64:
            return complex128
        if low in (bfloat16, float32) and high is complex32:
            return complex64
        return high
    if a.rank == b.rank:
        return int16 if a.category == INTEGER else float32
    return a if a.rank > b.rank else b


def _promote_stored(a: dtype, b: dtype) -> dtype:
    """Promotion where one type is only stored: whole numbers become floats, all else is refused."""
    short = any(d in STORED and d.category == FLOAT for d in (a, b))
    if not short and {a.category, b.category} == {INTEGER, FLOAT}:
        return a if a.category == FLOAT else b
    kinds = "Float8 Types is" if short else "uint16, uint32, uint64 types is"
    raise RuntimeError(
        f"Promotion for {kinds} not supported, attempted to promote {a.legacy} and {b.legacy}"
    )


class _Limits:
    """What torch's objects of limits refuse; equal where they are of one dtype."""

    def __eq__(self, other: object) -> builtins.bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> builtins.int:
        return hash(tuple(vars(self).values()))

    def __setattr__(self, name: str, value: object) -> None:
        getattr(self, name)
        kind = name_in_errors(type(self))
        raise AttributeError(f"attribute '{name}' of '{kind}' objects is not writable")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{name_in_errors(type(self))}' object")


class finfo(_Limits, metaclass=CClass):  # noqa: N801 - torch's name
    """Limits of a floating dtype (torch.finfo)."""

    dtype: str
    bits: builtins.int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    tiny: builtins.float
    smallest_normal: builtins.float
    resolution: builtins.float

    def __init__(self, type: object = None) -> None:
        d = _default if type is None else refuse_no_dtype(type, "finfo", "type")
        if d.category not in (FLOAT, COMPLEX):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle"
                " 'torch.finfo'"
            )
        import ml_dtypes

        describe: Any = ml_dtypes.finfo
        info = describe(d.to_real().np)
        names = ("eps", "max", "min", "tiny", "smallest_normal")
        vars(self).update({name: builtins.float(getattr(info, name)) for name in names})
        if d._name == "float8_e5m2fnuz":
            vars(self).update(eps=0.125)  # torch's, though the next number after 1 is 1.25
        # By the decimal digits that survive a round trip; ml_dtypes rounds it to the dtype.
        resolution = builtins.float(f"1e-{builtins.int(-log2(self.eps) * log10(2))}")
        vars(self).update(dtype=d.to_real()._name, bits=info.bits, resolution=resolution)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        body = ", ".join(f"{n}={getattr(self, n):g}" for n in names)
        return f"finfo({body}, dtype={self.dtype})"


class iinfo(_Limits, metaclass=CClass):  # noqa: N801 - torch's name
    """Limits of an integer dtype (torch.iinfo)."""

    bits: builtins.int
    max: builtins.int
    min: builtins.int
    _name: str

    def __init__(self, type: object = None, *rest: object) -> None:
        if type is None and not rest:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        d = refuse_no_dtype(type, "iinfo", "type")
        if d.category == BOOL:
            raise TypeError(f"{d!r} is not supported by torch.iinfo")
        if d.category != INTEGER:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle"
                " 'torch.iinfo'"
            )
        quantized = d._name in ("qint8", "quint8", "qint32")
        info = np.iinfo(d._name[1:]) if quantized else np.iinfo(d.np)
        limits = {"max": builtins.int(info.max), "min": builtins.int(info.min)}
        vars(self).update(limits, _name=d._name, bits=info.bits)

    @property
    def dtype(self) -> str:
        """The type's name; NotImplementedError for a quantised type."""
        if self._name.startswith("q"):
            name = self._name[1:].replace("uint", "UInt").replace("int", "Int")
            raise NotImplementedError(f"\"dtype\" not implemented for 'Q{name}'")
        return self._name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _limit(name: str) -> Any:
    return property(lambda self: vars(self)[name], doc=f"The dtype's {name}.")


for _kind, _limits in ((finfo, finfo.__annotations__), (iinfo, ("bits", "max", "min"))):
    for _each in _limits:
        setattr(_kind, _each, _limit(_each))


SCALAR_DTYPES: dict[Any, Callable[[], dtype]] = {
    builtins.bool: lambda: bool,
    builtins.int: lambda: int64,
    builtins.float: get_default_dtype,
    complex: lambda: complex64 if _default.itemsize == 1 else _default.to_complex(),
}


def __getattr__(name: str) -> dtype:
    """A type that is only named."""
    for d in NAMED:
        if d._name == name:
            return d
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
