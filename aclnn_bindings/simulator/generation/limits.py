"""Owns the C++ of limits: formats, dtypes and values that operators refuse beyond their lists.

They come from the documents' lists of formats, and from what hardware and clients showed
(`catalogs/field/limits.json`), each with its evidence.
"""

from __future__ import annotations

from typing import Any

from .catalog import WORKSPACE, Catalog, CatalogParam
from .entries import PRODUCTS, kind_of, products_mask
from .text import BANNER

IMAGE_FORMATS = frozenset(("NCL", "NCHW", "NHWC", "NCDHW", "NDHWC"))
EVERYWHERE = sum(1 << bit for bit in PRODUCTS.values())


def limit_rows(catalog: Catalog, ops: list[str]) -> str:
    """C++ of the table of limits, sorted by operator."""
    parts = [BANNER, '#include "nnopbase/limits.h"\n', "namespace aclsim {", "namespace {"]
    limited = []
    for op in sorted(ops):
        params = catalog.functions[op + WORKSPACE].params[:-2]
        spec = catalog.specs.get(op, {})
        limits = [*_format_limits(spec, params), *_field_limits(catalog, op, params)]
        if limits:
            parts.append(f"const Limit limits_{op}[] = {{{', '.join(limits)}}};")
            limited.append(f'    {{"{op}", limits_{op}, {len(limits)}}},')
    parts += ["}  // namespace", "extern const LimitRow limit_rows[] = {", *limited, "};"]
    parts += [f"extern const size_t limit_row_count = {len(limited)};", "}  // namespace aclsim"]
    return "\n".join(parts) + "\n"


def operator_keys(ops: list[str]) -> str:
    """C++ of the names by which ACLSIM_FAULTS knows operators, sorted."""
    keys = sorted(op.removeprefix("aclnn").lower() for op in ops)
    parts = [BANNER, '#include "nnopbase/fault_plan.h"\n', "namespace aclsim {"]
    parts += ["extern const char* const operator_keys[] = {", *(f'    "{key}",' for key in keys)]
    parts += ["};", f"extern const size_t operator_key_count = {len(keys)};"]
    return "\n".join([*parts, "}  // namespace aclsim"]) + "\n"


def _format_limits(spec: dict[str, Any], params: tuple[CatalogParam, ...]) -> list[str]:
    """Tensors whose document lists formats of images and no ND are refused in ND."""
    limits = []
    for at, param in enumerate(params):
        formats = spec.get("params", {}).get(param.name, {}).get("formats", "").split()
        if formats and set(formats) <= IMAGE_FORMATS and kind_of(param)[0] == "Tensor":
            limits.append(_limit("kFormat", EVERYWHERE, at, formats=" ".join(formats)))
    return limits


def _field_limits(catalog: Catalog, op: str, params: tuple[CatalogParam, ...]) -> list[str]:
    """What hardware was seen to refuse (catalogs/field/limits.json)."""
    places = {param.name: at for at, param in enumerate(params)}
    limits = []
    for row in catalog.field_rows("formats", op):
        for name in row["params"].split():
            documented = catalog.specs[op]["params"][name]["formats"].split()
            formats = " ".join(f for f in documented if f != row["refuses"])
            socs = _row_socs(row)
            limits.append(_limit("kFormat", socs, places[name], row["rank"], row["code"],
                                 formats=formats))  # fmt: skip
    for row in catalog.field_rows("dtypes", op):
        for name in row["params"].split() if "only" in row else ():
            mask = _mask(catalog, row["only"])
            limits.append(_limit("kDtype", _row_socs(row), places[name], dtypes=mask))
    for row in catalog.field_rows("values", op):
        if row["param"] in places:
            mask = _mask(catalog, row["refuses"])
            limits.append(_limit("kValue", _row_socs(row), places[row["param"]], 0, row["code"],
                                 row["value"], mask))  # fmt: skip
    return limits


def _limit(
    kind: str, socs: int, at: int, rank: int = 0, code: int = 161002, value: int = 0,
    dtypes: int = 0, formats: str = "",
) -> str:  # fmt: skip
    text = f'"{formats}"' if formats else "nullptr"
    return f"{{Limit::{kind}, {socs}, {at}, {rank}, {code}, {value}, {dtypes:#x}ULL, {text}}}"


def _row_socs(row: dict[str, Any]) -> int:
    return products_mask(row["products"]) if "products" in row else EVERYWHERE


def _mask(catalog: Catalog, names: str) -> int:
    return sum(1 << v for v in catalog.dtype_values(tuple(names.split())) if v >= 0)
