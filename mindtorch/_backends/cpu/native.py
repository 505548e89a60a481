"""Owns native kernels of cpu tensors: which rows have one, and how a row's ACLNN call becomes it.

The kernels are the simulator's loops over host memory (`kernels/`), taken for the rows and sizes
where they were measured to win (`benchmarks/native.py`). A kernel that does not take its
arguments, or stops at them, leaves the call to numpy's, which raises what torch raises.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ..._compat.unsupported_dtypes import REFERENCES
from ..._tensor.dtype import FLOAT, bfloat16, dtype as Dtype, float16, float32, float64
from ..._tensor.geometry import Geometry
from ..._tensor.slots import fresh
from ..._tensor.tensor import Tensor
from ...ops.fields import AclnnCall, Const
from ...ops.rules import NUMBERS, Pointwise, Results
from ...ops.schema import ArgKind
from ...ops.source import compiled
from ...ops.spec import Op
from ..common.named import metadata, positions
from ..registry import registry
from .kernel_selection import FASTER_FROM
from .narrow_kernel_selection import FASTER_WITHOUT_WIDE_VECTORS

try:
    from ._kernels import ffi as ffi, lib as lib
except ImportError:  # a tree that was not built
    ffi = lib = None

_MOST_DIMS = 8  # of a kernel's tensors
_LIMIT = 16  # kernels kept per plan for numbers that change
_SMALL = 1 << 15  # elements below which a kernel for every number costs more than it gains
_ROOM = 256  # bytes of a message
_FEWEST = 4  # elements that were measured, for which fewer stand
# Rows whose statistics have no elements in evaluation, and are absent to the kernel.
_ABSENT_IF_EMPTY = {"_batch_norm_backward"}


def built() -> bool:
    """Whether the kernels are there."""
    return lib is not None


def wide_vectors() -> bool:
    """Whether numpy's functions run by vectors of 64 bytes: many have no narrower ones."""
    core = sys.modules.get("numpy._core._multiarray_umath")
    core = core or sys.modules["numpy.core._multiarray_umath"]
    return bool(core.__dict__["__cpu_features__"].get("AVX512_SKX"))


WINDOWS = FASTER_FROM if wide_vectors() else {
    row: FASTER_FROM.get(row, {}) | FASTER_WITHOUT_WIDE_VECTORS.get(row, {})
    for row in FASTER_FROM.keys() | FASTER_WITHOUT_WIDE_VECTORS.keys()
}  # fmt: skip
_NAMES = frozenset(variant.partition(" ")[0] for variant in WINDOWS)


class Switch:
    """Whether plans may take native kernels; `everywhere`: wherever one fits, for tests.

    MINDTORCH_NATIVE says it for a process: 0, 1 (the default), or everywhere.
    """

    def __init__(self) -> None:
        setting = os.environ.get("MINDTORCH_NATIVE", "1")
        self.enabled = lib is not None and setting != "0"
        self.everywhere = setting == "everywhere"


switch = Switch()


@contextmanager
def flags(*, enabled: bool, everywhere: bool = False) -> Iterator[None]:
    """Within it native kernels are taken or not; RuntimeError where they were not built."""
    if enabled and lib is None:
        raise RuntimeError("the native cpu kernels were not built: reinstall with a C++17 compiler")
    before = switch.enabled, switch.everywhere
    switch.enabled, switch.everywhere = enabled, everywhere
    registry.on_change()
    try:
        yield
    finally:
        switch.enabled, switch.everywhere = before
        registry.on_change()


class NoKernelError(Exception):
    """No native kernel for these arguments."""


