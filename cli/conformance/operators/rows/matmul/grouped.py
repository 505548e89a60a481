"""Products of groups of rows, each with its own weight, and FFN over experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .....spec import *
from .....spec import contents, rows as rows_
from .....spec.declaration import Pin
from ...placing import TILES
from .._ignored import SPEED
from .._quantizers import words
from .._words import *

_SOURCE: Final = ("operator documents aclnnGroupedMatmul, V2 to V5; op-plugin document "
                  "npu_grouped_matmul; Megatron-LM, grouped GEMM of experts")  # fmt: skip
_RULE: Final = Rule("gradient", _SOURCE, steps=True, cost="2*T*K*N",
                    values="normal opposed positive")  # fmt: skip


def ends_of(groups: Any, kind: int) -> Array:
    """Where groups end: groupListType 0 holds ends, 1 sizes, 2 pairs of an expert and its size."""
    whole = np.asarray(groups)
    return np.asarray(np.cumsum(whole.reshape(-1, 2)[:, 1]) if kind == 2 else
                      np.cumsum(whole) if kind == 1 else whole)  # fmt: skip


def _by_rows(value: Array, rows: int) -> Array:
    """[rows, N] of parameters of N columns, or of blocks of rows."""
    lines = np.atleast_2d(value)
    return np.repeat(lines, rows // len(lines), 0)


def _none(x: Array) -> Array:
    return x


def _gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _fast_gelu(x: Array) -> Array:
    return x / (1 + np.exp(-1.702 * x))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


# By actType.
_ACTIVE: Final = {0: _none, 1: _relu, 2: _gelu_tanh, 4: _fast_gelu, 5: _silu}


def one_group(
    x: Array, w: Array, bias: Array | None = None, scale: Array | None = None,
    offset: Array | None = None, antiscale: Array | None = None, antioffset: Array | None = None,
    tokens: Array | None = None,
) -> Array:  # fmt: skip
    """A bias of integers counts products, one of floats results."""
    w = w.astype(np.float64)
    w = w if antioffset is None else w + _by_rows(antioffset, len(w))
    w = w if antiscale is None else w * _by_rows(antiscale, len(w))
    whole = bias is not None and bias.dtype.kind == "i"
    y = x.astype(np.float64) @ w
    y = y + bias if bias is not None and whole else y
    if scale is not None:
        packed = scale.dtype.kind in "iu"  # the low 32 bits are a float32's
        y = y * (scale.astype(np.uint32).view(np.float32).astype(float) if packed else scale)
    y = y if tokens is None else y * tokens[:, None]
    y = y if bias is None or whole else y + bias
    return y if offset is None else y + offset


def grouped(
    x: list[Array],
    weight: list[Array],
    groupListOptional: Any = None,
    groupType: int | None = None,
    splitItem: int = 0,
    biasOptional: list[Array] | None = None,
    scaleOptional: list[Array] | None = None,
    offsetOptional: list[Array] | None = None,
    antiquantScaleOptional: list[Array] | None = None,
    antiquantOffsetOptional: list[Array] | None = None,
    perTokenScaleOptional: list[Array] | None = None,
    groupListType: int = 0,
    actType: int = 0,
) -> tuple[list[Array]]:
    """Pairs (groupType -1), rows split among weights (0), or products summed over parts (2), at
    what `groupListOptional` says. One tensor comes (splitItem 2, 3) or one a group. The first
    version has no groupType: rows are split where there is a list."""
    if groupType is None:
        groupType = -1 if groupListOptional is None else 0
    xs, experts = x, np.arange(len(x))
    if groupListOptional is not None:
        if groupListType == 2:
            experts = np.asarray(groupListOptional).reshape(-1, 2)[:, 0]
        cuts = ends_of(groupListOptional, groupListType)[:-1]
        experts = experts if groupListType == 2 else np.arange(len(cuts) + 1)
        if len(x) == 1:
            xs = np.split(x[0], cuts, 1 if groupType == 2 else 0)
    if groupType == 2:
        parts = [a @ b for a, b in zip(xs, np.split(weight[0], cuts), strict=True)]
        return ([np.stack(parts)],)
    stacked = len(weight) == 1 and weight[0].ndim == 3

    def of_expert(values: list[Array] | None, expert: int) -> Any:
        return None if values is None else values[0][expert] if stacked else values[expert]

    tokens: list[Any] = [None] * len(xs)
    if perTokenScaleOptional is not None:
        tokens = np.split(perTokenScaleOptional[0], np.cumsum([len(one) for one in xs])[:-1])
    parts = [_ACTIVE[actType](one_group(
        one, of_expert(weight, e), of_expert(biasOptional, e), of_expert(scaleOptional, e),
        of_expert(offsetOptional, e), of_expert(antiquantScaleOptional, e),
        of_expert(antiquantOffsetOptional, e), row_scales))
        for one, e, row_scales in zip(xs, map(int, experts), tokens, strict=True)]  # fmt: skip
    return (parts if splitItem < 2 else [np.concatenate(parts)],)


def _whole(count: str, shape: str, param: str) -> Domain:
    """A list of tensors of floats, or of integers of their whole range."""
    return by(f"{param}.dtype", {
        "i8": tensors(count, shape, "", -128, 127), "i4": tensors(count, shape, "", -8, 7),
        **dict.fromkeys(("f16", "bf16", "f32"), tensors(count, shape))})  # fmt: skip


def _columns(count: str, shape: str, blocks: str = "") -> dict[str, Domain]:
    """What each expert has for its columns; of `blocks`, what weights of integers have."""
    fine = blocks or shape
    return {
        "biasOptional": optional(by("biasOptional.dtype", {
            "i32": tensors(count, shape, "", -20000, 20000),
            **dict.fromkeys(("f16", "bf16", "f32"), tensors(count, shape, "", -9, 9))})),
        "scaleOptional": by("scaleOptional.dtype", {
            "u64": several(count, words(shape)),
            **dict.fromkeys(("f32", "bf16"), tensors(count, shape, "", 0.005, 0.05))}),
        "offsetOptional": optional(tensors(count, shape, "", -9, 9)),
        "antiquantScaleOptional": tensors(count, fine, "", 0.05, 0.3),
        "antiquantOffsetOptional": optional(tensors(count, fine, "", -4, 4)),
    }  # fmt: skip


_NO_COLUMNS: Final = dict.fromkeys(_columns("1", "N"), null("sums of parts are of plain floats"))


def _pairs(rng: Generator, pattern: str, draw: Draw) -> Array:
    """Experts with their numbers of rows, those without rows last."""
    lengths = contents.lengths(rng, pattern, draw["E"], draw["T"])
    order = np.argsort(lengths == 0, kind="stable")
    return np.stack([order, lengths[order]], -1)


def _of_members(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """The rows of each x, where lists of x come with a group list."""
    rows = [v.shape[0] for v in draw["x"]]
    return np.asarray(rows if draw["groupListType"] == 1 else np.cumsum(rows))


_ENDS: Final = parts("E", of="T", form="ends")
_TYPED_ENDS: Final = {0: _ENDS, 1: parts("E", of="T")}
_EXPERTS: Final = content(_pairs, " ".join(contents.PARTS), shape="E 2", reads=("E", "T"))
_GROUP_LISTS: Final = {1: _ENDS, 2: _ENDS, 4: by("groupListType", _TYPED_ENDS),
                       5: by("groupListType", {**_TYPED_ENDS, 2: _EXPERTS})}  # fmt: skip
_NO_TOKENS: Final = {"perTokenScaleOptional": null("rows of one x have them")}


def _rows(version: int, x: Domain, weight: Domain, split: Domain, columns: Mapping[str, Domain],
          **other: Domain) -> dict[str, Domain]:  # fmt: skip
    """A form of the lists whose rows are split among weights."""
    local = {"x": x, "weight": weight, **columns, "groupListOptional": _GROUP_LISTS[version],
             "splitItem": split, **other}  # fmt: skip
    return local if version == 1 else {"groupType": only(0, "rows are split"), **local}


def _unsplit(version: int, kind: int, **local: Domain) -> dict[str, Domain]:
    """A form that splits no rows of one x."""
    late = {**_NO_TOKENS, "groupListType": choice(0, 1)} if version > 3 else {}
    typed = {"groupType": only(kind, "the form of the lists")} if version > 1 else {}
    return {**late, **typed, **local}


def _forms(version: int) -> dict[str, dict[str, Domain]]:
    """What the lists of a version may hold, the plain form first."""
    joint, apart, listed = choice(3, 2), choice(0, 1), _whole("E", "K N", "weight")
    whole, stacked = _whole("1", "T K", "x"), _whole("1", "E K N", "weight")
    # Pairs of an expert and its size want weights of all experts in one tensor.
    typed = {"groupListType": choice(0, 1)} if version > 4 else {}
    forms = {
        "stacked": _rows(version, whole, stacked, joint, _columns("1", "E N")),
        "listed": _rows(version, whole, listed, joint, _columns("E", "N"), **typed),
        "apart": _rows(version, whole, listed, apart, _columns("E", "N"), **typed),
        "blocks": _rows(version, whole, stacked, joint, _columns("1", "E N", "E G N")),
        "pairs": _unsplit(
            version, -1, x=_whole("E", "M@E K@E", "x"), weight=_whole("E", "K@E N", "weight"),
            groupListOptional=null("no x is split"), splitItem=apart, **_columns("E", "N")),
    }  # fmt: skip
    if version > 1:
        ends = by("groupListType", _TYPED_ENDS) if version > 3 else _ENDS
        acts = {"actType": only(0, "sums are not activated")} if version > 3 else {}
        forms["sums"] = _unsplit(
            version, 2, x=tensors("1", "M T"), weight=tensors("1", "T N"), **acts,
            groupListOptional=ends, splitItem=joint, **_NO_COLUMNS)  # fmt: skip
    if version > 3:
        forms["joined"] = _unsplit(
            version, 0, x=_whole("E", "M@E K", "x"), weight=listed, splitItem=joint,
            groupListOptional=optional(content(_of_members, "sizes", reads=("E",))),
            **_columns("E", "N"))  # fmt: skip
    return forms


_RESERVED: Final = null("reserved: documents ask for null")
_ACTIVATIONS: Final = dict.fromkeys(("activationInputOptional", "activationQuantScaleOptional",
                                     "activationQuantOffsetOptional"), _RESERVED)  # fmt: skip
_UNWRITTEN: Final = dict.fromkeys(("activationFeatureOutOptional", "dynQuantScaleOutOptional"),
                                  _RESERVED)  # fmt: skip
_TABLE: Final = """
    f32  f32   f32 -    -   -    -    f32
    f16  f16   f16 -    -   -    -    f16
    bf16 bf16  f32 -    -   -    -    bf16
    i8   i8    i32 u64  f32 -    -    i8
    f16  i8    f16 -    -   f16  f16  f16
    bf16 i8    f32 -    -   bf16 bf16 bf16"""
_TABLE_TOKENS: Final = """
    f32  f32   f32 -    -   -    -    -   f32
    f16  f16   f16 -    -   -    -    -   f16
    bf16 bf16  f32 -    -   -    -    -   bf16
    i8   i8    i32 u64  f32 -    -    -   i8
    i8   i8    i32 bf16 -   -    -    f32 bf16
    i8   i8    i32 f32  -   -    -    f32 f16
    f16  i8|i4 f16 -    -   f16  f16  -   f16
    bf16 i8|i4 f32 -    -   bf16 bf16 -   bf16"""
_SIZES: Final = sizes(E=members(3, 1, 2, 8), T=tokens(8, 1, 3, 33, 130), G=group(2, 1, 3),
                      J=row(16, 1, 33, 130), K="G*J", N=column(7, 1, 16, 33, 260))  # fmt: skip
_FIT: Final = (
    require("rank(antiquantOffsetOptional) in (0, rank(antiquantScaleOptional))"), both("E > T"),
)  # fmt: skip
_SUMS: Final = require("groupType != 2 or dtype(x) == dtype(weight) and dtype(x) != 'int8'")
# One x whose rows are split needs to be told where.
_SPLIT: Final = require("groupType != 0 or E > 1 or given(groupListOptional)")


def _params(version: int, first: Mapping[str, Domain]) -> dict[str, Domain]:
    """The domains of a version's parameters, in the order of its header."""
    late, result = version > 3, "out" if version > 3 else "y"
    parts_: list[tuple[bool, Mapping[str, Domain]]] = [
        (True, {n: first[n] for n in ("x", "weight", *_NO_COLUMNS)}),
        (late, {"perTokenScaleOptional": optional(tensors("1", "T", "", 0.2, 1))}),
        (True, {"groupListOptional": first["groupListOptional"]}),
        (late, _ACTIVATIONS),
        (True, {"splitItem": first["splitItem"]}),
        (version > 1, {"groupType": first.get("groupType", choice(0))}),
        (late, {"groupListType": choice(0, 1, 2) if version > 4 else choice(0, 1),
                "actType": choice(0, 1, 2, 4, 5)}),
        (version > 4, {"tuningConfigOptional": ignored(SPEED, optional(array((4,), (10, 1))))}),
        (True, {result: out("x")}),
        (late, _UNWRITTEN),
    ]  # fmt: skip
    return {name: domain for there, local in parts_ if there for name, domain in local.items()}


