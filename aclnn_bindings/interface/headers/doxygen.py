"""Owns what doc comments say of parameters: direction, optionality, dtypes; English and Chinese."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

_PARAM: Final = re.compile(
    r"[@\\](?:param|tparam)\s*(?:\[\s*([a-zA-Z][\w\s,/|]*?)\s*\])?\s*\**\s*([A-Za-z_]\w*)"
    r"\s*(?:\[\s*(in|out|in\s*[,/|]?\s*out)\s*\])?"
)
# Generated headers list `name : optional` instead.
_LISTED: Final = re.compile(r"^[ \t]*\*[ \t]*(\w+)[ \t]*:[ \t]*(optional|required|dynamic)", re.M)
_END: Final = re.compile(r"[@\\](?:return|retval|brief|domain|par|see|note|li|attention)\b")
_NAMES: Final = (
    r"(?<![A-Za-z0-9_])(?:ACL_|DT_)?(FLOAT8_E4M3FN|FLOAT8_E5M2|FLOAT8_E8M0|FLOAT6_E3M2|FLOAT6_E2M3|"
    r"FLOAT4_E2M1|FLOAT4_E1M2|HIFLOAT8|BFLOAT16|FLOAT(?:16|32|64)?|DOUBLE|BF16|BFP16|FP(?:16|32|64)|"
    r"Q?U?INT(?:1|4|8|16|32|64)|BOOL|COMPLEX(?:32|64|128)|STRING)(?![A-Za-z0-9_])"
)
_DTYPE: Final = re.compile(_NAMES)
# Behind these words lower case names are dtypes too.
_DTYPE_WORDS: Final = re.compile(r"数据类型|data ?types?\b|dtypes?\b", re.I)
_ANY_CASE: Final = re.compile(_NAMES, re.I)
_CANONICAL: Final = {
    "FLOAT32": "FLOAT", "FP32": "FLOAT", "FP16": "FLOAT16", "FP64": "DOUBLE", "FLOAT64": "DOUBLE",
    "BF16": "BFLOAT16", "BFP16": "BFLOAT16",
}  # fmt: skip
_OPTIONAL: Final = re.compile(
    r"\boptional\b|可选|(?:可以|可|允许|支持)(?:传入?|为|输入)?(?:空指针|空|nullptr|NULL)|"
    r"(?:can|may) be (?:null|nullptr|NULL)|or nullptr",
    re.I,
)
_DEPRECATED: Final = re.compile(r"[@\\]deprecated\b|接口(?:已|即将)?废弃|\bis deprecated\b")


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
    """dtypes named in a parameter's text, in order."""
    declaration = _DTYPE_WORDS.search(text)
    names: dict[str, None] = {}
    for match in _DTYPE.finditer(text) if declaration is None else _ANY_CASE.finditer(text):
        if declaration is None or match.start() >= declaration.end() or match[1].isupper():
            name = match[1].upper()
            names[_CANONICAL.get(name, name)] = None
    return tuple(names)


def read_doc(comment: str) -> dict[str, ParamDoc]:
    """Parameter name → what the comment says of it. The first mention of a name counts."""
    out: dict[str, ParamDoc] = {}
    params = list(_PARAM.finditer(comment))
    for index, match in enumerate(params):
        end = params[index + 1].start() if index + 1 < len(params) else len(comment)
        stop = _END.search(comment, match.end(), end)
        text = comment[match.end() : stop.start() if stop else end]
        name = match[2]
        if name not in out:
            direction = _direction(match[1] or match[3] or "")
            out[name] = ParamDoc(direction, _OPTIONAL.search(text) is not None, _dtypes(text))
    if not out and ": required" in comment:
        for listed in _LISTED.finditer(comment):
            out.setdefault(listed[1], ParamDoc("", listed[2] == "optional", ()))
    return out


def is_deprecated(comment: str) -> bool:
    """Whether a doc comment declares its function deprecated."""
    return _DEPRECATED.search(comment) is not None
