"""Lists of tensors, one operator for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import mindtorch as torch

from ....judge.precision import Array
from ..formulas import words
from ..spec import const, spec, t, take

# A scalar in a tensor stays float32 beside bfloat16 (operator documents, CANN 8.1).
_CASTS: Final = {n: {"bfloat16": "float32"} for n in ("alpha", "scalar", "scalars")}
_DTYPES: Final = ("int32", "float16", "bfloat16", "float32")
_SOURCE: Final = "torch 2.13, torch._foreach_*; CANN 8.1 header of the operator for the arguments"


def _list(low: float = -2.0, high: float = 2.0, shift: float = 0.0, **more: Any) -> list[Any]:
    shapes = ((3, 4), (17,), (1,), (2, 3, 5), (130,), (33, 33), (7,), (0, 3), (2049,), (5, 1))
    return [t(*s, low=low, high=high + shift, **more) for s in shapes]


def _torch(name: str) -> Callable[[Any], Any]:
    """A word of torch on one array."""
    reference: Callable[..., Any] = words(lambda x: getattr(torch, name)(x))
    return lambda v: reference(x=v)


_UNARY: Final[dict[str, tuple[Any, float, float, str]]] = {
    # name: function, values from, to, class
    "Abs": (np.abs, -2, 2, "exact"), "Acos": (np.arccos, -1, 1, "elementary"),
    "Asin": (np.arcsin, -1, 1, "elementary"), "Atan": (np.arctan, -9, 9, "elementary"),
    "Cos": (np.cos, -9, 9, "elementary"), "Cosh": (np.cosh, -4, 4, "elementary"),
    "Copy": (lambda v: v, -2, 2, "exact"), "Erf": (_torch("erf"), -3, 3, "elementary"),
    "Erfc": (_torch("erfc"), -3, 3, "elementary"), "Exp": (np.exp, -4, 4, "elementary"),
    "Expm1": (np.expm1, -2, 2, "elementary"), "Log": (np.log, 0.01, 9, "elementary"),
    "Log10": (np.log10, 0.01, 9, "elementary"), "Log1p": (np.log1p, -0.9, 4, "elementary"),
    "Log2": (np.log2, 0.01, 9, "elementary"), "Neg": (np.negative, -2, 2, "exact"),
    "Reciprocal": (np.reciprocal, 0.1, 4, "elementary"),
    "Sigmoid": (_torch("sigmoid"), -9, 9, "elementary"),
    # NaN has no sign: torch gives 0.
    "Sign": (lambda v: (v > 0) - 1.0 * (v < 0), -2, 2, "exact"),
    "Sin": (np.sin, -9, 9, "elementary"), "Sinh": (np.sinh, -4, 4, "elementary"),
    "Sqrt": (np.sqrt, 0, 9, "elementary"), "Tan": (np.tan, -1.4, 1.4, "elementary"),
    "Tanh": (np.tanh, -4, 4, "elementary"),
}  # fmt: skip
_INPLACE: Final = {"Acos": "aclnnForeachACosInplace", "Log": "aclnnForeachLogInplace"}


def _unary(name: str, function: Callable[..., Array], low: float, high: float, kind: str) -> None:
    rule = {"ulp": (4.0, 16.0, 16.0), "reason": "quotients and functions of functions: the table's "
            "loosest entry for elementary functions"} if kind == "elementary" else {}  # fmt: skip

    def declare(names: str, outs: str) -> None:
        @spec(names, outs, source=_SOURCE, tolerance=kind, rule=rule,
              samples=[take(x=_list(low, high)), take(x=[t(4, low=low, high=high)])])  # fmt: skip
        def reference(x: list[Array]) -> tuple[list[Array]]:
            return ([function(v) for v in x],)

    declare(f"aclnnForeach{name}", "out:x")
    if name in _INPLACE:
        declare(_INPLACE[name], "x:x")


for _name, _row in _UNARY.items():
    _unary(_name, *_row)
_BINARY: Final[dict[str, Any]] = {
    "Add": lambda a, b, alpha=1: a + alpha * b, "Sub": lambda a, b, alpha=1: a - alpha * b,
    "Mul": np.multiply, "Div": np.divide, "Maximum": np.maximum, "Minimum": np.minimum,
    "Pow": np.power,
}  # fmt: skip
_SCALE: Final = {"Add": "alpha", "Sub": "alpha"}
_SCALARS: Final = (2.0, -1.5, 0.5, 3.0, 1.0, 2.5, -2.0, 4.0, 0.25, 1.5)


def _class(name: str) -> tuple[str, dict[str, Any]]:
    if name in ("Maximum", "Minimum"):
        return "exact", {}
    if name == "Pow":
        return "elementary", {"ulp": (4.0, 16.0, 16.0), "reason": "errors of an exponent are "
                              "magnified, OpenCL conformance: pow 16 ULP"}  # fmt: skip
    if name in ("Add", "Sub"):
        return "composite", {}
    return "elementary", {}


def _number(value: Array | float, like: Sequence[Array] | None = None) -> float:
    """A scalar that travels as a tensor of one element or as a number.

    It is cast to the tensors' dtype: towards zero where those are integers.
    """
    number: float = np.asarray(value, np.float64).item()
    return int(number) if like is not None and like[0].dtype.kind in "iu" else number


def _binary(name: str, function: Callable[..., Array]) -> None:
    kind, rule = _class(name)
    low = 0.2 if name == "Pow" else -2.0
    common: dict[str, Any] = {"source": _SOURCE, "tolerance": kind,
                              "rule": rule, "casts": _CASTS, "dtypes": _DTYPES}  # fmt: skip
    a, b = _list(low, 2.0), _list(0.5, 3.0)
    scaled = [{"alpha": const([2.0], "float32")}] if name in _SCALE else [{}]
    if name in _SCALE:
        plain = [take(x1=a, x2=b, alpha=const([2.0], "float32"))]

        @spec(f"aclnnForeach{name}List", "out:x1", samples=plain, **common)
        def listed(x1: list[Array], x2: list[Array], alpha: float) -> tuple[list[Array]]:
            return ([function(p, q, _number(alpha, x1)) for p, q in zip(x1, x2, strict=True)],)

        spec(f"aclnnForeach{name}ListInplace", "x1:x1", samples=plain, **common)(listed)
        spec(f"aclnnForeach{name}ListV2", "out:x1",
             samples=[take(x1=a, x2=b, alpha=2.0), take(x1=a, x2=b, alpha=-1.5)],
             **common)(listed)  # fmt: skip
    else:
        pairs = [take(x1=a, x2=b, **s) for s in scaled]

        @spec(f"aclnnForeach{name}List", "out:x1", samples=pairs, **common)
        def paired(x1: list[Array], x2: list[Array]) -> tuple[list[Array]]:
            return ([function(p, q) for p, q in zip(x1, x2, strict=True)],)

        if name in ("Mul", "Div"):
            spec(f"aclnnForeach{name}ListInplace", "x1:x1", samples=pairs, **common)(paired)

    @spec(f"aclnnForeach{name}Scalar", "out:x", **common,
          samples=[take(x=a, scalar=const([2.5], "float32"))])  # fmt: skip
    def scaled_by(x: list[Array], scalar: float) -> tuple[list[Array]]:
        return ([function(v, _number(scalar, x)) for v in x],)

    spec(f"aclnnForeach{name}ScalarV2", "out:x", **common,
         samples=[take(x=a, scalar=s) for s in (2.5, 0.75)])(scaled_by)  # fmt: skip
    if name in ("Mul", "Sub"):
        spec(f"aclnnForeach{name}ScalarInplace", "x:x", **common,
             samples=[take(x=a, scalar=const([2.5], "float32"))])(scaled_by)  # fmt: skip
    numbers = (2.0, 1.0, 3.0, 2.0, 0.0, 1.0, 2.0, 3.0, 1.0, 2.0) if name == "Pow" else _SCALARS

    @spec(f"aclnnForeach{name}ScalarList", "out:x", **common,
          samples=[take(x=a, scalars=numbers)])  # fmt: skip
    def each(x: list[Array], scalars: Sequence[float]) -> tuple[list[Array]]:
        return ([function(v, _number(s, x)) for v, s in zip(x, scalars, strict=True)],)


for _name, _function in _BINARY.items():
    _binary(_name, _function)


@spec("aclnnForeachPowScalarAndTensor", "out:x", source=_SOURCE,
      tolerance="elementary", samples=[take(scalar=2.5, x=_list(0, 3))],
      dtypes=("float16", "bfloat16", "float32"),
      rule={"ulp": (4.0, 16.0, 16.0), "reason": "errors of an exponent are magnified"})  # fmt: skip
def pow_of_scalar(scalar: float, x: list[Array]) -> tuple[list[Array]]:
    return ([_number(scalar, x) ** v for v in x],)


def _ternary(name: str, function: Callable[..., Array]) -> None:
    common: dict[str, Any] = {"source": _SOURCE, "tolerance": "accumulated",
                              "casts": _CASTS, "rule": {"accumulator": "output", "reason":
                              "each step is rounded to the dtype of the lists"}}  # fmt: skip
    lists = {"x1": _list(-2, 2), "x2": _list(-2, 3), "x3": _list(0.5, 3.5)}
    one = const([1.5], "float32")

    @spec(f"aclnnForeach{name}Scalar", "out:x1", samples=[take(**lists, scalar=one)], **common)
    def single(
        x1: list[Array], x2: list[Array], x3: list[Array], scalar: Array | float
    ) -> tuple[list[Array]]:
        s = _number(scalar, x1)
        return ([function(a, b, c, s) for a, b, c in zip(x1, x2, x3, strict=True)],)

    # A number has its sign in the reference of sizes too, so that sizes may cancel there.
    signed = {**common["rule"], "tier": "norm|ratio", "norm": 2.0, "accumulate": 64.0}
    spec(f"aclnnForeach{name}ScalarV2", "out:x1", **{**common, "rule": signed},
         samples=[take(**lists, scalar=s) for s in (1.5, -0.5)])(single)  # fmt: skip
    many = const(list(_SCALARS), "float32")

    @spec(f"aclnnForeach{name}ScalarList aclnnForeach{name}List", "out:x1",
          samples=[take(**lists, scalars=many)], **common)  # fmt: skip
    def each(x1: Array, x2: Array, x3: list[Array], scalars: list[float]) -> tuple[list[Array]]:
        rows = zip(x1, x2, x3, np.asarray(scalars), strict=True)
        return ([function(a, b, c, s) for a, b, c, s in rows],)


_ternary("Addcmul", lambda a, b, c, s: a + s * b * c)
_ternary("Addcdiv", lambda a, b, c, s: a + s * b / c)


@spec("aclnnForeachLerpList", "out:x1", source=_SOURCE, tolerance="composite",
      samples=[take(x1=_list(), x2=_list(-1, 3), weight=_list(0, 1))])  # fmt: skip
def lerp_list(x1: list[Array], x2: list[Array], weight: list[Array]) -> tuple[list[Array]]:
    return ([a + w * (b - a) for a, b, w in zip(x1, x2, weight, strict=True)],)


@spec("aclnnForeachLerpScalar", "out:x1", source=_SOURCE, tolerance="composite",
      samples=[take(x1=_list(), x2=_list(-1, 3), weight=w) for w in (0.25, 0.75)])  # fmt: skip
def lerp_scalar(x1: Array, x2: Array, weight: float) -> tuple[list[Array]]:
    return ([a + weight * (b - a) for a, b in zip(x1, x2, strict=True)],)


@spec("aclnnForeachNorm", "out:x", source=_SOURCE, tolerance="composite",
      samples=[take(x=[t(3, 4), t(130), t(33, 33)], scalar=p) for p in (2.0, 1.0)])  # fmt: skip
def norm(x: Array, scalar: float) -> tuple[list[Array]]:
    return ([(np.abs(v) ** scalar).sum() ** (1 / scalar) for v in x],)


@spec("aclnnForeachZeroInplace", "x:x", source=_SOURCE, tolerance="exact",
      samples=[take(x=_list())])  # fmt: skip
def zero(x: Array) -> tuple[list[Array]]:
    return ([np.zeros_like(v) for v in x],)


@spec("aclnnForeachNonFiniteCheckAndUnscale", "scaledGrads:scaledGrads foundInf:float32",
      source="torch 2.13, torch._amp_foreach_non_finite_check_and_unscale_",
      tolerance="elementary",
      casts={n: {"float16": "float32", "bfloat16": "float32"} for n in ("foundInf", "invScale")},
      samples=[
          take(scaledGrads=_list(), foundInf=const([0.0], "float32"),
               invScale=const([0.25], "float32")),
          take(scaledGrads=[t(4), const([1.0, np.inf], "float32")],
               foundInf=const([0.0], "float32"), invScale=const([0.5], "float32")),
          take(scaledGrads=[const([np.nan, 2.0], "float32")], foundInf=const([0.0], "float32"),
               invScale=const([1.0], "float32")),
      ])  # fmt: skip
def unscale(
    scaledGrads: list[Array], foundInf: Array, invScale: Array
) -> tuple[list[Array], Array]:
    bad = any(not np.isfinite(g).all() for g in scaledGrads)
    return [g * invScale[0] for g in scaledGrads], np.maximum(foundInf, float(bad))


_MODES: Final = "Ascend C API document, Cast: RoundMode; torch._foreach_round and its kin"
# The numbers of Ascend C's RoundMode (document of Cast, CANN 8.1): rint, floor, ceil, round, trunc.
_ROUND: Final[dict[int, Any]] = {
    1: np.rint, 2: np.floor, 3: np.ceil,
    4: lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v), 5: np.trunc,
}  # fmt: skip
_TIES: Final = [const([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], "float32")]


@spec("aclnnForeachRoundOffNumberV2", "out:x",
      source=_MODES, tolerance="exact",
      samples=[take(x=x, roundMode=m) for x in (_list(-5, 5), _TIES) for m in (1, 2, 3, 4, 5)],
      )  # fmt: skip
def round_off(x: Array, roundMode: int) -> tuple[list[Array]]:
    return ([_ROUND[int(_number(roundMode))](v) for v in x],)


spec("aclnnForeachRoundOffNumber", "out:x",
     source=_MODES, tolerance="exact",
     samples=[take(x=x, roundMode=const([m], "int8"))
              for x in (_list(-5, 5), _TIES) for m in (1, 2, 3, 4, 5)])(round_off)  # fmt: skip
