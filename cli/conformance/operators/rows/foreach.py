"""Lists of tensors, one operator for all."""

from __future__ import annotations

from functools import partial

import mindtorch as torch

from ....spec import *
from ....spec.domains import TensorListDomain
from ..formulas import words
from ._words import *

_SOURCE: Final = "torch 2.13, torch._foreach_*; CANN 8.1 header of the operator for the arguments"
_rule: Final = partial(Rule, source=_SOURCE)
# Documents speak of 50 members; op-plugin splits longer lists itself, other callers do not.
_LISTS: Final = sizes({
    "L": replace(members, full=("5", "50", "64")),
    "*S": shape("3x5", "0x3", "-", 1, 7, 130, "33x33", 2049, "2x3x5x1"),
})  # fmt: skip
# A scalar in a tensor has the dtype of the lists, but float32 beside bfloat16 (operator
# documents, CANN 8.1).
_NUMBER: Final = "{x} {number}\nf32 f32\nf16 f16\nbf16 f32\ni32 i32"


def _list(low: float = -2.0, high: float = 2.0, dtype: str = "") -> TensorListDomain:
    return tensors("L", "*S@L", dtype, low, high)


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
_ULP: Final[dict[str, Any]] = {"ulp": (4.0, 16.0, 16.0), "reason": "quotients and functions of "
        "functions: the table's loosest entry for elementary functions"}  # fmt: skip


def _unary(name: str, function: Callable[..., Array], low: float, high: float, kind: str) -> None:
    rule = _rule(kind, numbers=_ULP if kind == "elementary" else {})
    # 1 / (1 + exp(-x)) is 0 where the exponential overflows, though a subnormal is nearer.
    if name == "Sigmoid":
        rule = replace(rule, values="normal special integer tiny large")
    # Of exponentials beyond an integer's range no document says anything.
    of = "f32 f16 bf16" if name.startswith("Exp") else ""
    every = _list(dtype=of)
    x = every if (low, high) == (-2, 2) else forms(usual=_list(low, high, of), any=every)

    def reference(x: list[Array]) -> tuple[list[Array]]:
        return ([function(v) for v in x],)

    spec(f"aclnnForeach{name}", rule, _LISTS, x=x, out=out("x"))(reference)
    inplace = {"Acos": "aclnnForeachACosInplace", "Log": "aclnnForeachLogInplace"}
    if name in inplace:
        spec(inplace[name], rule, _LISTS, x=inout(x))(reference)


for _name, _row in _UNARY.items():
    _unary(_name, *_row)


def _number(value: Array | float, like: Sequence[Array]) -> float:
    """A scalar that travels as a tensor of one element or as a number.

    It is cast to the tensors' dtype: towards zero where those are integers.
    """
    number: float = np.asarray(value, np.float64).item()
    return int(number) if like[0].dtype.kind in "iu" else number


_BINARY: Final[dict[str, Any]] = {
    "Add": lambda a, b, alpha=1: a + alpha * b, "Sub": lambda a, b, alpha=1: a - alpha * b,
    "Mul": np.multiply, "Div": np.divide, "Maximum": np.maximum, "Minimum": np.minimum,
    "Pow": np.power,
}  # fmt: skip
_RULES: Final = {
    **dict.fromkeys(("Maximum", "Minimum"), _rule("exact")),
    **dict.fromkeys(("Add", "Sub"), _rule("composite")),
    "Pow": _rule("elementary", numbers={
        "ulp": (4.0, 16.0, 16.0), "reason": "errors of an exponent are magnified, OpenCL "
        "conformance: pow 16 ULP"}),
}  # fmt: skip
_DTYPES: Final = "f32 f16 bf16 i32"