class KernelBinding:
    """One row's call with every argument but addresses and numbers decided."""

    def __init__(self, op: Op, args: Sequence[Any], outs: Sequence[Geometry]):
        self.op, self.outs = op, outs
        self.names, self.results = positions(op)
        self.call, self.letters = self._choose(args)
        self.rooms: list[Any] = []  # of each place, see _room

    def _choose(self, args: Sequence[Any]) -> tuple[AclnnCall, str]:
        named = self._named(args)
        for call in self.op.kernels.aclnn:
            if call.when is None or call.when(named):
                letters = _letters(call.name)
                if call.inplace or letters is None or len(letters) != len(call.args):
                    raise NoKernelError
                return call, letters
        raise NoKernelError

    def _named(self, args: Sequence[Any]) -> dict[str, Any]:
        named = dict(zip(self.names, (metadata(a) for a in args), strict=True))
        for name, k in self.results.items():
            named.setdefault(name, self.outs[k])
        return named

    def kernel(self, args: Sequence[Any]) -> tuple[Any, list[tuple[str, int, int]]]:
        """The kernel for these numbers, and where its addresses come from: ("a", i, -1) argument
        i, ("l", i, m) its member m, ("o", k, -1) result k. Raises Refusal."""
        try:
            return self._kernel(args)
        except OverflowError as error:  # an int of more than 64 bits
            raise NoKernelError(str(error)) from None

    def _kernel(self, args: Sequence[Any]) -> tuple[Any, list[tuple[str, int, int]]]:
        kernel = ffi.gc(lib.mtk_new(self.call.name.encode()), lib.mtk_free)
        named = self._named(args)
        self.rooms = []
        places: list[tuple[str, int, int]] = []
        for at, (letter, value) in enumerate(zip(self.letters, self.call.args, strict=True)):
            if isinstance(value, Const):
                _put(kernel, at, letter, value.value)
            elif not isinstance(value, str):
                _put(kernel, at, letter, value.compute(named))
            elif value.endswith("_math_type"):
                lib.mtk_integer(kernel, at, 0)
            elif value in self.names:
                self._input(kernel, at, letter, args[self.names[value]], self.names[value], places)
            else:
                k = self.results[value]
                if not self.outs[k].numel:  # absent: the check refuses what has to be written
                    continue
                places.append(("o", k, -1))
                self.rooms.append(_room(self.outs[k]))
                _tensor(kernel, at, self.outs[k], len(places) - 1)
        message = ffi.new("char[]", _ROOM)
        if lib.mtk_check(kernel, message, _ROOM):
            raise NoKernelError(ffi.string(message).decode())
        return kernel, places

    def _input(
        self, kernel: Any, at: int, letter: str, value: Any, i: int,
        places: list[tuple[str, int, int]],
    ) -> None:  # fmt: skip
        if isinstance(value, Tensor):
            if letter != "T":
                raise NoKernelError
            if not value._geom.numel and self.op.name in _ABSENT_IF_EMPTY:
                return
            places.append(("a", i, -1))
            self.rooms.append(_room(value._geom))
            _tensor(kernel, at, value._geom, len(places) - 1)
        elif letter == "t":
            if value.__class__ is not tuple or not all(isinstance(v, Tensor) for v in value):
                raise NoKernelError
            for member, tensor in enumerate(value):
                places.append(("l", i, member))
                self.rooms.append(_room(tensor._geom))
                _tensor(kernel, at, tensor._geom, len(places) - 1, member, len(value))
        else:
            _put(kernel, at, letter, value)


def _tensor(
    kernel: Any, at: int, geom: Geometry, place: int, member: int = -1, members: int = 0
) -> None:
    if geom.ndim > _MOST_DIMS or geom.device.type != "cpu":
        raise NoKernelError
    lib.mtk_tensor(
        kernel, at, member, members, place, _code(geom.dtype), geom.ndim, list(geom.shape),
        list(geom.strides), geom.offset, geom.extent,
    )  # fmt: skip


@cache
def _code_of(name: str) -> int:
    code: int = lib.mtk_dtype(name.encode())
    return code


def _code(dtype: Dtype) -> int:
    code = _code_of(dtype.acl)
    if code < 0:
        raise NoKernelError
    return code


@cache
def _letters(name: str) -> str | None:
    """The kinds of an operator's parameters, None where there is no such kernel."""
    letters = lib.mtk_parameters(name.encode())
    text: str | None = None if letters == ffi.NULL else ffi.string(letters).decode()
    return text


_SCALARS: dict[type, tuple[str, Callable[[Any], bytes]]] = {
    bool: ("BOOL", struct.Struct("?").pack),
    int: ("INT64", struct.Struct("q").pack),
    float: ("DOUBLE", struct.Struct("d").pack),
    complex: ("COMPLEX128", lambda value: struct.pack("dd", value.real, value.imag)),
}


