"""FusedInferAttentionScore: prompts and decoding in one operator."""

from __future__ import annotations

from .....spec import *
from .....spec import causal as causal_mask
from .._words import *
from .inference import (
    ALL_TOKENS,
    KV_HEADS,
    QUERIES,
    RESULT_OFFSET,
    RESULT_SCALE,
    RULE,
    SIDES,
    SIZES,
    apart,
    caches,
    infer,
    lengths_of,
    masks_by,
    of_integers,
    room,
    sequences_of,
    word,
)  # fmt: skip


def fused(
    query: Array, key: list[Array], value: list[Array], numHeads: int, scaleValue: float,
    inputLayout: str, numKeyValueHeads: int, pseShiftOptional: Array | None = None,
    attenMaskOptional: Array | None = None,
    actualSeqLengthsOptional: tuple[int, ...] | None = None,
    actualSeqLengthsKvOptional: tuple[int, ...] | None = None,
    deqScale1Optional: Array | None = None, quantScale1Optional: Array | None = None,
    deqScale2Optional: Array | None = None, quantScale2Optional: Array | None = None,
    quantOffset2Optional: Array | None = None,
    antiquantScaleOptional: Array | None = None, antiquantOffsetOptional: Array | None = None,
    antiquantMode: int = 0, blockTableOptional: Array | None = None,
    queryPaddingSizeOptional: Array | None = None, kvPaddingSizeOptional: Array | None = None,
    keyAntiquantScaleOptional: Array | None = None, keyAntiquantOffsetOptional: Array | None = None,
    valueAntiquantScaleOptional: Array | None = None,
    valueAntiquantOffsetOptional: Array | None = None, keyAntiquantMode: int = 0,
    valueAntiquantMode: int = 0, keySharedPrefixOptional: Array | None = None,
    valueSharedPrefixOptional: Array | None = None,
    actualSharedPrefixLenOptional: tuple[int, ...] | None = None,
    queryRopeOptional: Array | None = None, keyRopeOptional: Array | None = None,
    learnableSinkOptional: Array | None = None, pseType: int = 0,
    qStartIdxOptional: tuple[int, ...] | None = None,
    kvStartIdxOptional: tuple[int, ...] | None = None, preTokens: int = 65536,
    nextTokens: int = 65536, sparseMode: int = 0, softmaxLseFlag: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    anti = apart(antiquantMode, antiquantScaleOptional, antiquantOffsetOptional)
    if keyAntiquantScaleOptional is not None:
        anti = [(keyAntiquantMode, keyAntiquantScaleOptional, keyAntiquantOffsetOptional),
                (valueAntiquantMode, valueAntiquantScaleOptional,
                 valueAntiquantOffsetOptional)]  # fmt: skip
    out, log = infer(
        query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
        mask=attenMaskOptional, shift=pseShiftOptional, lengths=actualSeqLengthsKvOptional,
        ends=actualSeqLengthsOptional, anti=anti, table=blockTableOptional, sparse=sparseMode,
        before=preTokens, after=nextTokens, steps=(
            deqScale1Optional, quantScale1Optional, deqScale2Optional, quantScale2Optional,
            quantOffset2Optional), padding=(queryPaddingSizeOptional, kvPaddingSizeOptional),
        prefix=(keySharedPrefixOptional, valueSharedPrefixOptional, actualSharedPrefixLenOptional),
        rope=(queryRopeOptional, keyRopeOptional), sink=learnableSinkOptional, slope=pseType,
        begins=((qStartIdxOptional or (0,))[0], (kvStartIdxOptional or (0,))[0]))  # fmt: skip
    return out, log if softmaxLseFlag else np.zeros((0,))


_APART: Final = "given(keyAntiquantScaleOptional)"
_TOGETHER: Final = "given(antiquantScaleOptional)"
_INTEGER_CACHE: Final = "dtype(key) != dtype(query)"
_QUERY_SCALE: Final = null("of 8-bit queries over latent caches, which are not declared here")
_ELSEWHERE: Final = only(0, "of another form of the call")
_CHANNELS: Final = forms(channels=tensor("2 K*D", "query", 0.05, 0.3),
                         one=tensor("2", "query", 0.05, 0.3))  # fmt: skip
_OFFSETS: Final = forms(channels=tensor("2 K*D", "query"), one=tensor("2", "query"))
_KEY_CHANNELS: Final = forms(channels=tensor("K*D", "query", 0.05, 0.3),
                             one=tensor("1", "query", 0.05, 0.3))  # fmt: skip
_KEY_OFFSETS: Final = forms(channels=tensor("K*D", "query"), one=tensor("1", "query"))


def _scale_by(mode: str, channels: Domain, low: float, high: float) -> Domain:
    return by(mode, {0: channels, 1: tensor("B Sk", "f32", low, high)})


def _quantised_caches(together: str) -> dict[str, Domain]:
    """Scales and offsets of int8 caches: of keys and values together, or apart."""
    return {
        "antiquantScaleOptional": optional(
            by("antiquantMode", {0: _CHANNELS, 1: tensor("2 B Sk", together, 0.05, 0.3)}),
            iff=f"{_INTEGER_CACHE} and not {_APART}"),
        "antiquantOffsetOptional": optional(
            by("antiquantMode", {0: _OFFSETS, 1: tensor("2 B Sk", together)}), only=_TOGETHER),
        "keyAntiquantScaleOptional": optional(
            _scale_by("keyAntiquantMode", _KEY_CHANNELS, 0.05, 0.3), only=_INTEGER_CACHE),
        "keyAntiquantOffsetOptional": optional(
            _scale_by("keyAntiquantMode", _KEY_OFFSETS, -2, 2), only=_APART),
        "valueAntiquantScaleOptional": optional(
            _scale_by("valueAntiquantMode", _KEY_CHANNELS, 0.05, 0.3), iff=_APART),
        "valueAntiquantOffsetOptional": optional(
            _scale_by("valueAntiquantMode", _KEY_OFFSETS, -2, 2),
            iff="given(keyAntiquantOffsetOptional)"),
    }  # fmt: skip


def _params(names: str, together: str) -> dict[str, Domain]:
    """The domains of a version's parameters, in the order of its header."""
    every: dict[str, Domain] = {
        "query": sequences_of("Sq", "N", "f16 bf16 i8"), "key": caches("query"),
        "value": caches("query"),
        "pseShiftOptional": optional(forms(each=tensor("B N Sq Sk", "query"),
                                           all=tensor("1 N Sq Sk", "query")),
                                     only="dtype(query) != 'int8'"),
        "attenMaskOptional": masks_by("sparseMode"),
        "actualSeqLengthsOptional": optional(lengths_of("Sq")),
        "actualSeqLengthsKvOptional": optional(lengths_of("Sk")),
        "deqScale1Optional": of_integers(forms(f32=scalar_tensor("f32", 2.0**-6, 0.25),
                                               u64=word(0.25))),
        "quantScale1Optional": of_integers(scalar_tensor("f32", 127.0, 64.0)),
        "deqScale2Optional": of_integers(forms(usual=word(2.0**-6), small=word(2.0**-8))),
        "quantScale2Optional": RESULT_SCALE,
        "quantOffset2Optional": optional(RESULT_OFFSET, only="given(quantScale2Optional)"),
        **_quantised_caches(together),
        "blockTableOptional": null("of caches in blocks"),
        "queryPaddingSizeOptional": null("of padding on the left"),
        "kvPaddingSizeOptional": null("of padding on the left"),
        "keySharedPrefixOptional": null("of a prefix that all sequences share"),
        "valueSharedPrefixOptional": null("of a prefix that all sequences share"),
        "actualSharedPrefixLenOptional": null("of a prefix that all sequences share"),
        "queryRopeOptional": null("of latent attention"),
        "keyRopeOptional": null("of latent attention"),
        "keyRopeAntiquantScaleOptional": null("reserved: documents ask for null"),
        "dequantScaleQueryOptional": _QUERY_SCALE,
        "learnableSinkOptional": optional(tensor("N", "query", -1, 3),
                                          only="dtype(query) != 'int8'"),
        "qStartIdxOptional": null("of slopes"), "kvStartIdxOptional": null("of slopes"),
        "numHeads": equals("N"), "scaleValue": number("D**-0.5", 1.0, 0.0),
        "preTokens": number(ALL_TOKENS, 3, 0), "nextTokens": number(ALL_TOKENS, 2, 0),
        "inputLayout": choice("BSH", "BNSD", "BSND", "BNSD_BSND", "BNSD_NBSD"),
        "numKeyValueHeads": KV_HEADS, "sparseMode": choice(0, 1, 2, 3, 4),
        "innerPrecise": ignored("chooses between algorithms of one result", choice(0, 1)),
        "blockSize": _ELSEWHERE, "antiquantMode": choice(0, 1), "softmaxLseFlag": flag(),
        "keyAntiquantMode": choice(0, 1), "valueAntiquantMode": choice(0, 1),
        "queryQuantMode": only(0, "of 8-bit queries over latent caches"),
        "pseType": _ELSEWHERE, "attentionOut": out("query"), "softmaxLse": out("f32"),
    }  # fmt: skip
    return {n: every[n] for n in names.split()}


def _prefix_rows(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    return np.array([{"whole": draw["Q"], "some": -(-draw["Q"] // 2), "one": 1}[pattern]])


_THREE_LAYOUTS: Final = choice("BNSD", "BSH", "BSND")
_NO_PADDING: Final = null("its place beside padding on the left is not stated")
_WHOLE_MASKS: Final = dict.fromkeys((2, 3, 4), causal_mask("2048 2048"))
_ONE_CACHE: Final = dict.fromkeys(("key", "value"), by("inputLayout", {
    "BSH": tensors("1", "B Sk K*D", "query"), "BSND": tensors("1", "B Sk K D", "query"),
    "BNSD": tensors("1", "B K Sk D", "query")}))  # fmt: skip
_PADDED: Final = overload(
    "padded", pseShiftOptional=_NO_PADDING, attenMaskOptional=_NO_PADDING,
    sparseMode=only(0, "of calls without padding"), inputLayout=_THREE_LAYOUTS,
    actualSeqLengthsOptional=lengths_of("Sq"), actualSeqLengthsKvOptional=lengths_of("Sk"),
    queryPaddingSizeOptional=optional(room("Sq", "actualSeqLengthsOptional")),
    kvPaddingSizeOptional=optional(room("Sk", "actualSeqLengthsKvOptional")))  # fmt: skip
_CACHE_BLOCKS: Final = forms(flat=tensors("1", "P Z K*D", "query"),
                             heads=tensors("1", "P K Z D", "query"))  # fmt: skip
_PAGED: Final = overload(
    "paged", key=_CACHE_BLOCKS, value=_CACHE_BLOCKS, inputLayout=_THREE_LAYOUTS,
    pseShiftOptional=null("of caches that are not in blocks"),
    attenMaskOptional=by("sparseMode", {0: optional(mask("B 1 Sq M*Z")), 1: mask("B 1 Sq M*Z"),
                                        **_WHOLE_MASKS}),
    actualSeqLengthsKvOptional=lengths_of("M*Z"), blockSize=equals("Z"),
    blockTableOptional=index("B M", into="P", dtype="i32"),
    antiquantMode=only(0, "of caches that are not in blocks"),
    keyAntiquantMode=only(0, "of caches that are not in blocks"),
    valueAntiquantMode=only(0, "of caches that are not in blocks"))  # fmt: skip
_PREFIXED: Final = overload(
    "prefixed", **_ONE_CACHE, inputLayout=_THREE_LAYOUTS,
    pseShiftOptional=null("of caches without a prefix"),
    attenMaskOptional=optional(mask("B 1 Sq Q+Sk")), sparseMode=choice(0, 1),
    keySharedPrefixOptional=sequences_of("Q", "K", "query", b="1"),
    valueSharedPrefixOptional=sequences_of("Q", "K", "query", b="1"),
    actualSharedPrefixLenOptional=optional(
        content(_prefix_rows, "whole some one", shape="1", reads=("Q",))))  # fmt: skip
_PACKED: Final = overload(
    "packed", query=tensor("T N D", "f16 bf16 i8"), key=tensors("1", "U K D", "query"),
    value=tensors("1", "U K D", "query"), inputLayout=choice("TND"),
    pseShiftOptional=null("of dense layouts"),
    attenMaskOptional=by("sparseMode", {0: None, **_WHOLE_MASKS}), sparseMode=choice(0, 2, 3, 4),
    actualSeqLengthsOptional=parts("B", of="T", form="ends", patterns="ragged even"),
    actualSeqLengthsKvOptional=parts("B", of="U", form="ends", patterns="ragged even"),
    queryRopeOptional=null("of latent attention"))  # fmt: skip
_LATENT: Final = overload(
    "latent", query=sequences_of("Sq", "N", "f16 bf16 i8", "512"),
    **dict.fromkeys(("key", "value"), by("inputLayout", {
        "BSH": tensors("1", "B Sk 512", "query"), "BSND": tensors("1", "B Sk 1 512", "query"),
        "BNSD": tensors("1", "B 1 Sk 512", "query")})),
    inputLayout=_THREE_LAYOUTS, numKeyValueHeads=only(1, "heads share one latent cache"),
    quantScale2Optional=scalar_tensor("f32", 8.0),
    quantOffset2Optional=optional(scalar_tensor("f32", -3.0), only="given(quantScale2Optional)"),
    queryRopeOptional=sequences_of("Sq", "N", "query", "64"),
    keyRopeOptional=sequences_of("Sk", "1", "query", "64"))  # fmt: skip
_SLOPED: Final = overload(
    "sloped", pseType=choice(2, 3),
    pseShiftOptional=optional(tensor("N", "query", 0.1, 0.5), only="dtype(query) != 'int8'"),
    qStartIdxOptional=array((0,), (3,)), kvStartIdxOptional=array((0,), (1,)))  # fmt: skip
_TYPES: Final = dtypes("""query key  value quantScale2Optional attentionOut
                          f16   f16  f16   -                   f16
                          bf16  bf16 bf16  -                   bf16
                          f16   f16  f16   f32                 i8
                          f16   i8   i8    -                   f16
                          bf16  i8   i8    -                   bf16
                          f16   i8   i8    f32                 i8
                          i8    i8   i8    -                   f16
                          i8    i8   i8    f32                 i8""")
# Documents call sparseMode without effect where there is one query.
_UNSTATED: Final = require(
    "Sq > 1 or sparseMode == 0 or inputLayout == 'TND'",
    "not given(quantOffset2Optional) or not given(actualSeqLengthsOptional)",
    refuses=None,
)
_SAME: Final = require(
    "len(key) == len(value)", "rank(key) == rank(value)",
    "not given(quantOffset2Optional) or size(quantScale2Optional) == size(quantOffset2Optional)",
    "not given(antiquantOffsetOptional) or "
    "size(antiquantScaleOptional) == size(antiquantOffsetOptional)",
    "not given(keyAntiquantOffsetOptional) or "
    "size(keyAntiquantScaleOptional) == size(keyAntiquantOffsetOptional)",
    "not given(valueAntiquantOffsetOptional) or "
    "size(valueAntiquantScaleOptional) == size(valueAntiquantOffsetOptional)",
    "not given(keyAntiquantScaleOptional) or keyAntiquantMode <= valueAntiquantMode",
    "dtype(query) != 'int8' or not (given(blockTableOptional) or given(keySharedPrefixOptional) "
    "or given(queryPaddingSizeOptional) or given(kvPaddingSizeOptional) "
    "or given(queryRopeOptional) or inputLayout == 'TND')",
    "dtype(query) == dtype(key) or not (given(keySharedPrefixOptional) "
    "or given(queryRopeOptional) or inputLayout == 'TND')")  # fmt: skip
_FORMS: Final = (overload("dense"), _PADDED, _PAGED, _PREFIXED, _PACKED, _LATENT)
_EXTENTS: Final = sizes(P=pages(5, 2, 9), Z=page(16, 128), M=group(2, 1, 4), Q=row(9, 1, 33),
                        T=row(13, 1, 40, 130), U=row(17, 1, 33, 150))  # fmt: skip
_FIRST: Final = """query key value pseShiftOptional attenMaskOptional actualSeqLengthsOptional
actualSeqLengthsKvOptional deqScale1Optional quantScale1Optional deqScale2Optional
quantScale2Optional quantOffset2Optional antiquantScaleOptional antiquantOffsetOptional
blockTableOptional queryPaddingSizeOptional kvPaddingSizeOptional"""
_SECOND: Final = """keyAntiquantScaleOptional keyAntiquantOffsetOptional
valueAntiquantScaleOptional valueAntiquantOffsetOptional keySharedPrefixOptional
valueSharedPrefixOptional actualSharedPrefixLenOptional"""
_THIRD: Final = "queryRopeOptional keyRopeOptional keyRopeAntiquantScaleOptional"
_NUMBERS: Final = """numHeads scaleValue preTokens nextTokens inputLayout numKeyValueHeads
sparseMode innerPrecise blockSize antiquantMode softmaxLseFlag keyAntiquantMode
valueAntiquantMode"""
_RENAMED: Final = {n: n.removesuffix("Optional") for n in _FIRST.split() if n.endswith("Optional")}
_LATE: Final = f"""{_FIRST} {_SECOND} {_THIRD} dequantScaleQueryOptional learnableSinkOptional
qStartIdxOptional kvStartIdxOptional {_NUMBERS} queryQuantMode pseType attentionOut softmaxLse"""
# The later versions take scales of keys and values together in the query's dtype alone.
spec("aclnnFusedInferAttentionScoreV5 aclnnFusedInferAttentionScoreV4", RULE, SIZES, QUERIES,
     _EXTENTS, SIDES, _TYPES, _UNSTATED, _SAME, *_FORMS, _SLOPED,
     both("sparseMode == 4 and Sq > Sk", "sparseMode == 3 and Sq < Sk",
          "given(learnableSinkOptional) and softmaxLseFlag"),
     **_params(_LATE, "query"))(fused)  # fmt: skip
spec("aclnnFusedInferAttentionScoreV3 aclnnFusedInferAttentionScoreV2", RULE, SIZES, QUERIES,
     _EXTENTS, SIDES, _TYPES, _UNSTATED, _SAME, *_FORMS,
     also("aclnnFusedInferAttentionScore", **_RENAMED),
     both("sparseMode == 4 and Sq > Sk", "sparseMode == 3 and Sq < Sk"),
     **_params(f"{_FIRST} {_SECOND} {_THIRD} {_NUMBERS} attentionOut softmaxLse",
               "f32"))(fused)  # fmt: skip
