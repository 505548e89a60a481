"""Owns how a C type is passed and how wide it is on LP64; refuses types it has not been shown."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from .signature import Kind

# (size in bytes, signed); alignment equals size. System V AMD64 ABI 3.1.2, AAPCS64 5.1.
SCALARS: Final[Mapping[str, tuple[int, bool]]] = {
    "bool": (1, False), "char": (1, True), "signed char": (1, True), "unsigned char": (1, False),
    "short": (2, True), "unsigned short": (2, False), "int": (4, True), "unsigned int": (4, False),
    "long": (8, True), "unsigned long": (8, False), "long long": (8, True),
    "unsigned long long": (8, False), "int8_t": (1, True), "uint8_t": (1, False),
    "int16_t": (2, True), "uint16_t": (2, False), "int32_t": (4, True), "uint32_t": (4, False),
    "int64_t": (8, True), "uint64_t": (8, False), "size_t": (8, False), "ssize_t": (8, True),
    "intptr_t": (8, True), "uintptr_t": (8, False), "ptrdiff_t": (8, True), "float": (4, True),
    "double": (8, True), "long double": (16, True), "__int128": (16, True),
    "unsigned __int128": (16, False), "char16_t": (2, False), "char32_t": (4, False),
    "wchar_t": (4, True), "time_t": (8, True), "pid_t": (4, True), "off_t": (8, True),
    "intmax_t": (8, True), "uintmax_t": (8, False),
}  # fmt: skip

_BY_WIDTH: Final = {
    (1, True): Kind.INT8, (1, False): Kind.UINT8, (2, True): Kind.INT16, (2, False): Kind.UINT16,
    (4, True): Kind.INT32, (4, False): Kind.UINT32, (8, True): Kind.INT64,
    (8, False): Kind.UINT64,
}  # fmt: skip

_POINTERS: Final = {
    "aclTensor": Kind.TENSOR, "aclTensorList": Kind.TENSOR_LIST, "aclScalar": Kind.SCALAR,
    "aclScalarList": Kind.SCALAR_LIST, "aclIntArray": Kind.INT_ARRAY,
    "aclBoolArray": Kind.BOOL_ARRAY, "aclFloatArray": Kind.FLOAT_ARRAY, "char": Kind.STRING,
    "aclOpExecutor": Kind.EXECUTOR,
}  # fmt: skip

# What operator headers use and other headers declare (acl_base.h, acl_rt.h, aclnn_base.h), for
# a header that is read alone.
_USUAL: Final = {
    "aclrtStream": Kind.HANDLE, "aclrtContext": Kind.HANDLE, "aclrtEvent": Kind.HANDLE,
    "HcclComm": Kind.HANDLE, "aclDataType": Kind.ENUM, "aclFormat": Kind.ENUM,
    "aclnnStatus": Kind.INT32, "aclError": Kind.INT32, "aclOpAttrHandle": Kind.HANDLE,
    "aclFloat16": Kind.UINT16,
}  # fmt: skip


def unqualified(ctype: str) -> str:
    """A type without qualifiers on the value itself: `const int64_t` → `int64_t`."""
    while ctype.endswith(("*const", "*volatile")):
        ctype = ctype[: ctype.rindex("*") + 1]
    if "*" not in ctype and "[" not in ctype:
        for word in ("const ", "volatile "):
            ctype = ctype.removeprefix(word)
    return ctype


def _pointed(ctype: str) -> str | None:
    """`X` of `X *` and `const X *`; None for anything else."""
    if not ctype.endswith(" *") or ctype.count("*") != 1 or "(" in ctype:
        return None
    return ctype[:-2].removeprefix("const ").removeprefix("volatile ")


def _scalar_kind(name: str) -> Kind | None:
    special = {"bool": Kind.BOOL, "size_t": Kind.SIZE, "float": Kind.FLOAT, "double": Kind.DOUBLE,
               "void": Kind.VOID, "...": Kind.VARARGS}  # fmt: skip
    if name in special:
        return special[name]
    width = SCALARS.get(name)
    return _BY_WIDTH.get(width) if width is not None and name != "long double" else None


def kind_of(
    ctype: str,
    typedefs: Mapping[str, str],
    enums: Container[str],
    structs: Container[str],
) -> Kind | None:
    """The kind of a parameter of type `ctype`; None when nothing is known of the type.

    A pointer to one of ACLNN's own types has its kind, whatever its const; a by-value name is
    looked up through `typedefs` down to a scalar, an enum, a struct or a pointer (HANDLE).
    """
    ctype = unqualified(ctype)
    if "(*" in ctype:
        return Kind.FUNCTION
    if (pointed := _pointed(ctype)) is not None and pointed in _POINTERS:
        return _POINTERS[pointed]
    if ctype.endswith(("*", "]", "&")):
        pointed = _pointed(ctype)
        resolved = typedefs.get(pointed, pointed) if pointed else ""
        return Kind.STRING if resolved == "char" else Kind.POINTER
    return _value_kind(ctype, typedefs, enums, structs)


def _value_kind(
    name: str, typedefs: Mapping[str, str], enums: Container[str], structs: Container[str]
) -> Kind | None:
    for _ in range(32):
        if (scalar := _scalar_kind(name)) is not None:
            return scalar
        if name.startswith("enum ") or name in enums:
            return Kind.ENUM
        if name.startswith(("struct ", "union ")):
            return Kind.STRUCT
        target = typedefs.get(name)
        if target is None:
            return Kind.STRUCT if name in structs else _USUAL.get(name)
        target = unqualified(target)
        if "(*" in target:
            return Kind.FUNCTION
        if target.endswith(("*", "]")):
            return Kind.HANDLE if target.endswith("*") else Kind.POINTER
        name = target
    return None
