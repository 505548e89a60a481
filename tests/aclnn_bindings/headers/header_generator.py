"""Owns writing header trees that declare a catalog in every spelling that real headers use."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from aclnn_bindings.interface.signature import Declarations, Param, Signature, Struct

_CORE = "acl/acl_base.h"
_ARRAY = re.compile(r"((?:\[[^\]]*\])+)$")
_MARKS = cycle(
    ["ACLNN_API ", '__attribute__((visibility("default")))\n', "ACL_FUNC_VISIBILITY ", ""]
)
_STARS = cycle(["{}* {}", "{} *{}", "{} * {}"])
_PRELUDE = """\
#include <stdint.h>
#include <stddef.h>
#if defined(_MSC_VER)
#define ACL_FUNC_VISIBILITY __declspec(dllexport)
#define ACL_DEPRECATED_MESSAGE(message) __declspec(deprecated(message))
#elif defined(__GNUC__)
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#define ACL_DEPRECATED_MESSAGE(message) __attribute__((deprecated(message)))
#else
#define ACL_FUNC_VISIBILITY
#define ACL_DEPRECATED_MESSAGE(message)
#endif
#define ACLNN_API ACL_FUNC_VISIBILITY
#define HCOMM_WEAK_SYMBOL __attribute__((weak))
#define ACL_TENSOR_SHAPE_RANGE_NUM 2
"""


@dataclass
class Planted:
    """What a tree holds besides its catalog: parts that must be reported as skipped."""

    skipped: int = 0
    copies: int = 0
    files: dict[str, bytes] = field(default_factory=dict)


def declarator(ctype: str, name: str, template: str = "{} *{}") -> str:
    """C text that declares `name` with a canonical type."""
    if "(*" in ctype:
        head, _, tail = ctype.partition(")")
        return f"{head}{name}){tail}" if not head.endswith("const") else f"{head} {name}){tail}"
    array = _ARRAY.search(ctype)
    if array:
        return f"{declarator(ctype[: array.start()], name, template)}{array[1]}"
    if ctype.endswith(" *") and name and ctype.count("*") == 1:
        return template.format(ctype[:-2], name)
    return f"{ctype} {name}".rstrip()


def _doc(signature: Signature, style: int) -> str:
    """A doc comment of one of three styles, with the dtypes that the catalog has."""
    if style == 3:
        return ""
    lines = ["/**"]
    for param in signature.params:
        dtypes = "、".join(param.dtypes)
        mark = f"[{param.direction.value}]" if "const" in param.type else "[in]"
        if style == 0:
            said = f"，数据类型支持{dtypes}，支持非连续的Tensor。" if dtypes else "。"
            lines.append(f" * @param {mark} {param.name}: npu device侧的aclTensor{said}")
        else:
            said = f", data type {dtypes.replace('、', ', ')}" if dtypes else ""
            lines.append(f" * @param {mark}   {param.name}   the argument{said}")
    return "\n".join([*lines, " * @return aclnnStatus: 返回状态码。", " */", ""])


def _params(params: Sequence[Param], style: int) -> str:
    template = next(_STARS)
    shown = []
    for index, param in enumerate(params):
        ctype = param.type.replace("[2]", "[ACL_TENSOR_SHAPE_RANGE_NUM]")
        if ctype.startswith("const acl") and index % 5 == 4 and ctype.endswith(" *"):
            ctype = f"{ctype[6:-2]} const *"
        shown.append("..." if param.type == "..." else declarator(ctype, param.name, template))
    if style % 4 == 1:
        return ",\n    ".join(shown)
    if style % 4 == 2 and len(shown) > 1:
        return ", // first, of (all)\n    ".join([shown[0], ", ".join(shown[1:])])
    if style % 4 == 3 and shown:
        return f"/* in; {{ */ {', '.join(shown)}"
    return ", ".join(shown) or "void"


def function(signature: Signature, style: int) -> str:
    """One prototype with its comment."""
    mark = next(_MARKS)
    if signature.deprecated or style % 37 == 5:
        mark = f'ACL_DEPRECATED_MESSAGE("use {signature.name}V2; it (really) is better") {mark}'
    weak = " HCOMM_WEAK_SYMBOL" if style % 11 == 3 else ""
    space = " " if not signature.returns.endswith("*") else ""
    returns = f"{signature.returns}{space}"
    text = f"{mark}{returns}{signature.name}({_params(signature.params, style)}){weak};\n"
    return _doc(signature, style % 4) + text


def _constants(found: Declarations) -> Iterator[str]:
    for index, (name, value) in enumerate(found.constants.items()):
        if f"#define {name} " in _PRELUDE:
            continue
        if isinstance(value, str):
            yield f'#define {name} "{value}"'
        elif not isinstance(value, int) or abs(value) >= 1 << 31 or index % 4 == 0:
            suffix = "ULL" if isinstance(value, int) and value >= 1 << 63 else ""
            yield f"#define {name} ({value}{suffix}) // value"
        elif index % 4 == 1:
            yield f"static const int {name} = {value};"
        elif index % 4 == 2 and value >= 0:
            yield f"const uint32_t {name} = {value}U;"
        else:
            yield f"constexpr int {name} = {value};"


def _enum(name: str, members: dict[str, int], style: int) -> str:
    last = -1
    lines = []
    for index, (member, value) in enumerate(members.items()):
        old = ' ACL_DEPRECATED_MESSAGE("gone")' if style % 5 == 2 and index == 1 else ""
        if value == last + 1 and index % 2:
            lines.append(f"    {member}{old}, /**< the {value}, next */")
        else:
            shown = f"0x{value:X}" if style % 3 == 1 and 0 <= value < 1 << 31 else str(value)
            lines.append(f"    {member}{old} = {shown},")
        last = value
    body = "\n".join(lines)
    if style % 2:
        return f"typedef enum {name} {{\n{body}\n}} {name};"
    return f"typedef enum {{\n{body.rstrip().rstrip(',')}\n}} {name};"


def _struct(name: str, struct: Struct) -> str:
    if not plain(struct):
        aligned = f"__attribute__((aligned({struct.align})))"
        return f"typedef struct {aligned} {name} {{ uint8_t bytes[{struct.size}]; }} {name};"
    word = "union" if struct.union else "struct"
    members = "".join(f"    {declarator(f.type, f.name)};\n" for f in struct.fields)
    return f"typedef {word} {name} {{\n{members}}} {name};"


def plain(struct: Struct) -> bool:
    """Whether a catalog's struct can be written back: its rows keep no nested members."""
    end = 0
    for item in struct.fields:
        nested = item.type.partition("[")[0] in ("struct", "union") or "." in item.type
        if nested or item.bits or not item.name:
            return False
        if struct.union:
            end = max(end, item.size)
        elif not end <= item.offset < end + struct.align:
            return False
        else:
            end = item.offset + item.size
    return bool(struct.fields) and end <= struct.size < end + struct.align