def _put(kernel: Any, at: int, letter: str, value: Any) -> None:
    """A value that is no tensor; absent where it is None."""
    if value is None:
        if letter not in "TtSsIBF":
            raise NoKernelError
    elif letter == "S" and value.__class__ in _SCALARS:
        name, pack = _SCALARS[value.__class__]
        try:
            data = pack(value)
        except struct.error as error:
            raise OverflowError(str(error)) from None
        lib.mtk_scalar(kernel, at, _code_of(name), data, len(data))
    elif letter == "I" and value.__class__ is tuple and all(type(v) is int for v in value):
        lib.mtk_ints(kernel, at, len(value), list(value))
    elif letter == "B" and value.__class__ is tuple:
        lib.mtk_flags(kernel, at, len(value), list(value))
    elif letter == "b":
        lib.mtk_flag(kernel, at, bool(value))
    elif letter == "i" and isinstance(value, Dtype):
        lib.mtk_integer(kernel, at, _code(value))
    elif letter == "i" and isinstance(value, int):
        # Above 63 bits only parameters that are unsigned in the header have values.
        lib.mtk_integer(kernel, at, value - (1 << 64) if value >> 63 == 1 else value)
    elif letter == "f" and isinstance(value, int | float):
        lib.mtk_number(kernel, at, float(value))
    elif letter == "c" and isinstance(value, str):
        lib.mtk_text(kernel, at, value.encode())
    else:
        raise NoKernelError


def instead(
    op: Op, args: Sequence[Any], outs: Results, plain: Callable[..., Any]
) -> Callable[..., Any]:
    """`run(*args)` with a native kernel where one wins, else `plain`."""
    if not switch.enabled or REFERENCES.active or not _in_window(op, args, outs):
        return plain
    geoms = [g for g in outs if g.__class__ is Geometry]
    try:
        binding = KernelBinding(op, args, geoms)
        first = binding.kernel(args)
    except NoKernelError:
        return plain
    return _run(binding, args, first, geoms, plain)


def instead_into(
    op: Op, args: Sequence[Any], outs: Results, dests: Sequence[Geometry],
    plain: Callable[..., None],
) -> Callable[..., None]:  # fmt: skip
    """`run(dests, *args)` of a pointwise row with a native kernel where one wins, else `plain`."""
    if not switch.enabled or REFERENCES.active or not isinstance(op.infer, Pointwise):
        return plain
    if not _in_window(op, args, outs):
        return plain
    out = outs[0]
    if len(dests) != 1 or out.__class__ is not Geometry:
        return plain
    if dests[0].dtype is not out.dtype or dests[0].shape != out.shape:
        return plain
    try:
        binding = KernelBinding(op, args, dests)
        first = binding.kernel(args)
    except NoKernelError:
        return plain
    return _run_into(binding, args, first, plain)


# What a row's numpy kernel refuses by its values or arguments, and a native one computes. Indices
# out of range are not here: there native kernels stop.
_REFUSED_BY_NUMPY: dict[str, Callable[[Sequence[Any], Geometry], bool]] = {
    "binary_cross_entropy": lambda args, first: True,
    "div.mode": lambda args, first: first.dtype.category < FLOAT,  # by zero
    "floor_divide": lambda args, first: first.dtype.category < FLOAT,
    "fmod": lambda args, first: first.dtype.category < FLOAT,
    "threshold": lambda args, first: first.dtype.category < FLOAT,  # a value beyond its range
    "remainder": lambda args, first: first.dtype.category < FLOAT,
}


def _in_window(op: Op, args: Sequence[Any], outs: Results) -> bool:
    if not op.kernels.aclnn or (op.name not in _NAMES and not switch.everywhere):
        return False
    results = [g for g in outs if isinstance(g, Geometry)]
    if not results or len(results) < len(outs):
        return False
    operands = _geometries(args)
    if op.name in _ABSENT_IF_EMPTY:
        operands = (g for g in operands if g.numel)
    geoms = [*(g for g in results if g.numel), *operands]
    if not any(g.numel for g in results):
        return False
    if any(not g.numel or g.device.type != "cpu" for g in geoms) or not _one_dtype(op, args):
        return False
    first = next(_geometries(args), geoms[0])
    refused = _REFUSED_BY_NUMPY.get(op.name)
    if refused is not None and refused(args, first):
        return False
    if switch.everywhere:
        return True
    window = _windows(variant(op, args, first)).get(repr(first.dtype).removeprefix("torch."))
    if window is None:
        return False
    size = max(_FEWEST, *(g.numel for g in geoms))
    return window[0] <= size and (size <= window[1] or not window[1])


