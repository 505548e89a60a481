"""Views, copies, slices, padding and formats."""

from __future__ import annotations

from math import prod

from ....spec import *
from ....spec import shape as any_shape
from ..placing import TILES
from ..row import unspecified
from ._along import WHOLE, along
from ._defaults import HEADER_ONLY, TORCH
from ._words import *

_MOVE: Final = Rule("exact", TORCH)
_SPARSE: Final = Rule("exact", TORCH, sparse=True)
_SUMS: Final = Rule("gradient", TORCH, sparse=True)
_SELF: Final = out("self")
_AXIS: Final = axis("A", WHOLE)


def _shape(draw: Draw, name: str) -> tuple[int, ...]:
    return tuple(draw[name].shape)


def _ints(draw: Draw, name: str) -> list[int]:
    return [int(v) for v in draw[name].values()]


_SIDES: Final = sizes(M=row(4, 1, 2, 33, 130), N=row(5, 1, 2, 33, 65))
_SLANT: Final = number(0, 1, -1, 2, "N - 1")


@spec("aclnnDiag", _SPARSE, _SIDES,
      overload("vector", self=tensor("N"), diagonal=number(0, 1, -1, 2, -3, "N")),
      overload("matrix", self=tensor("M N"), diagonal=number(0, 1, -1, "N - 1", "1 - M")),
      require("size(self) == N or -M < diagonal < N", refuses=None),
      self=tensor("N"), diagonal=_SLANT, out=_SELF)  # fmt: skip
def diag(self: Array, diagonal: int) -> Array:
    return np.diag(self, diagonal)


@spec("aclnnDiagFlat", _SPARSE, sizes({"*S": any_shape("3x2", "-", 1, 7, "2x3x4", 65, "5x13")}),
      self=tensor("*S"), diagonal=number(0, 1, -2, 5, -1), out=_SELF)  # fmt: skip
def diagflat(self: Array, diagonal: int) -> Array:
    return np.diagflat(self, diagonal)


def _minus_one(_rng: Generator, _pattern: str, draw: Draw) -> list[int]:
    """-1 where a dim stays as it is."""
    whole = [*draw["*B"], draw["A"], *draw["*N"]]
    mine = (*(0,) * len(whole), *_shape(draw, "self"))[-len(whole) :]
    return [-1 if n == m else n for n, m in zip(whole, mine, strict=True)]


@spec("aclnnExpand", _MOVE, along("*B A *N"),
      self=forms(middle=tensor("*B 1 *N"), whole=tensor(WHOLE), front=tensor("1 *N"),
                 lower=tensor("A *N"), one=tensor("1"), scalar=tensor("")),
      size=forms(all=dims(WHOLE), kept=content(_minus_one, "kept")), out=_SELF)  # fmt: skip
def expand(self: Array, size: tuple[int, ...]) -> Array:
    sizes_ = (*(1,) * (len(size) - self.ndim), *self.shape)
    whole = [m if n == -1 else n for n, m in zip(size, sizes_, strict=True)]
    return np.broadcast_to(self, whole)


_DIMS: Final = sizes({"*S": any_shape("2x3x4", "3x5", 7, 1, "2x3x4x5", "33x65", "1x9x2",
                                      "2x1x3x2x2", "3x3x3", "130x7", "4x1025")})  # fmt: skip


@spec("aclnnFlatten", _MOVE, _DIMS, require("-rank(self) <= axis <= rank(self)"),
      self=tensor("*S"), axis=number(1, 0, 2, 3, -1, -2, "rank(self)"), out=_SELF)  # fmt: skip
def flatten(self: Array, axis: int) -> Array:
    """ONNX Flatten: always two dimensions."""
    return self.reshape(prod(self.shape[: axis if axis >= 0 else axis + self.ndim]), -1)