def _binary(name: str, function: Callable[..., Array]) -> None:
    rule, power = _RULES.get(name, _rule("elementary")), name == "Pow"
    # Integers have no negative powers.
    first, second = (_list(0.2, 4), _list(0.5, 3, "x1")) if power else (_list(), _list(dtype="x1"))
    first = replace(first, member=replace(first.member, dtype=_DTYPES))
    factors = (2.5, 0.75, 0, 1, 3) if power else (2.5, -1.5, 0, 1, 0.75)
    by_tensor = dtypes(_NUMBER.format(x="x", number="scalar"))
    in_place = f"aclnnForeach{name}ListInplace"
    if name in ("Add", "Sub"):
        alpha = {"alpha": scalar_tensor("f32", 2.0, -1.5, 0, 1)}
        table = dtypes(_NUMBER.format(x="x1", number="alpha"))

        def scaled(x1: list[Array], x2: list[Array], alpha: float) -> tuple[list[Array]]:
            return ([function(p, q, _number(alpha, x1)) for p, q in zip(x1, x2, strict=True)],)

        spec(f"aclnnForeach{name}List", rule, _LISTS, table, x1=first, x2=second, **alpha,
             out=out("x1"))(scaled)  # fmt: skip
        spec(in_place, rule, _LISTS, table, x1=inout(first), x2=second, **alpha)(scaled)
        spec(f"aclnnForeach{name}ListV2", rule, _LISTS, x1=first, x2=second,
             alpha=number(2.0, -1.5, 0, 1), out=out("x1"))(scaled)  # fmt: skip
    else:

        def paired(x1: list[Array], x2: list[Array]) -> tuple[list[Array]]:
            return ([function(p, q) for p, q in zip(x1, x2, strict=True)],)

        spec(f"aclnnForeach{name}List", rule, _LISTS, x1=first, x2=second,
             out=out("x1"))(paired)  # fmt: skip
        if name in ("Mul", "Div"):
            spec(in_place, rule, _LISTS, x1=inout(first), x2=second)(paired)

    def by_one(x: list[Array], scalar: float) -> tuple[list[Array]]:
        return ([function(v, _number(scalar, x)) for v in x],)

    factor = scalar_tensor("f32", *factors)
    spec(f"aclnnForeach{name}Scalar", rule, _LISTS, by_tensor, x=first, scalar=factor,
         out=out("x"))(by_one)  # fmt: skip
    spec(f"aclnnForeach{name}ScalarV2", rule, _LISTS, x=first, scalar=number(*factors),
         out=out("x"))(by_one)  # fmt: skip
    if name in ("Mul", "Sub"):
        spec(f"aclnnForeach{name}ScalarInplace", rule, _LISTS, by_tensor, x=inout(first),
             scalar=factor)(by_one)  # fmt: skip

    several = (2.0, 3.5, 0.0, 1.0) if power else (2.5, -1.5, 0.0, 1.0, 0.75)
    whole = require("dtype(x) != 'int32' or max(scalars) % 1 == 0", refuses=None) if power else ()

    @spec(f"aclnnForeach{name}ScalarList", rule, _LISTS, whole, x=first,
          scalars=numbers("L", *several), out=out("x"))  # fmt: skip
    def each(x: list[Array], scalars: Sequence[float]) -> tuple[list[Array]]:
        return ([function(v, _number(s, x)) for v, s in zip(x, scalars, strict=True)],)


for _name, _function in _BINARY.items():
    _binary(_name, _function)


@spec("aclnnForeachPowScalarAndTensor", _RULES["Pow"], _LISTS, scalar=number(2.5, 1, 0, 0.5),
      x=_list(0, 3, "f32 f16 bf16"), out=out("x"))  # fmt: skip
def pow_of_scalar(scalar: float, x: list[Array]) -> tuple[list[Array]]:
    return ([_number(scalar, x) ** v for v in x],)


def _ternary(name: str, function: Callable[..., Array], third: TensorListDomain) -> None:
    stepwise: dict[str, Any] = {"accumulator": "output", "reason": "each step is rounded to the "
                                "dtype of the lists"}  # fmt: skip
    rule = _rule("accumulated", numbers=stepwise)
    lists: dict[str, Domain] = {"x1": _list(), "x2": _list(dtype="x1"), "x3": third}

    def single(
        x1: list[Array], x2: list[Array], x3: list[Array], scalar: Array | float
    ) -> tuple[list[Array]]:
        s = _number(scalar, x1)
        return ([function(a, b, c, s) for a, b, c in zip(x1, x2, x3, strict=True)],)

    spec(f"aclnnForeach{name}Scalar", rule, _LISTS,
         dtypes(_NUMBER.format(x="x1", number="scalar")), **lists,
         scalar=scalar_tensor("f32", 1.5, -0.5, 0, 1), out=out("x1"))(single)  # fmt: skip
    # A number has its sign in the reference of sizes too, so that sizes may cancel there.
    signed = {**stepwise, "tier": "norm|ratio", "norm": 2.0, "accumulate": 64.0}
    spec(f"aclnnForeach{name}ScalarV2", replace(rule, numbers=signed), _LISTS, **lists,
         scalar=number(1.5, -0.5, 0, 1), out=out("x1"))(single)  # fmt: skip

    @spec(f"aclnnForeach{name}ScalarList aclnnForeach{name}List", rule, _LISTS,
          dtypes(_NUMBER.format(x="x1", number="scalars")), **lists, scalars=tensor("L", "f32"),
          out=out("x1"))  # fmt: skip
    def each(x1: Array, x2: Array, x3: list[Array], scalars: list[float]) -> tuple[list[Array]]:
        rows = zip(x1, x2, x3, np.asarray(scalars), strict=True)
        return ([function(a, b, c, s) for a, b, c, s in rows],)