def _windows(name: str) -> Mapping[str, tuple[int, int]]:
    """Of a row as `variant` calls it; of views, where none is told of, those of the row itself."""
    sizes = WINDOWS.get(name)
    plain = name.replace(" of a view", "", 1) if name not in _DENSE_ALONE else name
    return WINDOWS.get(plain, {}) if sizes is None else sizes


# Rows that numpy computes sooner of elements that do not lie side by side.
_DENSE_ALONE = {"digamma of a view", "logaddexp of a view"}


def variant(op: Op, args: Sequence[Any], first: Geometry) -> str:
    """The row as the table knows it: whether its first tensor is a view with gaps or another order,
    of one with `groups` whether there are several, of one with `dim` whether those are the last."""
    name = op.name if first.contiguous else f"{op.name} of a view"
    groups = next((i for i, a in enumerate(op.schema.args) if a.name == "groups"), None)
    if groups is not None and args[groups] != 1:
        return f"{name} by groups"
    at = next((i for i, a in enumerate(op.schema.args) if a.name == "dim"), None)
    if at is None or args[at] is None or args[at] == ():
        return name
    dims = args[at] if args[at].__class__ is tuple else (args[at],)
    if not all(d.__class__ is int for d in dims):
        return name
    rank = max(first.ndim, 1)
    places = sorted(d % rank for d in dims)
    trailing = places == list(range(rank - len(places), rank))
    return f"{name} along the last" if trailing else f"{name} along others"


def _geometries(args: Sequence[Any]) -> Iterator[Geometry]:
    for value in args:
        if isinstance(value, Tensor):
            yield value._geom
        elif value.__class__ is tuple:
            yield from _geometries(value)


def _one_dtype(op: Op, args: Sequence[Any]) -> bool:
    """Whether a pointwise row's operands need no cast."""
    rule = op.infer
    if not isinstance(rule, Pointwise):
        return True
    operands = [args[i] for i in rule.positions[rule.skip :]]
    common = rule.common([metadata(a) for a in args])
    return all(v._geom.dtype is common for v in operands if isinstance(v, Tensor))


class _Kernels:
    """Kernels of one plan by the numbers they were made with, a bounded number of them."""

    def __init__(self, binding: KernelBinding, args: Sequence[Any], first: tuple[Any, Any]):
        self.binding, (kernel, self.places) = binding, first
        declared = binding.op.schema.args
        self.numbers = [
            i
            for i, arg in enumerate(declared)
            if arg.kind in (ArgKind.SCALAR, ArgKind.UNION) and args[i].__class__ in NUMBERS
        ]
        key = tuple([args[i] or repr(args[i]) for i in self.numbers])
        self.by_key: dict[Any, Any] = {key: kernel}

    def add(self, key: Any, args: Sequence[Any]) -> Any:
        """Make and keep the kernel for these arguments' numbers; False where numpy is to run."""
        if len(self.by_key) >= _LIMIT:
            if max(g.numel for g in self.binding.outs) < _SMALL:
                return False
            self.by_key.clear()
        try:
            kernel = self.binding.kernel(args)[0]
        except NoKernelError:
            kernel = False
        self.by_key[key] = kernel
        return kernel