def _order(rng: Generator, pattern: str, rank: int) -> Array:
    order = np.arange(rank)
    if pattern == "last":
        order[-2:] = order[-2:][::-1].copy()
    elif pattern == "first":
        order[:2] = order[:2][::-1].copy()
    elif pattern in ("left", "right"):
        order = np.roll(order, 1 if pattern == "right" else -1)
    elif pattern == "reversed":
        order = order[::-1]
    elif pattern != "same":
        order = rng.permutation(rank)
    return order - rank if pattern == "negative" else order


_ORDERS: Final = "right left last first reversed random same"


def _permuted(rng: Generator, pattern: str, draw: Draw) -> Array:
    return _order(rng, pattern, len(draw["*S"]))


@spec("aclnnPermute", _MOVE, _DIMS, self=tensor("*S"),
      dims=content(_permuted, f"{_ORDERS} negative"), out=_SELF)  # fmt: skip
def permute(self: Array, dims: tuple[int, ...]) -> Array:
    return self.transpose(dims)


@spec("aclnnChannelShuffle", _MOVE,
      sizes({"*N": row("3x5", 4, "2x3x2", 257)}, G=group(2, 1, 3, 4, 8),
            K=channels(3, 1, 2, 4, 17)),
      self=tensor("B G*K *N"), groups=equals("G"), out=_SELF)  # fmt: skip
def channel_shuffle(self: Array, groups: int) -> Array:
    n, c, *rest = self.shape
    return self.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(self.shape)


# --- slices -----------------------------------------------------------------------------------

_BEGIN: Final = number(0, 1, "A // 2", -1, "-A", "-A - 7")
_END: Final = number("A", "A + 9", -1, "A - 1", "A // 2 + 1")


@spec("aclnnSlice", _MOVE, along("*B A *N"),
      require("max(start + A if start < 0 else start, 0) < (end + A if end < 0 else end)",
              refuses=None),
      self=tensor(WHOLE), dim=_AXIS, start=_BEGIN, end=_END, step=number(1, 2, 3, 7, "A"),
      out=_SELF)  # fmt: skip
def slice_of(self: Array, dim: int, start: int, end: int, step: int) -> Array:
    return np.moveaxis(np.moveaxis(self, dim, 0)[start:end:step], 0, dim)


def _axes_of(of: str, order: str = "axes") -> Callable[..., Any]:
    """Some axes of a tensor: all of them, one, two that are turned around, from the back."""

    def make(_rng: Generator, pattern: str, draw: Draw) -> Array:
        rank = len(_shape(draw, of))
        known: dict[str, Any] = {"all": range(rank), "last": [rank - 1], "first": [0],
                                 "turned": [rank - 1, 0][: min(2, rank)],
                                 "negative": range(-1, -rank - 1, -1)}  # fmt: skip
        return np.array(known[pattern], np.int64)

    return make


def _per_axis(of: str, axes: str, value: Callable[[str, int, int, int], int]) -> Callable[..., Any]:
    """One number for each axis, of its size and of its place in the list."""

    def make(_rng: Generator, pattern: str, draw: Draw) -> Array:
        shape, rank = _shape(draw, of), len(_shape(draw, of))
        named = range(rank) if draw[axes] is None else _ints(draw, axes)
        return np.array([value(pattern, shape[a], i, a % rank) for i, a in enumerate(named)],
                        np.int64)  # fmt: skip

    return make


def _begin(pattern: str, n: int, i: int, _axis: int) -> int:
    at = min(n - 1, {"first": 0, "inner": 1 + i, "last": n - 1, "back": 1 + i, "far": 0}[pattern])
    return at - n - (9 if pattern == "far" else 0) if pattern in ("back", "far") else at


def _end(pattern: str, n: int, _i: int, _axis: int) -> int:
    return {"size": n, "beyond": n + 5, "short": n - 1 if n > 4 else n,
            "back": -1 if n > 4 else n}[pattern]  # fmt: skip


def _pace(pattern: str, _n: int, i: int, axis: int) -> int:
    return {"one": 1, "two": 2, "rising": 1 + i, "falling": 4 - (i + axis) % 4, "long": 99}[pattern]