def _pins(version: int) -> Iterator[Pin]:
    """Quantised forms, which the plain call is none of."""
    yield pin("dtype=int8 types=0 biasOptional=given offsetOptional=given "
              "groupListOptional=empty_first", "steps of int8")  # fmt: skip
    yield pin("overload=blocks dtype=float16 types=1 antiquantOffsetOptional=given E=1",
              "weights of integers in blocks of rows")  # fmt: skip
    if version > 3:
        for at in (1, 2):
            yield pin(f"dtype=int8 types={at} biasOptional=given perTokenScaleOptional=given "
                      "groupListType=1 groupListOptional=empty_middle",
                      "scales of rows and columns")  # fmt: skip


def _declare(version: int, names: str) -> None:
    forms = _forms(version)
    params = _params(version, next(iter(forms.values())))
    head = [n for n in (*_NO_COLUMNS, "perTokenScaleOptional") if n in params]
    table = " ".join(["x", "weight", *head, "out" if version > 3 else "y"])
    fit = (*_FIT, *([_SUMS] if version > 1 else []), *([_SPLIT] if version > 3 else []))
    spec(names, _RULE, _SIZES, *fit,
         dtypes(table + (_TABLE_TOKENS if version > 3 else _TABLE)), *_pins(version),
         *(overload(name, **local) for name, local in forms.items()),
         **params)(grouped)  # fmt: skip


