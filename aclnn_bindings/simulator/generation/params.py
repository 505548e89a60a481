"""Owns the C++ names of operators' parameters: one header per family, one struct per operator."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .catalog import WORKSPACE, Catalog
from .entries import kind_of
from .text import BANNER

# Names that are words of C++.
RESERVED = frozenset(("default", "operator", "template", "this", "new", "delete", "and", "or"))


def struct_name(op: str) -> str:
    """What an operator's parameters are called in C++.

    >>> [struct_name(n) for n in ("aclnnRmsNorm", "acldvppResize", "aclStft")]
    ['RmsNorm', 'DvppResize', 'Stft']
    """
    return re.sub(r"^acl(?:nn)?", "", op.replace("acldvpp", "aclDvpp"))


def names(catalog: Catalog, ops: Iterable[str]) -> str:
    """C++ of a header with the parameters of `ops`, each at its position and of its kind."""
    parts = [BANNER, "#pragma once\n", '#include "nnopbase/op.h"\n', "namespace aclsim::params {"]
    ops = sorted(ops)
    parts += [_struct(catalog, op) for op in ops]
    known = {p.name for op in ops for p in catalog.functions[op + WORKSPACE].params[:-2]}
    lines = "".join(f"  static constexpr bool {name} = true;\n" for name in sorted(known))
    parts.append(f"// Every name of the family.\nstruct Known {{\n{lines}}};")
    parts.append("}  // namespace aclsim::params\n")
    return "\n".join(parts)


def _struct(catalog: Catalog, op: str) -> str:
    lines = [f"struct {struct_name(op)} {{"]
    for at, param in enumerate(catalog.functions[op + WORKSPACE].params[:-2]):
        if param.name in RESERVED:
            raise ValueError(f"{op}: parameter {param.name} needs another name in C++")
        kind = kind_of(param)[0]
        lines.append(f"  static constexpr Param<ArgKind::{kind}> {param.name}{{{at}}};")
    return "\n".join([*lines, "};"])