_CXX = (
    "#ifdef __cplusplus\ntemplate <typename T>\naclError {}(T *ptr, size_t n = 1)"
    " {{ return 0; }}\n#endif\n"
)


def _ordered(items: dict[str, str]) -> Iterator[str]:
    """Declarations so that each stands behind those it names."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name in done:
            return
        done.add(name)
        for word in re.findall(r"[A-Za-z_]\w*", items[name]):
            if word in items and word != name:
                yield from visit(word)
        yield items[name]

    for name in items:
        yield from visit(name)


def _types(found: Declarations) -> str:
    enums = {n: dict(m) for n, m in found.enums.items() if m}
    items = {n: _enum(n, m, i) for i, (n, m) in enumerate(enums.items())}
    items |= {n: _struct(n, s) for n, s in found.structs.items() if s.size}
    for name, target in found.typedefs.items():
        bare = re.sub(r"^(?:struct|union|enum) ", "", target)
        if name in items or (bare == name and target.startswith("enum")):
            continue
        if target.startswith(("struct ", "union ")):
            items[name] = f"typedef struct {bare if bare not in items else name} {name};"
        else:
            items[name] = f"typedef {declarator(target, name)};"
    if "hi_void" not in items:
        items["hi_void"] = "#define hi_void void"
    return "\n".join([_PRELUDE, *_ordered(items)]) + "\n"


def _wrap(body: str, guard: str, style: int, tail: str = "") -> bytes:
    opening = "#if __cplusplus" if style % 7 == 6 else "#ifdef __cplusplus"
    text = (
        f"/* 版权 (c) example; not {{ code }} */\n#ifndef {guard}\n#define {guard}\n"
        f'#include "aclnn/aclnn_base.h"\n\n{opening}\nextern "C" {{\n#endif\n\n{body}\n'
        f"{opening}\n}}\n#endif\n{tail}#endif // {guard}\n"
    )
    if style % 13 == 4:
        text = text.replace("\n", "\r\n")
    data = text.encode()
    return b"\xef\xbb\xbf" + data if style % 17 == 2 else data


def generate(found: Declarations) -> Planted:
    """The files of a tree that declares `found`, by name."""
    made = Planted()
    core = "\n".join([_types(found), *_constants(found)])
    made.files[_CORE] = _wrap(core, "ACL_BASE_H_", 2)
    by_header: dict[str, list[Signature]] = {}
    for signature in found.functions.values():
        by_header.setdefault(signature.header, []).append(signature)
    for style, (header, functions) in enumerate(by_header.items()):
        name = header if header != _CORE else "acl/acl_functions.h"
        body = "\n".join(function(s, style + i) for i, s in enumerate(functions))
        tail = ""
        if style % 19 == 1:
            tail = _CXX.format(f"Wrap{style}")
            made.skipped += 1
        # Neighbours share a guard, as pairs of real headers do.
        guard = f"OP_API_INC_{style // 2 * 2 if style % 23 < 2 else style}_H_"
        data = _wrap(body, guard, style, tail)
        made.files[name] = data
        if name.startswith("aclnnop/aclnn") and style % 3 == 0:
            made.files[name.replace("aclnnop/", "aclnnop/level2/")] = data
            made.copies += 1
    return made


def write(files: dict[str, bytes], root: Path) -> None:
    """Puts generated files under a folder."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