_declare(1, "aclnnGroupedMatmul")
_declare(2, "aclnnGroupedMatmulV3 aclnnGroupedMatmulV2")
_declare(4, "aclnnGroupedMatmulV4")
_declare(5, "aclnnGroupedMatmulV5")
_GATES: Final = {"geglu": _gelu_tanh, "swiglu": _silu, "reglu": _relu}
_LAYERS: Final = {"gelu": _gelu_tanh, "fastgelu": _fast_gelu, "relu": _relu, "silu": _silu}


def ffn(
    x: Array,
    weight1: Array,
    weight2: Array,
    activation: str,
    expertTokensOptional: Any = None,
    bias1Optional: Array | None = None,
    bias2Optional: Array | None = None,
    scaleOptional: Array | None = None,
    offsetOptional: Array | None = None,
    deqScale1Optional: Array | None = None,
    deqScale2Optional: Array | None = None,
    antiquantScale1Optional: Array | None = None,
    antiquantScale2Optional: Array | None = None,
    antiquantOffset1Optional: Array | None = None,
    antiquantOffset2Optional: Array | None = None,
    tokensIndexFlag: bool = False,
) -> Array:
    """Two layers of each expert, of its own rows. Between them quantised values are steps of int8;
    gates activate the first half of the columns and multiply by the second."""
    alone = expertTokensOptional is None
    ends = [len(x)] if alone else ends_of(expertTokensOptional, 0 if tokensIndexFlag else 1)
    first = (weight1, bias1Optional, deqScale1Optional, None, antiquantScale1Optional,
             antiquantOffset1Optional)  # fmt: skip
    second = (weight2, bias2Optional, deqScale2Optional, None, antiquantScale2Optional,
              antiquantOffset2Optional)  # fmt: skip

    def of_expert(values: Sequence[Array | None], expert: int) -> list[Any]:
        return [v if v is None or alone else v[expert] for v in values]

    parts = []
    for g, rows in enumerate(np.split(x, ends[:-1])):
        y = one_group(rows, *of_expert(first, g))
        a, gate = np.split(y, 2, -1) if activation in _GATES else (y, np.ones(()))
        y = {**_GATES, **_LAYERS}[activation](a) * gate
        scale, offset = of_expert((scaleOptional, offsetOptional), g)
        if scale is not None:
            y = np.clip(np.rint(y * scale + (0 if offset is None else offset)), -128, 127)
        parts.append(one_group(y, *of_expert(second, g)))
    return np.concatenate(parts)