_ternary("Addcmul", lambda a, b, c, s: a + s * b * c, _list(dtype="x1"))
_ternary("Addcdiv", lambda a, b, c, s: a + s * b / c, _list(0.5, 3.5, "x1"))


@spec("aclnnForeachLerpList", _rule("composite"), _LISTS, x1=_list(), x2=_list(dtype="x1"),
      weight=forms(between=_list(0, 1, "x1"), any=_list(dtype="x1")), out=out("x1"))  # fmt: skip
def lerp_list(x1: list[Array], x2: list[Array], weight: list[Array]) -> tuple[list[Array]]:
    return ([a + w * (b - a) for a, b, w in zip(x1, x2, weight, strict=True)],)


@spec("aclnnForeachLerpScalar", _rule("composite"), _LISTS, x1=_list(), x2=_list(dtype="x1"),
      weight=number(0.25, 0.75, 0, 1, 0.5, -1, 2), out=out("x1"))  # fmt: skip
def lerp_scalar(x1: Array, x2: Array, weight: float) -> tuple[list[Array]]:
    return ([a + weight * (b - a) for a, b in zip(x1, x2, strict=True)],)


# The 950 takes the orders 1, 2 and inf.
@spec("aclnnForeachNorm", _rule("composite"), _LISTS, x=_list(),
      scalar=number(2.0, 1.0, float("inf")), out=out("x"))  # fmt: skip
def norm(x: Array, scalar: float) -> tuple[list[Array]]:
    if np.isinf(scalar):
        return ([np.abs(v).max(initial=0) for v in x],)
    return ([(np.abs(v) ** scalar).sum() ** (1 / scalar) for v in x],)


@spec("aclnnForeachZeroInplace", _rule("exact"), _LISTS, x=inout(_list()))
def zero(x: Array) -> tuple[list[Array]]:
    return ([np.zeros_like(v) for v in x],)


@spec("aclnnForeachNonFiniteCheckAndUnscale",
      Rule("elementary", "torch 2.13, torch._amp_foreach_non_finite_check_and_unscale_",
           values="normal nan infinite special wide tiny large"), _LISTS,
      scaledGrads=inout(_list()), foundInf=inout(scalar_tensor("f32", 0, 1)),
      invScale=scalar_tensor("f32", 0.25, 1, 0.5**16, 3))  # fmt: skip
def unscale(
    scaledGrads: list[Array], foundInf: Array, invScale: Array
) -> tuple[list[Array], Array]:
    bad = any(not np.isfinite(g).all() for g in scaledGrads)
    return [g * invScale[0] for g in scaledGrads], np.maximum(foundInf, float(bad))


# The numbers of Ascend C's RoundMode (document of Cast, CANN 8.1): rint, floor, ceil, round, trunc;
# 7 is what trunc leaves (op-plugin, _foreach_frac).
_ROUND: Final[dict[int, Any]] = {
    1: np.rint, 2: np.floor, 3: np.ceil,
    4: lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v), 5: np.trunc,
    7: lambda v: v - np.trunc(v),
}  # fmt: skip
_ROUNDED: Final = Rule("exact", "Ascend C API document, Cast: RoundMode; torch._foreach_round and "
                       "its kin", values="normal halves special wide tiny large")  # fmt: skip


def round_off(x: Array, roundMode: Array | int) -> tuple[list[Array]]:
    return ([_ROUND[int(np.asarray(roundMode).item())](v) for v in x],)


spec("aclnnForeachRoundOffNumberV2", _ROUNDED, _LISTS, x=_list(), roundMode=number(*_ROUND),
     out=out("x"))(round_off)  # fmt: skip
spec("aclnnForeachRoundOffNumber", _ROUNDED, _LISTS, x=_list(),
     roundMode=scalar_tensor("i8", *_ROUND), out=out("x"))(round_off)  # fmt: skip
