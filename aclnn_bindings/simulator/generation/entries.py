"""Owns the C++ of both phases' entry points and the table of documented rules per operator."""

from __future__ import annotations

from typing import Any

from .catalog import MAX_WORKSPACE, WORKSPACE, Catalog, CatalogParam
from .text import BANNER

PRODUCTS = {"910": 0, "310p": 1, "310b": 2, "910b": 3, "A3": 4, "950": 5}  # bits: aclsim::Soc
# Phase-1 parameter types → (ArgKind, Planner method). Everything else by value is a number.
KINDS = {
    "aclTensor *": ("Tensor", "tensor"),
    "aclTensorList *": ("TensorList", "tensors"),
    "aclScalar *": ("Scalar", "scalar"),
    "aclScalarList *": ("ScalarList", "scalars"),
    "aclIntArray *": ("IntArray", "ints"),
    "aclBoolArray *": ("BoolArray", "bools"),
    "aclFloatArray *": ("FloatArray", "floats"),
    "char *": ("String", "text"),
    "bool": ("Bool", "flag"),
    "float": ("Float", "number"),
    "double": ("Float", "number"),
}
# Null is accepted for these although no document marks them: scales, shifts, running statistics.
UNLISTED_OPTIONALS = frozenset(
    ("weight", "weights", "bias", "gamma", "beta", "sorter", "runningMean", "runningVar",
     "clipValueMin", "clipValueMax")
)  # fmt: skip
INDEX_PARAMS = frozenset({"indices", "index", "target", "offsets"})
# Operators whose greatest workspace can be asked for, for graphs whose lengths are updated later.
# Headers declare it of two; clients look it up by name for the others, with phase 1's parameters
# (op-plugin, op_plugin/utils/custom_functions/opapi/update_op_api_common.h).
UNDECLARED_MAX_WORKSPACE = frozenset(
    f"aclnnFusedInferAttentionScoreV{version}" for version in (3, 4, 5)
)
NULLABLE_KINDS = ("Tensor", "TensorList", "Scalar", "ScalarList", "IntArray", "BoolArray")


def kind_of(param: CatalogParam) -> tuple[str, str]:
    """ArgKind and Planner method for a phase-1 parameter."""
    ctype = param.type.removeprefix("const ")
    if ctype in KINDS:
        return KINDS[ctype]
    return ("Pointer", "pointer") if "*" in ctype else ("Int", "integer")


def entry_points(catalog: Catalog, ops: list[str]) -> str:
    """C++ of both phases for each operator, and its rules."""
    headers = sorted({catalog.functions[op].header for op in ops})
    parts = [BANNER, '#include "nnopbase/plan.h"\n']
    # Each operator header repeats no name of another; their guards are unique.
    parts += [f"#include <{header}>" for header in headers]
    parts.append("\nnamespace aclsim {\nnamespace rows {")
    parts += [f"extern const Op {op};" for op in ops]
    parts.append("}  // namespace rows\nnamespace {")
    parts += [_rules(catalog, op) + "\n" + _entry(op) for op in ops]
    parts.append("}  // namespace\n}  // namespace aclsim\n")
    parts += [_phases(catalog, op) for op in ops]
    return "\n".join(parts) + "\n"


def kernel_rows(catalog: Catalog, ops: list[str]) -> str:
    """C++ of a table of rows with their parameters, sorted by name, for who calls them without
    the two phases."""
    parts = [BANNER, '#include "nnopbase/op.h"\n', "namespace aclsim {", "namespace rows {"]
    parts += [f"extern const Op {op};" for op in ops]
    parts.append("}  // namespace rows\nnamespace {")
    parts += [_rules(catalog, op) for op in ops]
    parts.append("}  // namespace\nstruct Row {\n  const Op* op;\n  const OpSpec* spec;\n};")
    parts.append("extern const Row kernel_rows[] = {")
    parts += [f"    {{&rows::{op}, &spec_{op}}}," for op in sorted(ops)]
    parts.append(f"}};\nextern const size_t kernel_row_count = {len(ops)};")
    parts.append("}  // namespace aclsim")
    return "\n".join(parts) + "\n"


def _phases(catalog: Catalog, op: str) -> str:
    first, second = catalog.functions[op + WORKSPACE], catalog.functions[op]
    size, executor = first.params[-2].name, first.params[-1].name
    lines = [
        f"{first.prototype} {{",
        f"  aclsim::Planner plan(aclsim::entry_{op}, {size}, {executor});",
    ]
    for param in first.params[:-2]:
        lines.append(f"  plan.{kind_of(param)[1]}({param.name});")
    lines += ["  return plan.finish();", "}"]
    names = ", ".join(p.name for p in second.params)
    lines += [
        f"{second.prototype} {{",
        f"  return aclsim::launch(aclsim::entry_{op}, {names});",
        "}",
    ]
    if op + MAX_WORKSPACE in catalog.functions or op in UNDECLARED_MAX_WORKSPACE:
        lines += _max_workspace(catalog, op)
    return "\n".join(lines)


