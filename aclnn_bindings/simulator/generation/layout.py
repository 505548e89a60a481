"""Owns C definitions of enums, structs and typedefs; refuses layouts that do not add up."""

from __future__ import annotations

import re
from typing import Any

from .catalog import Catalog, declare

PRIMITIVE_SIZES = {
    "char": 1, "bool": 1, "int8_t": 1, "uint8_t": 1, "unsigned char": 1, "int16_t": 2,
    "uint16_t": 2, "int": 4, "float": 4, "int32_t": 4, "uint32_t": 4, "double": 8,
    "int64_t": 8, "uint64_t": 8, "size_t": 8,
}  # fmt: skip
WORD = re.compile(r"[A-Za-z_]\w*")
# Anonymous unions at the end of a struct, which the catalog does not describe; from the documents
# of the structs (aclmdlRITaskParams: CANN 9.1, aclcppdevg_03_2183).
UNIONS: dict[str, list[list[Any]]] = {
    "aclmdlRITaskParams": [
        ["uint8_t[128]", "rsv2"],
        ["aclmdlRIKernelTaskParams", "kernelTaskParams"],
        ["aclmdlRIEventRecordTaskParams", "eventRecordTaskParams"],
        ["aclmdlRIEventWaitTaskParams", "eventWaitTaskParams"],
        ["aclmdlRIEventResetTaskParams", "eventResetTaskParams"],
        ["aclmdlRIValueWriteTaskParams", "valueWriteTaskParams"],
        ["aclmdlRIValueWaitTaskParams", "valueWaitTaskParams"],
    ]
}


def depends(catalog: Catalog, name: str) -> list[str]:
    """Type names that must be known before `name` is defined."""
    names: list[str] = []
    target = catalog.typedefs.get(name, "")
    for word in WORD.findall(target):
        if word != name:
            names.append(word)
    layout = catalog.structs.get(name)
    if layout and not _alias(catalog, name):
        fields = [*_flat(layout[4]), *UNIONS.get(name, ())]
        names += [w for field in fields for w in WORD.findall(field[0])]
    return names


def definition(catalog: Catalog, name: str) -> str:
    """C text that completes `name`, or nothing when its forward declaration says it all."""
    if name in catalog.enums:
        return _enum(name, catalog.enums[name][1])
    if name in catalog.structs and not _alias(catalog, name):
        return _struct(catalog, name)
    target = catalog.typedefs.get(name, "")
    if not target or target.startswith(("struct ", "union ")):
        return ""
    return f"typedef {declare(target, name)};"


def _alias(catalog: Catalog, name: str) -> bool:
    """True when `name` is only another name of a struct that has its own entry."""
    target = catalog.typedefs.get(name, "")
    words = target.split()
    return len(words) == 2 and words[0] in ("struct", "union") and words[1] != name


def _flat(fields: list[list[Any]]) -> list[list[Any]]:
    flat: list[list[Any]] = []
    for field in fields:
        flat += _flat(field[3]) if len(field) > 3 else [field]
    return flat


def _enum(name: str, values: dict[str, int]) -> str:
    body = "\n".join(f"  {member} = {value}," for member, value in values.items())
    return f"typedef enum {name} {{\n{body}\n}} {name};\n"


def _struct(catalog: Catalog, name: str) -> str:
    _, kind, size, _, fields = catalog.structs[name]
    lines, end = [], 0
    for field in fields:
        known = _size(catalog, field[0]) is not None or len(field) > 3
        if not known:
            break
        lines.append(f"  {_field(field)}")
        end = max(end, field[2] + (_size(catalog, field[0]) or size - field[2]))
    missing = size - end
    if name in UNIONS:
        members = "".join(f"    {_field(member)}\n" for member in UNIONS[name])
        lines.append(f"  union {{\n{members}  }};")
    elif missing >= 8:
        # Members that the catalog does not describe (an anonymous union) keep their room.
        lines.append(f"  uint64_t undescribed[{missing // 8}];")
    body = "\n".join(lines)
    return f"{kind} {name} {{\n{body}\n}};\n"


def _field(field: list[Any]) -> str:
    if len(field) > 3:
        inner = " ".join(_field(member) for member in field[3])
        return f"{field[0]} {{ {inner} }} {field[1]};"
    return declare(field[0].replace("[0]", "[]"), field[1]) + ";"


def _size(catalog: Catalog, ctype: str) -> int | None:
    """sizeof(ctype) on LP64, or None for a type that the catalog does not describe."""
    array = re.match(r"(.*?)((?:\[\d+\])+)$", ctype)
    if array:
        size = _size(catalog, array[1])
        for bound in re.findall(r"\d+", array[2]):
            size = size * int(bound) if size is not None else None
        return size
    if ctype.endswith("*"):
        return 8
    if ctype in PRIMITIVE_SIZES:
        return PRIMITIVE_SIZES[ctype]
    if ctype in catalog.enums:
        return 4
    if ctype in catalog.structs:
        size = catalog.structs[ctype][2]
        return int(size)
    target = catalog.typedefs.get(ctype)
    return _size(catalog, target) if target and target != ctype else None
