"""Owns the groups of fields of an `Op`: kernels, dtypes, writes, api, testing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from .._compat.unsupported_dtypes import UnsupportedDtypes
from .costs import Count, elements


@dataclass(frozen=True, slots=True)
class AclnnCall:
    """One ACLNN call: op name and arguments in header order.

    An argument is a string (the schema's argument of that name; "out" or the result's name for
    results), `ListOf`, a `Const`, or an `Expr`. `when(args)` (a dict by schema name, tensors as
    Geometry) says whether this call applies; the first that does is taken. `inplace` marks a call
    that writes to its first tensor argument.
    """

    name: str
    args: tuple[Any, ...]
    when: Callable[[dict[str, Any]], bool] | None = None
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """A literal in an ACLNN call: number, bool, string or tuple of ints."""

    value: Any


@dataclass(frozen=True, slots=True)
class Expr:
    """A value computed from the arguments (dict by schema name, tensors as Geometry)."""

    compute: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A tensor list of several arguments, those that are None left out, or of several results."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernels:
    """What runs an op on each device type."""

    # Takes and returns numpy arrays: the reference.
    cpu: Callable[..., Any] | None = None
    # Writes to its first array: for ops that touch few elements of a large tensor.
    cpu_inplace: Callable[..., Any] | None = None
    # Is called with the arrays alone where every `Scalar` is left at its default (`np.add`).
    cpu_plain: Callable[..., Any] | None = None
    # The dtype in which numpy computes: "opmath" (float32 for halves) or "exact" (the input's own).
    compute: str = "opmath"
    # Calls on npu; the first whose condition holds is taken.
    aclnn: tuple[AclnnCall, ...] = ()
    # Device type -> what that device lacks to run the op.
    absent: Mapping[str, str] = field(default_factory=dict)
    # (args, outs) of a plan -> a check of the values of its numbers at each call, or None.
    refuses: Callable[..., Callable[..., None] | None] | None = None
    # Geometries of a plan -> (place of an argument, or of an item of a list; lowest; highest + 1;
    # what is let pass) of indices whose values cpu's kernel refuses and a device's does not.
    bounds: Callable[..., Iterable[tuple[Any, ...]]] | None = None


@dataclass(frozen=True, slots=True)
class Dtypes:
    """What an op does with dtypes, beside its `infer` rule."""

    # Dtypes that torch's cpu refuses here (`_compat/unsupported_dtypes.py`).
    unsupported: UnsupportedDtypes = field(default_factory=dict)
    # Under autocast: "lower" (its dtype), "float32", "as given" (and so what it calls), of these
    # those that end with " on npu" or " on cpu" there alone; "": as what it calls.
    autocast: str = ""
    # Beside halves, a second operand without dimensions keeps its digits.
    exact_scalar: bool = False
    # What `out=` of another dtype does (`_dispatch/out_dtypes.py`); "": cast.
    out: str = ""


@dataclass(frozen=True, slots=True)
class Writes:
    """What an op may write, and where."""

    # It has an in-place form, `name_`; a view's changes the geometry of the tensor itself.
    inplace: bool = False
    # The in-place form writes into any dtype.
    casts_inplace: bool = False
    # It may write where elements share memory, since it writes one value. Words: what users write
    # for it, which torch deprecates there.
    overlaps: bool | str = False
    # What it writes, in place or to `out=`, may share no memory with what it reads.
    apart: bool = False
    # A view that may reach past its storage, which is then refused.
    unbounded: bool = False


@dataclass(frozen=True, slots=True)
class Api:
    """Where users find an op, and what its functions take beyond the schema."""

    # Words, separated by blanks: "function" (torch.name), "method" (Tensor.name), "both", "none",
    # "nn" (torch.nn.functional.name), "nn_" (its form that writes, for a row with an argument
    # `inplace`), "linalg", "fft", "special" (torch.linalg.name, for rows called linalg_name).
    # "auto": by the name's beginning linalg, fft or special; "none" of names that begin with "_" or
    # end with "_backward"; "nn" of the folder nn. Of the others "both" where the first argument is
    # `self`, else "function".
    surface: str = "auto"
    # What it computes, for `help`; default: the body's docstring, else what the schema says.
    summary: str = ""
    # The function takes the tensors of its list one by one too; "alone": users give no list.
    variadic: bool | str = False
    # The first operand of the function may be a Python number.
    number_first: bool = False


@dataclass(frozen=True, slots=True)
class Testing:
    """How an op is tested, checked and measured."""

    # The calls that tests and `check` begin with.
    samples: Callable[[], Sequence[Any]] | None = None
    # Why there are no samples.
    unsampled: str = ""
    # A class of the judge's table, and one of its rules where the class has other numbers here. A
    # row that says none has its folder's (`spec.py`).
    tolerance: str = "elementary"
    rule: str = ""
    # torch -> its function, where neither torch.name nor Tensor.name is it.
    oracle: Callable[..., Any] | None = None
    # Counts bytes and operations (`costs.py`), for `bench` and the FLOP counter.
    cost: Count = elements
    # Sizes of the samples' inputs belong together: no check changes them.
    fixed_shape: bool = False
    # It reads storage itself, so that layouts change its results.
    layout_bound: bool = False
    # Where elements tie, any of their indices is right.
    ties: bool = False


GROUPS: dict[str, type[Any]] = {
    "kernels": Kernels, "dtypes": Dtypes, "writes": Writes, "api": Api, "testing": Testing,
}  # fmt: skip
# Field of a declaration -> the group that has it.
GROUP_OF = {f.name: group for group, record in GROUPS.items() for f in fields(record)}


def grouped(declared: Mapping[str, Any], direct: frozenset[str]) -> dict[str, Any]:
    """The fields of a declaration in their groups; TypeError for one that no op has."""
    groups: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    plain: dict[str, Any] = {}
    for name, value in declared.items():
        if name in direct:
            plain[name] = value
        elif name in GROUP_OF:
            groups[GROUP_OF[name]][name] = value
        else:
            raise TypeError(_unknown(name, direct))
    return plain | {group: GROUPS[group](**values) for group, values in groups.items()}


def _unknown(name: str, direct: frozenset[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, sorted({*direct, *GROUP_OF}), 1)
    return f"an op has no field '{name}'" + (f"; nearest: '{close[0]}'" if close else "")