def _max_workspace(catalog: Catalog, op: str) -> list[str]:
    """What no shape asks more than: the simulator's workspaces do not depend on lengths."""
    first = catalog.functions[op + WORKSPACE]
    params = ", ".join(p.declaration for p in first.params)
    names = ", ".join(p.name for p in first.params)
    name = op + MAX_WORKSPACE
    return [
        f'extern "C" __attribute__((visibility("default"))) {first.returns} {name}({params}) {{',
        f"  return {op}{WORKSPACE}({names});",
        "}",
    ]


def _rules(catalog: Catalog, op: str) -> str:
    function = catalog.functions[op + WORKSPACE]
    spec = catalog.specs.get(op, {})
    params = function.params[:-2]
    rows = [_param_rule(catalog, spec, p) for p in params]
    lines = [f"const ParamSpec params_{op}[] = {{{', '.join(rows)}}};"] if rows else []
    rules = [_soc_rule(catalog, params, r) for r in spec.get("exclusions", ())]
    if rules:
        lines.append(f"const SocRule rules_{op}[] = {{{', '.join(rules)}}};")
    table = f"params_{op}" if rows else "nullptr"
    exceptions = f"rules_{op}" if rules else "nullptr"
    socs = products_mask(spec.get("products", ""))
    counts = f"{len(rows)}, {len(rules)}, {socs}"
    lines.append(f'const OpSpec spec_{op} = {{"{op}", {table}, {exceptions}, {counts}}};')
    return "\n".join(lines)


def _entry(op: str) -> str:
    return f"Entry entry_{op} = {{&rows::{op}, &spec_{op}, {{}}}};"


def _param_rule(catalog: Catalog, spec: dict[str, Any], param: CatalogParam) -> str:
    kind = kind_of(param)[0]
    facts = spec.get("params", {}).get(param.name, {})
    names = _documented_dtypes(catalog, spec, facts) or param.dtypes
    mask = sum(1 << v for v in catalog.dtype_values(tuple(names)) if v >= 0)
    low, high = (-1 if bound is None else bound for bound in facts.get("rank") or (None, None))
    output = "true" if param.direction in "ob" else "false"
    required = "true" if _required(spec, facts, param, kind) else "false"
    bits = mask if kind in ("Tensor", "TensorList") else 0
    return f'{{"{param.name}", ArgKind::{kind}, {output}, {required}, {low}, {high}, {bits:#x}ULL}}'


def _documented_dtypes(
    catalog: Catalog, spec: dict[str, Any], facts: dict[str, Any]
) -> tuple[str, ...]:
    seen = 0
    while "dtypes" not in facts and "dtype_as" in facts and seen < 4:
        facts = spec["params"].get(facts["dtype_as"], {})
        seen += 1
    return catalog.spec_dtypes[facts["dtypes"]] if "dtypes" in facts else ()


def _required(spec: dict[str, Any], facts: dict[str, Any], param: CatalogParam, kind: str) -> bool:
    """Null gives 161001: the document lists it, or lists nothing and the name is not optional."""
    if kind not in NULLABLE_KINDS:
        return False
    nulls = spec.get("nulls")
    if nulls is not None and param.name in nulls:
        return True
    # Bounds of clamp, scales and shifts; where nothing is listed, of ops that have both. The row
    # knows when they may be missing.
    affine = nulls or {"bias", "beta"} & set(spec.get("params", ()))
    if affine and param.name in UNLISTED_OPTIONALS:
        return False
    return not (param.optional or facts.get("optional") or param.name.endswith("Optional"))


def _soc_rule(catalog: Catalog, params: tuple[CatalogParam, ...], rule: dict[str, Any]) -> str:
    only = "only" in rule
    names = catalog.spec_dtypes[rule["only" if only else "not"]]
    mask = sum(1 << v for v in catalog.dtype_values(names) if v >= 0)
    named = rule.get("on", ())
    if only and not named and any(p.name in INDEX_PARAMS for p in params):
        # A rule that names nothing speaks of the data, not of what points into it.
        named = tuple(p.name for p in params if p.name not in INDEX_PARAMS)
    selection = sum(1 << i for i, p in enumerate(params) if p.name in named and i < 32)
    socs = products_mask(rule["products"])
    if only and socs & (1 << PRODUCTS["A3"]):
        socs |= 1 << PRODUCTS["910b"]  # documents state these two together
    return f"{{{selection:#x}, {socs}, {'true' if only else 'false'}, {mask:#x}ULL}}"


def products_mask(codes: str) -> int:
    return sum(1 << PRODUCTS[c] for c in codes.split() if c in PRODUCTS)