@cache
def _maker_of(
    count: int, numbers: tuple[int, ...], places: tuple[tuple[str, int, int], ...],
    dense: tuple[bool, ...], single: bool, into: bool,
) -> Callable[..., Any]:  # fmt: skip
    """The maker of `run` of `count` arguments; `dense`: which results are contiguous. Written to in
    place is only what no operand shares, or shares as the same view."""
    names = ", ".join(f"a{i}" for i in range(count))
    plain = f"plain(dests, {names})" if into else f"plain({names})"
    lines = []
    if numbers:
        key = "".join(f"a{i} or repr(a{i}), " for i in numbers)  # 0.0 is not -0.0
        lines += [
            f"key = ({key})",
            "kernel = by_key.get(key)",
            f"if kernel is None: kernel = add(key, ({names},))",
            f"if kernel is False: return {plain}",
        ]
    if into:
        lines += ["target = dests[0]", "written, view = target._storage, target._geom"]
        lines += [
            f"if a{i}._storage is written and a{i}._geom is not view: return {plain}"
            for kind, i, _ in places
            if kind == "a"
        ]
        lines += ["m0 = written.memory"]
    else:
        lines += [f"m{k} = empty(size{k}, dtype{k})" for k in range(len(dense))]
    memories = [_memory(*place) for place in places]
    outputs = [into and kind == "o" for kind, _, _ in places]
    buffers = ", ".join(
        f"from_buffer(room{n}, {m}{', True' if outputs[n] else ''})" for n, m in enumerate(memories)
    )
    of_list = f"mtk_run(kernel, new(pointers, [{buffers}]))"
    ran = f"mtk_run{len(memories)}(kernel, {buffers})" if len(memories) in (2, 3) else of_list
    lines += [
        f"try: stopped = {ran}",
        "except (BufferError, ValueError):",
        *([f"    if not m0.flags.writeable: return {plain}"] if into else []),
        f"    places = addresses(rooms, ({', '.join(memories)},))",
        f"    if places is None: return {plain}",
        "    stopped = mtk_run(kernel, places)",
        f"if stopped: return {plain}",
    ]
    body = "".join(f"        {line}\n" for line in lines)
    if not into:
        tensors = [
            f"fresh(geom{k}, m{k}, m{k})" if whole else f"fresh(geom{k}, m{k})"
            for k, whole in enumerate(dense)
        ]
        results = ", ".join(tensors)
        body += f"        return {results if single else f'({results},)'}\n"
    consts = "".join(f"    geom{k}, size{k}, dtype{k} = results[{k}]\n" for k in range(len(dense)))
    consts += "".join(f"    room{n} = rooms[{n}]\n" for n in range(len(memories)))
    params = f"dests, {names}" if into else names
    return _compiled(
        f"def make_run(kernel, by_key, add, plain, results, rooms):\n{consts}"
        f"    def run({params}):\n{body}    return run\n"
    )


def _memory(kind: str, i: int, member: int) -> str:
    """Source of the memory of a place."""
    if kind == "o":
        return f"m{i}"
    return f"a{i}._storage.memory" if kind == "a" else f"a{i}[{member}]._storage.memory"


_count = count()


def _compiled(source: str) -> Callable[..., Any]:
    scope = {
        "addresses": _addresses, "empty": np.empty, "fresh": fresh,
        "from_buffer": ffi.from_buffer, "mtk_run": lib.mtk_run,
        "mtk_run2": lib.mtk_run2, "mtk_run3": lib.mtk_run3, "new": ffi.new,
        "pointers": ffi.typeof("void *[]"),
    }  # fmt: skip
    return compiled(source, f"cpu native runner {next(_count)}", scope)


def _room(geom: Geometry) -> Any:
    """The C type of the bytes that a tensor reaches: what `from_buffer` makes sure of."""
    return ffi.typeof(f"char[{geom.extent * geom.dtype.itemsize}]")


def _addresses(rooms: Sequence[Any], memories: Sequence[Any]) -> Any:
    """Where storages begin, None where one is smaller than a tensor of it: it was resized."""
    if any(m.nbytes < ffi.sizeof(room) for room, m in zip(rooms, memories, strict=True)):
        return None
    return ffi.new("void *[]", [_address(m) for m in memories])


def _address(memory: Any) -> Any:
    try:
        return ffi.from_buffer(memory)
    except (BufferError, ValueError):  # no plain run of bytes, as of a permuted result
        return ffi.cast("char *", memory.__array_interface__["data"][0])