def _powers(shape: str) -> dict[str, Domain]:
    """Scales that round no product, as floats and in words."""

    def make(rng: Generator, _pattern: str, draw: Draw) -> Array:
        return np.exp2(rng.integers(-9, -5, resolve(shape, draw)))

    def packed(rng: Generator, pattern: str, draw: Draw) -> Array:
        return make(rng, pattern, draw).astype(np.float32).view(np.uint32)

    return {"f32": content(make, "powers", "f32", shape=shape),
            **{d: content(packed, "powers", d, shape=shape) for d in ("u64", "i64")}}  # fmt: skip


def _halves_of(shape: str, low: int) -> Domain:
    """Multiples of a half: what they scale and shift is exact, and has ties."""
    return content(lambda rng, _, draw: rng.integers(low, 5, resolve(shape, draw)) / 2, "halves",
                   "f32", shape=shape)  # fmt: skip


def _layers(each: str) -> dict[str, Domain]:
    """What the layers of one expert, or of E, have."""
    shapes: dict[str, Domain] = {}
    for n, rows, cols in (("1", "G*J", "F"), ("2", "H", "N")):
        shape = f"{each} {cols}"
        fine = forms(channel=tensor(shape, "", 0.05, 0.3),
                     blocks=tensor(f"{each} G {cols}", "", 0.05, 0.3))  # fmt: skip
        offsets = forms(channel=tensor(shape, "", -4, 4),
                        blocks=tensor(f"{each} G {cols}", "", -4, 4))  # fmt: skip
        weight = f"{each} {rows} {cols}"
        scales = {"f32": tensor(shape, "", 0.005, 0.05), "u64": words(shape),
                  "i64": words(shape, "i64")}  # fmt: skip
        shapes |= {
            f"weight{n}": by(f"weight{n}.dtype", {
                "i8": tensor(weight, "", -128, 127),
                **dict.fromkeys(("f16", "bf16"), tensor(weight))}),
            f"bias{n}Optional": optional(by(f"bias{n}Optional.dtype", {
                "i32": tensor(shape, "", -20000, 20000),
                **dict.fromkeys(("f16", "bf16", "f32"), tensor(shape, "", -9, 9))})),
            f"deqScale{n}Optional": by(f"deqScale{n}Optional.dtype",
                                       _powers(shape) if n == "1" else scales),
            f"antiquantScale{n}Optional": fine, f"antiquantOffset{n}Optional": optional(offsets),
        }  # fmt: skip
    scale, offset = (forms(whole=_halves_of(each or "1", low), columns=_halves_of(f"{each} H", low))
                     for low in (1, -4))  # fmt: skip
    return {**shapes, "scaleOptional": scale, "offsetOptional": optional(offset)}


