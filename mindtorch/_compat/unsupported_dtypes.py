"""Owns how a row says which dtypes torch's kernels lack, on every device or on its cpu alone.

A row's `unsupported` are groups of dtypes with what torch raises for them: a kernel's name, as in
"addmm_impl_cpu_" not implemented for 'Bool', or another sentence. Source: torch 2.13 on cpu, each
row called in each dtype; `tests/mindtorch/test_dtypes_agreement.py` asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import local
from typing import TypeAlias

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry
from .._tensor.text_files import text_beside
from ..ops.rules import Pointwise, result_type, scalar_name

_GROUPS = {
    "bool": (dt.bool,),
    "whole": tuple(d for d in dt.ALL if d.category == dt.INTEGER),
    "narrow": tuple(d for d in dt.ALL if d.category == dt.INTEGER and d is not dt.int64),
    "short": (dt.uint8, dt.int8, dt.int16),
    "signed": (dt.int8, dt.int16, dt.int32, dt.int64),
    "half": (dt.float16, dt.bfloat16),
    "real": (dt.float32, dt.float64),
    "complex": tuple(d for d in dt.ALL if d.category == dt.COMPLEX),
}


_FLOAT8 = frozenset(d for d in dt.STORED if d._name.startswith("float8"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """What torch raises for a dtype: a text, `{dtype}` in it its name, and the error's class.

    `first`: torch asks the first tensor's dtype alone in a pointwise row. `unless`: calls that
    torch takes all the same. `cpu_alone`: kernels of torch's other backends take the dtype.
    """

    text: str
    error: type[Exception] = RuntimeError
    first: bool = False
    unless: Callable[[Sequence[object]], bool] | None = None
    cpu_alone: bool = False


def kernel(
    name: str,
    first: bool = False,
    unless: Callable[[Sequence[object]], bool] | None = None,
    cpu_alone: bool = False,
) -> Refusal:
    """The refusal of a kernel that has no code for a dtype."""
    text = f"\"{name}\" not implemented for '{{dtype}}'"
    return Refusal(text, NotImplementedError, first, unless, cpu_alone)


def halves_elsewhere(groups: str, name: str) -> dict[str, str | Refusal]:
    """The dtypes that a kernel lacks on every device, and halves, which it lacks on cpu alone."""
    return {groups: name, "half": kernel(name, cpu_alone=True)}


def several_dtypes(args: Sequence[object]) -> bool:
    """Whether tensors differ in dtype, which torch refuses before it looks for a kernel."""
    return len({a.dtype for a in args if isinstance(a, Geometry)}) > 1


class _References(local):
    """Whether rows stand for other devices, which have half where torch's cpu lacks it.

    `passed`: a row was let through. `native`: a plan was made that numpy does not run.
    """

    active = False
    passed = False
    native = False


REFERENCES = _References()

# Groups of dtypes, with blanks between -> a kernel's name or another refusal.
UnsupportedDtypes: TypeAlias = Mapping[str, "str | Refusal"]


@cache
def dtypes(groups: str) -> frozenset[Dtype]:
    """The dtypes of groups: "bool whole"."""
    return frozenset(d for name in groups.split() for d in _GROUPS[name])


@cache
def _float8_kernels() -> dict[str, str]:
    """Row → the kernel that refuses float8."""
    text = text_beside(__file__, "float8_kernels.txt")
    lines = [line.split() for line in text.splitlines()]
    return {row: kernel for kernel, *rows in lines if kernel != "#" for row in rows}


# What torch's cpu has of the kernels that refuse float8, for pairs of halves.
_OF_PAIRS_NAMES = """
    abs add addcmul diff eq index_fill isclose isfinite isinf isnan masked_fill mul ne neg
    nonzero sgn sub tril triu where
"""
_OF_PAIRS = frozenset(_OF_PAIRS_NAMES.split())
# And what it lacks of them for unsigned integers.
_NOT_OF_UNSIGNED_NAMES = """
    _prelu_kernel add addcmul amax amin argmax.along argmin.along binary_cross_entropy bmm
    bitwise_left_shift bitwise_not bitwise_right_shift cholesky_inverse cholesky_solve
    clamp_max.Tensor clamp_min.Tensor cummax cummin elu floor_divide fmod frac gather gcd ge
    gelu geqrf gt hardshrink hardswish hardtanh heaviside huber_loss hypot igamma igammac
    kthvalue lcm le leaky_relu logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor lt max maximum median min minimum mish mse_loss nanmedian neg nextafter nonzero
    pow pow.Scalar relu remainder scatter.src scatter_add sgn sign silu smooth_l1_loss softplus
    softshrink sub threshold topk
"""
_NOT_OF_UNSIGNED = frozenset(_NOT_OF_UNSIGNED_NAMES.split())


_STORED = frozenset((dt.float16, dt.complex32, *dt.UNSIGNED, *_FLOAT8))  # or lead to such


def refuse_stored(name: str, infer: Callable[..., object] | None, args: Sequence[object]) -> None:
    """torch's refusal of a dtype that torch's cpu stores and copies, and computes little with:
    float8, complex32, and unsigned integers."""
    flat = [a[0] if isinstance(a, tuple) and a else a for a in args]
    kinds = [a.dtype for a in flat if isinstance(a, Geometry)]
    if not _STORED.intersection(kinds):
        return
    pairs = dt.complex32 in kinds
    if not pairs and dt.float16 in kinds and isinstance(infer, Pointwise):
        pairs = result_type(infer.operands(args)[infer.skip :]) is dt.complex32
    floats = [d for d in kinds if d.is_floating_point]
    if pairs and name not in _OF_PAIRS:
        first = dt.complex32
    elif kinds and kinds[0] in dt.UNSIGNED and name in _NOT_OF_UNSIGNED:
        first = kinds[0]
        if len({*kinds[:2]}) > 1 and not name.startswith(("gather", "scatter")):
            return  # refused by promotion
    elif len(set(floats)) == 1 and floats[0] in _FLOAT8 and not pairs:
        first = floats[0]  # others are refused by promotion
    else:
        return
    if not REFERENCES.active and name in _float8_kernels():
        refusal = kernel(_float8_kernels()[name])
        raise refusal.error(refusal.text.format(dtype=scalar_name(first)))


def refuse(
    unsupported: UnsupportedDtypes,
    infer: Callable[..., object] | None,
    args: Sequence[object],
    device: str = "cpu",
) -> None:
    """An error of torch's class and words where a type of device lacks the dtype of a call; what
    no backend of torch has is named by its cpu's kernel everywhere.

    The dtype is the operands' common one in pointwise rows, else that of the first tensor, or the
    one asked for where there is none; `args` has Geometries for tensors.
    """
    flat = [a[0] if isinstance(a, tuple) and a else a for a in args]
    requested = next((a for a in flat if isinstance(a, Dtype)), None)
    first = next((a.dtype for a in flat if isinstance(a, Geometry)), requested)
    common = first
    if isinstance(infer, Pointwise):
        common = result_type(infer.operands(args)[infer.skip :])
    for groups, kernel_or_refusal in unsupported.items():
        refusal = (
            kernel(kernel_or_refusal) if isinstance(kernel_or_refusal, str) else kernel_or_refusal
        )
        dtype = first if refusal.first else common
        if dtype is None or dtype not in dtypes(groups):
            continue
        if refusal.cpu_alone and device != "cpu":
            continue
        if refusal.unless is not None and refusal.unless(args):
            continue
        if REFERENCES.active and dtype in dtypes("half"):
            REFERENCES.passed = True
        else:
            raise refusal.error(refusal.text.format(dtype=scalar_name(dtype)))