_BEGINS: Final = "inner first last back far"
_ENDS: Final = "size beyond short back"
_PACES: Final = "one rising two falling long"
_REGULAR: Final = sizes({"*S": any_shape("5x9", 7, 1, "6x5x4", "33x65", "1x9", "2x3x1x7",
                                         "9x1025", "8x8")})  # fmt: skip


def _boxes(of: str, axes: str) -> tuple[Content, Content, Content]:
    return (
        content(_per_axis(of, axes, _begin), _BEGINS),
        content(_per_axis(of, axes, _end), _ENDS),
        content(_per_axis(of, axes, _pace), _PACES),
    )


def _box(rank: int, *of_axes: Sequence[int]) -> tuple[slice, ...]:
    place = [slice(None)] * rank
    for begin, end, step, axis_ in zip(*of_axes, strict=True):
        place[axis_] = slice(begin, end, step)
    return tuple(place)


_STARTS, _STOPS, _STEPS = _boxes("self", "axes")
_SOME: Final = "all last first turned negative"


@spec("aclnnSliceV2", _MOVE, _REGULAR, self=tensor("*S"), starts=_STARTS, ends=_STOPS,
      axes=content(_axes_of("self"), _SOME), steps=_STEPS, out=_SELF)  # fmt: skip
def slice_v2(
    self: Array,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Array:
    return self[_box(self.ndim, starts, ends, steps, axes)]


def _assigned(rng: Generator, _pattern: str, draw: Draw) -> Array:
    shape = _shape(draw, "varRef")
    axes = _ints(draw, "axesOptional")
    place = _box(len(shape), *(_ints(draw, n) for n in ("begin", "end", "strides")), axes)
    return rng.integers(0, 100, np.empty(shape, bool)[place].shape)


_STARTS, _STOPS, _STEPS = _boxes("varRef", "axesOptional")


@spec("aclnnStridedSliceAssignV2", _MOVE, _REGULAR, varRef=inout(tensor("*S")),
      inputValue=content(_assigned, "random", "varRef"), begin=_STARTS, end=_STOPS,
      strides=_STEPS, axesOptional=content(_axes_of("varRef"), _SOME))  # fmt: skip
def strided_slice_assign(
    varRef: Array,
    inputValue: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    axesOptional: Sequence[int],
) -> Array:
    result = varRef.copy()
    result[_box(varRef.ndim, begin, end, strides, axesOptional)] = inputValue
    return result


_OPEN, _SKIP, _NEW, _SHRUNK = "open", "skip", "new", "shrunk"


def _entries(draw: Draw) -> list[tuple[str, int]]:
    """What the entries of a strided slice are, and the sizes of the dims that they take; an
    ellipsis leaves one dim out at least."""
    shape = _shape(draw, "self")
    limit = len(shape) - bool(draw["ellipsisMask"])
    kinds: list[str] = []
    while sum(k in (_OPEN, _SHRUNK) for k in kinds) < limit and len(kinds) < 5:
        masks = ((_SKIP, "ellipsisMask"), (_NEW, "newAxisMask"), (_SHRUNK, "shrinkAxisMask"))
        named = (kind for kind, mask in masks if draw[mask] >> len(kinds) & 1)
        kinds.append(next(named, _OPEN))
    if draw["ellipsisMask"] >> len(kinds) & 1:
        kinds.append(_SKIP)
    takes = [i for i, k in enumerate(kinds) if k in (_OPEN, _SHRUNK)]
    behind = [i for i in takes if _SKIP in kinds[:i]]
    of = {**{i: shape[j] for j, i in enumerate(takes)},
          **{i: shape[j - len(behind)] for j, i in enumerate(behind)}}  # fmt: skip
    return [(k, of.get(i, 1)) for i, k in enumerate(kinds)]


def _strides(_rng: Generator, pattern: str, draw: Draw) -> Array:
    of = {"one": (1, 1), "two": (2, 2), "backward": (-1, -1), "differing": (1, -3),
          "apart": (-2, 3)}  # fmt: skip
    return np.array([1 if kind != _OPEN else of[pattern][i % 2]
                     for i, (kind, _) in enumerate(_entries(draw))], np.int64)  # fmt: skip


def _edges(first: bool) -> Callable[..., Any]:
    """Where ranges begin, or end, by the direction of their strides."""

    def place(pattern: str, kind: str, n: int, step: int) -> int:
        if kind == _SHRUNK:
            return {"back": -1, "beyond": 0}.get(pattern, n // 2)
        if first == (step > 0):  # the lower edge: of ranges backward it is not in them
            low = min(1, n - 1) if first else 0 if n > 1 else -n - 1
            return {"back": low - n if low >= 0 else low, "beyond": -n - 9}.get(pattern, low)
        high = n - 1 if first or n > 4 else n
        return {"back": high - n if high < n else n, "beyond": n + 5}.get(pattern, high)

    def make(_rng: Generator, pattern: str, draw: Draw) -> Array:
        entries = zip(_entries(draw), _ints(draw, "strides"), strict=True)
        return np.array([place(pattern, kind, n, step) for (kind, n), step in entries], np.int64)

    return make


_RANGES: Final = "plain back beyond"


@spec("aclnnStridedSlice", Rule("exact", "TensorFlow document: strided_slice", specials=False),
      _REGULAR, self=tensor("*S"), begin=content(_edges(True), _RANGES),
      end=content(_edges(False), _RANGES),
      strides=content(_strides, "one two backward differing apart"),
      beginMask=choice(0, 1, 2, 5, 9), endMask=choice(0, 1, 2, 6, 9),
      ellipsisMask=choice(0, 1, 2, 4), newAxisMask=choice(0, 1, 4, 2),
      shrinkAxisMask=choice(0, 1, 2, 4, 3), out=_SELF)  # fmt: skip
def strided_slice(
    self: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    beginMask: int,
    endMask: int,
    ellipsisMask: int,
    newAxisMask: int,
    shrinkAxisMask: int,
) -> Array:
    place: list[Any] = []
    for n, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        ends = slice(None if beginMask >> n & 1 else b, None if endMask >> n & 1 else e, s)
        place.append(... if ellipsisMask >> n & 1 else None if newAxisMask >> n & 1
                     else b if shrinkAxisMask >> n & 1 else ends)  # fmt: skip
    return self[tuple(place)]


# --- parts, chunks and repetition ---------------------------------------------------------------


@spec("aclnnSplitTensor", _MOVE, along("*B A *N"), require("A <= 20*splitSections"),
      self=tensor(WHOLE), splitSections=number(4, 1, 2, 3, 17, "A", "A + 3", 1000), dim=_AXIS,
      out=_SELF)  # fmt: skip
def split_tensor(self: Array, splitSections: int, dim: int) -> tuple[list[Array]]:
    return (np.split(self, range(splitSections, self.shape[dim], splitSections), dim),)


@spec("aclnnSplitWithSize", _MOVE, along("*B A *N", L=members(3, 1, 2, 9, 17)),
      self=tensor(WHOLE), splitSize=parts("L", of="A"), dim=_AXIS, out=_SELF)  # fmt: skip
def split_with_size(self: Array, splitSize: Sequence[int], dim: int) -> tuple[list[Array]]:
    return (np.split(self, np.cumsum(splitSize)[:-1], dim),)


@spec("aclnnInplaceFillDiagonal", _MOVE,
      sizes(M=row(7, 1, 4, 33, 130), N=row(3, 1, 5, 17), K=row(4, 1, 2)), both("M > 2*N"),
      pin("M=33 N=5 wrap=True", "many rows below the first square"),
      pin("M=130 N=17 wrap=True", "many rows below the first square"),
      require("fillValue < 128 or dtype(selfRef) not in ('int8', 'uint8', 'int16', 'bool')",
              refuses=None),
      selfRef=inout(forms(matrix=tensor("M N"), square=tensor("K K"), cube=tensor("K K K"),
                          more=tensor("K K K K"))),
      fillValue=scalar("selfRef", 2.5, 0, -1, 2**24 + 1), wrap=flag())  # fmt: skip
def fill_diagonal(selfRef: Array, fillValue: float, wrap: bool) -> Array:
    result = selfRef.copy()
    unsigned = result.dtype.kind == "u"  # into which a negative number wraps
    value = np.asarray(fillValue).astype(np.int64).astype(result.dtype) if unsigned else fillValue
    np.fill_diagonal(result, value, wrap)
    return result


def _counts(count: str) -> Domain:
    """How often each of some slices stands: some not at all, all alike in one number."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        n = int(draw[count])
        counts = rng.integers(1, 4, n)
        if pattern == "gaps":
            counts[1::2] = 0
        elif pattern in ("no_first", "no_last") and n > 1:
            counts[0 if pattern == "no_first" else -1] = 0
        elif pattern == "many":
            counts[n // 2] = 70
        elif pattern == "once":
            counts[:] = 1
        return counts if pattern != "alike" else counts[:1]

    return content(make, "some gaps no_first no_last many once alike")


def _total(count: str) -> Domain:
    return equals(f"total(repeats) if size(repeats) == {count} else total(repeats)*{count}")


_FLAT: Final = sizes({"*S": any_shape("2x3", "-", 1, 7, "2x3x4", 65, 1025)}, P="size(self)")
_TIMES: Final = number(3, 1, 2, 17)


def repeated(self: Array, repeats: Any, dim: int | None = None) -> Array:
    return np.repeat(self, repeats, dim)


spec("aclnnRepeatInterleave", _MOVE, _FLAT, self=tensor("*S"), repeats=_counts("P"),
     outputSize=_total("P"), out=_SELF)(repeated)  # fmt: skip
spec("aclnnRepeatInterleaveWithDim", _MOVE, along("*B A *N"), self=tensor(WHOLE),
     repeats=_counts("A"), dim=_AXIS, outputSize=_total("A"), out=_SELF)(repeated)  # fmt: skip
spec("aclnnRepeatInterleaveInt", _MOVE, _FLAT, self=tensor("*S"), repeats=_TIMES,
     outputSize=equals("repeats*P"), out=_SELF)(repeated)  # fmt: skip
spec("aclnnRepeatInterleaveIntWithDim", _MOVE, along("*B A *N"), self=tensor(WHOLE),
     repeats=_TIMES, dim=_AXIS, outputSize=equals("repeats*A"), out=_SELF)(repeated)  # fmt: skip
spec("aclnnRepeatInterleaveTensor", _MOVE, along("A"), require("size(repeats) == A"),
     repeats=_counts("A"), outputSize=equals("total(repeats)"), out=out("i64"))(
    lambda repeats: np.repeat(np.arange(repeats.size), repeats))  # fmt: skip


@spec("aclnnRepeatInterleaveGrad", _SUMS, along("*B A *N", T=row(9, 1, 24, 130, 1025)),
      both("T > A"), require("size(repeats) == A or T % A == 0", refuses=None),
      yGrad=tensor("*B T *N"),
      repeats=forms(each=parts("A", of="T"),
                    alike=content(lambda _r, _p, draw: [draw["T"] // draw["A"]], "alike")),
      axis=axis("T", "*B T *N"), out=out("yGrad", "*B A *N"))  # fmt: skip
def repeat_interleave_grad(yGrad: Array, repeats: Array, axis: int) -> Array:
    if repeats.size == 1:
        repeats = np.repeat(repeats, yGrad.shape[axis] // int(repeats[0]))
    return np.stack([p.sum(axis) for p in np.split(yGrad, np.cumsum(repeats)[:-1], axis)], axis)


@spec("aclnnUnfoldGrad", _SUMS, along("*B A *N", K=row(3, 1, 2, 5, 17)), require("K <= A"),
      both("step < K", "(A - K) % step == 0"),
      gradOut=tensor("*B (A-K)//step+1 *N K"), inputSizes=dims(WHOLE), dim=_AXIS,
      size=equals("K"), step=number(2, 1, 3, 7), gradIn=out("gradOut"))  # fmt: skip
def unfold_grad(gradOut: Array, inputSizes: Sequence[int], dim: int, size: int, step: int) -> Array:
    result = np.zeros(inputSizes, gradOut.dtype)
    dim = dim + result.ndim if dim < 0 else dim
    lead, flow = np.moveaxis(result, dim, 0), np.moveaxis(gradOut, dim, 0)
    for at in range(flow.shape[0]):
        lead[at * step : at * step + size] += np.moveaxis(flow[at], -1, 0)
    return result


@spec("aclnnChunkCat", Rule("exact", "torch 2.13, torch._chunk_cat", specials=False),
      along("A *N", A=row(6, 1, 5, 17, 130)),
      overload("first", tensors=tensors("L", "A@L *N@L"), dim=choice(0)),
      overload("second", tensors=tensors("L", "B A@L *N"), dim=choice(1)),
      tensors=tensors("L", "A@L *N@L"), dim=choice(0), numChunks=number(2, 1, 3, 4, 7),
      out=out("tensors"))  # fmt: skip
def chunk_cat(tensors: Sequence[Array], dim: int, numChunks: int) -> Array:
    """Zeros fill each up to whole chunks."""
    pieces = []
    for x in tensors:
        sides = [(0, -x.shape[dim] % numChunks if d == dim else 0) for d in range(x.ndim)]
        pieces.append(np.pad(x, sides).reshape(*x.shape[:dim], numChunks, -1))
    return np.concatenate(pieces, dim + 1)


def _seen(draw: Draw) -> tuple[int, ...]:
    """The shape that the transposition sees, or leaves, before the change of shape."""
    shape = _shape(draw, "x")
    return tuple(shape[p] for p in _ints(draw, "perm")) if draw["transpose_first"] else shape


def _reshaped(_rng: Generator, pattern: str, draw: Draw) -> Array:
    shape = _seen(draw)
    last = shape[-1]
    step = next((k for k in (2, 3, 5, 7) if last % k == 0), 1)
    known: dict[str, Sequence[int]] = {
        "flat": (prod(shape),), "joined": (prod(shape[:2]), *shape[2:]), "same": shape,
        "split": (*shape[:-1], step, last // step), "led": (1, *shape),
    }  # fmt: skip
    return np.array(known[pattern], np.int64)


def _perm(rng: Generator, pattern: str, draw: Draw) -> Array:
    seen = _shape(draw, "x") if draw["transpose_first"] else _ints(draw, "shape")
    return _order(rng, pattern, len(seen))


@spec("aclnnConfusionTranspose", Rule("exact", "op-plugin, document of npu_confusion_transpose: "
      "a transposition before or after a change of shape"),
      sizes({"*S": any_shape("4x6x5", "2x3x4x5", "7x6", "2x4x15", 48, "2x1x3x2x4", "33x65",
                             "3x3x3")}),
      x=tensor("*S"), perm=content(_perm, _ORDERS),
      shape=content(_reshaped, "joined split flat led same"), transpose_first=flag(True),
      out=out("x"))  # fmt: skip
def confusion_transpose(
    x: Array, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Array:
    if transpose_first:
        return np.transpose(x, perm).reshape(shape)
    return np.transpose(x.reshape(shape), perm)


# --- padding ------------------------------------------------------------------------------------


def _places(shape: Sequence[int], padding: Sequence[int], mode: Any) -> Array:
    """Where each element of the padded tensor comes from; pads of the last dim stand first."""
    sides = [(0, 0)] * (len(shape) - len(padding) // 2)
    sides += [(padding[i], padding[i + 1]) for i in range(len(padding) - 2, -1, -2)]
    return np.asarray(np.pad(np.arange(prod(shape)).reshape(shape), sides, mode))


# A size, and pads before and behind it.
_SPACE: Final = {
    "X": (space(7, 1, 33, 130), space(2, 0, 1, 6), space(1, 0, 6)),
    "Y": (space(6, 1, 3), space(3, 0, 2, 5), space(0, 1, 5)),
    "Z": (space(5, 1, 2), space(1, 0, 4), space(2, 0, 1)),
}
# What may be repeated of a size: all but the edge, all, anything.
_MODES: Final = {"Reflection": ("reflect", "{0} < {1}"), "Circular": ("wrap", "{0} <= {1}"),
                 "Replication": ("edge", "{0} < {1} + 99")}  # fmt: skip


def _pads(kind: str, rank: int) -> None:
    mode, limit = _MODES[kind]
    names = "XYZ"[:rank]
    roles = {f"{n}{part}": role for n in names
             for part, role in zip(("", "a", "b"), _SPACE[n], strict=True)}  # fmt: skip
    several, pads = sizes(**roles), [n for n in roles if n not in names]
    limits = require(*(limit.format(p, p[0]) for p in pads))
    whole = " ".join(reversed(names))
    padded = " ".join(f"{n}+{n}a+{n}b" for n in reversed(names))
    padding = dims(" ".join(pads))

    @spec(f"aclnn{kind}Pad{rank}d", _MOVE, several, limits,
          self=forms(batch=tensor(f"B C {whole}"), image=tensor(f"C {whole}")), padding=padding,
          out=_SELF)  # fmt: skip
    def pad(self: Array, padding: Sequence[int]) -> Array:
        return self.reshape(-1)[_places(self.shape, padding, mode)]

    def form(lead: str) -> dict[str, Domain]:
        return {"gradOutput": tensor(f"{lead} {padded}"),
                "self": tensor(f"{lead} {whole}", "gradOutput")}  # fmt: skip

    @spec(f"aclnn{kind}Pad{rank}dBackward", _SUMS, several, limits,
          overload("batch", **form("B C")), overload("image", **form("C")),
          **form("B C"), padding=padding, gradInput=_SELF)  # fmt: skip
    def pad_grad(gradOutput: Array, self: Array, padding: Sequence[int]) -> Array:
        result = np.zeros(self.size, gradOutput.dtype)
        np.add.at(result, _places(self.shape, padding, mode), gradOutput)
        return result.reshape(self.shape)


for _kind in _MODES:
    for _rank in (2, 3) if _kind == "Circular" else (1, 2, 3):
        _pads(_kind, _rank)


# --- formats ------------------------------------------------------------------------------------


@spec("aclnnNpuFormatCast",
      Rule("exact", "op-plugin documents npu_format_cast and npu_grouped_matmul: FRACTAL_NZ is "
           "[n / n0, k / 16, 16, n0], a tile's row has 32 bytes", formats={"dstTensor": TILES}),
      sizes(M=row(20, 1, 15, 16, 17, 33, 64), N=row(33, 1, 16, 32, 40, 65, 130, 512),
            **{"*B": row("-", 2, 3)}),
      srcTensor=tensor("*B M N", "f16 bf16 i8"), dstTensor=out("srcTensor"))  # fmt: skip
def in_inner_format(srcTensor: Array) -> Array:
    """Element (r, c) lies in row r of column c / n0 of tiles, at c modulo n0."""
    wide = 32 if srcTensor.dtype.kind == "i" else 16
    *batch, rows, columns = srcTensor.shape
    high, across = -(-rows // 16) * 16, -(-columns // wide)
    flat = np.zeros((*batch, across, high, wide), srcTensor.dtype)
    for c in range(columns):
        flat[..., c // wide, :rows, c % wide] = srcTensor[..., c]
    return flat.reshape(*batch, across, high // 16, 16, wide)


unspecified(
    "aclnnTransMatmulWeight",
    "rewrites a weight in a private order that only its matmul reads",
    HEADER_ONLY,
)
unspecified(
    "aclnnTransConvolutionWeight",
    "rewrites a weight in a private order that only its convolution reads",
    HEADER_ONLY,
)