_PARAMS: Final = (
    "weight1", "weight2", "expertTokensOptional", "bias1Optional", "bias2Optional", "scaleOptional",
    "offsetOptional", "deqScale1Optional", "deqScale2Optional", "antiquantScale1Optional",
    "antiquantScale2Optional", "antiquantOffset1Optional", "antiquantOffset2Optional",
)  # fmt: skip
_TYPES: Final = """
    f16  f16  f16  f16 f16 -   -   -   -   -    -    -    -    f16
    bf16 bf16 bf16 f32 f32 -   -   -   -   -    -    -    -    bf16
    i8   i8   i8   i32 i32 f32 f32 f32 f32 -    -    -    -    f16
    i8   i8   i8   i32 i32 f32 f32 u64 u64 -    -    -    -    f16
    i8   i8   i8   i32 i32 f32 f32 i64 i64 -    -    -    -    f16
    f16  i8   i8   f16 f16 -   -   -   -   f16  f16  f16  f16  f16
    bf16 i8   i8   f32 f32 -   -   -   -   bf16 bf16 bf16 bf16 bf16"""
_COUNTS: Final = parts("E", of="T")
_TOKENS: Final = by("tokensIndexFlag", {False: _COUNTS, True: parts("E", of="T", form="ends")})


_X: Final = by("x.dtype", {"i8": tensor("T G*J", "", -128, 127),
                            **dict.fromkeys(("f16", "bf16"), tensor("T G*J"))})  # fmt: skip
