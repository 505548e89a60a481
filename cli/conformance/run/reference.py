"""Owns references: the row evaluated on the CPU in float64 (or exact integers), and its scale."""

from __future__ import annotations

import dis
import linecache
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.ops import OPS, Op
from mindtorch.testing.placement import from_host, to_host

from ...judge.classes import Requirement
from ...judge.formats import FORMATS
from ...judge.metrics import identical
from ...judge.precision import Array, format_of, name_of, numpy_dtype, wide
from ..cases.recipe import Recipe, Slot
from .tensors import call, dtype_name, results

OWN_MODULE = "mindtorch_golden_"  # how the names of modules of golden_files.py begin
_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64",
         "complex64": "complex128"}  # fmt: skip


class LazySequence(Sequence[Any]):
    """Arrays computed when one is first asked for: results that are right bit for bit need none."""

    def __init__(self, count: int, compute: Callable[[], list[Any]]) -> None:
        self._count, self._compute = count, compute
        self._known: list[Any] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if self._known is None:
            with torch.no_grad(), np.errstate(all="ignore"):
                self._known = self._compute()
        return self._known[place]


@dataclass(frozen=True, slots=True)
class Golden:
    """Arrays: `native` in the tested precision, whose dtypes and shapes results must have;
    `values` the reference; `scale` the reference on absolute values, or None per result;
    `groups`, for operators with lists of results, which of them each parameter gets;
    `moved` are the positions of inputs that the reference writes: the last results are those."""

    native: list[Any]
    values: list[Any]
    scale: Sequence[Any]
    groups: tuple[Any, ...] = ()
    moved: tuple[int, ...] = ()

    def only(self, indices: list[int]) -> Golden:
        """Those results of it."""
        native, values = ([part[k] for k in indices] for part in (self.native, self.values))
        scale = LazySequence(len(indices), lambda: [self.scale[k] for k in indices])
        return Golden(native, values, scale)


class ReferenceRefusesError(Exception):
    """The CPU reference raised: there is nothing to compare with. `cause` is what it raised;
    `defect` says that nobody meant to raise it."""

    def __init__(self, cause: Exception) -> None:
        first = str(cause).splitlines()[0] if str(cause) else ""
        super().__init__(f"{type(cause).__name__}: {first}{_own_line(cause)}")
        self.cause = cause
        self.defect = not deliberate(cause)


def _own_line(error: Exception) -> str:
    """The last line of a person's own file that an error passed through; "" for built-in rows."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)
              if f.f_globals.get("__name__", "").startswith(OWN_MODULE)]  # fmt: skip
    if not frames:
        return ""
    lines = {id(f): n for f, n in traceback.walk_tb(error.__traceback__)}
    path, number = frames[-1].f_code.co_filename, lines[id(frames[-1])]
    return f" ({path} line {number}: {linecache.getline(path, number).strip()})"


def deliberate(error: Exception) -> bool:
    """Whether a `raise` of ours refused, rather than numpy or Python in the midst of computing."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    code = trace.tb_frame.f_code
    return code.co_code[trace.tb_lasti] == _RAISE and not code.co_filename.startswith(_NUMPY)


_RAISE = dis.opmap["RAISE_VARARGS"]
_NUMPY = str(Path(np.__file__).parent)


def golden(op: Op, recipe: Recipe, need: Requirement, form: str) -> Golden:
    """References of a case; ReferenceRefusesError if the CPU does not take the inputs."""
    with torch.no_grad(), np.errstate(all="ignore"):
        native, moved = _native(op, recipe, form)
        floats = [dtype_name(t) in _WIDE or dtype_name(t) == "float64" for t in native]
        plain = not any(floats) and not any(t.is_complex() for t in native)
        # Exact ops are exact in their own precision; constants such as finfo.max depend on it.
        if plain or need.tier == "T0":
            arrays = [to_host(t) for t in native]
            return Golden(arrays, [lifted(a) for a in arrays], [None] * len(native), moved=moved)
        common = _common(op, recipe, native, form)
        values = [to_host(t) for t in _reference(op, recipe, common, form, moved)]
        values = [v if f else to_host(t) for v, f, t in zip(values, floats, native, strict=True)]
        scale = LazySequence(len(native), lambda: _scale(op, recipe, need, common))
        return Golden([to_host(t) for t in native], values, scale, moved=moved)


