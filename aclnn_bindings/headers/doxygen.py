"""Owns what doc comments say of parameters: direction, optionality, dtypes; English and Chinese."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

_PARAM: Final = re.compile(
    r"[@\\](?:param|tparam)\s*(?:\[\s*([a-zA-Z][\w\s,/|]*?)\s*\])?\s*\**\s*([A-Za-z_]\w*)"
    r"\s*(?:\[\s*(in|out|in\s*[,/|]?\s*out)\s*\])?"
)
_END: Final = re.compile(r"[@\\](?:return|retval|brief|domain|par|see|note|li|attention)\b")
_DTYPE: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:ACL_|DT_)?(FLOAT8_E4M3FN|FLOAT8_E5M2|FLOAT8_E8M0|FLOAT4_E2M1|FLOAT4_E1M2|"
    r"HIFLOAT8|BFLOAT16|FLOAT16|FLOAT32|FLOAT64|FLOAT|DOUBLE|BF16|FP16|FP32|FP64|INT4|INT8|INT16|"
    r"INT32|INT64|UINT1|UINT8|UINT16|UINT32|UINT64|BOOL|COMPLEX32|COMPLEX64|COMPLEX128|STRING|"
    r"bfloat16|float16|float32)(?![A-Za-z0-9_])"
)
_CANONICAL: Final = {
    "FLOAT32": "FLOAT", "FP32": "FLOAT", "FP16": "FLOAT16", "FP64": "DOUBLE", "FLOAT64": "DOUBLE",
    "BF16": "BFLOAT16", "bfloat16": "BFLOAT16", "float16": "FLOAT16", "float32": "FLOAT",
}  # fmt: skip
_OPTIONAL: Final = re.compile(
    r"\boptional\b|可选|(?:可以|可|允许|支持)(?:传入?|为|输入)?(?:空指针|空|nullptr|NULL)|"
    r"(?:can|may) be (?:null|nullptr|NULL)|or nullptr",
    re.I,
)
_DEPRECATED: Final = re.compile(r"[@\\]deprecated\b|接口(?:已|即将)?废弃|\bis deprecated\b")
_SENTENCE: Final = re.compile(r"数据类型|data ?type|dtype", re.I)


class ParamDoc(NamedTuple):
    """What a comment says of one parameter; `direction` is in, out, inout or empty."""

    direction: str
    optional: bool
    dtypes: tuple[str, ...]


@cache
def _direction(marks: str) -> str:
    words = re.findall(r"in|out", marks.lower())
    return "inout" if len(set(words)) == 2 else words[0] if words else ""


def _dtypes(text: str) -> tuple[str, ...]:
    """dtypes named in a parameter's text, in order; after 'data type' where that is said."""
    found: dict[str, None] = {}
    for match in _DTYPE.finditer(text):
        name = match[1]
        found[_CANONICAL.get(name, name)] = None
    return tuple(found)


def read_doc(comment: str) -> dict[str, ParamDoc]:
    """Parameter name → what the comment says of it. The first mention of a name counts."""
    out: dict[str, ParamDoc] = {}
    found = list(_PARAM.finditer(comment))
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(comment)
        stop = _END.search(comment, match.end(), end)
        text = comment[match.end() : stop.start() if stop else end]
        name = match[2]
        if name not in out:
            direction = _direction(match[1] or match[3] or "")
            out[name] = ParamDoc(direction, _OPTIONAL.search(text) is not None, _dtypes(text))
    return out


def is_deprecated(comment: str) -> bool:
    """Whether a doc comment declares its function deprecated."""
    return _DEPRECATED.search(comment) is not None