_ALONE: Final = {**_layers(""), "expertTokensOptional": null("one layer for all rows")}
_EACH: Final = {**_layers("E"), "expertTokensOptional": _TOKENS}
spec(
    "aclnnFFNV3",
    Rule("gradient", "operator documents aclnnFFN, V2 and V3; op-plugin document npu_ffn"),
    sizes(E=members(3, 1, 2, 8), T=tokens(7, 1, 3, 33), G=group(2, 1, 3), J=row(16, 1, 33),
          I=row(8, 1, 33), H="G*I", F="2*H if activation in ('geglu', 'swiglu', 'reglu') else H",
          N=column(16, 1, 7, 130)),
    require("rank(antiquantOffset1Optional) in (0, rank(antiquantScale1Optional))",
            "rank(antiquantOffset2Optional) in (0, rank(antiquantScale2Optional))",
            "dtype(x) != 'int8' or activation == 'relu'"),
    pin("dtype=int8 bias1Optional=given offsetOptional=columns expertTokensOptional=empty_middle",
        "between the layers are steps of int8"),
    dtypes(" ".join(["x", *(n for n in _PARAMS if n != "expertTokensOptional"), "y"]) + _TYPES),
    overload("experts"), overload("one", **_ALONE),
    overload("gated", **_ALONE, activation=choice("geglu", "swiglu", "reglu")),
    also("aclnnFFNV2 aclnnFFN", **{n: n.removesuffix("Optional") for n in _PARAMS[2:]}),
    x=_X, **{n: _EACH[n] for n in _PARAMS}, activation=choice("relu", "silu", "gelu", "fastgelu"),
    innerPrecise=ignored(SPEED, choice(0, 1)), tokensIndexFlag=flag(), y=out("x"))(ffn)  # fmt: skip


def scaled_groups(x: Array, weight: Array, ends: Array, scale: Array, perRow: Array) -> Array:
    """int8 rows times each group's int8 weight, in the scales of columns and rows."""
    parts_ = np.split(x.astype(np.float64), ends[:-1])
    scales = scale.reshape(len(ends), -1)
    product = [p @ w.astype(np.float64) * s for p, w, s in zip(parts_, weight, scales, strict=True)]
    return np.concatenate(product) * perRow[:, None]


_NZ_TABLE: Final = """
    f16  f16  f16 -    -   -    -    -   f16
    bf16 bf16 f32 -    -   -    -    -   bf16
    i8   i8   i32 bf16 -   -    -    f32 bf16
    i8   i8   i32 f32  -   -    -    f32 f16
    f16  i8   f16 -    -   f16  f16  -   f16
    bf16 i8   f32 -    -   bf16 bf16 -   bf16"""
_NZ: Final = _params(5, _forms(5)["stacked"])
_NZ_END: Final = ("out", *_UNWRITTEN)
spec(
    "aclnnGroupedMatmulWeightNz", replace(_RULE, formats={"weight": TILES}), _SIZES, *_FIT,
    dtypes(" ".join(["x", "weight", *_NO_COLUMNS, "perTokenScaleOptional", "out"]) + _NZ_TABLE),
    overload("stacked"), overload("blocks", **_columns("1", "E N", "E G N")),
    **{n: d for n, d in _NZ.items() if n not in _NZ_END},
    quantGroupSize=only(0, "of types that are not declared here"),
    **{n: _NZ[n] for n in _NZ_END})(grouped)  # fmt: skip


@spec("aclnnGroupedMatmulAddV2 aclnnGroupedMatmulAdd",
      Rule("gradient", "op-plugin test test_npu_grouped_matmul_add: each group's x^T weight, "
           "added to what is there", cost="2*T*M*N"),
      sizes(E=members(3, 1, 2, 8), T=tokens(12, 1, 3, 33, 130), M=rows_), both("E > T"),
      x=by("transposeX", {True: tensor("T M", "f16 bf16"), False: tensor("M T", "f16 bf16")}),
      weight=by("transposeWeight", {False: tensor("T N", "x"), True: tensor("N T", "x")}),
      groupList=by("groupListType", _TYPED_ENDS), yRef=inout(tensor("E M N", "f32")),
      transposeX=flag(True), transposeWeight=flag(),
      groupType=only(2, "documents allow sums over parts"), groupListType=choice(0, 1),
      )  # fmt: skip
def grouped_add(
    x: Array, weight: Array, groupList: Array, yRef: Array, transposeX: bool,
    transposeWeight: bool, groupListType: int = 0,
) -> Array:  # fmt: skip
    a, b = x if transposeX else x.T, weight.T if transposeWeight else weight
    cuts = ends_of(groupList, groupListType)[:-1]
    return yRef + np.stack([m.T @ n for m, n in zip(np.split(a, cuts), np.split(b, cuts),
                                                    strict=True)])  # fmt: skip