def lifted(array: Array) -> Array:
    """Floats in float64, which holds them exactly, so that differences have sizes."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if format_of(name_of(array)) else array


def _native(op: Op, recipe: Recipe, form: str) -> tuple[list[Any], tuple[int, ...]]:
    """The results in the tested precision, then the inputs that were written, and which."""
    tensors: list[Tensor] = []
    try:
        args, kwargs = recipe.fill(_noting(tensors, lambda slot: from_host(slot.array)))
        outputs = call(op, args, kwargs, "inplace" if form == "inplace" else "functional")
    except Exception as error:
        raise ReferenceRefusesError(error) from error
    moved: tuple[int, ...] = ()
    if form != "inplace" and op.body is not None:
        # Other rows declare what they write.
        pairs = enumerate(zip(recipe.slots, tensors, strict=True))
        moved = tuple(k for k, (s, t) in pairs if not identical(to_host(t), s.array).all())
    return results(outputs) + [tensors[k] for k in moved], moved


def _noting(tensors: list[Tensor], make: Callable[[Slot], Tensor]) -> Callable[[Slot], Tensor]:
    def noted(slot: Slot) -> Tensor:
        tensors.append(make(slot))
        return tensors[-1]

    return noted


def _common(op: Op, recipe: Recipe, native: list[Any], form: str) -> list[Any]:
    """Results in the dtypes that they are computed in: those of the functional form, where an
    operand of another dtype is written into the first."""
    first = recipe.slots[0].arg.dtype if recipe.slots else ""
    if form != "inplace" or all(s.arg.dtype == first for s in recipe.slots):
        return native
    args, kwargs = recipe.fill(lambda slot: from_host(slot.array))
    return results(call(op, args, kwargs, "functional"))


def _reference(
    op: Op, recipe: Recipe, native: list[Any], form: str, moved: tuple[int, ...]
) -> list[Any]:
    inplace = "inplace" if form == "inplace" else "functional"
    tensors: list[Tensor] = []
    args, kwargs = recipe.fill(_noting(tensors, _widen(recipe, native)), _number(native))
    if getattr(kwargs.get("dtype"), "is_floating_point", False):
        kwargs = {**kwargs, "dtype": torch.float64}
    return results(call(op, args, kwargs, inplace)) + [tensors[k] for k in moved]


def _widen(recipe: Recipe, native: list[Any]) -> Callable[[Slot], Tensor]:
    """Floats become float64; integers too where the result is a float only because of them."""
    only_integers = not any(s.arg.dtype in _WIDE or s.arg.dtype in ("float64", "complex128")
                            for s in recipe.slots)  # fmt: skip
    whole = only_integers and all(t.is_floating_point() for t in native)

    result = dtype_name(native[0]) if native else ""
    together = numpy_dtype(_PARTS.get(result, result)) if _promoted(recipe, result) else None

    def widen(slot: Slot) -> Tensor:
        target = _WIDE.get(slot.arg.dtype)
        if target is None and whole:
            target = "float64"
        if together and slot.arg.dtype in _CONVERTED and not getattr(slot.arg, "size", 0):
            # Operands are converted to the common dtype first, which rounds large integers.
            return from_host(wide(slot.array.astype(together)).astype(np.float64))
        return from_host(slot.array if target is None else slot.array.astype(target))

    return widen


_CONVERTED = frozenset(("int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16",
                        "float32", "float64"))  # fmt: skip
_PARTS = {"complex64": "float32", "complex128": "float64"}


def _promoted(recipe: Recipe, result: str) -> bool:
    """Whether operands of other types meet in an operation element by element."""
    return (
        recipe.together
        and any(s.arg.dtype != result for s in recipe.slots)
        and (result in FORMATS or result in _PARTS)
    )


def _number(native: list[Any]) -> Any:
    """Python floats reach kernels in float32 unless the result is wider: round them as well."""
    if any(dtype_name(t) in ("float64", "complex128") for t in native):
        return None
    return lambda value: float(np.float32(value)) if value.__class__ is float else value


def _scale(op: Op, recipe: Recipe, need: Requirement, native: list[Any]) -> list[Any]:
    nothing: list[Any] = [None] * len(native)
    if not need.magnitude or "ratio" not in need.tier:
        return nothing
    other = op if need.magnitude == "self" else OPS.get(need.magnitude)
    if other is None:
        return nothing
    widen = _widen(recipe, native)

    def magnitude(slot: Slot) -> Tensor:
        if slot.arg.dtype not in FORMATS and not slot.arg.dtype.startswith("complex"):
            return widen(slot)
        return from_host(np.abs(to_host(widen(slot))))

    def size(value: Any) -> Any:
        # Dimensions are integers and keep their sign.
        return abs(value) if value.__class__ is float else value

    args, kwargs = recipe.fill(magnitude, size)
    for name in ("alpha", "beta"):
        if isinstance(kwargs.get(name), int):
            kwargs[name] = abs(kwargs[name])
    try:
        return [to_host(t) for t in results(call(other, args, kwargs))]
    except Exception:
        return nothing