def _run(
    binding: KernelBinding, args: Sequence[Any], first: tuple[Any, Any], outs: Sequence[Geometry],
    plain: Callable[..., Any],
) -> Callable[..., Any]:  # fmt: skip
    kernels = _Kernels(binding, args, first)
    outputs = {k for kind, k, _ in kernels.places if kind == "o"}
    if outputs != {k for k, g in enumerate(outs) if g.numel}:
        return plain
    single = len(binding.op.schema.returns) == 1 and not binding.op.schema.returns[0].list
    results = [(g, tuple(g.shape) if g.contiguous else g.extent, g.dtype.np) for g in outs]
    return _runner(kernels, first, plain, results, tuple([g.contiguous for g in outs]), single)


def _runner(
    kernels: _Kernels, first: tuple[Any, Any], plain: Any, results: list[Any],
    dense: tuple[bool, ...] = (), single: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Of new results, or of what is written to where there are none."""
    REFERENCES.native = True
    count = len(kernels.binding.op.schema.args)
    numbers, places = tuple(kernels.numbers), tuple(kernels.places)
    make = _maker_of(count, numbers, places, dense, single, not results)
    rooms = tuple(kernels.binding.rooms)
    run: Callable[..., Any] = make(first[0], kernels.by_key, kernels.add, plain, results, rooms)
    return run


def _run_into(
    binding: KernelBinding, args: Sequence[Any], first: tuple[Any, Any], plain: Callable[..., None]
) -> Callable[..., None]:
    kernels = _Kernels(binding, args, first)
    return _runner(kernels, first, plain, [])


# Casts between floating-point dtypes that numpy does element by element in software.
_CASTS = {(float16, float32), (float16, float64), (float32, float16), (float32, bfloat16),
          (float16, bfloat16), (bfloat16, float16)}  # fmt: skip
_LEAST_COPY = 1 << 11  # elements
_copies: dict[tuple[Geometry, Geometry], Any] = {}


def copy(dest: Tensor, source: Tensor) -> bool:
    """Copy with a native kernel where one wins; False where nothing was done."""
    key = dest._geom, source._geom
    if key[0].numel < _LEAST_COPY or not switch.enabled or REFERENCES.active:
        return False
    if key not in _copies:
        if len(_copies) >= 1 << 12:
            _copies.clear()
        kernel = _copy_kernel(*key) if _copies_better(*key) else None
        _copies[key] = kernel and (kernel, _room(key[0]), _room(key[1]))
    binding = _copies[key]
    if binding is None or dest._storage is source._storage:
        return False
    kernel, *rooms = binding
    memories = dest._storage.memory, source._storage.memory
    try:
        to = ffi.from_buffer(rooms[0], memories[0], True)
        return not lib.mtk_run2(kernel, to, ffi.from_buffer(rooms[1], memories[1]))
    except (BufferError, ValueError):  # read-only, resized, or no plain run of bytes
        places = _addresses(rooms, memories) if memories[0].flags.writeable else None
        return places is not None and not lib.mtk_run(kernel, places)


def _copies_better(dest: Geometry, source: Geometry) -> bool:
    if dest.shape != source.shape or dest.ndim > _MOST_DIMS:
        return False
    if dest.dtype is source.dtype:
        return dest.contiguous and 1 not in source.strides[-1:]
    return (source.dtype, dest.dtype) in _CASTS


def _copy_kernel(dest: Geometry, source: Geometry) -> Any:
    kernel = ffi.gc(lib.mtk_new(b"aclnnInplaceCopy"), lib.mtk_free)
    try:
        _tensor(kernel, 0, dest, 0)
        _tensor(kernel, 1, source, 1)
    except NoKernelError:
        return None
    message = ffi.new("char[]", _ROOM)
    return None if lib.mtk_check(kernel, message, _ROOM) else kernel


_threads = 1


def set_threads(count: int) -> None:
    """Let kernels use `count` threads from now on."""
    global _threads
    _threads = count
    if lib is not None:
        lib.mtk_set_threads(count)


def threads() -> int:
    """How many threads kernels may use."""
    return _threads


def _threads_at_first() -> int:
    """OMP_NUM_THREADS, as other libraries of numbers read it, else the CPUs of this process."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isdecimal() and int(setting) else len(os.sched_getaffinity(0))


set_threads(_threads_at_first())
